"""scikit-learn's own checks of every estimator of this folder, with no exception list."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from atomcast import (
    GroupLasso,
    GroupLogisticRegression,
    L1AdaBoost,
    MatchingPursuit,
    Solver,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
)


@parametrize_with_checks(
    [
        SparseLogisticRegression(),
        SparseLogisticRegression(5.0, cluster=3, solver=Solver(step="pairwise", max_rounds=50)),
        SparseLogisticRegressionCV(n_betas=3, cv=2, solver=Solver(tol=1e-2)),
        GroupLasso(),
        GroupLogisticRegression(cluster=2),
        MatchingPursuit(),
        MatchingPursuit(tol=1.0, orthogonal=False, cluster=2),
        L1AdaBoost(),
        L1AdaBoost(0.2, cluster=2, solver=Solver(step="pairwise", max_rounds=50)),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)
