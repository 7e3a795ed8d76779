"""What every objective promises: value, gradient, curvature and line search fit together."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.objectives import Objective
from atomcast.testing.promise import equal, promise

#: Half the distance over which differences stand for derivatives.
STEP = 1e-5


def check_objective(
    objective: Objective, shape: tuple[int, ...] | None = None, seed: int = 0
) -> None:
    """Check that an objective keeps its contract, at random images.

    Parameters
    ----------
    objective : Objective
        With its target; a short one will do. A loss is bound first: `loss.bind(y)`.
    shape : tuple of int, optional
        Of an image; by default (d,).
    seed : int, default=0
        Of the random images and directions.

    Raises
    ------
    AssertionError
        Says what is promised and not kept.
    """
    promise(isinstance(objective, Objective), f"{objective!r} is no Objective: make it a subclass")
    rng = np.random.default_rng(seed)
    shape = (objective.d,) if shape is None else shape
    promise(shape[0] == objective.d > 0, f"d={objective.d!r} must be the length of an image")
    for spread in (0.0, 0.3, 1.0, 10.0):
        z, other = spread * rng.standard_normal((2, *shape))
        direction = rng.standard_normal(shape)
        before = z.copy()
        _check_value(objective, z, other)
        _check_gradient(objective, z, direction)
        _check_curvature(objective, z, other, direction)
        for max_step in (1e-3, 1.0, 100.0):
            _check_line_search(objective, z, direction, max_step)
        equal(z, before, "an image must not be changed", rtol=0.0)
        promise(np.all(np.isfinite(objective.intercept(z))), "the intercept must be finite")


def _check_value(objective: Any, z: Any, other: Any) -> None:
    value, there = objective.value(z), objective.value(other)
    promise(np.isfinite(value), f"the value must be finite, got {value!r}")
    promise(
        value >= objective.lower_bound - 1e-12 * abs(value),
        f"lower_bound={objective.lower_bound!r} is above a value, {value!r}",
    )
    room = 1e-9 * (1 + abs(value) + abs(there))
    for share in (0.25, 0.5):
        between = objective.value(share * z + (1 - share) * other)
        promise(
            between <= share * value + (1 - share) * there + room,
            "the objective must be convex: it is larger between two images than on the line "
            f"through their values, by {between - share * value - (1 - share) * there:.3g}",
        )
    changed = z.copy()
    changed += 1.0 + np.arange(z.size).reshape(z.shape)
    moved, kept = objective.value(changed), objective.value(changed.copy())
    promise(moved == kept, "the same image must have the same value, however it came about")


def _check_gradient(objective: Any, z: Any, direction: Any) -> None:
    gradient = objective.gradient(z)
    promise(gradient.shape == z.shape, f"the gradient has shape {gradient.shape}, not {z.shape}")
    for along in (direction, *np.eye(z.size)[:20].reshape(-1, *z.shape)):
        rise = objective.value(z + STEP * along) - objective.value(z - STEP * along)
        allowed = 1e-6 * (1 + abs(objective.value(z)))
        equal(
            float(np.vdot(gradient, along)),
            rise / (2 * STEP),
            "the gradient must be that of the value",
            rtol=1e-5,
            atol=allowed,
        )


def _check_curvature(objective: Any, z: Any, other: Any, direction: Any) -> None:
    bend = objective.curvature(z).bend(direction)
    change = objective.gradient(z + STEP * direction) - objective.gradient(z - STEP * direction)
    slope = float(np.vdot(direction, change)) / (2 * STEP)
    equal(bend, slope, "the curvature must be that of the gradient", rtol=1e-4, atol=1e-6)
    promise(bend >= -1e-9, f"the curvature must not be negative, got {bend:.3g}")
    if objective.quadratic:
        there = objective.curvature(other).bend(direction)
        equal(there, bend, "a quadratic objective must have the same curvature everywhere")


def _check_line_search(objective: Any, z: Any, direction: Any, max_step: float) -> None:
    step = objective.line_search(z, direction, max_step)
    promise(0.0 <= step <= max_step, f"the step {step!r} is not within [0, {max_step}]")
    value = objective.value(z + step * direction)
    best = min(objective.value(z + t * direction) for t in np.linspace(0.0, max_step, 41))
    promise(
        value <= best + 1e-8 * (1 + abs(best)),
        f"the line search must find the best step: {step!r} leads to {value!r}, but {best!r} is "
        "on the way",
    )
    nowhere = objective.line_search(z, 0.0 * direction, max_step)
    promise(0.0 <= nowhere <= max_step, "a line search along nothing must end within its bounds")
