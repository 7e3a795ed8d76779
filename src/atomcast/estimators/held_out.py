"""Rows that a fold holds out: what nodes predict for them together, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mpi.rank_shards import RankShards
from atomcast.data._split import SplitShards
from atomcast.data.matrices import rows_product
from atomcast.data.shards import Shards
from atomcast.estimators.inputs import rows_of
from atomcast.federated.party_shards import PartyShards
from atomcast.network.ledger import Accountant, Ledger
from atomcast.simulation.local import LocalCluster

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
#: The rows to train with, and those to test with.
Fold = tuple[Rows, Rows]


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
