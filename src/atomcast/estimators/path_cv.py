"""Choosing a radius by cross-validation: what all linear models along a path have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from atomcast.cluster.mpi.rank_shards import RankShards
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shard, Shards
from atomcast.domains.balls import L1Ball
from atomcast.estimators.linear import LinearModel
from atomcast.estimators.radii import SHARE, Walk, checked_betas, radius_names
from atomcast.estimators.side_by_side import checked_jobs, side_by_side
from atomcast.estimators.solving import warn_unless_converged
from atomcast.federated.party_shards import PartyShards
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.journal import Journal
from atomcast.loop.solver import Solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.network.ledger import Accountant, Ledger
from atomcast.problems.problem import Problem

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Fold = tuple[Rows, Rows]

#: Where the last radius is the best, the path goes on, in so many parts, to SHARE^2.
EXTENSIONS = 2
#: The error has turned where a step lowers it by less than this share of the largest error.
MATTERS = 1e-4
#: Warm starts take every so many radii.
LEAD = 5


@dataclass(eq=False, repr=False)
class PathCV(LinearModel):
    """A model along a path of radii, of which cross-validation picks one.

    Radii are fitted in rising order, each from the solution before: no feature is sent twice.
    """

    betas: ArrayLike | None = None
    _: KW_ONLY
    n_betas: int = 30
    cv: Any = 5
    fit_intercept: bool = True
    n_jobs: int | None = None

    #: What the losses on held-out rows are called.
    _losses_are: ClassVar[str]

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the radius and fit the model; parameters as for `Lasso.fit`."""
        solver = self._solver()
        shards, target, cluster = self._target(X, y)
        setattr(self, self._losses_are, self._choose(target, shards, cluster, solver))
        return self

    def _folds(self, target: Any) -> list[Fold]:
        """The rows to train with and those to test with, of each fold."""
        raise NotImplementedError

    def _held_out_loss(self, target: Any, predicted: Floats) -> float:
        """The mean loss of predictions of shape (n,) or (n, n_scores)."""
        raise NotImplementedError

    def _choose(self, target: Any, shards: Shards, cluster: Any, solver: Solver) -> Floats:
        """Try all radii on all folds, and fit the best one to all rows.

        Returns the mean losses on the held-out rows, shape (n_betas, n_folds).
        """
        objective: Any = self._loss(target)
        folds = self._folds(target)
        if isinstance(shards, PartyShards):
            shards = shards.with_folds(objective.y, folds)
        plan = [objective, self.betas, self.n_betas, [list(fold) for fold in folds]]
        jobs = checked_jobs(self.n_jobs, solver, cluster)
        journal = Journal(solver, plan, cluster)
        trial = Trial(self, target, folds, shards, cluster, journal, jobs)
        searches, make = list[Ledger](), partial(self._ball, objective)
        with all_or_nothing():  # until a radius is chosen, there is no model
            if self.betas is None:
                walk = Walk(
                    make, objective.gradient, shards, cluster, searches, journal.note("walk")
                )
                self.betas_, losses = tried(trial, walk, self.n_betas)
            else:
                self.betas_ = checked_betas(self.betas)
                losses = trial.losses(self.betas_)
        mean = losses.mean(axis=1)
        best = int(np.argmin(mean))
        warn_at_the_end(mean, self.betas_, given=self.betas is not None)
        self.beta_ = float(self.betas_[best])
        radii = leading_to(self.betas_[: best + 1])
        *_, result = journal.results(map(make, radii), shards, cluster, radius_names(radii))
        self.ledgers_ = [*searches, *(ledger for _, ledger in trial.ledgers)]
        parts = [*named("search", searches), *trial.ledgers, ("final fit", result.ledger)]
        self._keep(replace(result, ledger=joined(parts)), objective)
        warn_unless_converged(result, solver, stacklevel=4)
        return losses

    def _ball(self, objective: Any, beta: float) -> Problem:
        """The problem of a radius."""
        return self._problem(objective, L1Ball(beta))


def tried(trial: Trial, walk: Walk, count: int) -> tuple[Floats, Floats]:
    """Radii found from the data, as far as the error on held-out rows falls, and their losses."""
    betas = walk.radii(count)
    trial.journal.keep("walk", walk.points)
    losses = trial.losses(betas)
    part = -(-count // EXTENSIONS)
    for extension in range(1, EXTENSIONS + 1):
        if count == 1 or not falling(losses.mean(axis=1)):
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


class Trial:
    """All folds of a cross-validation, `jobs` of them at a time."""

    def __init__(
        self,
        model: PathCV,
        target: Any,
        folds: Sequence[Fold],
        shards: Shards,
        cluster: Any,
        journal: Journal,
        jobs: int,
    ) -> None:
        self._model, self._target, self._folds = model, target, folds
        self.journal, self._jobs = journal, jobs
        self._shards, self._cluster = shards, cluster
        #: What was sent, by the fold that it was sent for.
        self.ledgers: list[tuple[str, Ledger]] = []

    def losses(self, betas: Floats, known: int = 0) -> Floats:
        """The mean losses on the held-out rows, shape (radii that are not known yet, folds)."""
        radii = [*leading_to(betas[:known]), *betas[known:].tolist()]
        works = [partial(self._fold, k, radii) for k in range(len(self._folds))]
        columns = [
            self.journal.kept(
                f"losses of {len(betas)} radii, fold {k}", partial(self._entered, k, work)
            )
            for k, work in enumerate(side_by_side(works, self._jobs))
        ]
        return np.column_stack(columns)[len(radii) - (len(betas) - known) :]

    def _entered(self, k: int, work: Callable[[], tuple[Floats, Ledger]]) -> Floats:
        """The losses of a fold, whose ledger is kept."""
        losses, ledger = work()
        self.ledgers.append((f"fold {k + 1}", ledger))
        return losses

    def _fold(self, k: int, radii: list[float]) -> tuple[Floats, Ledger]:
        """The mean loss on the test rows of a fold for each radius, and what was sent for it."""
        model, (train, test) = self._model, self._folds[k]
        objective = model._loss(self._target, train)
        held_out, rows = held_out_and_rest(self._shards, k, train, test, self._cluster)
        problems = map(partial(model._ball, objective), radii)
        losses = []
        with all_or_nothing():  # in other processes, too
            for result in self.journal.results(problems, rows, self._cluster, radius_names(radii)):
                predicted = held_out.predicted(model._coefficients(result, objective).T)
                predicted += objective.intercept(np.asarray(result.image))
                losses.append(model._held_out_loss(self._target[test], predicted))
        sent = joined([("", result.ledger), ("held-out rows", held_out.ledger())])
        return np.array(losses), sent


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
        if isinstance(shards, RankShards):
            own, self._sum_over_ranks = [shards.rank], cluster.total
        held = [shards.shard(i) for i in own]
        self._parts = [(shard.ids, shard.matrix[rows]) for shard in held]
        self._rows = len(rows)

    def predicted(self, coef: Floats) -> Floats:
        """The product X coef, shape (rows,) or (rows, n_scores)."""
        total = np.zeros((self._rows, *coef.shape[1:]))
        for ids, matrix in self._parts:
            total += matrix @ coef[ids]
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
    return HeldOut(shards, test, cluster), rows_of(shards, train)


def rows_of(shards: Shards, rows: Rows) -> Shards:
    """The same shards with only some of their rows."""
    if isinstance(shards, RankShards):
        return shards.with_local(ShardsOfRows(shards.local, rows), len(rows))
    if isinstance(shards, SplitShards):
        matrix = shards.matrix
        if sparse.issparse(matrix):  # not every layout gives out rows
            matrix = matrix.tocsr()
        return shards.with_matrix(matrix[rows])
    return ShardsOfRows(shards, rows)


class ShardsOfRows(Shards):
    """A selection of the rows of shards that are not in one piece."""

    kind = "files"

    def __init__(self, shards: Shards, rows: Rows) -> None:
        self._shards = shards
        self._rows = rows

    @property
    def nodes(self) -> int:
        """As many nodes as before."""
        return self._shards.nodes

    @property
    def party_names(self) -> tuple[str, ...] | None:
        """The same parties as before."""
        return self._shards.party_names

    def column_names(self, axis: int = 1) -> tuple[str, ...] | None:
        """The same names as before."""
        return self._shards.column_names(axis)

    def count(self, axis: int = 1) -> int:
        """As many atoms as before."""
        return self._shards.count(axis)

    def rows(self, axis: int = 1) -> int:
        """How many rows were selected."""
        return len(self._rows)

    def assignment(self, axis: int = 1) -> Rows:
        """The same owners as before."""
        return self._shards.assignment(axis)

    def shard(self, i: int, axis: int = 1) -> Shard:
        """The selected rows of a node's shard."""
        shard = self._shards.shard(i, axis)
        return replace(shard, matrix=shard.matrix[self._rows])
