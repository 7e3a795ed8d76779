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

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.gram import Gram, Inverse, solved
from atomcast.messages.proposals import ranking

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

ORIGIN = -1
#: A Newton step leaves the slopes of the corral equal; a larger share of what it promised than
#: this means that the inverse is no longer one.
ROUNDED = 1e-3


class Corral:
    """Affinely independent vertices, their weights, and the inverse of their Gram matrix."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.scale = domain.scale
        self.gram = Gram()
        # A multiple of the all-ones matrix changes nothing where the weights sum to one, and
        # makes the Gram matrix regular exactly when the vertices are affinely independent.
        self.shift = 1.0
        self._clear()

    def _clear(self) -> None:
        self.position: Positions = np.zeros(0, dtype=np.int64)
        #: What an atom is multiplied by to make a vertex; zero for the origin.
        self.factor: Floats = np.zeros(0)
        self.share: Floats = np.zeros(0)
        self.inverse = Inverse()

    def minimise(self, active: ActiveSet, tolerance: float) -> None:
        """Put the best weights over all known atoms into the active set.

        On return no known vertex promises a decrease (a duality gap within the known atoms) of
        more than `tolerance`, unless rounding forbids.
        """
        self.gram = active.kept_products
        self.gram.extend(active)
        self.restart(active)
        stalled, promise = 0, np.inf
        best, best_weights = active.value(), active.weights.copy()
        for _ in range(100 + 10 * len(active)):
            scores = active.scores()
            slopes = self.factor * scores[self.position]
            level = float(self.share @ slopes)
            joining, factor, joining_slopes = self._violators(scores, level - tolerance)
            # Too high a slope matters as well: the opposite vertex of the same atom has minus that.
            uneven = float(np.abs(slopes - level).max())
            if not len(joining) and uneven <= tolerance:
                return
            if stalled or uneven > max(tolerance, ROUNDED * promise):
                # Rounding piles up in an updated inverse, and vertices that join together may get
                # in each other's way: with a fresh inverse, the steepest one alone helps.
                joining, factor, joining_slopes = joining[:1], factor[:1], joining_slopes[:1]
                self._refresh(longest=stalled == 2)
                slopes = self.factor * scores[self.position]
            promise, refused = uneven, False
            if len(joining):
                promise = max(uneven, level - float(joining_slopes[0]))
                kept = self._append(joining, factor, np.zeros(len(joining)))
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
            "corral.sign": np.sign(self.factor),
            "corral.share": self.share,
            "corral.shift": np.array(self.shift),
            "corral.inverse": self.inverse.matrix.copy(),
        }

    def remember(self, memory: Mapping[str, NDArray[Any]]) -> None:
        """Take over the memory of the same corral in another process."""
        self.position = memory["corral.position"]
        self.factor = self.scale * memory["corral.sign"] * (self.position >= 0)
        self.share, self.shift = memory["corral.share"], float(memory["corral.shift"])
        self.inverse.set(memory["corral.inverse"])
        if not len(self.position) == len(self.factor) == len(self.share) == self.inverse.size:
            raise ValueError("the corral of the checkpoint and its inverse do not go together")

    def restart(self, active: ActiveSet) -> None:
        """Take the corral from the weights of the active set, unless it is already that one."""
        if len(self.share) and np.array_equal(self._weights(len(active)), active.weights):
            return
        self._clear()
        self.shift = self._fitting_shift()
        support = np.flatnonzero(active.weights)
        share = np.abs(active.weights[support]) / self.scale
        factor = self.scale * np.sign(active.weights[support])
        rest = max(1.0 - float(share.sum()), 0.0)
        if self.domain.has_origin and (rest > 0.0 or not len(support)):
            self._append(np.array([ORIGIN]), np.zeros(1), np.array([rest]))
        if len(support):
            self._append_dependent(support, factor, share)
        elif not self.domain.has_origin:
            first = int(np.argmin(np.diag(self.gram.matrix)))
            self._append(np.array([first]), np.array([self.scale]), np.ones(1))
        self._publish(active)

    # -- vertices ---------------------------------------------------------------------------

    def _products(
        self, position: Positions, factor: Floats, other: Positions, other_factor: Floats
    ) -> Floats:
        """Gram matrix between vertices, with the shift; the origin's products are zero."""
        products = self.gram.matrix.take(position, 0, mode="wrap").take(other, 1, mode="wrap")
        products *= factor[:, None]
        products *= other_factor
        products += self.shift
        return products

    def _append(self, position: Positions, factor: Floats, share: Floats) -> Positions:
        """Add vertices to the corral; returns which of them were independent and are in."""
        old = len(self.position)
        all_positions = np.concatenate([self.position, position])
        all_factors = np.concatenate([self.factor, factor])
        products = self._products(all_positions, all_factors, position, factor)
        kept = self.inverse.append(
            products[:old],
            products[old:],
            lambda: self._products(self.position, self.factor, self.position, self.factor),
        )
        if len(kept) < len(position):
            places = np.concatenate([np.arange(old), old + kept])
            all_positions, all_factors = all_positions[places], all_factors[places]
            share = share[kept]
        self.position, self.factor = all_positions, all_factors
        self.share = np.concatenate([self.share, share])
        return kept

    def _append_dependent(self, position: Positions, factor: Floats, share: Floats) -> None:
        """Add weighted vertices of which some may depend on others, keeping the image.

        Where a vertex is an affine combination of the corral, its weight is moved along that
        combination until it is used up or one of the corral's own weights is (Caratheodory).
        """
        kept = self._append(position, factor, share)
        if len(kept) == len(position):
            return
        for j in np.setdiff1d(np.arange(len(position)), kept):
            vertex, left = slice(j, j + 1), float(share[j])
            while left > 0.0:
                across = self._products(
                    self.position, self.factor, position[vertex], factor[vertex]
                )
                mix = (self.inverse.matrix @ across)[:, 0]
                limits = self._limits(mix)
                amount = min(left, float(limits.min()))
                self.share = np.maximum(self.share + amount * mix, 0.0)
                left -= amount
                if left <= 0.0:
                    break
                self.share[np.argmin(limits)] = 0.0
                self._remove(np.array([np.argmin(limits)]))
                if len(self._append(position[vertex], factor[vertex], np.array([left]))):
                    break
        self.share /= self.share.sum()  # where all but dependent, mixes sum to one but roughly

    def _limits(self, change: Floats) -> Floats:
        """How far each share may go along a change until it is zero."""
        limits = np.full(len(change), np.inf)
        return np.divide(self.share, -change, out=limits, where=change < 0.0)

    def _refresh(self, longest: bool) -> None:
        """Compute the inverse afresh; vertices that turn out to be dependent leave."""
        position, factor, share = self.position, self.factor, self.share
        self._clear()
        self.shift = self._fitting_shift(longest)
        self._append_dependent(position, factor, share)

    def _fitting_shift(self, longest: bool = False) -> float:
        """A shift of the size of the shortest vertices, beside which none of them look alike.

        Long vertices that are multiples of each other need one of the size of the longest.
        """
        lengths = np.diag(self.gram.matrix)
        lengths = lengths[lengths > 0.0]
        if not len(lengths):
            return 1.0
        return self.scale**2 * float(lengths.max() if longest else lengths.min())

    def _remove(self, rows: Positions) -> None:
        order = self.inverse.remove(rows)
        self.position, self.factor = self.position[order], self.factor[order]
        self.share = self.share[order]

    def _violators(self, scores: Floats, level: float) -> tuple[Positions, Floats, Floats]:
        """Known vertices outside the corral with a slope below `level`, the steepest first.

        Returns their positions, factors and slopes.
        """
        slopes = -self.scale * self.domain.merit(scores)
        slopes[self.position[self.factor != 0.0]] = np.inf
        joining = np.flatnonzero(slopes < level)
        factor, steepness = self.scale * self.domain.signs(scores[joining]), slopes[joining]
        if level > 0.0 and self.domain.has_origin and self.factor.all():
            joining = np.append(joining, ORIGIN)
            factor, steepness = np.append(factor, 0.0), np.append(steepness, 0.0)
        if len(joining) > 1:  # of equal atoms the one known first, as everywhere
            order = ranking(-steepness, joining)
            joining, factor, steepness = joining[order], factor[order], steepness[order]
        return joining, factor, steepness

    # -- minimisation over the corral -------------------------------------------------------

    def _descend(self, slopes: Floats) -> None:
        """Newton steps until the minimiser over the affine hull is inside the hull.

        Vertices that lose their weight on the way are held at zero by a correction with their
        part of the inverse, and leave it only at the end, all at once: a step costs O(k), not
        O(k^2). For the same reason the Newton direction is updated, not computed again.
        """
        # The Newton direction, and beside it the way in which the sum of the shares changes.
        newton = self.inverse.matrix @ np.array([slopes, np.ones(len(slopes))]).T
        out = np.zeros(0, dtype=np.int64)
        for _ in range(2 * len(self.share) + 10):
            toward, along = self._without(out, newton).T
            direction = (toward.sum() / along.sum()) * along - toward
            direction[out] = 0.0
            limits = self._limits(direction)
            step = min(1.0, float(limits.min()))
            if step <= 0.0:
                out = np.concatenate([out, np.flatnonzero(limits <= 0.0)])
                continue
            self.share = np.maximum(self.share + step * direction, 0.0)
            newton[:, 0] += step * direction  # the objective is quadratic
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

    def _without(self, out: Positions, products: Floats) -> Floats:
        """Correct products with the inverse to the inverse without the rows `out`."""
        if not len(out):
            return products
        side = self.inverse.matrix[:, out]
        return products - side @ solved(side[out], products[out])

    def _weights(self, count: int) -> Floats:
        weights = np.zeros(count)
        atoms = self.factor != 0.0
        weights[self.position[atoms]] = (self.factor * self.share)[atoms]
        return weights

    def _publish(self, active: ActiveSet) -> None:
        active.set_weights(self._weights(len(active)))
