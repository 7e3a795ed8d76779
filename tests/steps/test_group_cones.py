"""Cones in a ball of the group norm: they serve quadratics that are all but flat."""

import numpy as np
import pytest

from atomcast.domains.group_ball import BlockBall, BlockRanges
from atomcast.steps.inner.group_cones import descend_in_cones


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beta", [3.0, 30.0])
def test_bends_over_twelve_orders_of_magnitude(seed, beta):
    rng = np.random.default_rng(seed)
    turn, bends = np.linalg.qr(rng.standard_normal((40, 40)))[0], np.logspace(-11, 1, 40)
    matrix, at_zero = (turn * bends) @ turn.T, turn @ (bends**0.5 * rng.standard_normal(40))
    blocks = BlockRanges(np.repeat(np.arange(4), 10), BlockBall(beta))
    start = 0.1 * beta * rng.standard_normal(40) / np.sqrt(40)

    def gap(weights):
        slopes = at_zero + matrix @ weights
        return float(weights @ slopes + beta * blocks.norms(slopes).max())

    weights, found = descend_in_cones(matrix, at_zero, start, blocks, 1e-3 * gap(start))

    assert found
    assert gap(weights) <= 1e-3 * gap(start)
    assert blocks.size(weights) <= beta * (1 + 1e-12)


def test_the_best_weights_may_be_inside():
    blocks = BlockRanges(np.array([0, 0, 1]), BlockBall(10.0))
    weights, found = descend_in_cones(
        np.diag([1.0, 2.0, 4.0]), np.array([-1.0, 2.0, -4.0]), np.ones(3), blocks, 1e-9
    )
    assert found
    assert weights == pytest.approx([1.0, -1.0, 1.0])
