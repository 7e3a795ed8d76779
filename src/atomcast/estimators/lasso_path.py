"""Lasso solutions along a path of radii, each warm-started from the one before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from atomcast.domains.balls import L1Ball
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.radii import Walk, checked_betas, radius_names
from atomcast.estimators.solving import warn_unless_converged
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.journal import Journal
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver, as_solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.network.ledger import Ledger
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]


class Path(NamedTuple):
    """Solutions along a path.

    Parameters
    ----------
    betas : array of shape (n_betas,)
    coefs : array of shape (n_features, n_betas)
    intercepts : array of shape (n_betas,)
    dual_gaps : array of shape (n_betas,)
    results : list of Result
        They share one ledger: what was sent for one radius is known at the next. What it took to
        find the radii, if they were not given, is in it.
    """

    betas: Floats
    coefs: Floats
    intercepts: Floats
    dual_gaps: Floats
    results: list[Result]


def lasso_path(
    X: Any,
    y: Any,
    *,
    betas: ArrayLike | None = None,
    n_betas: int = 30,
    fit_intercept: bool = True,
    cluster: Any = None,
    solver: str | Solver | None = None,
) -> Path:
    """Fit the lasso for several radii, in rising order, without sending any feature twice.

    Parameters
    ----------
    X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    betas : array of shape (n_betas,), optional
        The radii; by default `n_betas` of them, from an empty model to the solution at 1/1000 of
        the penalty that leaves it empty, as in scikit-learn, at penalties that fall geometrically.
    fit_intercept, cluster, solver
        As for `Lasso`.

    Returns
    -------
    Path
        After Ctrl-C, up to the radius that was being fitted, with a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import lasso_path
    >>> path = lasso_path(*load_diabetes(return_X_y=True), betas=[10, 100, 1000])
    >>> path.coefs.shape
    (10, 3)
    """
    shards, y, cluster = features_and_target(BaseEstimator(), X, y, cluster)
    objective = SquaredError(y, fit_intercept)

    def make(beta: float) -> Problem:
        return explicit_problem(objective, L1Ball(beta))

    solver, searches = as_solver(solver), list[Ledger]()
    journal = Journal(solver, [objective, betas, n_betas], cluster)
    if betas is None:
        with all_or_nothing():
            walk = Walk(make, objective.gradient, shards, cluster, searches, journal.note("walk"))
            betas = walk.radii(n_betas)
        journal.keep("walk", walk.points)
    radii, results = checked_betas(betas), list[Result]()
    problems = map(make, radii.tolist())
    for result in journal.results(problems, shards, cluster, radius_names(radii)):
        results.append(result)
        if result.status == "interrupted":
            warn_unless_converged(result, solver)
            break
    results = with_search(results, searches)
    return Path(
        radii[: len(results)],
        np.column_stack([result.weights for result in results]),
        np.array([objective.intercept(np.asarray(result.image)) for result in results]),
        np.array([result.gap for result in results]),
        results,
    )


def with_search(results: list[Result], searches: list[Ledger]) -> list[Result]:
    """Results of a path whose ledger also has what it took to find its radii."""
    if not searches:
        return results
    parts = [*named("search", searches), ("", results[-1].ledger)]
    ledger = joined(parts)
    return [replace(result, ledger=ledger) for result in results]
