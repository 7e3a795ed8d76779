"""Minimisation of a quadratic over few coefficients, under a bound on norms of their images.

The problem is that of `cone`, which has the other side. It is solved by the primal-dual
interior-point method with the scaling of Nesterov and Todd. A step of it costs one factorisation of
a matrix of the size of P, to which each node contributes a block of its own. All iterates are
inside the ball.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.steps.inner.cone import FLAT, Owners

Floats = NDArray[np.float64]

#: Steps after which rounding must be what is left of the gap.
STEPS = 80
#: How near to the border of the cones a step may lead.
INSIDE = 0.99
#: A new start keeps this distance from the border of the ball, as a share of its radius.
ROOM = 0.1
NOTHING: Floats = np.zeros(0)


def minimise_in_ball(
    P: Floats, q: Floats, owners: Owners, beta: float, start: Floats, tolerance: float, scale: float
) -> Floats:
    """The best coefficients, shape (N, m), to within a gap of `tolerance`.

    Parameters
    ----------
    P, q : arrays of shape (M, M) and (M,)
        M is N m.
    owners : Owners
        Who know the norms.
    beta : float
        The radius of the ball.
    start : array of shape (N, m)
        Coefficients to begin near.
    tolerance : float
    scale : float
        About what there is to gain, from which the method comes down.
    """
    none = np.zeros((len(start), 0))
    size = sizes(owners, start)[0]
    inward = min(1.0, (1.0 - ROOM) * beta / max(size, 1e-300))
    c = inward * start
    omega, groups, entries = owners("enter", NOTHING, c).sum(axis=0).tolist()
    slack = 0.5 * (beta - inward * size)  # the bounds have the other half of the room
    dual_slack = scale / groups / slack
    told = owners("settle", np.array([slack / omega, scale / groups]), none)
    # What stationarity is still off by: far more where much cancels, and the start is too short.
    unsettled = max(scale, abs(float(c.ravel() @ (P @ c.ravel() + q))))
    for _ in range(STEPS):
        gap = float(told[:, 0].sum()) + slack * dual_slack
        # What is not finite says that rounding is all that is left.
        if not np.all(np.isfinite(told)) or gap + unsettled <= tolerance:
            break
        newton, mean = PathNewton(P, P @ c.ravel() + q, told, slack, dual_slack), 0.0
        for _ in range(2):  # first as far as possible, then toward the mean that this leaves
            step = newton.toward(mean)
            room = float(owners("room", step.common, step.c).min())
            reach = min(INSIDE * min(room, step.room(slack, dual_slack)), 1.0)
            mean = (1.0 - reach) ** 3 * gap / (groups + 1)
        if not reach > 1e-9 or not np.all(np.isfinite(step.c)):
            break
        told = owners("move", np.array([reach]), none)
        c, slack = c + reach * step.c, slack + reach * step.slack
        dual_slack += reach * step.dual_slack
        unsettled *= 1.0 - reach
    reached = [c]
    if groups == entries:
        inside = dual_slack * beta <= FLAT * abs(float(q @ c.ravel()))
        reached.append(_on_face(P, q, owners("face", np.array([beta]), none), beta, inside))
    lengths = sizes(owners, *reached)
    found = [
        one * min(1.0, beta / max(length, 1e-300))
        for one, length in zip(reached, lengths, strict=True)
    ]
    values = [float(one.ravel() @ (0.5 * (P @ one.ravel()) + q)) for one in found]
    return found[-1] if values[-1] <= values[0] + 1e-13 * abs(values[0]) else found[0]


def sizes(owners: Owners, *several: Floats) -> Floats:
    """The norms of all coefficients together, for several ones of shape (N, m)."""
    return owners("size", NOTHING, np.hstack(several)).sum(axis=0)


class PathStep(NamedTuple):
    """A step of the coefficients and of the slack of the ball; `common` is what owners need."""

    c: Floats
    common: Floats
    slack: float
    dual_slack: float

    def room(self, slack: float, dual_slack: float) -> float:
        """How many times it leads to where a slack is zero."""
        pairs = ((slack, self.slack), (dual_slack, self.dual_slack))
        return min((-at / change for at, change in pairs if change < 0.0), default=np.inf)


class PathNewton:
    """The steps from a point, which share one factorisation; `told` are the terms of the owners."""

    def __init__(
        self, P: Floats, slope: Floats, told: Floats, slack: float, dual_slack: float
    ) -> None:
        from scipy.linalg import cho_factor, cho_solve

        nodes = len(told)
        m = len(P) // nodes
        _, self._omega, mirrored = told[:, :3].sum(axis=0).tolist()
        self._along, pull = told[:, 3 : 3 + m].ravel(), told[:, 3 + m : 3 + 2 * m].ravel()
        self._slack, self._dual_slack = slack, dual_slack
        self._line = dual_slack / slack
        self._tie = self._line / (1.0 + self._line * self._omega)
        self._lack = mirrored - self._omega / slack  # of the bounds, for each unit of the mean
        matrix = P + self._tie * np.outer(self._along, self._along)
        place, (row, column) = np.arange(len(P)).reshape(nodes, m), np.triu_indices(m)
        bent = told[:, 3 + 2 * m :]
        matrix[place[:, row], place[:, column]] += bent
        off = row != column
        matrix[place[:, column[off]], place[:, row[off]]] += bent[:, off]
        diagonal = np.diag(matrix)
        unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix *= unit[:, None] * unit
        for ridge in 10.0 ** np.arange(-13, 0, 2):
            matrix[np.diag_indices_from(matrix)] += ridge
            try:
                factor = cho_factor(matrix, lower=True, check_finite=False)
                break
            except np.linalg.LinAlgError:
                continue
        pull = pull - (1.0 / slack + self._tie * self._lack) * self._along
        right = np.stack([slope, pull], axis=1) * unit[:, None]
        solved = -unit[:, None] * cho_solve(factor, right, check_finite=False)
        self._down, self._centred = solved.T.reshape(2, nodes, m)

    def toward(self, mean: float) -> PathStep:
        """The step toward this mean of products."""
        c = self._down + mean * self._centred
        lack = mean * self._lack - float(self._along @ c.ravel())
        aim, tied = mean / self._slack, self._tie * lack
        slack = tied * self._omega - lack
        dual_slack = aim - self._line * slack - self._dual_slack
        return PathStep(c, np.array([mean, aim, tied]), slack, dual_slack)


def _on_face(P: Floats, q: Floats, told: Floats, beta: float, inside: bool) -> Floats:
    """The minimum over the face of the l1 ball that the method has come near to.

    On the face, some entries are zero and the others keep their signs, so that linear equations
    remain; they are solved to the last digit, which the method itself cannot reach.
    """
    from scipy.linalg import block_diag, lstsq

    m = len(P) // len(told)
    free = told[:, : m * m].reshape(-1, m, m)
    basis = block_diag(*(part[:, part.any(axis=0)] for part in free))
    normal = told[:, m * m :].ravel() @ basis
    matrix = np.zeros((len(normal) + 1,) * 2)
    matrix[:-1, :-1] = basis.T @ P @ basis
    matrix[-1, -1] = inside
    if not inside:
        matrix[-1, :-1] = matrix[:-1, -1] = normal
    right = np.append(-(q @ basis), 0.0 if inside else beta)
    solution = lstsq(matrix, right, cond=FLAT**2, check_finite=False, lapack_driver="gelsy")[0]
    return np.asarray(basis @ solution[:-1]).reshape(-1, m)
