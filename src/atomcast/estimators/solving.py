"""What all estimators have in common that are fitted by a `Solver`."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from atomcast.loop.result import Result
from atomcast.loop.solver import Solver, as_solver


class SolvedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator with a parameter `solver`: None, the name of a step, or a Solver."""

    #: The relative gap to reach where the user names none.
    usual_tol: ClassVar[float] = Solver.tol
    solver: str | Solver | None

    def _solver(self) -> Solver:
        """The solver to fit with."""
        return as_solver(self.solver, self.usual_tol)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn.

        `solver__tol` and its like also work where `solver` is None or the name of a step.
        """
        if any(name.startswith("solver__") for name in params):
            self.solver = as_solver(params.pop("solver", self.solver), self.usual_tol)
        super().set_params(**params)
        return self


def warn_unless_converged(result: Result, solver: Solver, stacklevel: int = 3) -> None:
    """Warn, as scikit-learn does, if the run ended before the tolerance was reached."""
    remedies = {
        "max_rounds": "raise max_rounds or tol",
        "interrupted": "the run was interrupted (Ctrl-C), and the model is the best so far",
    }
    if result.uncertified:
        warnings.warn(
            f"the gap is not certified for {', '.join(result.uncertified)}: there, the budget of "
            "features that may leave, or of rounds, was used up",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    if result.status in remedies:
        warnings.warn(
            f"the relative gap is {result.relative_gap:.2g} after {result.rounds} rounds, above "
            f"tol={solver.tol:.2g}: {remedies[result.status]}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
