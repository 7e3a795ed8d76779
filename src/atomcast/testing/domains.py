"""What every domain promises: merit, signs, projection and gap are those of one convex set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atomcast.domains.balls import Domain
from atomcast.testing.promise import equal, promise


def check_domain(
    domain: Domain, ids: Sequence[int] = tuple(range(8)), seed: int = 0, trials: int = 10
) -> None:
    """Check that a domain keeps its contract, at random scores and weights.

    Parameters
    ----------
    domain : Domain
    ids : sequence of int, default=(0, ..., 7)
        The ids behind the weights of known atoms; an atom with several weights comes several times.
    seed : int, default=0
    trials : int, default=10
        How many random scores and weights to try.

    Raises
    ------
    AssertionError
        Says what is promised and not kept.
    """
    promise(isinstance(domain, Domain), f"{domain!r} is no Domain: make it a subclass")
    promise(0.0 < domain.scale < np.inf, f"scale must be a positive number, got {domain.scale!r}")
    rng = np.random.default_rng(seed)
    origin = domain.project(ids, np.zeros(len(ids)))
    promise(
        domain.has_origin == (not origin.any()),
        f"has_origin={domain.has_origin}, but zero is projected on {origin!r}",
    )
    for trial in range(trials):
        scores = rng.standard_normal(len(ids))
        if trial % 2:  # zeros and ties among them
            scores = np.round(scores)
        if domain.polytope:
            _check_vertices(domain, ids, scores)
        _check_projection(domain, ids, rng)
        _check_gap(domain, ids, scores, rng)


def _feasible(domain: Domain, ids: Any, rng: Any) -> Any:
    """A random point of the set."""
    weights = rng.standard_normal(len(ids)) * domain.scale * rng.choice([0.01, 1.0])
    return domain.project(ids, weights)


def _check_vertices(domain: Domain, ids: Any, scores: Any) -> None:
    merit, signs = domain.merit(scores), domain.signs(scores)
    promise(merit.shape == scores.shape, "merit must be an array with a number for each score")
    promise(np.all(np.abs(signs) == 1.0), f"signs must be -1 or 1, got {signs!r}")
    equal(
        -domain.scale * merit,
        domain.scale * signs * scores,
        "the merit of an atom must be minus the linear cost of its vertex, divided by scale",
        atol=1e-12,
    )
    equal(domain.known_merit(ids, scores), merit, "known_merit must be the merit of each atom")
    for j, sign in enumerate(signs):
        vertex = np.zeros(len(scores))
        vertex[j] = domain.scale * sign
        equal(
            domain.project(ids, vertex),
            vertex,
            f"a vertex, {domain.scale * sign} times an atom, must belong to the set",
            atol=1e-12 * domain.scale,
        )


def _check_projection(domain: Domain, ids: Any, rng: Any) -> None:
    weights = 2.0 * domain.scale * rng.standard_normal(len(ids))
    before = weights.copy()
    near = domain.project(ids, weights)
    equal(weights, before, "project must not change the weights that it is given", rtol=0.0)
    again = domain.project(ids, near)
    equal(again, near, "a projected point must stay where it is", atol=1e-9 * domain.scale)
    axes = np.vstack([np.eye(len(ids)), -np.eye(len(ids))])
    corners = [domain.project(ids, 10.0 * domain.scale * axis) for axis in axes]
    for other in (*corners, *(_feasible(domain, ids, rng) for _ in range(5))):
        angle = float((weights - near) @ (other - near))
        promise(
            angle <= 1e-9 * domain.scale**2,
            f"project must give the nearest point of the set: {other!r} is nearer than {near!r}",
        )


def _check_gap(domain: Domain, ids: Any, scores: Any, rng: Any) -> None:
    point = _feasible(domain, ids, rng)
    best = float(np.max(domain.known_merit(ids, scores)))
    gap = domain.gap(float(point @ scores), best)
    size = 1e-9 * domain.scale * (1 + float(np.abs(scores).sum()))
    promise(gap >= 0.0, f"a gap is never negative, got {gap!r}")
    # Far against the scores, the nearest point of the set is one that is best for them.
    lowest = domain.project(ids, -1e7 * domain.scale * scores)
    if scores.any():
        equal(
            gap,
            max(float((point - lowest) @ scores), 0.0),
            "the gap must be the largest linear decrease within the set",
            rtol=1e-6,
            atol=1e3 * size,
        )
    centre = 2.0 * domain.scale * rng.standard_normal(len(ids))
    gradient = point - centre
    optimum = domain.project(ids, centre)
    lost = 0.5 * float(gradient @ gradient - (optimum - centre) @ (optimum - centre))
    bound = domain.gap(float(point @ gradient), float(np.max(domain.known_merit(ids, gradient))))
    promise(
        lost <= bound + 1e-9 * domain.scale**2,
        f"the gap must bound the distance to the optimum: {bound!r} is below {lost!r}",
    )
