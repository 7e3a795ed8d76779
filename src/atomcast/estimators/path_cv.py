"""Choosing a radius by cross-validation: what all linear models along a path have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from atomcast.cluster.mpi.rank_shards import RankShards
from atomcast.data._split import SplitShards
from atomcast.data.matrices import rows_product
from atomcast.data.shards import Shards
from atomcast.estimators.condensed import Condensed, Tables, condensable
from atomcast.estimators.inputs import rows_of
from atomcast.estimators.radial import RadialModel
from atomcast.estimators.radii import SHARE, Walk, checked_betas, radius_names
from atomcast.estimators.side_by_side import checked_jobs, side_by_side
from atomcast.estimators.solving import warn_unless_converged
from atomcast.estimators.whole_paths import KnownWalk, WholePath, whole_path
from atomcast.federated.party_shards import PartyShards
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.journal import Journal
from atomcast.loop.solver import Solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.network.ledger import Accountant, Ledger
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.simulation.local import LocalCluster

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Fold = tuple[Rows, Rows]

#: Where the last radius is the best, the path goes on, in so many parts, to SHARE^2.
EXTENSIONS = 6
#: The error has turned where a step lowers it by less than this share of the largest error.
MATTERS = 1e-4
#: Warm starts take every so many radii.
LEAD = 5

#: Held-out rows are predicted by so many models at a time that they have so many coefficients.
TOGETHER = 1 << 22

#: Losses of a fold, its models, and what was sent for it.
FoldPath = tuple[Floats, Any, Ledger]
#: Coefficients and intercept.
Model = tuple[Floats, Any]
#: What a sparse matrix is made of.
PARTS = ("data", "indices", "indptr", "shape")


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


def leading_to(betas: Floats) -> list[float]:
    """Some of the radii up to the last: warm starts need not be so close together."""
    return betas[(len(betas) - 1) % LEAD :: LEAD].tolist()


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


class Rated(NamedTuple):
    """A target, and how much each of its rows counts, if not all count the same."""

    target: Any
    weights: Floats | None

    def rows(self, rows: Rows) -> Rated:
        """Some of the rows."""
        return Rated(self.target[rows], None if self.weights is None else self.weights[rows])


class Trial:
    """All folds of a cross-validation, `jobs` of them at a time.

    What radii are compared by is the loss on held-out rows, or minus what the scorer says.
    """

    def __init__(
        self,
        model: PathCV,
        rated: Rated,
        folds: Sequence[Fold],
        shards: Shards,
        cluster: Any,
        journal: Journal,
        jobs: int,
        scorer: Any = None,
        tables: Tables | None = None,
        whole: Callable[[Condensed], WholePath | None] = lambda _: None,
    ) -> None:
        self._model, self._rated, self._folds = model, rated, folds
        self._scorer, self._tables, self._whole = scorer, tables, whole
        self._known: dict[int, tuple[Condensed | None, WholePath | None]] = {}
        self.journal, self._jobs = journal, jobs
        self._shards, self._cluster = shards, cluster
        #: What was sent, by the fold that it was sent for.
        self.ledgers: list[tuple[str, Ledger]] = []
        #: Coefficients and intercepts of each fold, a row for each radius.
        self.paths: list[Any] = []

    def losses(self, betas: Floats, known: int = 0) -> Floats:
        """The losses on the held-out rows, shape (radii that are not known yet, folds, 2).

        Of each, the mean loss and what radii are compared by.
        """
        radii = [*leading_to(betas[:known]), *betas[known:].tolist()]
        works = [partial(self._fold, k, radii) for k in range(len(self._folds))]
        new, kept = len(radii) - (len(betas) - known), self.journal.kept
        columns, paths = [], []
        for k, work in enumerate(side_by_side(works, self._jobs)):
            name = f"{len(betas)} radii, fold {k}"
            columns.append(kept(f"losses of {name}", partial(self._entered, k, work, name)))
            paths.append(_noted_path(self.journal, name)[new:])
        before = self.paths or [path[:0] for path in paths]
        self.paths = [sparse.vstack(both, format="csr") for both in zip(before, paths, strict=True)]
        return np.stack(columns, axis=1)[new:]

    def _entered(self, k: int, work: Callable[[], FoldPath], name: str) -> Floats:
        """The losses of a fold, whose ledger and path are kept."""
        losses, path, ledger = work()
        self.ledgers.append((f"fold {k + 1}", ledger))
        for part in PARTS:
            self.journal.keep(f"{part} of {name}", np.asarray(getattr(path, part)))
        return losses

    def _fold(self, k: int, radii: list[float]) -> FoldPath:
        """The losses on the test rows of a fold and the model for each radius, and what was sent.

        Losses have the shape (radii, 2), models are rows of coefficients and intercept.
        """
        model, (train, test) = self._model, self._folds[k]
        objective, told = model._loss(*self._rated, train), self._rated.rows(test)
        held_out, rows = held_out_and_rest(self._shards, k, train, test, self._cluster)
        at_once = max(TOGETHER // (self._shards.count() * getattr(objective, "classes", 1)), 1)
        losses, path, sent = list[Floats](), list[Any](), list[Ledger]()
        with all_or_nothing():  # in other processes, too
            models = self._models(k, objective, rows, radii, sent)
            while part := list(islice(models, at_once)):
                together = _stacked(part)
                losses.append(self._losses(held_out, told, together, part[0][0].shape[:-1]))
                path.append(sparse.csr_array(together.reshape(len(part), -1)))
        ledger = joined([*(("", one) for one in sent), ("held-out rows", held_out.ledger())])
        return np.concatenate(losses), sparse.vstack(path, format="csr"), ledger

    def _models(
        self, k: int, objective: Any, rows: Shards, radii: list[float], sent: list[Ledger]
    ) -> Iterator[Model]:
        """Coefficients and intercept of each radius; what is sent for them is added to a list."""
        few, path = self._condensed(k, objective)
        if few is not None:
            found = None if path is None else path.models(radii)
            if found is not None:
                yield from zip(found, map(few.intercept, found), strict=True)
                return
            objective, rows = few.objective, few.shards
        problems, names = map(partial(self._model._ball, objective), radii), radius_names(radii)
        for result in self.journal.results(problems, rows, self._cluster, names):
            coef = self._model._coefficients(result, objective)
            image = np.asarray(result.image)
            yield coef, objective.intercept(image) if few is None else few.intercept(coef)
        sent.append(result.ledger)

    def _condensed(self, k: int, objective: Any) -> tuple[Condensed | None, WholePath | None]:
        """A fold with fewer rows, and its whole path, if these can be had; later radii go on."""
        if k not in self._known:
            few = None if self._tables is None else self._tables.of(self._folds[k][0], objective)
            self._known[k] = few, None if few is None else self._whole(few)
        return self._known[k]

    def _losses(
        self, held_out: HeldOut, told: Rated, models: Floats, scores: tuple[int, ...]
    ) -> Floats:
        """The mean loss of some models on the test rows, and what they are compared by."""
        count, _, width = models.shape
        sums = held_out.predicted(models.reshape(-1, width)[:, :-1].T)
        predicted = sums.reshape(len(sums), count, -1) + models[..., -1]
        losses = self._model._held_out_losses(told.target, predicted)
        compared = mean = np.average(losses, axis=0, weights=told.weights)
        if self._scorer is not None:
            score = partial(self._model._score, self._scorer, told)
            told_apart = predicted.swapaxes(0, 1).reshape(count, -1, *scores)
            compared = -np.array([*map(score, told_apart)])
        return np.column_stack([mean, compared])


def _stacked(models: Sequence[Model]) -> Floats:
    """Coefficients, then intercept, of each score, shape (n_models, n_scores, n_features + 1)."""
    scores, width = np.atleast_2d(models[0][0]).shape
    stacked = np.empty((len(models), scores, width + 1))
    for row, (coef, intercept) in zip(stacked, models, strict=True):
        row[:, :-1], row[:, -1] = coef, intercept
    return stacked


def _noted_path(journal: Journal, name: str) -> Any:
    """The models of a fold, from what the journal has of them."""
    parts: Any = [journal.note(f"{part} of {name}") for part in PARTS]
    return sparse.csr_array(tuple(parts[:3]), shape=tuple(parts[3]))


class HeldOut:
    """Some rows of all shards, to predict: every node has a part of the sum for each row.

    What the nodes tell each other to add these up is on the ledger, wherever they really are.
    """

    def __init__(self, shards: Shards, rows: Rows, cluster: Any) -> None:
        self._accountant = Accountant(cluster.network(), shards.party_names)
        self._accountant.start_afresh()  # the run has paid for its tree
        self._told = 0
        own: Any = range(shards.nodes)
        self._sum_over_ranks = None
        self._rows = len(rows)
        if isinstance(shards, SplitShards):  # all here: nothing need be copied
            self._product = partial(rows_product, shards.oriented(1), rows)
            return
        if isinstance(shards, RankShards):
            own, self._sum_over_ranks = [shards.rank], cluster.total
        held = [shards.shard(i) for i in own]
        self._product = partial(_sum_of_parts, [(s.ids, s.matrix[rows]) for s in held])

    def predicted(self, coef: Floats) -> Floats:
        """The product X coef, shape (rows,) or (rows, n), from coef of shape (n_features, n)."""
        total = self._product(coef)
        self._accountant.add_up(total.size)
        self._told += total.size
        return total if self._sum_over_ranks is None else self._sum_over_ranks(total)

    def ledger(self) -> Ledger:
        """What the nodes told each other so far, a round for each time."""
        ledger = self._accountant.ledger
        ledger.round = 0
        for node in range(ledger.nodes if ledger.nodes > 1 else 0):
            ledger.tell("prediction", node, f"{self._rows} held-out rows", self._told)
        return ledger


def _sum_of_parts(parts: Sequence[tuple[Any, Any]], coef: Floats) -> Floats:
    """The product of rows, of which every node has some columns, with coefficients."""
    return np.sum([matrix @ coef[ids] for ids, matrix in parts], axis=0)


class HeldOutColumns(HeldOut):
    """The same where all features of a model are known, whole: nobody has to tell anything."""

    def __init__(self, shards: PartyShards, rows: Rows, cluster: Any) -> None:
        self._accountant = Accountant(cluster.network(), shards.party_names)
        self._shards, self._test = shards, rows

    def predicted(self, coef: Floats) -> Floats:
        """The product X coef, shape (rows,) or (rows, n_scores)."""
        return self._shards.known_product(self._test, coef)

    def ledger(self) -> Ledger:
        """Nothing."""
        return self._accountant.ledger


def held_out_and_rest(
    shards: Shards, k: int, train: Rows, test: Rows, cluster: Any
) -> tuple[HeldOut, Shards]:
    """The rows to test with and those to train with, of the k-th fold."""
    if isinstance(shards, PartyShards):
        return HeldOutColumns(shards, test, cluster), shards.without(k)
    rising = bool(np.all(np.diff(train) > 0))
    if rising and isinstance(shards, SplitShards) and isinstance(cluster, LocalCluster):
        return HeldOut(shards, test, cluster), shards.only_rows(train)
    return HeldOut(shards, test, cluster), rows_of(shards, train)
