"""What boosting combines: stumps, columns of a matrix, or fitted classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_count
from atomcast.atoms.stumps import Stump, family_size, stump_atoms
from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain
from atomcast.estimators.inputs import FORMATS, as_in_fit, check_features, validated
from atomcast.estimators.solving import Posed, SolvedEstimator
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]
ONE = np.ones(1)


class CountsEstimators(SolvedEstimator):
    """A boosted model that may have a given number of parts: one joins a round."""

    n_estimators: int | None

    def _solver(self) -> Solver:
        solver = super()._solver()
        if self.n_estimators is None:
            return solver
        most = check_count("n_estimators", self.n_estimators, "the most to combine, or None")
        return replace(solver, atoms_per_round=1, max_rounds=min(most, solver.max_rounds))

    def _solve(self, solver: Solver, posed: Posed) -> Result:
        result = super()._solve(solver, posed)
        if result.status == "max_rounds" and result.rounds == self.n_estimators:
            return replace(result, status="reached")
        return result


def stump_problem(objective: Objective, domain: Domain) -> Problem:
    """Minimise an objective over all decision stumps over features, which may lack values."""
    d, active = objective.d, partial(ExplicitActiveSet, objective)
    return Problem(domain, active, stump_atoms, d, missing=True, family=family_size(d))


class StumpClassifier(NamedTuple):
    """A stump of a boosted model by itself: its row of `stumps_`, and the two classes."""

    stump: Floats
    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of examples, the rows of an array or a sparse matrix."""
        votes = _votes(X.tocsc() if sparse.issparse(X) else np.asarray(X), self.stump[None], ONE)
        return np.asarray(self.classes_[(votes > 0).astype(int)])


def check_base(base: Any) -> None:
    """Raise ValueError unless `base` is one of the three kinds."""
    if isinstance(base, str):
        if base not in ("stumps", "matrix"):
            raise ValueError(
                f'base must be "stumps", "matrix" or a list of fitted classifiers, got {base!r}'
            )
        return
    if not isinstance(base, Sequence) or not len(base):
        raise ValueError(
            'base must be "stumps", "matrix" or a list of at least one fitted classifier, '
            f"got {base!r}"
        )
    for j, classifier in enumerate(base):
        if not hasattr(classifier, "predict"):
            raise ValueError(f"base[{j}] is {classifier!r}, which has no method predict")
        check_is_fitted(classifier)


def features_for(base: Any) -> dict[str, Any]:
    """What scikit-learn's check of X must be told: only stumps can do with missing values."""
    return {"ensure_all_finite": "allow-nan"} if isinstance(base, str) and base == "stumps" else {}


def predictions_of(base: Sequence[Any], X: Any, classes: NDArray[Any]) -> Floats:
    """What each classifier says of each example: -1 or 1, shape (n_samples, n_classifiers)."""
    if isinstance(X, Shards):
        if X.matrix is None:
            raise ValueError(
                "fitted classifiers need whole examples: give X as an array or as Shards.split"
            )
        X = X.matrix
    votes = np.empty((X.shape[0], len(base)), order="F")
    for j, classifier in enumerate(base):
        said = np.asarray(classifier.predict(X))
        unknown = np.setdiff1d(said, classes)
        if len(unknown):
            raise ValueError(
                f"base[{j}] predicts {unknown[0]!r}, which is not one of the classes "
                f"{list(classes)} of y: fit it on the same two classes"
            )
        votes[:, j] = np.where(said == classes[1], 1.0, -1.0)
    return votes


def stump_votes(estimator: Any, X: Any, stumps: Floats, weights: Floats) -> Floats:
    """The weighted vote of stumps on new data, which may be in shards, shape (n_samples,)."""
    if isinstance(X, Shards):
        X = as_in_fit(estimator, X)
        check_features(estimator, X)
        votes = np.zeros(X.rows())
        for i in range(X.nodes):
            shard = X.shard(i)
            place = {int(id): j for j, id in enumerate(shard.ids)}
            mine = np.array([int(feature) in place for feature in stumps[:, 0]], dtype=bool)
            local = stumps[mine].copy()
            local[:, 0] = [place[int(feature)] for feature in local[:, 0]]
            votes += _votes(shard.matrix, local, weights[mine])
        return votes
    X = validated(estimator, X, reset=False, ensure_all_finite="allow-nan", **FORMATS)
    return _votes(X.tocsc() if sparse.issparse(X) else X, stumps, weights)


def _votes(matrix: Any, stumps: Floats, weights: Floats) -> Floats:
    votes = np.zeros(matrix.shape[0])
    for feature in np.unique(stumps[:, 0]):
        part = matrix[:, [int(feature)]]
        column = np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=float)[:, 0]
        for k in np.flatnonzero(stumps[:, 0] == feature):
            _, threshold, polarity, missing = stumps[k]
            votes += weights[k] * Stump(int(feature), threshold, polarity, missing).predict(column)
    return votes
