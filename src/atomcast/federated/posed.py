"""The problems that can be solved between organisations, as plain names and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atomcast.atoms.groups import GroupActiveSet, split_group
from atomcast.atoms.multiclass import MulticlassActiveSet
from atomcast.domains.balls import L1Ball, SolidSimplex
from atomcast.domains.group_ball import GroupBall, Groups
from atomcast.errors import FalseMessageError
from atomcast.federated.folds import check_labels, training_rows
from atomcast.federated.kinds import Begin, Floats, Ids
from atomcast.known.active_set import ActiveSet, ExplicitActiveSet
from atomcast.messages.atom import Atom
from atomcast.objectives import Logistic, Multinomial, SquaredError
from atomcast.problems.features import explicit_problem, group_problem, multiclass_problem
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Exact

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

#: Objectives and domains by their names on the wire; no others can be asked for.
OBJECTIVES: dict[str, Any] = {
    "squared error": SquaredError,
    "logistic": Logistic,
    "multinomial": Multinomial,
}
DOMAINS: dict[str, Any] = {
    "l1 ball": L1Ball,
    "solid simplex": SolidSimplex,
    "group ball": GroupBall,
}
SETS = (ExplicitActiveSet, GroupActiveSet, MulticlassActiveSet)
#: Steps that never raise the objective, which nodes insist on.
STEPS = ("corrective", "line-search", "away", "pairwise", "blended-pairwise")
#: A score may be off by this share of the norms of the feature and the gradient.
SCORE = 1e-9


def make_problem(begin: Begin) -> Problem:
    """The problem that a message describes; ValueError if it describes none."""
    if begin.objective not in OBJECTIVES or begin.domain not in DOMAINS:
        raise ValueError(
            f"the objective must be one of {', '.join(OBJECTIVES)}, over one of "
            f"{', '.join(DOMAINS)}, got {begin.objective!r} over {begin.domain!r}"
        )
    if len(begin.groups) and begin.domain != "group ball":
        raise ValueError("groups must be none where the domain is no ball of them")
    check_labels(begin.folds, len(begin.target))
    rows = training_rows(begin.folds, begin.fold)
    target = begin.target if rows is None else begin.target[rows]
    if begin.objective == "multinomial":
        numbers = np.unique(target)
        if not np.array_equal(numbers, np.arange(len(numbers))) or begin.domain != "l1 ball":
            raise ValueError("classes must be numbered 0, 1, ..., and their weights in an l1 ball")
        objective = Multinomial(target, begin.fit_intercept)
        return multiclass_problem(objective, L1Ball(begin.radius))
    objective = OBJECTIVES[begin.objective](target, begin.fit_intercept)
    if begin.domain == "group ball":
        return group_problem(objective, GroupBall(begin.radius, _groups(begin)))
    if begin.domain == "solid simplex":
        return explicit_problem(objective, SolidSimplex(begin.radius))
    return explicit_problem(objective, L1Ball(begin.radius))


def _groups(begin: Begin) -> Groups:
    labels, weights, starts = begin.groups, begin.group_weights, begin.starts
    numbers, leaders = np.unique(labels, return_index=True)
    sound = len(labels) == starts[-1] and np.array_equal(numbers, np.arange(len(weights)))
    sound = sound and bool(np.all(np.diff(leaders) > 0) and np.all(weights > 0.0))
    if sound and np.all(np.isfinite(weights)):
        owner = np.searchsorted(starts, np.arange(len(labels)), side="right")
        if np.array_equal(owner, owner[leaders][labels]):
            return Groups(labels, weights, leaders)
    raise ValueError("groups must be numbered in order, have weights, and be whole at one member")


def widest(groups: Ids) -> int:
    """How many features travel together at most."""
    return int(np.bincount(groups).max(initial=1))


def described(problem: Problem) -> dict[str, Any]:
    """What `Begin` says of a problem; ValueError if nodes know no such."""
    active, domain = problem.make_active(), problem.domain
    objective = getattr(active, "objective", None)
    names = [name for name, kind in OBJECTIVES.items() if type(objective) is kind]
    domains = [name for name, kind in DOMAINS.items() if type(domain) is kind]
    weights = getattr(objective, "sample_weight", None)
    plain = weights is None or bool(np.all(weights == 1.0))
    if type(active) in SETS and names and domains and plain:
        groups = domain.groups if isinstance(domain, GroupBall) else None
        return {
            "objective": names[0],
            "domain": domains[0],
            "fit_intercept": bool(getattr(objective, "fit_intercept", False)),
            "radius": domain.scale,
            "target": np.asarray(getattr(objective, "y", None), dtype=np.float64),
            "groups": np.zeros(0, dtype=np.int64) if groups is None else groups.labels,
            "group_weights": np.zeros(0) if groups is None else groups.weights,
        }
    raise ValueError(
        "a FederatedCluster fits Lasso, SparseLogisticRegression, GroupLasso and "
        "GroupLogisticRegression of one target, without weights of examples or classes, and "
        "SparseModel of their losses over L1Ball or SolidSimplex: the nodes of other organisations "
        "know no other problem"
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


def stands_for_itself(active: ActiveSet, id: int) -> bool:
    """Whether this is the id of an atom: of a feature, or the first of a group."""
    if not isinstance(active, GroupActiveSet):
        return True
    return bool(active.groups.leaders[active.groups.labels[id]] == id)


def promises(active: ActiveSet, atom: Atom, gradient: Floats) -> tuple[Floats, float]:
    """The scores that an atom may be stated to have, and what divides the norm of its values.

    Of a feature with a weight for each class, that is the largest over the classes, and there may
    be ties, which other machines resolve in another way.
    """
    if isinstance(active, MulticlassActiveSet):
        return np.array([atom.dot(column) for column in gradient.T]), 1.0
    if isinstance(active, GroupActiveSet):
        groups, d = active.groups, active.objective.d
        weight = float(groups.weights[groups.labels[atom.id]])
        scores = [column.dot(gradient) for column in split_group(atom, d)]
        return np.array([np.linalg.norm(scores) / weight]), weight
    return np.array([atom.dot(gradient)]), 1.0


def check_score(
    active: ActiveSet, atom: Atom, gradient: Floats, stated: float, owner: str, digits: int = 0
) -> None:
    """Raise FalseMessageError unless an atom has the score that its owner has stated."""
    scores, weight = promises(active, atom, gradient)
    size = float(np.linalg.norm(atom.values.astype(np.float64)) * np.linalg.norm(gradient))
    allowed = SCORE * size / weight + (10.0 ** (1 - digits) * abs(stated) if digits else 0.0)
    near = np.abs(scores - stated) <= allowed
    if not np.any(near & (np.abs(scores) >= np.abs(scores).max() - 2 * allowed)):
        raise FalseMessageError(
            f"{owner} said that feature {atom.id} has the score {stated:.17g}, but what it sent "
            f"has {scores[np.abs(scores).argmax()]:.17g}"
        )
