"""Linear models within a ball: of a given radius, of a given penalty, or along a path of radii."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast._checks import check_in_scale, check_positive
from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain, L1Ball
from atomcast.estimators.linear import LinearModel
from atomcast.estimators.penalised import refuse_checkpoints, slopes
from atomcast.estimators.penalty_search import PenaltySearch
from atomcast.estimators.radii import Walk, checked_betas, radius_names
from atomcast.estimators.solving import Posed, warn_unless_converged
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.journal import Journal
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.network.ledger import Ledger
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]

#: Where neither radius nor penalty is given: this share of the least penalty that leaves no model.
USUAL_SHARE = 0.1


class Path(NamedTuple):
    """Solutions along a path.

    Parameters
    ----------
    betas : array of shape (n_betas,)
    coefs : array of shape (n_features, n_betas) or (n_classes, n_features, n_betas)
    intercepts : array of shape (n_betas,) or (n_classes, n_betas)
    dual_gaps : array of shape (n_betas,)
    results : list of Result
        They share one ledger: what was sent for one radius is known at the next. What it took to
        find the radii, if they were not given, is in it.
    strengths : array of shape (n_betas,)
        The alpha of each radius, or the C of a logistic model: the penalty with its solution.
    """

    betas: Floats
    coefs: Floats
    intercepts: Floats
    dual_gaps: Floats
    results: list[Result]
    strengths: Floats


class RadialModel(LinearModel):
    """A linear model whose weights lie in a ball around zero."""

    #: The name of the penalty that users know.
    strength_is: ClassVar[str]

    def _to_penalty(self, strength: float, objective: Any) -> float:
        """What a unit of the norm costs beside the sum of all losses, from what users say."""
        raise NotImplementedError

    def _to_strength(self, penalty: float, objective: Any) -> float:
        """The other way round."""
        raise NotImplementedError

    def _within(self, beta: float) -> Domain:
        """The ball of a radius."""
        return L1Ball(beta)

    def _ball(self, objective: Any, beta: float) -> Problem:
        """The problem of a radius."""
        return self._problem(objective, self._within(beta))

    def _norm(self, result: Result) -> float:
        """What a ball bounds."""
        return float(np.abs(result.atom_weights).sum())

    def _strength_at(self, objective: Any, beta: float, result: Result) -> float:
        """The penalty, as users know it, that has the same solution as a ball."""
        return self._to_strength(slopes(result, beta, objective)[0], objective)

    def _keep_radius(self, objective: Any, beta: float, result: Result) -> None:
        """Report a radius, and the penalty that goes with it."""
        self.beta_ = beta
        setattr(self, f"{self.strength_is}_", self._strength_at(objective, beta, result))

    def path(
        self,
        X: Any,
        y: Any,
        *,
        betas: ArrayLike | None = None,
        n_betas: int = 30,
        sample_weight: Any = None,
    ) -> Path:
        """Fit the model for several radii, in rising order, without sending any feature twice.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        betas : array of shape (n_betas,), optional
            The radii; by default `n_betas` of them, from an empty model to the solution at 1/1000
            of the penalty that leaves it empty, at penalties that fall geometrically.

        Returns
        -------
        Path
            After Ctrl-C, up to the radius that was being fitted, with a warning.
        """
        solver, searches = self._solver(), list[Ledger]()
        objective, shards, cluster = self._objective(X, y, sample_weight)
        make = partial(self._ball, objective)
        journal = Journal(solver, [objective, betas, n_betas], cluster)
        if betas is None:
            with all_or_nothing():
                points = journal.note("walk")
                walk = Walk(make, objective.gradient, shards, cluster, searches, points)
                betas = walk.radii(n_betas)
            journal.keep("walk", walk.points)
        radii, results = checked_betas(betas), list[Result]()
        problems = map(make, radii.tolist())
        for result in journal.results(problems, shards, cluster, radius_names(radii)):
            results.append(result)
            if result.status == "interrupted":
                warn_unless_converged(result, solver)
                break
        results, radii = _with_search(results, searches), radii[: len(results)]
        strength = partial(self._strength_at, objective)
        return Path(
            radii,
            np.stack([self._coefficients(result, objective) for result in results], axis=-1),
            np.stack([objective.intercept(np.asarray(one.image)) for one in results], axis=-1),
            np.array([result.gap for result in results]),
            results,
            np.array(list(map(strength, radii.tolist(), results))),
        )


@dataclass(eq=False, repr=False)
class BallModel(RadialModel):
    """A model of a given radius, or of a given penalty, with the radius that goes with it."""

    #: A parameter of those that can start from where an earlier fit has ended.
    warm_start: ClassVar[bool] = False

    beta: float | None = None
    _: KW_ONLY
    fit_intercept: bool = True

    def _pose(self, X: Any, y: Any, sample_weight: Any = None) -> Posed:
        self._check_beta()
        objective, shards, cluster = self._objective(X, y, sample_weight)
        problem = self._ball(objective, 1.0 if self.beta is None else self.beta)
        return Posed(objective, problem, shards, cluster)

    def _earlier(self, objective: Any, shards: Shards) -> Result | None:
        """The solution of an earlier fit, if it is one to start from."""
        result = getattr(self, "result_", None) if self.warm_start else None
        weights = shards.count() * getattr(objective, "classes", 1)
        return result if result is not None and result.n == weights else None

    def _check_beta(self) -> None:
        """Refuse a radius and a penalty that are none, or that exclude each other."""
        name, strength = self.strength_is, getattr(self, self.strength_is)
        if self.beta is not None and strength is not None:
            raise ValueError(
                f"beta={self.beta!r} and {name}={strength!r} exclude each other: give the radius "
                "of the ball or the penalty, and the other one is found"
            )
        if self.beta is not None:
            check_in_scale("beta", check_positive("beta", self.beta, "the radius of the ball"))
        elif strength is not None:
            check_positive(name, strength, "the strength of the penalty, or None")

    def _solve(self, solver: Solver, posed: Posed) -> Result:
        objective, name, shards = posed.objective, self.strength_is, posed.shards
        near = self._earlier(objective, shards)
        if self.beta is not None:
            start = None if near is None else near.weights
            result = solver.solve(posed.problem, shards, posed.cluster, start)
            self._keep_radius(objective, float(self.beta), result)
            return result
        refuse_checkpoints(solver, "a radius is looked for", "beta=...")
        given = getattr(self, name)

        def penalty(most: float) -> float:
            return USUAL_SHARE * most if given is None else self._to_penalty(given, objective)

        search = PenaltySearch(partial(self._ball, objective), self._norm, objective, penalty)
        result = search.solve(solver, shards, posed.cluster, near)
        strength = self._to_strength(search.penalty, objective) if given is None else float(given)
        self.beta_ = self._norm(result)
        setattr(self, f"{name}_", strength)
        if given is None:
            warnings.warn(
                f"neither beta nor {name} is given: took {name}={strength:.4g}, a tenth of the "
                f"penalty that leaves no feature, which is beta={self.beta_:.4g}; give one of "
                "them, or let cross-validation choose",
                stacklevel=3,
            )
        return result


def _with_search(results: list[Result], searches: list[Ledger]) -> list[Result]:
    """Results of a path whose ledger also has what it took to find its radii."""
    if not searches:
        return results
    ledger = joined([*named("search", searches), ("", results[-1].ledger)])
    return [replace(result, ledger=ledger) for result in results]
