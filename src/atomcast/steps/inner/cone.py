"""Minimisation of a quadratic over few coefficients, under a bound on norms of their images.

The problem is

    min over c of  c'Pc / 2 + q'c   so that   sum over groups g of  omega_g ||(W c)_g||_2 <= beta,

where W is made of a block of rows for each node, which has m coefficients of its own. With a
bound t_g for each norm, that is a second-order cone program, and it is solved by the primal-dual
interior-point method with the scaling of Nesterov and Todd. A step of it costs one factorisation of
a matrix of the size of P. All iterates are inside the ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Steps after which rounding must be what is left of the gap.
STEPS = 80
#: How near to the border of the cones a step may lead.
INSIDE = 0.99
#: Smaller parts of a whole are rounding.
FLAT = 1e-8
#: A new start keeps this distance from the border of the ball, as a share of its radius.
ROOM = 0.1


@dataclass(frozen=True, eq=False)
class Norms:
    """The rows of W, in the order of nodes and then of groups, and the norms of their groups.

    Parameters
    ----------
    rows : array of shape (F, m)
        Row f says how entry f is made of the coefficients of its node.
    node : array of shape (F,)
        Whose entry it is; every node has one.
    starts : array of shape (G,)
        Where the groups begin.
    omega : array of shape (G,)
    """

    rows: Floats
    node: Positions
    starts: Positions
    omega: Floats

    @property
    def count(self) -> int:
        """How many coefficients there are."""
        return (int(self.node[-1]) + 1) * self.rows.shape[1]

    @cached_property
    def group(self) -> Positions:
        """The group of each entry, shape (F,)."""
        sizes = np.diff(np.append(self.starts, len(self.rows)))
        return np.repeat(np.arange(len(self.starts)), sizes)

    @cached_property
    def _of_node(self) -> Positions:
        """Where the entries of each node begin."""
        return np.flatnonzero(np.append(True, np.diff(self.node)))

    @cached_property
    def _of_group(self) -> Positions:
        """Where the groups of each node begin."""
        return np.flatnonzero(np.append(True, np.diff(self.node[self.starts])))

    def forth(self, c: Floats) -> Floats:
        """The entries W c."""
        return np.einsum("fm,fm->f", self.rows, c.reshape(-1, self.rows.shape[1])[self.node])

    def back(self, entries: Floats) -> Floats:
        """The product of W' with entries."""
        return np.add.reduceat(self.rows * entries[:, None], self._of_node).ravel()

    def dot(self, left: Floats, right: Floats) -> Floats:
        """The inner product of entries, group by group."""
        return np.add.reduceat(left * right, self.starts)

    def size(self, c: Floats) -> float:
        """The norm of coefficients."""
        entries = self.forth(c)
        return float(self.omega @ np.sqrt(self.dot(entries, entries)))

    def curvature(self, scale: Floats, shrink: Floats, along: Floats) -> Floats:
        """W'MW with M = scale (I - shrink along along') for each group; by node, (N, m, m)."""
        rows = self.rows
        outer = (scale[self.group, None, None] * rows[:, :, None]) * rows[:, None, :]
        axes = np.add.reduceat(rows * along[:, None], self.starts)
        less = ((scale * shrink)[:, None, None] * axes[:, :, None]) * axes[:, None, :]
        return np.add.reduceat(outer, self._of_node) - np.add.reduceat(less, self._of_group)


class Cone(NamedTuple):
    """A point of all cones t_g >= ||w_g||, and of the half line of the slack; or a step of one."""

    top: Floats
    entries: Floats
    slack: float

    def moved(self, change: Cone, step: float) -> Cone:
        """The point a step away."""
        return Cone(
            self.top + step * change.top,
            self.entries + step * change.entries,
            self.slack + step * change.slack,
        )

    def dot(self, other: Cone) -> float:
        """The inner product of two points."""
        products = self.top @ other.top + self.entries @ other.entries
        return float(products) + self.slack * other.slack

    def depth(self, norms: Norms) -> Floats:
        """The product of t - ||w|| and t + ||w||, which is zero on the border."""
        length = np.sqrt(norms.dot(self.entries, self.entries))
        return (self.top - length) * (self.top + length)

    def room(self, change: Cone, norms: Norms, depth: Floats) -> float:
        """How many times a change leads to the border."""
        bend = change.top**2 - norms.dot(change.entries, change.entries)
        slope = self.top * change.top - norms.dot(self.entries, change.entries)
        nearing = np.sqrt(np.maximum(slope**2 - bend * depth, 0.0)) - slope
        times = np.divide(depth, nearing, out=np.full_like(depth, np.inf), where=nearing > 0.0)
        line = -self.slack / change.slack if change.slack < 0.0 else np.inf
        return min(float(times.min()), line)


def minimise_in_ball(
    P: Floats, q: Floats, norms: Norms, beta: float, start: Floats, tolerance: float, scale: float
) -> Floats:
    """The best coefficients, to within a gap of `tolerance`.

    Parameters
    ----------
    P, q : arrays of shape (M, M) and (M,)
    norms : Norms
    beta : float
        The radius of the ball.
    start : array of shape (M,)
        Coefficients to begin near.
    tolerance : float
    scale : float
        About what there is to gain, from which the method comes down.
    """
    c = start * min(1.0, (1.0 - ROOM) * beta / max(norms.size(start), 1e-300))
    primal = _inside(c, norms, beta)
    dual = _mirrored(primal, norms, scale / len(norms.starts))
    unsettled = scale  # what stationarity is still off by
    for _ in range(STEPS):
        gap = primal.dot(dual)
        if gap + unsettled <= tolerance:
            break
        steps = _Newton(P, P @ c + q, norms, primal, dual)
        reach = min(INSIDE * steps.room(steps.toward(0.0)), 1.0)
        mean = gap / (len(norms.starts) + 1)
        change, forth, dual_forth = aimed = steps.toward((1.0 - reach) ** 3 * mean)
        reach = min(INSIDE * steps.room(aimed), 1.0)
        moved = c + reach * change
        if not reach > 1e-9 or not np.all(np.isfinite(moved)):
            break
        c, primal, dual = moved, primal.moved(forth, reach), dual.moved(dual_forth, reach)
        unsettled *= 1.0 - reach
        if not (primal.depth(norms).min() > 0.0 and dual.depth(norms).min() > 0.0):
            break  # rounding is all that is left
    if len(norms.starts) == len(norms.rows):
        c = _on_face(P, q, norms, beta, c, primal, dual)
    return c * min(1.0, beta / max(norms.size(c), 1e-300))


def _on_face(
    P: Floats, q: Floats, norms: Norms, beta: float, c: Floats, primal: Cone, dual: Cone
) -> Floats:
    """The minimum over the face of the l1 ball that the method has come near to, if it is there.

    On the face, some entries are zero and the others keep their signs, so that linear equations
    remain; they are solved to the last digit, which the method itself cannot reach.
    """
    from scipy.linalg import block_diag, lstsq, null_space

    zero = primal.top / beta < np.sqrt(dual.depth(norms)) / dual.top
    width, nodes = norms.rows.shape[1], range(norms.count // norms.rows.shape[1])
    free = [null_space(norms.rows[zero & (norms.node == i)], rcond=FLAT) for i in nodes]
    basis = block_diag(*(part if part.size else np.zeros((width, 0)) for part in free))
    normal = norms.back(np.where(zero, 0.0, np.sign(primal.entries)) * norms.omega) @ basis
    inside = dual.slack * beta <= FLAT * abs(float(q @ c))
    matrix = np.zeros((len(normal) + 1,) * 2)
    matrix[:-1, :-1] = basis.T @ P @ basis
    matrix[-1, -1] = inside
    if not inside:
        matrix[-1, :-1] = matrix[:-1, -1] = normal
    right = np.append(-(q @ basis), 0.0 if inside else beta)
    solution = lstsq(matrix, right, cond=FLAT**2, check_finite=False, lapack_driver="gelsy")[0]
    found = basis @ solution[:-1]

    def value(of: Floats) -> float:
        of = of * min(1.0, beta / max(norms.size(of), 1e-300))
        return float(of @ (0.5 * (P @ of) + q))

    return found if value(found) <= value(c) + 1e-13 * abs(value(c)) else c


def _inside(c: Floats, norms: Norms, beta: float) -> Cone:
    """Bounds above the norms of the coefficients, which leave half of the room to the slack."""
    entries = norms.forth(c)
    length = np.sqrt(norms.dot(entries, entries))
    left = beta - float(norms.omega @ length)
    top = length + 0.5 * left / norms.omega.sum()
    return Cone(top, entries, beta - float(norms.omega @ top))


def _mirrored(point: Cone, norms: Norms, mean: float) -> Cone:
    """`mean` times the inverse of a point in the algebra of the cones."""
    shrunk = mean / point.depth(norms)
    return Cone(shrunk * point.top, -shrunk[norms.group] * point.entries, mean / point.slack)


class _Newton:
    """The steps from a primal and a dual point, which share one factorisation.

    The scaling of the cones has the inverse square e (2 v v' - J) with v = (v0, -v1), J the
    reflection of the entries; the bounds t are eliminated, so that only c is left.
    """

    def __init__(self, P: Floats, slope: Floats, norms: Norms, primal: Cone, dual: Cone) -> None:
        from scipy.linalg import cho_factor

        self.norms, self.slope, self.primal, self.dual = norms, slope, primal, dual
        group, omega = norms.group, norms.omega
        self.depths = primal.depth(norms), dual.depth(norms)
        here, there = np.sqrt(self.depths[0]), np.sqrt(self.depths[1])
        product = primal.top * dual.top + norms.dot(primal.entries, dual.entries)
        half = 2.0 * np.sqrt(0.5 + 0.5 * product / (here * there))
        v0 = (primal.top / here + dual.top / there) / half
        self.v1 = (primal.entries / here[group] - dual.entries / there[group]) / half[group]
        self.e = there / here
        self.top = self.e * (2.0 * v0**2 - 1.0)
        self.cross = -2.0 * (self.e * v0)[group] * self.v1
        self.line = dual.slack / primal.slack
        self.tie = self.line / (1.0 + self.line * float(omega**2 @ (1.0 / self.top)))
        along = norms.back(self.cross * (omega / self.top)[group])
        matrix = P + self.tie * np.outer(along, along)
        place = np.arange(norms.count).reshape(-1, norms.rows.shape[1])
        matrix[place[:, :, None], place[:, None, :]] += norms.curvature(
            self.e, 2.0 / (2.0 * v0**2 - 1.0), self.v1
        )
        diagonal = np.diag(matrix)
        self.unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix *= self.unit[:, None] * self.unit
        for ridge in 10.0 ** np.arange(-13, 0, 2):
            matrix[np.diag_indices_from(matrix)] += ridge
            try:
                self.factor = cho_factor(matrix, lower=True, check_finite=False)
                break
            except np.linalg.LinAlgError:
                continue

    def _bounds(self, right: Floats) -> Floats:
        """The change of the bounds t that goes with this right-hand side."""
        omega = self.norms.omega
        scaled = right / self.top
        return np.asarray(scaled - self.tie * float(omega @ scaled) * omega / self.top)

    def toward(self, mean: float) -> tuple[Floats, Cone, Cone]:
        """The change of c, of the primal and of the dual point, toward this mean of products."""
        from scipy.linalg import cho_solve

        norms, group = self.norms, self.norms.group
        aim = _mirrored(self.primal, norms, mean)
        lack = aim.top - norms.omega * aim.slack
        right = self.slope - norms.back(aim.entries)
        right += norms.back(self.cross * self._bounds(lack)[group])
        c = -self.unit * cho_solve(self.factor, self.unit * right, check_finite=False)
        entries = norms.forth(c)
        across = norms.dot(self.cross, entries)
        top = self._bounds(lack - across)
        turned = 2.0 * self.v1 * norms.dot(self.v1, entries)[group] + entries
        primal = Cone(top, entries, -float(norms.omega @ top))
        dual = Cone(
            aim.top - self.top * top - across - self.dual.top,
            aim.entries - self.cross * top[group] - self.e[group] * turned - self.dual.entries,
            aim.slack - self.line * primal.slack - self.dual.slack,
        )
        return c, primal, dual

    def room(self, step: tuple[Floats, Cone, Cone]) -> float:
        """How many times a step leads to the border of a cone."""
        _, primal, dual = step
        return min(
            self.primal.room(primal, self.norms, self.depths[0]),
            self.dual.room(dual, self.norms, self.depths[1]),
        )
