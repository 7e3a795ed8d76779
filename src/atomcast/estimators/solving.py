"""What all estimators have in common that are fitted by a `Solver`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

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
