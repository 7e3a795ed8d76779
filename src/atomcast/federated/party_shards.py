"""Shards that stay with their parties: what the coordinator knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.data._blocks import contiguous_bounds
from atomcast.data.matrices import IntArray, check_axis
from atomcast.data.shards import Shard, Shards
from atomcast.federated.folds import ALL, fold_labels
from atomcast.network.wire import codec as wire

if TYPE_CHECKING:
    from atomcast.federated.federated_cluster import FederatedCluster
    from atomcast.federated.kinds import Description, Hand


class FoldPlan(NamedTuple):
    """The folds of a cross-validation, and what is known of features over all of them.

    Parameters
    ----------
    target : array of shape (rows,)
    folds : array of shape (rows,)
        The fold of each row.
    sealed : dict of int to Hand
        Features that have left, whole, by their ids: they are known in every fold.
    fold : int
        That which is held out now; -1: none is.
    """

    target: NDArray[np.float64]
    folds: IntArray
    sealed: dict[int, Hand]
    fold: int = ALL


class PartyShards(Shards):
    """The features that the members of a `FederatedCluster` hold under an alias.

    Parameters
    ----------
    cluster : FederatedCluster
    alias : str
    infos : sequence of Description
        What each member has said of its share.
    plan : FoldPlan, optional
        Of a cross-validation, and the fold of it that is held out.
    """

    kind = "files"
    by_name = True

    def __init__(
        self,
        cluster: FederatedCluster,
        alias: str,
        infos: Sequence[Description],
        plan: FoldPlan | None = None,
    ) -> None:
        self.cluster, self.alias, self.infos, self.plan = cluster, alias, infos, plan

    def __repr__(self) -> str:
        return f"{self.cluster!r}.shards({self.alias!r})"

    @property
    def nodes(self) -> int:
        """How many members there are."""
        return len(self.infos)

    @property
    def party_names(self) -> tuple[str, ...]:
        """Their names."""
        return self.cluster.members

    @property
    def starts(self) -> IntArray:
        """The first id of each member, and the number of all features."""
        return contiguous_bounds([info.features for info in self.infos])

    def column_names(self, axis: int = 1) -> None:
        """Names are told with the features that leave, and of no others."""
        return None

    def count(self, axis: int = 1) -> int:
        """How many features they hold together."""
        self._columns(axis)
        return int(self.starts[-1])

    def rows(self, axis: int = 1) -> int:
        """How many rows all of them have."""
        self._columns(axis)
        if self.plan is None or self.plan.fold == ALL:
            return self.infos[0].rows
        return int(np.sum(self.plan.folds != self.plan.fold))

    def assignment(self, axis: int = 1) -> IntArray:
        """The member that holds each feature."""
        self._columns(axis)
        return np.repeat(np.arange(self.nodes), np.diff(self.starts))

    def shard(self, i: int, axis: int = 1) -> Shard:
        """No: the data stay where they are."""
        raise ValueError(
            f"the data of {self.party_names[i]} stay there: of a FederatedCluster, estimators are "
            "fitted and predict; other uses of single rows are not possible, for scores of two "
            "sets of rows would show the rows by which they differ"
        )

    def check_length(self, values: int | None) -> None:
        """Raise ValueError unless a target of so many values is for these rows."""
        if values != self.rows():
            raise ValueError(
                f"y has {values} values, but there are {self.rows()} rows under {self.alias!r}"
            )

    def with_folds(
        self, target: NDArray[np.float64], folds: Sequence[tuple[IntArray, IntArray]]
    ) -> PartyShards:
        """The same shards for a cross-validation: rows to train with and to test with, by fold."""
        self.check_length(len(target))
        plan = FoldPlan(target, fold_labels(folds, self.rows()), {})
        return PartyShards(self.cluster, self.alias, self.infos, plan)

    def without(self, fold: int) -> PartyShards:
        """The same shards with the rows of a fold held out."""
        assert self.plan is not None
        plan = self.plan._replace(fold=fold)
        return PartyShards(self.cluster, self.alias, self.infos, plan)

    def known_product(self, rows: IntArray, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The product of some rows with coefficients of features that have left, whole."""
        assert self.plan is not None
        total = np.zeros((len(rows), *coef.shape[1:]))
        for id in np.flatnonzero(coef.reshape(len(coef), -1).any(axis=1)).tolist():
            column = wire.decode(self.plan.sealed[id].atom, len(self.plan.target)).dense()[rows]
            total += np.multiply.outer(column, coef[id])
        return total

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of what each member computes for its own features, which it tells by name."""
        return self.cluster.combined(self.alias, self.rows(), coef)

    def _columns(self, axis: int) -> None:
        check_axis(axis)
        if axis == 0:
            raise ValueError("the members of a FederatedCluster hold features, not examples")
