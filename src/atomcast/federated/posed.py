"""The problems that can be solved between organisations, as plain names and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from atomcast.domains.balls import L1Ball
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.objectives import Logistic, SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Exact

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

#: Objectives by their name on the wire; no other can be asked for.
OBJECTIVES: dict[str, type[SquaredError] | type[Logistic]] = {
    "squared error": SquaredError,
    "logistic": Logistic,
}
#: Steps that never raise the objective, which nodes insist on.
STEPS = ("corrective", "line-search", "away", "pairwise", "blended-pairwise")


def make_problem(name: str, target: np.ndarray, fit_intercept: bool, radius: float) -> Problem:
    """The problem that a message describes."""
    if name not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {name!r}")
    return explicit_problem(OBJECTIVES[name](target, fit_intercept), L1Ball(radius))


def described(problem: Problem) -> tuple[str, SquaredError | Logistic]:
    """The name of a problem's objective, and the objective; ValueError if nodes know no such."""
    active = problem.make_active()
    if type(active) is ExplicitActiveSet and type(problem.domain) is L1Ball:
        objective = active.objective
        weights = getattr(objective, "sample_weight", None)
        plain = weights is None or bool(np.all(weights == 1.0))
        for name, kind in OBJECTIVES.items():
            if type(objective) is kind and plain:
                return name, objective
    raise ValueError(
        "a FederatedCluster fits Lasso and binary SparseLogisticRegression without weights of "
        "examples or classes: the nodes of other organisations know no other problem"
    )


def check_replica(replica: Replica) -> None:
    """Raise ValueError for a step or a selection that nodes would not follow."""
    if replica.step.name not in STEPS:
        raise ValueError(
            f"step={replica.step.name!r} may raise the objective, which nodes of other "
            f"organisations do not follow: use one of {', '.join(STEPS)}"
        )
    if not isinstance(replica.selection, Exact):
        raise ValueError(
            f'selection={replica.selection!r} is not for a FederatedCluster: use "exact"'
        )
