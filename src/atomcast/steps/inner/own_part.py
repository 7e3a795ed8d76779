"""The best weights of a node's own atoms, at a given penalty, while all others stand still."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.domains.group_ball import BlockBall, BlockRanges
from atomcast.known import gram
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.steps.inner.column_model import ColumnModel, ProductModel, Products
from atomcast.steps.inner.coordinate_descent import CoordinateDescent
from atomcast.steps.inner.group_solver import GroupDescent
from atomcast.steps.inner.turned import TurnedProducts

#: How often sweeps begin anew, and when they are at rest, as a share of the penalty.
TRIES, AT_REST = 50, 1e-9


def penalised_weights(
    active: ExplicitActiveSet, domain: Domain, penalty: float
) -> NDArray[np.float64]:
    """The weights that are best for the objective in second order plus a penalty times their norm.

    The image of the active set need not be that of its weights: what else is in it stays.
    """
    turned = None
    if isinstance(domain, BlockBall):
        blocks, turned = BlockRanges(active.ids, domain), TurnedProducts()
        model = turned.model(active, blocks.starts)
        descent: CoordinateDescent = GroupDescent(domain, blocks)
    else:
        model, descent = _model(active), CoordinateDescent(domain)
    weights, slopes = model.start.copy(), model.gradient.copy()
    everything = np.ones(len(weights), dtype=bool)
    for _ in range(TRIES):
        before = weights.copy()
        descent.sweep(model, weights, slopes, everything, penalty, AT_REST * penalty)
        if np.max(np.abs(weights - before) * model.lengths) <= AT_REST * penalty:
            break
    return weights if turned is None else turned.turns.back(weights)


def _model(active: ExplicitActiveSet) -> ColumnModel:
    """The objective in second order, by products of columns where these fit in memory."""
    if len(active) > gram.MOST_WEIGHTS and active.sweepable:
        return ColumnModel.of(active)
    products = Products(active.hessian(np.arange(len(active))))
    return ProductModel.with_slopes(products, active.weights, active.scores())
