"""What every objective promises: value, gradient, curvature and line search fit together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast.objectives import Logistic, Multinomial, Objective, SquaredError


def plain(seed, d):
    return SquaredError(np.random.default_rng(seed).standard_normal(d))


def with_intercept(seed, d):
    return SquaredError(np.random.default_rng(seed).standard_normal(d), fit_intercept=True)


OBJECTIVES = [plain, with_intercept]

cases = given(make=st.sampled_from(OBJECTIVES), seed=st.integers(0, 10**6), d=st.integers(1, 12))


def hessian(objective, z):
    curvature = objective.curvature(z)
    full = np.diag(np.broadcast_to(curvature.diagonal, objective.d).astype(float))
    if curvature.rank_one is not None:
        full -= np.outer(curvature.rank_one, curvature.rank_one)
    return full


@settings(max_examples=40, deadline=None)
@cases
def test_the_gradient_is_that_of_the_value(make, seed, d):
    objective, z = make(seed, d), np.random.default_rng(seed + 1).standard_normal(d)
    h = 1e-5
    numerical = [
        (objective.value(z + h * e) - objective.value(z - h * e)) / (2 * h) for e in np.eye(d)
    ]
    np.testing.assert_allclose(objective.gradient(z), numerical, rtol=1e-6, atol=1e-6)


@settings(max_examples=40, deadline=None)
@cases
def test_the_curvature_is_that_of_the_gradient(make, seed, d):
    objective, z = make(seed, d), np.random.default_rng(seed + 1).standard_normal(d)
    h = 1e-5
    numerical = np.column_stack(
        [
            (objective.gradient(z + h * e) - objective.gradient(z - h * e)) / (2 * h)
            for e in np.eye(d)
        ]
    )
    np.testing.assert_allclose(hessian(objective, z), numerical, rtol=1e-6, atol=1e-6)
    assert np.linalg.eigvalsh(hessian(objective, z)).min() >= -1e-9
    if objective.quadratic:
        there = np.random.default_rng(seed + 2).standard_normal(d)
        np.testing.assert_allclose(hessian(objective, z), hessian(objective, there))


@settings(max_examples=60, deadline=None)
@given(
    make=st.sampled_from(OBJECTIVES),
    seed=st.integers(0, 10**6),
    d=st.integers(1, 12),
    max_step=st.sampled_from([1e-6, 0.1, 1.0, 100.0]),
)
def test_the_line_search_finds_the_best_step(make, seed, d, max_step):
    rng = np.random.default_rng(seed + 1)
    objective, z, direction = make(seed, d), rng.standard_normal(d), rng.standard_normal(d)
    step = objective.line_search(z, direction, max_step)
    assert 0.0 <= step <= max_step
    value = objective.value(z + step * direction)
    for other in np.linspace(0, max_step, 101):
        assert value <= objective.value(z + other * direction) + 1e-9 * (1 + value)


@pytest.mark.parametrize("make", OBJECTIVES)
def test_a_line_search_along_nothing(make):
    objective = make(0, 5)
    step = objective.line_search(np.ones(5), np.zeros(5), 1.0)
    assert 0.0 <= step <= 1.0


def test_a_line_search_along_a_constant_with_an_intercept():
    """The intercept absorbs it, so that any step does; none may be infinite or NaN."""
    objective = with_intercept(0, 5)
    step = objective.line_search(np.zeros(5), np.full(5, 1e9), 1.0)
    assert 0.0 <= step <= 1.0


@pytest.mark.parametrize("make", OBJECTIVES)
def test_the_contract(make):
    objective = make(0, 7)
    assert isinstance(objective, Objective)
    assert objective.d == 7


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_squared_error_by_hand(fit_intercept):
    rng = np.random.default_rng(1)
    y, z = 5 + rng.standard_normal(9), rng.standard_normal(9)
    objective = SquaredError(y, fit_intercept)
    b = objective.intercept(z)
    assert b == (pytest.approx((y - z).mean()) if fit_intercept else 0.0)
    assert objective.value(z) == pytest.approx(np.sum((y - z - b) ** 2))
    np.testing.assert_allclose(objective.gradient(z), -2 * (y - z - b))
    if fit_intercept:  # no other constant does better
        for other in (b - 0.1, b + 0.1):
            assert objective.value(z) < np.sum((y - z - other) ** 2)


@pytest.mark.parametrize("level", [0.1, 1 / 3, 1e-9, 1e9, -7.7, 123456.789])
@pytest.mark.parametrize("d", [1, 2, 3, 1000, 12_345, 100_003])
def test_a_constant_target_leaves_nothing_to_fit(level, d):
    objective = SquaredError(np.full(d, level), fit_intercept=True)
    assert objective.value(np.zeros(d)) == 0.0
    assert not objective.gradient(np.zeros(d)).any()
    assert objective.intercept(np.zeros(d)) == pytest.approx(level)


def test_a_nearly_constant_target_is_still_fitted():
    y = 1e6 + np.array([0.0, 1e-3, -1e-3, 2e-3])
    assert SquaredError(y, fit_intercept=True).value(np.zeros(4)) == pytest.approx(5e-6, rel=1e-3)


def test_the_target_must_be_a_vector_or_several():
    with pytest.raises(ValueError, match="y must have one or two dimensions"):
        SquaredError(np.zeros((3, 2, 1)))


@pytest.mark.parametrize("classes", [2, 3])
def test_an_image_that_was_changed_in_place_is_another(classes):
    labels = np.arange(12) % classes

    def made():
        return Logistic(2.0 * labels - 1.0) if classes == 2 else Multinomial(labels)

    image = np.random.default_rng(0).standard_normal((12, classes)[: classes - 1])
    objective = made()
    objective.value(image)
    image *= 2.0
    assert objective.value(image) == made().value(image)
    np.testing.assert_array_equal(objective.gradient(image), made().gradient(image))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_curvature_holds_so_much_of_the_square_of_the_gradient(classes, scale, intercept):
    """And no more, but where intercepts take some of it."""
    rng = np.random.default_rng(classes)
    y, c = np.arange(12) % classes, rng.uniform(0.5, 2.0, 12)
    if classes == 2:
        objective, z = Logistic(2.0 * y - 1.0, intercept, c), scale * rng.standard_normal(12)
        full = hessian(objective, z)
    else:
        objective, z = Multinomial(y, intercept, c), scale * rng.standard_normal((12, classes))
        units = np.eye(z.size).reshape(12, classes, z.size)
        full = objective.curvature(z).applied(units).reshape(z.size, z.size)
    gradient, steepness = objective.gradient(z).ravel(), objective.steepness(z)
    assert steepness > 0.0
    least = [
        np.linalg.eigvalsh(full - r * steepness * np.outer(gradient, gradient)).min()
        for r in (1.0, 1.01)
    ]
    assert least[0] >= -1e-9 * np.abs(full).max()
    if not intercept and scale <= 1.0:  # beyond, rounding hides it
        assert least[1] < -1e-9 * np.abs(full).max()


def test_small_losses_of_several_classes_keep_their_digits():
    y, margin = np.arange(9) % 3, 40.0
    z = 1e4 + margin * (y[:, None] == np.arange(3))
    exact = 9 * np.log1p(2.0 * np.exp(-margin))
    assert Multinomial(y).value(z) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [SquaredError, Logistic])
def test_with_an_intercept_gradients_sum_to_zero_however_far_the_image(kind, weighted):
    """Columns that are as far from zero would magnify what is left of the sum."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(60)
    c = rng.random(60) + 0.5 if weighted else None
    objective = kind(np.sign(y) if kind is Logistic else y, True, c)
    gradient = objective.gradient(y + rng.standard_normal(60) + 1e5 / 3.0)
    assert abs(gradient.sum()) <= 1e-14 * np.abs(gradient).sum()
