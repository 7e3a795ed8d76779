"""One point a round: what follows from its row alone is what would be computed afresh."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast.domains.balls import Simplex
from atomcast.known.active_set import ActiveSet
from atomcast.known.kernels.functions import RBF, KernelSpec, LastRow
from atomcast.known.kernels.kernel_matrix import HEIGHT
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.storage import Storage
from atomcast.messages.atom import Atom

rng = np.random.default_rng(0)
POINTS = rng.standard_normal((40, 6)).astype(np.float32) + 100.0


def known(points, cache_bytes=1 << 30):
    code = LabelCode(2, np.array([10.0, 5.0]))
    active = KernelActiveSet(KernelSpec(gamma=0.2), code, Storage(cache_bytes, np.float64))
    for id, point in enumerate(points):
        active.append([Atom(id, len(point), point, extras=np.array([id % 2.0]))])
    return active


@pytest.mark.parametrize("first", [0, 7])
def test_the_last_row_is_that_of_the_block(first):
    kernel, last = RBF(0.3, POINTS[0].astype(np.float64)), LastRow(RBF(0.3, POINTS[0]))
    for count in range(first + 1, len(POINTS) + 1):  # the first ones may come together
        row = last.of(POINTS[:count])
        away = POINTS[:count].astype(np.float64) - POINTS[count - 1]
        assert row == pytest.approx(np.exp(-0.3 * (away**2).sum(axis=1)), abs=1e-14)
    assert row == pytest.approx(kernel.block(POINTS[-1:], POINTS)[0], abs=1e-14)


@pytest.mark.parametrize("step", [0.25, 1.0, None])
@pytest.mark.parametrize("cache_bytes", [1 << 30, 0])
def test_going_toward_a_point_is_moving_along_the_difference(step, cache_bytes):
    quick, plain = (known(POINTS[:12], cache_bytes) for _ in range(2))
    for active in (quick, plain):
        active.set_weights(np.arange(12.0) / 66.0)
    for id in (11, 3, 0):
        quick.toward(Simplex(), id, -1.0, step)
        ActiveSet.toward(plain, Simplex(), id, -1.0, step)
        assert quick.weights == pytest.approx(plain.weights, abs=1e-15)
        assert quick.image_products == pytest.approx(plain.image_products, abs=1e-14)
        assert quick.value() == pytest.approx(plain.value(), rel=1e-13)
        assert quick.image_products == pytest.approx(quick._image(quick.weights), abs=1e-14)


def test_rows_of_earlier_blocks_are_whole():
    points = rng.standard_normal((HEIGHT + 3, 2))
    active = known(points)
    for position in (0, HEIGHT - 1, HEIGHT, HEIGHT + 2):
        expected = active.gram.rows(np.array([position]))[0]
        assert np.array_equal(active.gram.row(position), expected)
        assert expected[position] == active.gram.diagonal[position]
