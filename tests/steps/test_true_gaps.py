"""Gaps of kernel machines beside those that scikit-learn's kernel gives in double precision."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from atomcast import KernelSVC, KernelSVR, LocalCluster
from atomcast.known.kernels.exact import corrected
from atomcast.steps.inner.low_rank import relative_gap

#: Stated gaps may be too small by this share.
SMALL = 0.05


def moons(n: int, seed: int, classes: int = 2):
    X, y = make_moons(n, noise=0.3, random_state=seed)
    return X, y + (classes > 2) * (X[:, 0] > 0.8) * (X[:, 1] > 0.2)


def blobs(n: int, seed: int, classes: int = 2):
    return make_blobs(n, centers=classes, cluster_std=2.5, random_state=seed)


def gaussian(n: int, seed: int, classes: int = 2):
    rng = np.random.default_rng(seed)
    X, planes = rng.standard_normal((n, 20)), rng.standard_normal((classes, 20))
    return X, (X @ planes.T + rng.standard_normal((n, classes))).argmax(axis=1)


def machine_gap(kernel, side, alpha, C: float) -> float:
    return relative_gap(alpha, side * ((kernel + 1.0) @ (side * alpha)) + alpha / C)


def true_gap(model: KernelSVC, kernel, y) -> float:
    """The largest relative gap of a model's machines."""
    n, (classes, codes) = len(y), np.unique(y, return_inverse=True)
    coef, alpha = np.abs(model.dual_coef_), np.zeros(len(y))
    if len(coef) in (1, len(classes)):  # two classes, or one against the rest
        gaps = []
        for row, one in zip(coef, classes[-len(coef) :], strict=True):
            alpha[model.support_] = row
            gaps.append(machine_gap(kernel, np.where(y == one, 1.0, -1.0), alpha, model.C))
        return max(gaps)
    gaps, own = [], codes[model.support_]
    for i in range(len(classes)):
        for j in range(i + 1, len(classes)):
            alpha = np.zeros(n)
            for this, other in ((i, j), (j, i)):
                alpha[model.support_[own == this]] = coef[other - (other > this)][own == this]
            at = np.flatnonzero((codes == i) | (codes == j))
            side = np.where(codes[at] == i, 1.0, -1.0)
            gaps.append(machine_gap(kernel[np.ix_(at, at)], side, alpha[at], model.C))
    return max(gaps)


def check(model: KernelSVC, kernel, y, tol: float = 1e-3) -> None:
    result, true = model.result_, true_gap(model, kernel, y)
    assert true <= (1.0 + SMALL) * result.relative_gap + 1e-7
    if result.status == "optimal":
        assert true <= 1.01 * tol


KINDS = {
    "alone": ({}, 2),
    "one node": ({"cluster": 1}, 2),
    "four nodes": ({"cluster": LocalCluster(4)}, 2),
    "no room": ({"cache_bytes": 1 << 20}, 2),
    "no room, four nodes": ({"cache_bytes": 1 << 20, "cluster": 4}, 2),
    "three classes": ({}, 3),
    "three classes, four nodes": ({"cluster": 4}, 3),
    "three classes, no room": ({"cache_bytes": 1 << 20}, 3),
    "one against the rest": ({"multi_class": "one-vs-rest"}, 3),
    "one against the rest, four nodes": ({"multi_class": "one-vs-rest", "cluster": 4}, 3),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [moons, blobs, gaussian])
@pytest.mark.parametrize(("C", "gamma"), [(1.0, 1.0), (100.0, 0.1), (1000.0, 0.1), (1000.0, 10.0)])
def test_stated_gaps_are_true(kind, data, C, gamma):
    (how, classes), dtype = KINDS[kind], np.float32 if gamma == 1.0 else np.float64
    X, y = data(900, 11, classes)
    gamma = gamma / 20 if data is gaussian else gamma
    X = X.astype(dtype)
    model = KernelSVC(C=C, gamma=gamma, **how).fit(X, y)
    assert model.result_.status == "optimal"
    check(model, rbf_kernel(X.astype(np.float64), gamma=gamma), y)


@pytest.mark.parametrize("how", [{}, {"cluster": 4}])
@pytest.mark.parametrize("classes", [2, 3])
def test_values_of_other_kernels_are_larger_and_their_rounding_too(how, classes):
    X, y = gaussian(900, 5, classes)
    X = 10.0 * X
    model = KernelSVC(kernel="linear", C=10.0, **how).fit(X, y)
    check(model, linear_kernel(X), y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [1e5, 1e6])
def test_where_single_precision_does_not_lead_there_double_does(C, classes):
    X, y = moons(900, 2, classes)
    model = KernelSVC(C=C, gamma=10.0).fit(X, y)
    assert model.result_.status == "optimal"
    check(model, rbf_kernel(X, gamma=10.0), y)


@pytest.mark.parametrize("classes", [2, 3])
def test_where_there_is_no_room_for_that_the_gap_stated_is_large_and_true(classes):
    X, y = moons(900, 2, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(C=1e6, gamma=10.0, cache_bytes=4 * 900**2).fit(X, y)
    check(model, rbf_kernel(X, gamma=10.0), y)


@pytest.mark.parametrize("C", [1.0, 1000.0])
@pytest.mark.parametrize("how", [{}, {"cluster": 4}])
def test_gaps_of_a_regression_are_true(C, how):
    X, y = moons(900, 4)
    targets, epsilon = np.sin(3.0 * X[:, 0]) + y + 0.1 * X[:, 1], 0.1
    X = X.astype(np.float32)
    model = KernelSVR(C=C, gamma=1.0, epsilon=epsilon, **how).fit(X, targets)
    beta = np.zeros(900)
    beta[model.result_.atom_ids] = model.result_.atom_weights
    products = (rbf_kernel(X.astype(np.float64), gamma=1.0) + 1.0) @ beta + beta / C
    used, sign = beta != 0.0, np.sign(beta)
    slope = products + np.mean((targets - products - epsilon * sign)[used]) - targets
    excess = np.where(used, slope + epsilon * sign, np.maximum(np.abs(slope) - epsilon, 0.0))
    value = beta @ (0.5 * products - targets) + epsilon * np.abs(beta).sum()
    true = 900 * 0.5 * C * np.max(excess**2) / abs(value)
    assert true <= (1.0 + SMALL) * model.result_.relative_gap + 1e-7
    assert true <= 1.01e-3


def rounded(n: int, error: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    true = 1.0 + rng.random(n)
    return true, true + error * rng.standard_normal(n)


@pytest.mark.parametrize("error", [1e-6, 1e-3, 1e-1])
@pytest.mark.parametrize("first", [0, 150, 300])
def test_the_smallest_sum_is_exact_whatever_was_off(error, first):
    true, rough = rounded(300, error)
    corrected(rough, 1.01, true.take, first=first)
    assert rough.min() == pytest.approx(true.min(), abs=1e-3 * 0.01)


def test_what_cannot_show_is_not_looked_at():
    def never(some):
        raise AssertionError

    _, rough = rounded(300, 1e-9)
    assert corrected(rough, 2.0, never, bound=1e-8) == 0
    assert corrected(rough, 1.01, never, best=0.5, bound=1e-3) == 0
    assert corrected(rough[:0], 1.0, never) == 0


def test_few_that_came_later_and_are_off_are_found():
    true, rough = rounded(600, 0.0)
    rough[590:] += 0.1
    true[595] = 0.9
    rough[595] = 1.0
    assert corrected(rough, 1.01, true.take, first=590) > 0
    assert rough.min() == 0.9
