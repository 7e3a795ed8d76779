"""Lasso solutions along a path of radii, each warm-started from the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from atomcast._checks import check_positive
from atomcast.data.shards import Shards
from atomcast.domains import L1Ball
from atomcast.estimators.inputs import features_and_target
from atomcast.estimators.lasso import warn_unless_converged
from atomcast.interrupting import all_or_nothing
from atomcast.network.joining import joined, named
from atomcast.network.ledger import Ledger
from atomcast.objectives import SquaredError
from atomcast.problem import explicit_problem
from atomcast.result import Result
from atomcast.solver import Solver, as_solver

Floats = NDArray[np.float64]

#: The automatic path ends where doubling the radius explains less than this share of the target.
WORTHWHILE = 1e-3


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
        The radii; by default `n_betas` of them, geometrically spaced, up to where a larger radius
        hardly changes the fit.
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
    searches: list[Ledger] = []
    if betas is None:
        with all_or_nothing():
            betas = default_betas(shards, objective, n_betas, cluster, searches)
    radii, results, solver = checked_betas(betas), [], as_solver(solver)
    for result in results_along(shards, objective, radii, cluster, solver):
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


def results_along(
    shards: Shards, objective: SquaredError, betas: Floats, cluster: Any, solver: Solver
) -> Iterator[Result]:
    """A result for each radius, in order."""
    problems = (explicit_problem(objective, L1Ball(float(beta))) for beta in betas)
    return iter(solver.solve_path(problems, shards, cluster, radius_names(betas)))


def radius_names(betas: Floats) -> list[str]:
    """What disclosures call the runs of a path."""
    return [f"radius {beta:.4g}" for beta in betas]


def with_search(results: list[Result], searches: list[Ledger]) -> list[Result]:
    """Results of a path whose ledger also has what it took to find its radii."""
    if not searches:
        return results
    parts = [*named("search", searches), ("", results[-1].ledger)]
    ledger = joined(parts)
    return [replace(result, ledger=ledger) for result in results]


def checked_betas(betas: ArrayLike) -> Floats:
    """The radii in rising order, or an error if one of them is not a positive number."""
    radii = np.sort(np.atleast_1d(np.asarray(betas, dtype=np.float64)))
    if radii.ndim != 1 or not len(radii):
        raise ValueError(f"betas must be a list of one or more radii, got {betas!r}")
    for beta in radii:
        check_positive("betas", float(beta), "each a radius of the l1 ball")
    return radii


def default_betas(
    shards: Shards, objective: SquaredError, count: int, cluster: Any, ledgers: list[Ledger]
) -> Floats:
    """Radii from one that admits hardly anything to one that hardly constrains.

    The radius doubles from a small one until that no longer pays, as measured by the fit itself.
    What the fits sent is added to `ledgers`.
    """
    solver = Solver(tol=1e-3)
    smallest = 1e-3
    first = _first_feature(shards, objective, cluster)
    ledgers.append(first.ledger)
    scale = float(np.max(np.abs(first.atom_weights), initial=0.0))
    if scale == 0.0:  # nothing to explain: any radius gives the same model
        return np.geomspace(smallest, 1.0, count)
    worthwhile = WORTHWHILE * objective.value(np.zeros(objective.d))
    doubling: Floats = scale * np.exp2(np.arange(60.0))
    results = results_along(shards, objective, doubling, cluster, solver)
    largest, ledger = largest_of_use(results, np.inf, worthwhile)
    ledgers.append(ledger)
    if count == 1:
        return np.array([largest])
    return np.geomspace(min(smallest * largest, scale), largest, count)


def largest_of_use(
    results: Iterable[Result], before: float, worthwhile: float
) -> tuple[float, Ledger]:
    """The radius from which on a larger one no longer pays, and what was sent to find it.

    Parameters
    ----------
    results : iterable of Result
        For larger and larger radii; no more of them are fitted than are needed.
    before : float
        The objective before the first.
    worthwhile : float
        By how much the objective must fall from one to the next.
    """
    for result in results:
        largest = float(np.abs(result.atom_weights).sum())
        if before - result.objective < worthwhile:
            break
        before = result.objective
    return largest, result.ledger


def _first_feature(shards: Shards, objective: SquaredError, cluster: Any) -> Result:
    """The best single feature, fitted without a constraint.

    Where nodes work at their own pace, it is the best of those that answer first.
    """
    first = Solver(max_rounds=1, atoms_per_round=1)
    return first.solve(explicit_problem(objective, L1Ball(1e12)), shards, cluster)
