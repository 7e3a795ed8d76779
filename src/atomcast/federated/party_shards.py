"""Shards that stay with their parties: what the coordinator knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.data._blocks import contiguous_bounds
from atomcast.data.matrices import IntArray, check_axis
from atomcast.data.shards import Shard, Shards

if TYPE_CHECKING:
    from atomcast.federated.federated_cluster import FederatedCluster
    from atomcast.federated.kinds import Description


class PartyShards(Shards):
    """The features that the members of a `FederatedCluster` hold under an alias.

    Parameters
    ----------
    cluster : FederatedCluster
    alias : str
    infos : sequence of Description
        What each member has said of its share.
    """

    kind = "files"
    by_name = True

    def __init__(self, cluster: FederatedCluster, alias: str, infos: Sequence[Description]) -> None:
        self.cluster, self.alias, self.infos = cluster, alias, infos

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
        return self.infos[0].rows

    def assignment(self, axis: int = 1) -> IntArray:
        """The member that holds each feature."""
        self._columns(axis)
        return np.repeat(np.arange(self.nodes), np.diff(self.starts))

    def shard(self, i: int, axis: int = 1) -> Shard:
        """No: the data stay where they are."""
        raise ValueError(
            f"the data of {self.party_names[i]} stay there: of a FederatedCluster, estimators are "
            "fitted and predict; cross-validation and other uses of single rows are not possible, "
            "for scores of two sets of rows would show the rows by which they differ"
        )

    def combine(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of what each member computes for its own features, which it tells by name."""
        total = self.cluster.combined(self.alias, self.rows(), coef.reshape(-1))
        return total.reshape(-1, *coef.shape[1:])

    def _columns(self, axis: int) -> None:
        check_axis(axis)
        if axis == 0:
            raise ValueError("the members of a FederatedCluster hold features, not examples")
