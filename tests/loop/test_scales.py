"""A certificate is true or absent, whatever the units of the data, the target and the radius."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from atomcast import (
    GroupLasso,
    GroupLogisticRegression,
    KernelSVC,
    L1AdaBoost,
    Lasso,
    Solver,
    SparseLogisticRegression,
)
from atomcast.errors import FalseMessageError
from problems import STEPS, regression

X, Y = regression(5, d=25, n=8, support=4)
LABELS = (np.median(Y) < Y).astype(int)
BETA = 1.5


def fitted(model, A, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(A, y)


def fitted_or_refused(model, A, y):
    """The model, or None if it was refused by an error that says what to do."""
    try:
        return fitted(model, A, y)
    except (ValueError, FalseMessageError) as error:
        if "out of scale" not in str(error) or "rescale" not in str(error):
            raise
        return None


def optimum(a, b, c):
    """min ||10**b y - 10**a X w||^2 with ||w||_1 <= 10**c beta, in the unit 10**(2 b).

    Only the radius in units of y and X matters, and with it the problem is solved in plain scale.
    """
    power = a + c - b
    if power > 6:
        w = np.linalg.lstsq(X, Y, rcond=None)[0]  # the ball is as good as everything
        return float(np.sum((Y - X @ w) ** 2))
    if power < -6:
        return float(Y @ Y)  # up to a part in a million
    return exact(10.0**power * BETA)


@pytest.fixture(scope="module", autouse=True)
def _plain():
    exact.cache.clear()


def exact(beta):
    if beta not in exact.cache:
        model = Lasso(beta, fit_intercept=False, solver=Solver(tol=1e-13)).fit(X, Y)
        exact.cache[beta] = model.result_.objective
    return exact.cache[beta]


exact.cache = {}
POWER = st.integers(-330, 300) | st.integers(-20, 20)


@settings(max_examples=60, deadline=None)
@given(POWER, POWER, POWER, st.sampled_from(STEPS), st.booleans())
def test_the_gap_bounds_the_distance_to_the_optimum(a, b, c, step, is_sparse):
    A = X * 10.0 ** max(a, -300) * 10.0 ** min(a + 300, 0)
    target, beta = Y * 10.0 ** max(b, -300) * 10.0 ** min(b + 300, 0), BETA * 10.0 ** max(c, -300)
    matrix = sparse.csc_array(A) if is_sparse else A
    how = Solver(step=step, tol=1e-4, max_rounds=30)
    model = Lasso(beta, fit_intercept=False, cluster=2, solver=how)
    if beta == 0.0 or not np.isfinite(beta):
        return
    model = fitted_or_refused(model, matrix, target)
    if model is None or not np.any(target):
        return
    unit = 10.0 ** (2 * b)
    objective, gap = model.result_.objective / unit, model.result_.gap / unit
    best = optimum(a, b, max(c, -300))
    assert objective - best <= gap + 1e-5 * float(Y @ Y)
    assert np.abs(model.coef_).sum() <= beta * (1 + 1e-9)
    if model.result_.status == "optimal":
        assert objective <= best * (1 + 1e-3) + 1e-5 * float(Y @ Y)


@pytest.mark.parametrize("power", [154, 300, -160, -320])
def test_a_target_that_cannot_be_squared_is_refused(power):
    y = Y * 10.0 ** max(power, -300) * 10.0 ** min(power + 300, 0)
    for model in (Lasso(2.0), GroupLasso(2.0), Lasso(1.0, cluster=3)):
        with pytest.raises(ValueError, match=r"y is out of scale.*rescale it"):
            model.fit(X, y)


@pytest.mark.parametrize("make", [Lasso, SparseLogisticRegression, GroupLasso])
@pytest.mark.parametrize("beta", [1e154, 1e-160])
def test_a_radius_that_cannot_be_squared_is_refused(make, beta):
    with pytest.raises(ValueError, match=r"beta is out of scale.*rescale it"):
        make(beta).fit(X, LABELS)


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize(
    "model",
    [
        *(partial(Lasso, 1.0, solver=Solver(step=step, max_rounds=5)) for step in STEPS),
        partial(SparseLogisticRegression, 1.0),
        partial(GroupLasso, 1.0, groups=[[0, 1, 2, 3], [4, 5, 6, 7]]),
        partial(GroupLogisticRegression, 1.0, groups=[[0, 1, 2, 3], [4, 5, 6, 7]]),
        partial(KernelSVC),
        partial(KernelSVC, kernel="linear"),
        partial(L1AdaBoost, base="matrix"),
    ],
)
def test_data_that_cannot_be_squared_is_refused(model, nodes):
    for A in (1e155 * X, sparse.csc_array(1e155 * X)):
        with pytest.raises((ValueError, FalseMessageError), match=r"out of scale.*rescale"):
            model(cluster=nodes).fit(A, LABELS)


def test_data_too_large_to_multiply_names_the_node():
    with pytest.raises(FalseMessageError, match=r"node \d .* out of scale"):
        Lasso(1.0, cluster=2).fit(1e300 * X, 1e20 * Y)


@pytest.mark.parametrize("power", [-160, -300])
def test_data_so_small_that_it_cannot_matter(power):
    """Within the radius nothing can be fitted: zero is optimal, and is said to be."""
    model = Lasso(1.0, fit_intercept=False).fit(X * 10.0**power, Y)
    assert model.result_.status == "optimal"
    assert not np.any(model.coef_)
    # And where it could matter, the radius is refused.
    with pytest.raises(ValueError, match="out of scale"):
        Lasso(10.0**-power, fit_intercept=False).fit(X * 10.0**power, Y)


def test_a_point_so_small_that_its_squares_vanish_is_refused():
    with pytest.raises(ValueError, match=r"X is out of scale \(the point \d+\)"):
        KernelSVC().fit(1e-160 * X, LABELS)


def test_boosting_by_stumps_does_not_depend_on_the_scale_of_features():
    for scale in (1e155, 1e-160):
        model = L1AdaBoost(0.5, cluster=2).fit(scale * X, LABELS)
        plain = L1AdaBoost(0.5, cluster=2).fit(X, LABELS)
        np.testing.assert_allclose(model.estimator_weights_, plain.estimator_weights_)


@pytest.mark.parametrize("shift", [-90, -30, 30, 90])
@pytest.mark.parametrize("step", ["corrective", "pairwise", "classic"])
def test_scaling_by_powers_of_two_changes_nothing(step, shift):
    """The same run bit for bit, in other units."""
    factor = 2.0 ** (3 * shift)
    how = Solver(step=step, max_rounds=20)
    plain = fitted(Lasso(BETA, cluster=2, solver=how), X, Y)
    scaled = fitted(Lasso(factor * BETA, cluster=2, solver=how), X, factor * Y)
    np.testing.assert_array_equal(scaled.coef_, factor * plain.coef_)
    assert scaled.result_.gap == factor**2 * plain.result_.gap
