"""Choosing a radius by cross-validation: what all linear models along a path have in common."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from atomcast.data.shards import Shards
from atomcast.estimators.condensed import condensable
from atomcast.estimators.held_out import Floats, Fold
from atomcast.estimators.radial import RadialModel
from atomcast.estimators.radii import SHARE, Walk, checked_betas, radius_names
from atomcast.estimators.side_by_side import checked_jobs
from atomcast.estimators.solving import warn_unless_converged
from atomcast.estimators.trial import Rated, Trial, leading_to
from atomcast.estimators.whole_paths import KnownWalk, whole_path
from atomcast.federated.party_shards import PartyShards
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.journal import Journal
from atomcast.loop.solver import Solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.network.ledger import Ledger
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.simulation.local import LocalCluster

#: Where the last radius is the best, the path goes on, in so many parts, to SHARE^2.
EXTENSIONS = 6
#: The error has turned where a step lowers it by less than this share of the largest error.
MATTERS = 1e-4


@dataclass(eq=False, repr=False)
class PathCV(RadialModel):
    """A model along a path of radii, of which cross-validation picks one.

    Radii are fitted in rising order, each from the solution before: no feature is sent twice.
    """

    betas: ArrayLike | None = None
    _: KW_ONLY
    n_betas: int = 30
    cv: Any = 5
    fit_intercept: bool = True
    n_jobs: int | None = None
    scoring: Any = None

    #: What the losses on held-out rows are called.
    _losses_are: ClassVar[str]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the radius and fit the model; parameters as for `Lasso.fit`.

        Weights count where models are fitted, and where they are compared on held-out rows.
        """
        solver = self._solver()
        shards, target, cluster = self._target(X, y)
        if shards.rows() != len(target):
            raise ValueError(
                f"y has {len(target)} values, but there are {shards.rows()} rows: give one for each"
            )
        weights = None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, len(target))
        losses = self._choose(Rated(target, weights), shards, cluster, solver)
        setattr(self, self._losses_are, losses)
        return self

    def _folds(self, target: Any) -> list[Fold]:
        """The rows to train with and those to test with, of each fold."""
        raise NotImplementedError

    def _held_out_losses(self, target: Any, predicted: Floats) -> Floats:
        """The loss of each row and model, from predictions of shape (n, n_models, n_scores)."""
        raise NotImplementedError

    def _labels(self, target: Any) -> Any:
        """The target as users know it."""
        return target

    def _score(self, scorer: Any, held_out: Rated, predicted: Floats) -> float:
        """What a scorer of scikit-learn says of predictions."""
        told = copy(self)
        told._scores = lambda X: X  # type: ignore[method-assign]  # X is what is predicted
        weights = {} if held_out.weights is None else {"sample_weight": held_out.weights}
        return float(scorer(told, predicted, self._labels(held_out.target), **weights))

    @property
    def coefs_paths_(self) -> Floats:
        """Coefficients, then intercept, shape (n_folds, n_betas, n_scores, n_features + 1).

        As in scikit-learn, n_scores is one, or the number of classes if there are more than two.
        """
        check_is_fitted(self)
        if not hasattr(self, "_fold_paths"):
            raise AttributeError("coefs_paths_ is not in model files: fit the model again")
        width = self.n_features_in_ + 1
        return np.stack([p.toarray().reshape(p.shape[0], -1, width) for p in self._fold_paths])

    def _choose(self, rated: Rated, shards: Shards, cluster: Any, solver: Solver) -> Floats:
        """Try all radii on all folds, and fit the best one to all rows.

        Returns the mean losses on the held-out rows, shape (n_betas, n_folds).
        """
        objective: Any = self._loss(*rated)
        folds = self._folds(rated.target)
        for _, test in folds:
            if rated.weights is not None and not rated.weights[test].any():
                raise ValueError(
                    f"sample_weight is zero for all rows that a fold of cv={self.cv!r} holds out: "
                    "use fewer folds, or folds with rows that count"
                )
        if isinstance(shards, PartyShards):
            shards = shards.with_folds(objective.y, folds)
        plan = [objective, self.betas, self.n_betas, str(self.scoring), [list(f) for f in folds]]
        scorer = None if self.scoring is None else check_scoring(self, scoring=self.scoring)
        jobs = checked_jobs(self.n_jobs, solver, cluster)
        journal = Journal(solver, plan, cluster)
        # Checkpoints can be resumed on any cluster, which has the rows as they are.
        free = alone(cluster) and not journal.writes
        tables = condensable(shards, objective) if free else None
        whole = partial(whole_path, ball=self._within(1.0), solver=solver)
        trial = Trial(self, rated, folds, shards, cluster, journal, jobs, scorer, tables, whole)
        searches, make = list[Ledger](), partial(self._ball, objective)
        with all_or_nothing():  # until a radius is chosen, there is no model
            path = None if tables is None else whole(tables.whole())
            if self.betas is None:
                way = make, objective.gradient, shards, cluster, searches, journal.note("walk")
                walk = Walk(*way) if path is None else KnownWalk(path, *way)
                self.betas_, losses = tried(trial, walk, self.n_betas)
            else:
                self.betas_ = checked_betas(self.betas)
                losses = trial.losses(self.betas_)
        losses, costs = losses[..., 0], losses[..., 1]
        self.scores_, self._fold_paths = -costs.T, trial.paths
        mean = costs.mean(axis=1)
        best = int(np.argmin(mean))
        warn_at_the_end(mean, self.betas_, given=self.betas is not None)
        radii, start = leading_to(self.betas_[: best + 1]), None
        if path is not None and (found := path.models(radii[-1:])):
            radii, start = radii[-1:], found[0]
        names = radius_names(radii)
        *_, result = journal.results(map(make, radii), shards, cluster, names, start)
        self.ledgers_ = [*searches, *(ledger for _, ledger in trial.ledgers)]
        parts = [*named("search", searches), *trial.ledgers, ("final fit", result.ledger)]
        self._keep_radius(objective, radii[-1], result)
        self._keep(replace(result, ledger=joined(parts)), objective)
        warn_unless_converged(result, solver, stacklevel=4)
        return losses


def tried(trial: Trial, walk: Walk, count: int) -> tuple[Floats, Floats]:
    """Radii found from the data, as far as the error on held-out rows falls, and their losses."""
    betas = walk.radii(count)
    trial.journal.keep("walk", walk.points)
    losses = trial.losses(betas)
    part = -(-count // EXTENSIONS)
    for extension in range(1, EXTENSIONS + 1):
        if count == 1 or not falling(losses[..., 1].mean(axis=1)):
            break
        betas = walk.radii(count, extension * part)
        trial.journal.keep("walk", walk.points)
        if len(betas) > len(losses):
            losses = np.vstack([losses, trial.losses(betas, len(losses))])
    return betas, losses


def falling(mean: Floats) -> bool:
    """Whether the last radius is the best, and by how much matters."""
    best = int(np.argmin(mean))
    return best == len(mean) - 1 > 0 and mean[-2] - mean[-1] > MATTERS * mean.max()


def alone(cluster: Any) -> bool:
    """Whether nobody else is there to whom a run would send anything."""
    return isinstance(cluster, LocalCluster) and cluster.alone


def warn_at_the_end(mean: Floats, betas: Floats, given: bool) -> None:
    """Warn if a radius beyond those that were tried might be better."""
    if falling(mean):
        limit = "" if given else f", though they go to {SHARE**2:g} of the largest penalty"
        warnings.warn(
            f"the largest radius tried, {betas[-1]:.4g}, is the best{limit}: a larger one may be "
            "better; give larger betas",
            stacklevel=4,
        )
    elif falling(mean[::-1]):
        remedy = "a smaller one may be better; give smaller betas"
        if not given:
            remedy = "the model is as good as empty, for no feature helps with held-out rows"
        warnings.warn(
            f"the smallest radius tried, {betas[0]:.4g}, is the best: {remedy}", stacklevel=4
        )
