"""Whatever the data: fits end, soon, and what they say of themselves is true.

Data, model, radius or penalty are drawn; certificates are worked out in extended precision
(`tests/any_data.py`), and other libraries are asked for points that may be better.
"""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Lasso as PenalisedLasso
from sklearn.linear_model import LogisticRegression

from any_data import KINDS, MODELS, Certificate, case

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.slow,
]

#: By this share, stated gaps may be too small, and by this share of the objective.
SHARE, ROUNDING = 0.05, 1e-6
#: Where much cancels, so small a share of the objective at zero may be left.
LOST = 1e-8
#: Balls of any radius take so many rounds, and all that a penalty asks for.
ROUNDS = 150


class Fitted:
    """A model, and what its coefficients are worth."""

    def __init__(self, posed, cluster):
        model = posed.fit(cluster=cluster)
        coef = model.coef_ if model.coef_.ndim == 1 else np.squeeze(model.coef_.T)
        self.result, self.penalty = model.result_, posed.penalty
        self.worth = Certificate(posed, coef, model.intercept_)
        self.value = self.worth.value(posed.penalty)
        self.at_zero = Certificate(posed, np.zeros_like(coef)).loss
        self.unit = max(self.value, 1e-6 * self.at_zero)

    @property
    def bound(self):
        """How far from the optimum it says that it is at most, and a little more."""
        return (1.0 + SHARE) * self.result.gap + ROUNDING * self.unit


def other_coefficients(posed):
    """What another library makes of the same penalty, after so many steps as it likes."""
    if posed.model in ("lasso", "positive"):
        other = PenalisedLasso(
            posed.how["alpha"],
            fit_intercept=posed.intercept,
            positive=posed.model == "positive",
            max_iter=2_000,
            tol=1e-8,
        )
    elif posed.model == "logistic" and not posed.intercept:
        other = LogisticRegression(
            C=posed.how["C"],
            l1_ratio=1.0,
            solver="liblinear",
            fit_intercept=False,
            max_iter=200,
            random_state=0,
        )
    else:
        return None
    X = posed.X.tocsr() if sparse.issparse(posed.X) else np.asfortranarray(posed.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.squeeze(other.fit(X, posed.y).coef_, axis=None).reshape(-1)


def check_fits(kind, model, strength, penalised, intercept, seed, single):
    posed = case(kind, model, strength, penalised, intercept, seed, single)
    alone, nodes = (Fitted(posed, cluster) for cluster in (None, 3))
    best = min(alone.value, nodes.value)
    if penalised and (coef := other_coefficients(posed)) is not None:
        best = min(best, Certificate(posed, coef).value(posed.penalty))
    for fitted in (alone, nodes):
        result, worth = fitted.result, fitted.worth
        assert result.status == "optimal" or result.gap <= LOST * fitted.at_zero
        assert result.rounds <= ROUNDS
        assert result.objective == pytest.approx(fitted.value, abs=ROUNDING * fitted.unit)
        assert fitted.value - best <= fitted.bound
        if not penalised:
            beta = posed.how["beta"]
            assert worth.norm <= beta * (1.0 + 1e-9)
            # So good a fit that its objective bounds what is left better than duality does.
            assert min(worth.gap(beta), fitted.value) <= fitted.bound


@given(
    kind=st.sampled_from(list(KINDS)),
    model=st.sampled_from(list(MODELS)),
    strength=st.floats(0.0, 3.5),
    penalised=st.booleans(),
    intercept=st.booleans(),
    seed=st.integers(0, 2**32),
    single=st.booleans(),
)
@settings(max_examples=30, deadline=None)
# Groups that all but coincide: scaled into the ball, weights left the valley, and fits gave up.
@example("two_directions", "groups", 1.5740086196288359, False, False, 5084, False)
@example("far", "groups", 1.3567406470539563, False, False, 5009, False)
# Balls that were left before they were solved told that the radius was too short.
@example("low_rank", "logistic groups", 1.83259651638548, True, False, 215, False)
# From a corner of the path on, the radius grew by a thousandth from ball to ball.
@example("two_directions", "positive", 3.2212130756851995, True, False, 2652, False)
def test_fits_end_and_tell_the_truth(kind, model, strength, penalised, intercept, seed, single):
    check_fits(kind, model, strength, penalised, intercept, seed, single)
