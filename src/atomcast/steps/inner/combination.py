"""The best combination of mixtures: few coefficients for each node, of any sign.

The weights that a combination stands for are known, and so is their norm: what is found is a point
of the domain. Objectives that are not quadratic are replaced by quadratic models, one after the
other, with a line search from each minimiser to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.domains.group_ball import BlockBall
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.mixtures import REMEMBERED, MixedPoint, Mixtures, NodeBasis
from atomcast.steps.inner.cone import Cones, Norms, Owners
from atomcast.steps.inner.interior_point import minimise_in_ball, sizes

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
#: From nodes, and how many coefficients each has at most, to the nodes as owners of their weights.
Asked = Callable[[Sequence[int], int], Owners]

#: Models of an objective that is not quadratic, in one round.
MODELS = 20


@dataclass(frozen=True, eq=False)
class Combination:
    """Where the mixtures lead to.

    Parameters
    ----------
    image : array of the shape of an image
    shares : array of shape (N, m)
        What each of the latest m mixtures of every node counts; the newest is the last.
    point : MixedPoint
        The weights that this stands for, as far as they are known.
    """

    image: Floats
    shares: Floats
    point: MixedPoint


def combine(
    mixtures: Mixtures,
    active: ExplicitActiveSet,
    domain: Domain,
    tolerance: float,
    asked: Asked | None = None,
) -> Combination:
    """The best combination of all known mixtures, to within a gap of `tolerance`.

    Unless owners are to be `asked`, the weights in the mixtures are known here.
    """
    parts, objective = mixtures.parts(), active.objective
    if not parts:  # nobody may send what it has
        return Combination(active.image, mixtures.shares, MixedPoint.of([]))
    width = max(len(part.start) for part in parts)
    if asked is None:
        owners: Owners = Cones(norms_of(parts, active, domain, width))
    else:
        owners = asked([part.node for part in parts], width)
    basis, c = np.zeros((active.image.size, len(parts) * width)), np.zeros((len(parts), width))
    for k, part in enumerate(parts):
        own = len(part.start)
        basis[:, k * width : k * width + own], c[k, :own] = part.images, part.start
    # Old mixtures are forgotten, and what is left of a point may be longer.
    c *= min(1.0, domain.scale / max(sizes(owners, c)[0], 1e-300))
    image = (basis @ c.ravel()).reshape(active.image.shape)
    value = objective.value(image)
    for _ in range(1 if objective.quadratic else MODELS):
        bent = objective.curvature(image).applied(basis.reshape(*image.shape, -1))
        P, gradient = basis.T @ bent.reshape(basis.shape), objective.gradient(image)
        q = np.ravel(gradient) @ basis - P @ c.ravel()
        found = minimise_in_ball(P, q, owners, domain.scale, c, tolerance, abs(value))
        change = (basis @ (found - c).ravel()).reshape(image.shape)
        promise = -float(np.vdot(gradient, change))
        step = 1.0 if objective.quadratic else objective.line_search(image, change, 1.0)
        c, image = c + step * (found - c), image + step * change
        before, value = value, objective.value(image)
        if promise <= tolerance or value >= before:
            break
    return _combination(parts, mixtures.shares, c, image)


def norms_of(
    parts: Sequence[NodeBasis], active: ExplicitActiveSet, domain: Domain, width: int
) -> Norms:
    """The norm of the weights that coefficients of the parts, up to `width` each, stand for."""
    rows, node, group = [], [], []
    for k, part in enumerate(parts):
        blocks = active.atoms_of(part.ids) if isinstance(domain, BlockBall) else part.ids
        order = np.argsort(blocks, kind="stable")
        padded = np.zeros((len(order), width))
        padded[:, : part.rows.shape[1]] = part.rows[order]
        rows.append(padded)
        node.append(np.full(len(order), k))
        group.append(blocks[order])
    blocks = np.concatenate(group)
    starts = np.flatnonzero(np.append(True, np.diff(blocks) != 0))
    omega = np.ones(len(starts))
    if isinstance(domain, BlockBall):
        omega = domain.weight_of(blocks[starts])
    return Norms(np.concatenate(rows), np.concatenate(node), starts, omega)


def _combination(
    parts: Sequence[NodeBasis], before: Floats, c: Floats, image: Floats
) -> Combination:
    """What coefficients of the parts' directions mean for their mixtures and weights."""
    shares = np.zeros_like(before)
    weights = list[tuple[Ids, Floats]]()
    for part, coefficients in zip(parts, c, strict=True):
        own = coefficients[: part.rows.shape[1]]
        made = part.shares @ own
        shares[part.node, REMEMBERED - len(made) :] = made
        weights.append((part.ids, part.rows @ own))
    return Combination(image, shares, MixedPoint.of(weights))
