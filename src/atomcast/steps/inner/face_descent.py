"""Minimisation over the hull of many known vertices, without a matrix of their products.

For thousands of active atoms, a dense inverse of their Gram matrix (`corral.py`) takes too much
time and memory. Here, accelerated projected gradient steps find which weights are zero, and
conjugate gradients then solve for the others on that face of the domain, exactly to the tolerance;
the two alternate until no known atom violates optimality. All that is asked of the active set is
to score its atoms, so the cost of a step is that of two products with the known columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.base import Domain
from atomcast.known.active_set import ActiveSet

Floats = NDArray[np.float64]

#: Projected gradient steps between two visits to a face, and conjugate gradient steps on one.
GRADIENT_STEPS, FACE_STEPS = 25, 200
#: Alternations after which the best weights so far have to do.
ALTERNATIONS = 200
GOLDEN = 0.6180339887498949


class FaceDescent:
    """First-order minimisation of a quadratic over the known vertices."""

    def __init__(self, domain: Domain, direction: Floats | None = None) -> None:
        self.domain = domain
        #: Where the power method for the largest eigenvalue has come to; it goes on from there.
        self.direction: Floats = np.zeros(0) if direction is None else direction

    def minimise(self, active: ActiveSet, tolerance: float) -> bool:
        """Put weights into the active set whose gap within the known atoms is the tolerance.

        Returns False if that was not to be had: the best weights found are there all the same.
        """
        smoothness = self._smoothness(active)
        best, best_weights = np.inf, active.weights.copy()
        for _ in range(ALTERNATIONS):
            self._approach(active, smoothness)
            self._solve_face(active, tolerance)
            value = active.value()
            if value < best:
                best, best_weights = value, active.weights.copy()
            if self._gap(active) <= tolerance:
                return True
        active.set_weights(best_weights)
        return False

    def _gap(self, active: ActiveSet) -> float:
        """The duality gap among the known atoms."""
        merit = float(np.max(self.domain.merit(active.scores())))
        if self.domain.has_origin:
            merit = max(merit, 0.0)
        return active.inner() + self.domain.scale * merit

    def _curve(self, active: ActiveSet, direction: Floats) -> Floats:
        """The product of the Hessian with a direction, as a difference of two gradients."""
        weights, scores = active.weights.copy(), active.scores()
        active.set_weights(weights + direction)
        difference = active.scores() - scores
        active.set_weights(weights)
        return difference

    def _smoothness(self, active: ActiveSet) -> float:
        """The largest eigenvalue of the Hessian, by a power method that goes on between calls."""
        known = len(self.direction)
        # Without a pattern, for atoms in a pattern (each beside its negative) could cancel out.
        fresh: Floats = np.asarray((np.arange(len(active)) * GOLDEN) % 1.0 - 0.5, dtype=np.float64)
        fresh[:known] = self.direction
        size = 0.0
        for _ in range(10 if known else 30):
            fresh /= np.linalg.norm(fresh)
            fresh = self._curve(active, fresh)
            size = float(np.linalg.norm(fresh))
            if size == 0.0:
                return 1.0  # nothing to curve: all known atoms are zero
        self.direction = fresh / size
        return 1.1 * size  # the power method comes from below

    def _approach(self, active: ActiveSet, smoothness: float) -> None:
        """Accelerated projected gradient steps, restarted whenever the objective rises."""
        weights = ahead = self.domain.project(active.ids, active.weights)
        active.set_weights(weights)
        value, momentum = active.value(), 1.0
        for _ in range(GRADIENT_STEPS):
            active.set_weights(ahead)
            following = self.domain.project(active.ids, ahead - active.scores() / smoothness)
            active.set_weights(following)
            if active.value() > value:
                if momentum == 1.0:  # even a plain step fails: rounding
                    active.set_weights(weights)
                    return
                ahead, momentum = weights, 1.0
                continue
            value = active.value()
            larger = 0.5 + np.sqrt(0.25 + momentum**2)
            ahead = following + (momentum - 1.0) / larger * (following - weights)
            weights, momentum = following, larger
        active.set_weights(weights)

    def _solve_face(self, active: ActiveSet, tolerance: float) -> None:
        """Minimise over the weights that are not zero, and go there as far as signs allow."""
        weights, value = active.weights.copy(), active.value()
        support = np.flatnonzero(weights)
        if not len(support):
            return
        normal = self._normal(weights, support)
        change = self._conjugate_gradients(active, support, normal, tolerance)
        active.set_weights(self.domain.project(active.ids, weights + change))
        if active.value() <= value:
            return
        shrinking = weights[support] * change[support] < 0
        limits = np.where(shrinking, -weights[support] / np.where(shrinking, change[support], 1), 1)
        step = min(1.0, float(limits.min()))
        moved = weights + step * change
        moved[support[shrinking & (limits <= step)]] = 0.0
        active.set_weights(self.domain.project(active.ids, moved))
        if active.value() > value:
            active.set_weights(weights)

    def _normal(self, weights: Floats, support: NDArray[np.int64]) -> Floats:
        """The unit normal of the face that the weights lie on; zero inside the domain."""
        signs = np.sign(weights[support])
        inside = float(np.abs(weights).sum()) < self.domain.scale * (1.0 - 1e-12)
        if self.domain.has_origin and inside:
            return np.zeros(len(support))
        return signs / np.sqrt(len(support))

    def _conjugate_gradients(
        self, active: ActiveSet, support: NDArray[np.int64], normal: Floats, tolerance: float
    ) -> Floats:
        """The change of weights that leads to the minimum over the face's affine hull."""
        change, direction = np.zeros(len(active)), np.zeros(len(active))
        residual = -active.scores()[support]
        residual -= normal * (normal @ residual)
        along, size = residual.copy(), float(residual @ residual)
        small = (0.1 * tolerance / self.domain.scale) ** 2
        for _ in range(FACE_STEPS):
            if float(np.max(residual**2, initial=0.0)) <= small:
                break
            direction[support] = along
            curved = self._curve(active, direction)[support]
            curved -= normal * (normal @ curved)
            bend = float(along @ curved)
            if bend <= 0.0:
                break
            step = size / bend
            change[support] += step * along
            residual -= step * curved
            size, before = float(residual @ residual), size
            along = residual + (size / before) * along
        return change
