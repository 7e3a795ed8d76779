"""Losses and the boosting objective: value, gradient, curvature and line search fit together."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atomcast.objectives import Logistic, LogMeanExp, Multinomial, Objective


def labels(rng, d):
    y = np.where(rng.random(d) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return y


def logistic(rng, d):
    return Logistic(labels(rng, d))


def logistic_with_intercept(rng, d):
    return Logistic(labels(rng, d), True, 0.1 + rng.random(d))


def boosting(rng, d):
    return LogMeanExp(labels(rng, d), 0.3)


def weighted_boosting(rng, d):
    return LogMeanExp(labels(rng, d), 1.7, 0.1 + rng.random(d))


def multinomial(rng, d):
    return Multinomial(np.arange(d) % 3, False, 0.1 + rng.random(d))


def multinomial_with_intercept(rng, d):
    return Multinomial(np.arange(d) % 3, True)


OBJECTIVES = [
    logistic,
    logistic_with_intercept,
    boosting,
    weighted_boosting,
    multinomial,
    multinomial_with_intercept,
]
cases = given(st.sampled_from(OBJECTIVES), st.integers(0, 10**6), st.integers(4, 9))


def setting(make, seed, d):
    """An objective, an image, and a direction, the last two of its shape."""
    rng = np.random.default_rng(seed)
    objective = make(rng, d)
    shape = (d, objective.classes) if isinstance(objective, Multinomial) else (d,)
    return objective, rng.standard_normal(shape), rng.standard_normal(shape)


@settings(max_examples=60, deadline=None)
@cases
def test_the_gradient_is_that_of_the_value(make, seed, d):
    objective, z, _ = setting(make, seed, d)
    h, numerical = 1e-5, np.empty(z.size)
    for k in range(z.size):
        e = np.eye(1, z.size, k).reshape(z.shape)
        numerical[k] = (objective.value(z + h * e) - objective.value(z - h * e)) / (2 * h)
    np.testing.assert_allclose(objective.gradient(z).ravel(), numerical, rtol=1e-6, atol=1e-7)


@settings(max_examples=60, deadline=None)
@cases
def test_the_curvature_is_that_of_the_gradient(make, seed, d):
    objective, z, direction = setting(make, seed, d)
    h = 1e-5
    difference = objective.gradient(z + h * direction) - objective.gradient(z - h * direction)
    numerical = np.vdot(direction, difference) / (2 * h)
    bend = objective.curvature(z).bend(direction)
    assert bend == pytest.approx(numerical, rel=1e-6, abs=1e-7)
    assert bend >= 0.0
    if not isinstance(objective, Multinomial):
        curvature = objective.curvature(z)
        full = np.diag(curvature.diagonal)
        if curvature.rank_one is not None:
            full = full - np.outer(curvature.rank_one, curvature.rank_one)
        assert direction @ full @ direction == pytest.approx(bend, rel=1e-9)
        assert np.linalg.eigvalsh(full).min() >= -1e-12


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(OBJECTIVES),
    st.integers(0, 10**6),
    st.integers(4, 9),
    st.sampled_from([1e-6, 0.1, 1.0, 100.0, 1e4]),
)
def test_the_line_search_finds_the_best_step(make, seed, d, max_step):
    objective, z, direction = setting(make, seed, d)
    step = objective.line_search(z, direction, max_step)
    assert 0.0 <= step <= max_step
    value = objective.value(z + step * direction)
    for other in np.linspace(0.0, max_step, 51):
        assert value <= objective.value(z + other * direction) + 1e-9 * (1 + abs(value))
    if 0.0 < step < max_step:
        slope = abs(np.vdot(objective.gradient(z + step * direction), direction))
        assert slope <= 1e-8 * (1 + abs(np.vdot(objective.gradient(z), direction)))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([logistic_with_intercept, multinomial_with_intercept]),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 1.0, 30.0, 1e3]),
)
# Rounding in the slope of a class that is out of the question led far away.
@example(multinomial_with_intercept, 1561, 1e3)
def test_no_other_intercept_does_better(make, seed, spread):
    rng = np.random.default_rng(seed)
    objective, z, _ = setting(make, seed, 9)
    z = spread * z
    plain = type(objective)(objective.y, False, objective.sample_weight)
    best, b = objective.value(z), objective.intercept(z)
    assert plain.value(z + b) == pytest.approx(best, rel=1e-9, abs=1e-9)
    for size in (1e-3, 0.1, 3.0):
        other = b + size * rng.standard_normal(np.shape(b))
        assert plain.value(z + other) >= best - 1e-9 * (1 + best)
    # The envelope theorem: at the best intercept, the gradient sums to zero in each class.
    assert np.abs(objective.gradient(z).sum(axis=0)).max() <= 1e-9 * len(z)


@pytest.mark.parametrize("make", OBJECTIVES)
def test_the_contract(make):
    objective, z, direction = setting(make, 0, 7)
    assert isinstance(objective, Objective)
    assert objective.d == 7
    assert not objective.quadratic
    assert objective.value(z) >= objective.lower_bound
    assert 0.0 <= objective.line_search(z, 0.0 * direction, 1.0) <= 1.0
    before = z.copy()
    objective.value(z)
    z.flat[0] += 1.0  # an image that is changed in place must not be mistaken for the old one
    assert objective.value(z) != objective.value(before)


def test_two_classes_are_a_case_of_many():
    """A binary score z is the pair (0, z), up to a constant: the losses agree."""
    rng = np.random.default_rng(0)
    numbers, z = (np.arange(12) % 2), rng.standard_normal(12)
    for intercept in (False, True):
        two = Logistic(2.0 * numbers - 1.0, intercept)
        many = Multinomial(numbers, intercept)
        pair = np.column_stack([np.zeros(12), z])
        assert many.value(pair) == pytest.approx(two.value(z), rel=1e-12)
        np.testing.assert_allclose(many.gradient(pair)[:, 1], two.gradient(z), atol=1e-12)


def test_the_best_intercepts_are_the_same_whatever_was_asked_before():
    rng = np.random.default_rng(4)
    numbers, weights = rng.integers(0, 4, 60), rng.random(60)
    asked = Multinomial(numbers, True, weights)
    z, step = np.zeros((60, 4)), rng.standard_normal((60, 4))
    for size in (1e-3, 0.1, 3.0, 30.0, 0.0):
        z = z + size * step
        z.flags.writeable = False
        asked.curvature(z)  # from which the next intercepts are guessed
        fresh = Multinomial(numbers, True, weights)
        np.testing.assert_allclose(asked.intercept(z), fresh.intercept(z), rtol=1e-9, atol=1e-11)
        sums = asked.gradient(z).sum(axis=0)
        assert np.abs(sums).max() <= asked.vagueness


def test_intercepts_answer_to_a_change_of_scores():
    rng = np.random.default_rng(5)
    objective = Multinomial(np.arange(30) % 3, True, rng.random(30))
    z, direction = rng.standard_normal((2, 30, 3))
    ahead, behind = (objective.intercept(z + t * direction) for t in (1e-5, -1e-5))
    answer = objective.curvature(z).answer(direction)
    np.testing.assert_allclose(answer, (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-8)
    alone = Multinomial(np.arange(30) % 3).curvature(z)
    assert not alone.answer(direction).any()
    p = alone.probabilities
    np.testing.assert_allclose(alone.complements, 1.0 - p, rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_logistic_loss_is_negligible_beside_that_of_no_model(intercept):
    y, weights = np.array([1.0, -1.0, -1.0, 1.0, -1.0]), np.array([0.5, 2.0, 0.0, 1.0, 7.0])
    objective = Logistic(y, intercept, weights)
    assert objective.negligible == pytest.approx(1e-6 * objective.value(np.zeros(5)), rel=1e-12)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_the_weights_of_the_examples_are_the_paper_s(temperature):
    """w = exp(-A alpha / T) / sum, A = diag(y) H, and the gradient in alpha is -w'A / T.

    The paper's formula lacks the factor 1/T, which changes neither the winner nor the sign.
    """
    rng = np.random.default_rng(1)
    H, y = rng.choice([-1.0, 1.0], (30, 6)), labels(rng, 30)
    alpha, A = rng.dirichlet(np.ones(6)), y[:, None] * H
    objective = LogMeanExp(y, temperature)
    w = np.exp(-A @ alpha / temperature)
    expected = np.log(w.mean())
    w /= w.sum()
    np.testing.assert_allclose(objective.weights(H @ alpha), w, rtol=1e-12)
    assert objective.value(H @ alpha) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(
        H.T @ objective.gradient(H @ alpha), -w @ A / temperature, rtol=1e-9, atol=1e-12
    )


def test_extreme_margins_neither_overflow_nor_vanish():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    z = np.array([800.0, -900.0, -1000.0, 5.0])
    for objective in (Logistic(y), Logistic(y, True), LogMeanExp(y, 1e-3)):
        assert np.isfinite(objective.value(z))
        assert np.all(np.isfinite(objective.gradient(z)))
        assert np.isfinite(objective.curvature(z).bend(np.ones(4)))
    Z = np.column_stack([z, -z, 0 * z])
    many = Multinomial([0, 1, 2, 1], True)
    assert np.isfinite(many.value(Z))
    assert np.all(np.isfinite(many.gradient(Z)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Logistic([1.0, 0.0]), "labels -1 and 1"),
        (lambda: Logistic([1.0, 1.0], True), "only one class"),
        (lambda: Logistic([1.0, -1.0], False, [1.0, -1.0]), "sample_weight must be 2 finite"),
        (lambda: Logistic([1.0, -1.0], False, [0.0, 0.0]), "zero everywhere"),
        (lambda: LogMeanExp([1.0, -1.0], 0.0), "temperature must be a finite number > 0"),
        (lambda: LogMeanExp([1.0, 2.0], 1.0), "labels -1 and 1"),
        (lambda: Multinomial([0, 2, 2], True), "lacks class 1"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()
