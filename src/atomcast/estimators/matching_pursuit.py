"""Matching pursuit with features spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from atomcast._checks import check_count, check_positive
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.linear import LinearModel
from atomcast.estimators.solving import warn_unless_converged
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import pursuit_problem
from atomcast.steps.pursuit import OrthogonalPursuit, Pursuit

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class MatchingPursuit(MultiOutputMixin, RegressorMixin, LinearModel):  # type: ignore[misc]
    """Least squares with few features, chosen one after the other, spread over a network.

    In each round the feature joins that explains most of the residual, and, if the pursuit is
    orthogonal, all weights are fitted again. The weights have no bound, so that there is no duality
    gap: what is known is the residual and, for an orthogonal pursuit, whether another one could
    have been led astray (`exact_recovery_`).

    Parameters
    ----------
    n_nonzero : int, optional
        How many features to choose. If no goal is given, a tenth of all features.
    tol : float, optional
        Stop once the squared norm of the residual is no larger.
    correlation : float, optional
        Stop once no feature has a larger score: the product of its column with twice the residual,
        divided by the column's length if `normalize`.
    orthogonal : bool, default=True
        Whether all weights are fitted again in each round.
    fit_intercept : bool, default=True
        Whether to fit a constant too. Sparse data stays sparse.
    normalize : bool, default=False
        Whether scores are divided by the lengths of the columns, which is as if all columns had
        the same length; False compares plain products, as scikit-learn does.
    cluster : None, int or cluster, default=None
        Where the features are: None is one node, an int so many nodes simulated in this process.
    solver : None or Solver, default=None
        Of a solver count `max_rounds`, `atoms_per_round` (how many features join in a round),
        `selection`, callbacks and files; the step is the pursuit's own.
    max_rounds : int, optional
        The rounds after which to stop anyway, instead of those of the solver.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Several targets share the features that are chosen.
    intercept_ : float or array of shape (n_targets,)
    residual_ : float
        The squared norm of the residual.
    exact_recovery_ : float or None
        The largest ``||A^+ a||_1`` over the features a that are not in the model, where A^+ is the
        pseudo-inverse of those that are: below 1, an orthogonal pursuit of any target that is a
        combination of these features chooses them and no others (Tropp 2004). None for plain
        pursuits.
    result_ : Result
        Residual, trace, and the ledger of what was sent; its gap is None.
    n_iter_ : int
        Rounds taken.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import MatchingPursuit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MatchingPursuit(n_nonzero=3, cluster=5).fit(X, y)
    >>> model.result_.status
    'reached'
    """

    n_nonzero: int | None = None
    _: KW_ONLY
    tol: float | None = None
    correlation: float | None = None
    orthogonal: bool = True
    fit_intercept: bool = True
    normalize: bool = False

    own_tol = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the features.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
            Used as it is, in single or double precision.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            The targets, known to every node.
        sample_weight : array of shape (n_samples,), optional
            How much the square of each residual counts, in choices, weights and goals; known to
            every node like y; default: one.
        """
        shards, y, cluster = features_and_target(self, X, y, self.cluster, multi_output=True)
        solver = self._pursuing(shards.count())
        objective = SquaredError(y.reshape(len(y), -1), self.fit_intercept, sample_weight)
        result = solver.solve(pursuit_problem(objective, self.normalize), shards, cluster)
        self._keep(result, objective)
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        self.residual_, self.exact_recovery_ = result.objective, result.content
        warn_unless_converged(result, solver)
        return self

    def _coefficients(self, result: Result, objective: Any) -> Floats:
        return result.weights.reshape(-1, objective.y.shape[1]).T

    def _pursuing(self, n: int) -> Solver:
        """The solver with the step that leads to the goals."""
        solver = self._solver()
        if solver.step != Solver.step:
            raise ValueError(
                f"step={solver.step!r} is not for matching pursuit, which has steps of its own: "
                "leave it out, and use orthogonal=True or False"
            )
        count = self.n_nonzero
        if count is not None and check_count("n_nonzero", count, "features to choose") > n:
            raise ValueError(f"n_nonzero={count} is more than the {n} features: use at most {n}")
        for name in ("tol", "correlation"):
            goal = getattr(self, name)
            if goal is not None and goal != 0:
                check_positive(name, goal, "or 0")
        if count is None and self.tol is None and self.correlation is None:
            count = max(n // 10, 1)
        step = OrthogonalPursuit if self.orthogonal else Pursuit
        winners = 1 if solver.atoms_per_round == "auto" else int(solver.atoms_per_round)
        return replace(solver, step=step(count, self.tol, self.correlation, winners))

    def predict(self, X: Any) -> Floats:
        """Predict the target, shape (n_samples,) or (n_samples, n_targets); X as for `fit`."""
        return self._scores(X)
