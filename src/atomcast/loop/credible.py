"""Whether a checkpoint says what a run could have written: what follows from its weights must."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from atomcast.loop.replica import Replica
from atomcast.storage.snapshot import Snapshot

Floats = NDArray[np.float64]
#: What an active set remembers and can work out from the weights.
DERIVED = ("image", "kernel.products")
#: Figures that are differences may be off by so many times what their parts are.
FIGURES = 100.0
#: Weights may be outside of the domain by this share of its size, for rounding piles up.
OUTSIDE = 1e-8


def check_numbers(snapshot: Snapshot) -> None:
    """Raise ValueError where a number is none."""
    told = {"objective": np.array(snapshot.objective)}
    told |= {"weights": snapshot.weights, "best": snapshot.best, **snapshot.memory}
    for name, numbers in told.items():
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"its {name} has NaN or infinity")
    if snapshot.round < 0 or snapshot.idle < 0:
        raise ValueError(f"its round is {snapshot.round}, and {snapshot.idle} of them were idle")


def check_weights(replica: Replica) -> None:
    """Raise ValueError if the weights of the active set are outside of the domain."""
    active, domain = replica.active, replica.domain
    if not np.any(active.weights):
        return
    nearest = domain.project(active.ids, active.weights.copy())
    if not np.max(np.abs(nearest - active.weights)) <= OUTSIDE * domain.scale:
        raise ValueError(f"its weights are not within the {type(domain).__name__}")


def check_best(snapshot: Snapshot, replica: Replica) -> None:
    """Raise ValueError if the best weights, now in the active set, cannot have had their gap.

    The gap within the known atoms is a lower bound for it, and so is the distance to the lowest
    objective that was seen.
    """
    gap, relative_gap, objective, lowest = snapshot.best_figures.tolist()
    active, domain = replica.active, replica.domain
    value, inner = active.value(), active.inner()
    merit = float(np.max(domain.known_merit(active.ids, active.scores()), initial=-math.inf))
    size = max(abs(value), abs(snapshot.objective), abs(inner))
    slack = FIGURES * active.rounding * (size + (domain.scale * abs(merit) if len(active) else 0.0))
    if replica.feasible and not abs(objective - value) <= slack:
        raise ValueError(f"its best weights have the objective {value:.6g}, not {objective:.6g}")
    within = replica.certified(domain.gap(inner, merit) if len(active) else 0.0)
    least = within if replica.feasible else 0.0
    if domain.has_origin:  # else the objective was seen at zero, where no weights may be
        least = max(least, objective - lowest)
    if not gap >= least - slack:
        raise ValueError(f"its best weights have a gap of at least {least:.6g}, not {gap:.6g}")
    if not (relative_gap == gap or math.isclose(relative_gap, gap / replica.unit, rel_tol=1e-6)):
        raise ValueError(f"a gap of {gap:.6g} is no relative gap of {relative_gap:.6g} here")


def check_memory(snapshot: Snapshot, replica: Replica) -> None:
    """Raise ValueError if what is remembered does not follow from the weights, but for rounding."""
    active = replica.active
    own = active.memory()
    sizes = [float(np.abs(weights).sum()) for weights in (snapshot.weights, snapshot.best)]
    size = max(*sizes, 1e-6 * replica.domain.scale) * active.longest()
    for name in DERIVED:
        if name not in own:
            continue
        told = snapshot.memory[name]
        if told.shape != own[name].shape or told.dtype != own[name].dtype:
            raise ValueError(f"its {name} has the shape {told.shape}, not {own[name].shape}")
        if not np.max(np.abs(told - own[name]), initial=0.0) <= active.rounding * size:
            raise ValueError(f"its {name} is not that of its weights")
