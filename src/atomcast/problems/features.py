"""Problems whose atoms are features, alone or in groups."""

from __future__ import annotations

from functools import partial

from atomcast.atoms.explicit import explicit_atoms
from atomcast.atoms.groups import GroupActiveSet, group_atoms
from atomcast.atoms.multiclass import (
    MulticlassActiveSet,
    MultiTargetActiveSet,
    multiclass_atoms,
)
from atomcast.atoms.pursued import PursuitActiveSet, pursuit_atoms
from atomcast.domains.balls import Domain
from atomcast.domains.group_ball import GroupBall
from atomcast.domains.span import Span
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.objectives import Multinomial, Objective, SquaredError
from atomcast.problems.problem import Problem


def explicit_problem(objective: Objective, domain: Domain) -> Problem:
    """Minimise an objective of A alpha over a domain, where the columns of the data are A."""
    return Problem(domain, partial(ExplicitActiveSet, objective), explicit_atoms, objective.d)


def group_problem(objective: Objective, domain: GroupBall) -> Problem:
    """Minimise an objective over a ball of the group norm; groups of columns are the atoms."""
    return Problem(
        domain,
        partial(GroupActiveSet, objective, domain.groups),
        partial(group_atoms, domain.groups),
        objective.d,
    )


def pursuit_problem(objective: SquaredError, normalize: bool) -> Problem:
    """Explain targets of shape (d, T) by few atoms, whatever their weights."""
    return Problem(
        Span(),
        partial(PursuitActiveSet, objective, normalize),
        partial(pursuit_atoms, normalize, objective.fit_intercept, objective.sample_weight),
        objective.d,
        targets=objective.y.shape[1],
    )


def targets_problem(objective: SquaredError, domain: Domain) -> Problem:
    """Least squares for targets of shape (d, T), over a domain of the weights of all of them."""
    return Problem(
        domain,
        partial(MultiTargetActiveSet, objective, domain),
        multiclass_atoms,
        objective.d,
        targets=objective.classes,
    )


def multiclass_problem(objective: Multinomial, domain: Domain) -> Problem:
    """Minimise the multinomial loss over a domain of all weights, of every feature and class."""
    return Problem(domain, partial(MulticlassActiveSet, objective), multiclass_atoms, objective.d)
