"""Choosing a radius by cross-validation: what all linear models along a path have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from atomcast.cluster.mpi_shards import RankShards
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shard, Shards
from atomcast.estimators.lasso_path import checked_betas
from atomcast.interrupting import all_or_nothing
from atomcast.network.joining import joined, named
from atomcast.network.ledger import Ledger
from atomcast.network.star import Star
from atomcast.result import Result
from atomcast.solver import Solver

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Fold = tuple[Rows, Rows]


class Task(Protocol):
    """What is fitted along a path: a loss of linear predictions, and the target."""

    def objective(self, rows: Rows | slice) -> Any:
        """The objective over some of the rows."""
        ...

    def radii(
        self, shards: Shards, objective: Any, count: int, cluster: Any, ledgers: list[Ledger]
    ) -> Floats:
        """Radii that suit the data; what it took to find them is added to the ledgers."""
        ...

    def results(
        self, shards: Shards, objective: Any, betas: Floats, cluster: Any, solver: Solver
    ) -> Iterator[Result]:
        """A result for each radius, in order."""
        ...

    def coefficients(self, result: Result, objective: Any) -> Floats:
        """The coefficients of a result, shape (n_features,) or (n_features, n_scores)."""
        ...

    def loss(self, predicted: Floats, rows: Rows) -> float:
        """The mean loss of predictions for some of the rows."""
        ...


class Chosen(NamedTuple):
    """What came of trying all radii.

    Parameters
    ----------
    losses : array of shape (n_betas, n_folds)
        Mean losses on the held-out rows.
    result, objective
        Of the best radius, fitted to all rows.
    """

    losses: Floats
    result: Result
    objective: Any


class PathCV:
    """A model along a path of radii, of which cross-validation picks one.

    Radii are fitted in rising order, each from the solution before: no feature is sent twice.
    """

    betas: ArrayLike | None
    n_betas: int
    betas_: Floats
    beta_: float
    ledgers_: list[Ledger]

    def _choose(
        self, task: Task, folds: Iterable[Fold], shards: Shards, cluster: Any, solver: Solver
    ) -> Chosen:
        """Try all radii on all folds, and fit the best one to all rows.

        Sets `betas_`, `beta_` and `ledgers_`.
        """
        objective, self.ledgers_ = task.objective(slice(None)), []
        betas = self.betas
        with all_or_nothing():  # until a radius is chosen, there is no model
            if betas is None:
                betas = task.radii(shards, objective, self.n_betas, cluster, self.ledgers_)
            self.betas_ = checked_betas(betas)
            searches = len(self.ledgers_)
            losses = np.column_stack([
                self._losses(task, train, test, shards, cluster, solver) for train, test in folds
            ])  # fmt: skip
        best = int(np.argmin(losses.mean(axis=1)))
        self.beta_ = float(self.betas_[best])
        *_, result = task.results(shards, objective, self.betas_[: best + 1], cluster, solver)
        parts = [
            *named("search", self.ledgers_[:searches]),
            *named("fold", self.ledgers_[searches:]),
            ("final fit", result.ledger),
        ]
        return Chosen(losses, replace(result, ledger=joined(parts)), objective)

    def _losses(
        self, task: Task, train: Rows, test: Rows, shards: Shards, cluster: Any, solver: Solver
    ) -> Floats:
        """The mean loss on the test rows for each radius."""
        objective, held_out, losses = task.objective(train), HeldOut(shards, test, cluster), []
        rows = rows_of(shards, train)
        for result in task.results(rows, objective, self.betas_, cluster, solver):
            predicted = held_out.predicted(task.coefficients(result, objective))
            predicted += objective.intercept(np.asarray(result.image))
            losses.append(task.loss(predicted, test))
        self.ledgers_.append(joined([("", result.ledger), ("held-out rows", held_out.ledger())]))
        return np.array(losses)


class HeldOut:
    """Some rows of all shards, to predict: every node has a part of the sum for each row.

    What the nodes tell each other to add these up is on the ledger, wherever they really are.
    """

    def __init__(self, shards: Shards, rows: Rows, cluster: Any) -> None:
        self._ledger = Ledger(shards.nodes, shards.party_names)
        self._network = cluster.network() if hasattr(cluster, "network") else Star(shards.nodes)
        self._network.prepare(Ledger(shards.nodes))  # the run has paid for its tree
        self._network.links.clock[:] = 0.0
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
        self._network.add_up(total.size, self._ledger)
        self._ledger.round += 1
        self._told += total.size
        return total if self._sum_over_ranks is None else self._sum_over_ranks(total)

    def ledger(self) -> Ledger:
        """What the nodes told each other so far, a round for each time."""
        self._ledger.round = 0
        for node in range(self._ledger.nodes if self._ledger.nodes > 1 else 0):
            self._ledger.tell("prediction", node, f"{self._rows} held-out rows", self._told)
        return self._ledger


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
