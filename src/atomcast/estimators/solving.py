"""What all estimators have in common that are fitted by a `Solver`."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from atomcast._checks import check_flags
from atomcast.data.shards import Shards
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver, as_solver
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem


class Posed(NamedTuple):
    """What an estimator makes of data: an objective, its problem, and where the atoms are."""

    objective: Objective
    problem: Problem
    shards: Shards
    cluster: Any


@dataclass(eq=False, repr=False)
class SolvedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that says which problem data pose; the rest of fitting stands here.

    The fields of a subclass that is a dataclass, too, are its parameters, beside these.

    Parameters
    ----------
    cluster : None, int or cluster, default=None
        Where the atoms are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to the usual tolerance, a str names a step.
    tol : float, optional
        The relative gap to reach, instead of that of the solver.
    max_rounds : int, optional
        The rounds after which to stop anyway, instead of those of the solver.
    """

    _: KW_ONLY
    cluster: Any = None
    solver: str | Solver | None = None
    tol: float | None = None
    max_rounds: int | None = None

    #: The relative gap to reach where the user names none.
    usual_tol: ClassVar[float] = Solver.tol
    #: Whether `tol` is a goal of the estimator itself, of which the solver knows nothing.
    own_tol: ClassVar[bool] = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
            Used as it is, in single or double precision.
        y : array of shape (n_samples,)
            The target or the classes, known to every node.
        sample_weight : array of shape (n_samples,), optional
            How much the loss of each example counts, known to every node like y; default: one.
        """
        solver = self._solver()
        posed = self._pose(X, y, sample_weight)
        result = self._solve(solver, posed)
        self._keep(result, posed.objective)
        warn_unless_converged(result, solver)
        return self

    def _pose(self, X: Any, y: Any, sample_weight: Any = None) -> Posed:
        """Check the parameters, then the data, and say what is to be solved."""
        raise NotImplementedError

    def _solve(self, solver: Solver, posed: Posed) -> Result:
        """Solve what was posed."""
        return solver.solve(posed.problem, posed.shards, posed.cluster)

    def _keep(self, result: Result, objective: Any) -> None:
        """Take the fitted attributes from a result."""
        self.result_ = result
        self.dual_gap_ = result.gap
        self.n_iter_ = result.rounds

    def _solver(self) -> Solver:
        """The solver to fit with; it is asked for first, so that flags are looked at here."""
        check_flags(self)
        tol = None if self.own_tol else self.tol
        limits: dict[str, Any] = {"tol": tol, "max_rounds": self.max_rounds}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        usual = self.solver is None
        solver = _usual(self.usual_tol) if usual else as_solver(self.solver, self.usual_tol)
        return replace(solver, **given) if given else solver

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn.

        `solver__tol` and its like also work where `solver` is None or the name of a step.
        """
        if any(name.startswith("solver__") for name in params):
            self.solver = as_solver(params.pop("solver", self.solver), self.usual_tol)
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@cache
def _usual(tol: float) -> Solver:
    """The solver of those who name none, for fits alone: to check it takes a while."""
    return as_solver(None, tol)


#: How to go on where a run ended before its goal, by its status.
REMEDIES = {
    "max_rounds": "raise max_rounds or tol",
    "time_limit": "the time was over; allow more, or raise tol",
    "stopped": "a callback ended the run, or no step made progress; let it go on, or raise tol",
    "interrupted": "the run was interrupted (Ctrl-C), and the model is the best so far",
}


def warn_unless_converged(result: Result, solver: Solver, stacklevel: int = 3) -> None:
    """Warn, as scikit-learn does, if the run ended before the tolerance was reached."""
    if result.uncertified:
        warnings.warn(
            f"the gap is not certified for {', '.join(result.uncertified)}: there, the budget of "
            "features that may leave, of rounds or of scores, was used up",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    if result.status not in ("optimal", "reached"):
        remedy = REMEDIES.get(result.status, REMEDIES["stopped"])  # callbacks may say anything
        state, kind = "the goal was not reached", solver.tol_kind
        if result.gap is not None:
            gap = result.gap if kind == "absolute" else result.relative_gap
            state = f"the {kind} gap is {gap:.2g}, above tol={solver.tol:.2g},"
        warnings.warn(
            f"{state} after {result.rounds} rounds: {remedy}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
