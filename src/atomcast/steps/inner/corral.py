"""Exact minimisation of a quadratic over the hull of the known vertices.

This is Wolfe's method for the nearest point in a polytope (Math. Programming 11, 1976), in the
metric of the objective, taking many vertices at a time. It keeps a *corral*: affinely independent
vertices with positive weights. A Newton step goes to the minimiser over their affine hull; where
that leaves the hull, the step stops at its border and the vertices that lost their weight are
dropped. Once the minimiser is inside, every known vertex with a lower slope joins. The method is
finite, and exact up to rounding.

The l1 ball is the hull of the vertices +-beta a_j and of the origin, so that both domains are one
case: a solution inside the ball gives the origin a weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.base import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.gram import Gram, Inverse, inverse_of
from atomcast.messages.proposals import ranking

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

ORIGIN = -1
#: A Newton step leaves the slopes of the corral equal; a larger share of what it promised than
#: this means that the inverse is no longer one.
ROUNDED = 1e-3


class Corral:
    """Affinely independent vertices, their weights, and the inverse of their Gram matrix."""

    def __init__(self, domain: Domain, gram: Gram) -> None:
        self.domain = domain
        self.gram = gram
        # A multiple of the all-ones matrix changes nothing where the weights sum to one, and
        # makes the Gram matrix regular exactly when the vertices are affinely independent.
        self.shift = 1.0
        self._clear()

    def _clear(self) -> None:
        self.position: Positions = np.zeros(0, dtype=np.int64)
        self.sign: Floats = np.zeros(0)
        self.share: Floats = np.zeros(0)
        self.inverse = Inverse()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights over all known atoms into the active set.

        On return no known vertex promises a decrease (a duality gap within the known atoms) of
        more than `tolerance`, unless rounding forbids.
        """
        self.gram.extend(active)
        self.restart(active)
        stalled, promise = 0, np.inf
        best, best_weights = active.value(), active.weights.copy()
        for _ in range(100 + 10 * len(active)):
            scores = active.scores()
            slopes = self._slopes(scores)
            level = float(self.share @ slopes)
            joining, sign, joining_slopes = self._violators(scores, level - tolerance)
            # Too high a slope matters as well: the opposite vertex of the same atom has minus that.
            uneven = float(np.max(np.abs(slopes - level), initial=0.0))
            if not len(joining) and uneven <= tolerance:
                return
            if stalled or uneven > max(tolerance, ROUNDED * promise):
                # Rounding piles up in an updated inverse, and vertices that join together may get
                # in each other's way: with a fresh inverse, the steepest one alone helps.
                joining, sign, joining_slopes = joining[:1], sign[:1], joining_slopes[:1]
                self._refresh(longest=stalled == 2)
                slopes = self._slopes(scores)
            promise = max(uneven, float(np.max(level - joining_slopes, initial=0.0)))
            refused = False
            if len(joining):
                kept = self._append(joining, sign, np.zeros(len(joining)))
                slopes = np.concatenate([slopes, joining_slopes[kept]])
                refused = not len(kept)
            self._descend(slopes)
            if not len(self.share):  # the inverse was none at all
                active.set_weights(best_weights)
                self.restart(active)
            self._publish(active)
            # Where rounding is all that is left to gain, a few Newton steps polish, then stop.
            value = active.value()
            if value < best:
                best, best_weights = value, active.weights.copy()
                stalled = int(refused)  # if none could join, the inverse is to blame
                continue
            stalled += 1
            if stalled == 3:
                break
            if value > best + tolerance:  # led astray, by an inverse that was none
                active.set_weights(best_weights)
                self.restart(active)
        if active.value() > best:
            active.set_weights(best_weights)

    def memory(self) -> dict[str, NDArray[Any]]:
        """The corral and its inverse, in their order and with the rounding that they have."""
        return {
            "corral.position": self.position,
            "corral.sign": self.sign,
            "corral.share": self.share,
            "corral.shift": np.array(self.shift),
            "corral.inverse": self.inverse.matrix.copy(),
        }

    def remember(self, memory: Mapping[str, NDArray[Any]]) -> None:
        """Take over the memory of the same corral in another process."""
        self.position, self.sign = memory["corral.position"], memory["corral.sign"]
        self.share, self.shift = memory["corral.share"], float(memory["corral.shift"])
        self.inverse.set(memory["corral.inverse"])
        if not len(self.position) == len(self.sign) == len(self.share) == self.inverse.size:
            raise ValueError("the corral of the checkpoint and its inverse do not go together")

    def restart(self, active: ActiveSet) -> None:
        """Take the corral from the weights of the active set, unless it is already that one."""
        if len(self.share) and np.array_equal(self._weights(len(active)), active.weights):
            return
        self._clear()
        self.shift = self._fitting_shift()
        support = np.flatnonzero(active.weights)
        share = np.abs(active.weights[support]) / self.domain.scale
        sign = np.sign(active.weights[support])
        rest = max(1.0 - float(share.sum()), 0.0)
        if self.domain.has_origin and (rest > 0.0 or not len(support)):
            self._append(np.array([ORIGIN]), np.ones(1), np.array([rest]))
        if len(support):
            self._append_dependent(support, sign, share)
        elif not self.domain.has_origin:
            first = int(np.argmin(np.diag(self.gram.matrix)))
            self._append(np.array([first]), np.ones(1), np.ones(1))
        self._publish(active)

    # -- vertices ---------------------------------------------------------------------------

    def _products(
        self, position: Positions, sign: Floats, other: Positions, other_sign: Floats
    ) -> Floats:
        """Gram matrix between vertices, with the shift; the origin's products are zero."""
        scale = self.domain.scale
        left, right = scale * sign * (position >= 0), scale * other_sign * (other >= 0)
        products = self.gram.matrix[np.ix_(np.maximum(position, 0), np.maximum(other, 0))]
        result: Floats = products * left[:, None] * right + self.shift
        return result

    def _append(self, position: Positions, sign: Floats, share: Floats) -> Positions:
        """Add vertices to the corral; returns which of them were independent and are in."""
        across = self._products(self.position, self.sign, position, sign)
        kept = self.inverse.append(across, self._products(position, sign, position, sign))
        self.position = np.concatenate([self.position, position[kept]])
        self.sign = np.concatenate([self.sign, sign[kept]])
        self.share = np.concatenate([self.share, share[kept]])
        return kept

    def _append_dependent(self, position: Positions, sign: Floats, share: Floats) -> None:
        """Add weighted vertices of which some may depend on others, keeping the image.

        Where a vertex is an affine combination of the corral, its weight is moved along that
        combination until it is used up or one of the corral's own weights is (Caratheodory).
        """
        kept = self._append(position, sign, share)
        for j in np.setdiff1d(np.arange(len(position)), kept):
            vertex, left = slice(j, j + 1), float(share[j])
            while left > 0.0:
                across = self._products(self.position, self.sign, position[vertex], sign[vertex])
                mix = (self.inverse.matrix @ across)[:, 0]
                with np.errstate(divide="ignore", invalid="ignore"):
                    limits = np.where(mix < 0, -self.share / mix, np.inf)
                amount = min(left, float(limits.min()))
                self.share = np.maximum(self.share + amount * mix, 0.0)
                left -= amount
                if left <= 0.0:
                    break
                self.share[np.argmin(limits)] = 0.0
                self._remove(np.array([np.argmin(limits)]))
                if len(self._append(position[vertex], sign[vertex], np.array([left]))):
                    break

    def _refresh(self, longest: bool) -> None:
        """Compute the inverse afresh; vertices that turn out to be dependent leave."""
        position, sign, share = self.position, self.sign, self.share
        self._clear()
        self.shift = self._fitting_shift(longest)
        self._append_dependent(position, sign, share)

    def _fitting_shift(self, longest: bool = False) -> float:
        """A shift of the size of the shortest vertices, beside which none of them look alike.

        Long vertices that are multiples of each other need one of the size of the longest.
        """
        lengths = np.diag(self.gram.matrix)
        lengths = lengths[lengths > 0.0]
        if not len(lengths):
            return 1.0
        return self.domain.scale**2 * float(lengths.max() if longest else lengths.min())

    def _remove(self, rows: Positions) -> Positions:
        order = self.inverse.remove(rows)
        self.position, self.sign = self.position[order], self.sign[order]
        self.share = self.share[order]
        return order

    def _slopes(self, scores: Floats) -> Floats:
        """The slope of the objective towards each vertex of the corral."""
        slopes = self.domain.scale * self.sign * scores[np.maximum(self.position, 0)]
        return np.where(self.position >= 0, slopes, 0.0)

    def _violators(self, scores: Floats, level: float) -> tuple[Positions, Floats, Floats]:
        """Known vertices outside the corral with a slope below `level`, the steepest first.

        Returns their positions, signs and slopes.
        """
        slopes = -self.domain.scale * self.domain.merit(scores)
        slopes[self.position[self.position >= 0]] = np.inf
        joining = np.flatnonzero(slopes < level)
        sign, steepness = self.domain.signs(scores[joining]), slopes[joining]
        if self.domain.has_origin and level > 0.0 and ORIGIN not in self.position:
            joining = np.append(joining, ORIGIN)
            sign, steepness = np.append(sign, 1.0), np.append(steepness, 0.0)
        order = ranking(-steepness, joining)  # of equal atoms the one known first, as everywhere
        return joining[order], sign[order], steepness[order]

    # -- minimisation over the corral -------------------------------------------------------

    def _descend(self, slopes: Floats) -> None:
        """Newton steps until the minimiser over the affine hull is inside the hull.

        Vertices that lose their weight on the way are held at zero by a correction with their
        part of the inverse, and leave it only at the end, all at once: a step costs O(k), not
        O(k^2). For the same reason the Newton direction is updated, not computed again.
        """
        inverse = self.inverse.matrix
        newton, ones = (inverse @ np.column_stack([slopes, np.ones(len(slopes))])).T
        out = np.zeros(0, dtype=np.int64)
        for _ in range(2 * len(self.share) + 10):
            toward, along = self._without(out, newton), self._without(out, ones)
            level = float(toward.sum() / along.sum())
            direction = level * along - toward
            direction[out] = 0.0
            stuck = np.flatnonzero((self.share <= 0.0) & (direction < 0.0))
            if len(stuck):
                out = np.concatenate([out, stuck])
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                limits = np.where(direction < 0, -self.share / direction, np.inf)
            step = min(1.0, float(limits.min()))
            self.share = np.maximum(self.share + step * direction, 0.0)
            newton = newton + step * direction  # the objective is quadratic
            if step == 1.0:
                break
            leaving = np.flatnonzero(limits <= step)
            self.share[leaving] = 0.0
            out = np.concatenate([out, leaving])
        empty = np.flatnonzero(~(self.share > 0.0))
        if len(empty) == len(self.share):
            return self._clear()
        if len(empty):
            self._remove(empty)
        self.share /= self.share.sum()

    def _without(self, out: Positions, solved: Floats) -> Floats:
        """Correct a product with the inverse to the inverse without the rows `out`."""
        if not len(out):
            return solved
        side = self.inverse.matrix[:, out]
        try:
            held = np.linalg.solve(side[out], solved[out])
        except np.linalg.LinAlgError:
            held = inverse_of(side[out]) @ solved[out]
        return solved - side @ held

    def _weights(self, count: int) -> Floats:
        weights = np.zeros(count)
        atoms = self.position >= 0
        weights[self.position[atoms]] = (self.domain.scale * self.sign * self.share)[atoms]
        return weights

    def _publish(self, active: ActiveSet) -> None:
        active.set_weights(self._weights(len(active)))
