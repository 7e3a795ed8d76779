"""Sums and blocks over points of zeros and ones do not depend on where a point stands."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from atomcast.known.kernels.functions import RBF
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.sums import BinarySums, fill_bit_block, packed, signed_table

GAMMA = 0.05


def bits_and_labels(n, d, classes=3):
    rng = np.random.default_rng(d)
    X = (rng.random((n, d)) < 0.3).astype(float)
    return X, rng.integers(0, classes, n).astype(np.uint8)


@pytest.mark.parametrize("d", [40, 128, 150])  # one word of bits, two, three
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 66])
def test_a_sum_is_the_same_in_any_company(d, rows):
    X, labels = bits_and_labels(90, d)
    weights = np.random.default_rng(1).random(30)
    known = X[:30], labels[:30], weights
    sums = BinarySums(X, RBF(GAMMA), LabelCode(3, np.ones(3)), labels)
    together = np.zeros(90)
    sums.add_to(np.arange(90), together, *known)

    some = np.random.default_rng(rows).permutation(90)[:rows]
    apart = np.zeros(90)
    sums.add_to(some, apart, *known)
    np.testing.assert_array_equal(apart[some], together[some])
    assert np.count_nonzero(apart) == rows

    signs = np.where(labels[:, None] == labels[:30], 1.0, -0.5)
    expected = (signs * (rbf_kernel(X, X[:30], GAMMA) + 1)) @ weights
    np.testing.assert_allclose(together, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("d", [40, 128, 150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_bits_are_the_formula_rounded_once(d, dtype):
    X, labels = bits_and_labels(37, d)
    bits, table = packed(X), np.exp(-GAMMA * np.arange(d + 1.0))
    out = np.full((37, 50), np.nan, dtype=dtype)
    fill_bit_block(bits, bits[:21], signed_table(table, 3), out, (labels, labels[:21]))
    distance = np.abs(X[:, None] - X[:21]).sum(axis=2)
    signs = np.where(labels[:, None] == labels[:21], 1.0, -0.5)
    expected = signs * (np.exp(-GAMMA * distance) + 1)
    np.testing.assert_array_equal(out[:, :21], expected.astype(dtype))
    assert np.isnan(out[:, 21:]).all()  # a wider block is left alone beyond the known points
