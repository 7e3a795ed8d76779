"""A cluster of organisations: each runs a node of its own, which guards its data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_positive
from atomcast.cluster.summing import refuse_sums
from atomcast.data.party_names import checked_party_names
from atomcast.data.shards import Shards
from atomcast.errors import FalseMessageError
from atomcast.federated import check_installed
from atomcast.federated.terms import Terms
from atomcast.loop.session import DEADLINE, Cluster, check_deadline
from atomcast.problems.problem import Problem

if TYPE_CHECKING:
    from atomcast.federated.calls import Calls
    from atomcast.federated.federated_session import FederatedSession
    from atomcast.federated.identity import Peer
    from atomcast.federated.kinds import Introduce
    from atomcast.federated.party_shards import PartyShards
    from atomcast.federated.switchboard import Switchboard


#: A member that says it has more features than this is not believed.
MOST_FEATURES = 1 << 24


class FederatedCluster(Cluster):
    """Nodes of other organisations, which connect to this coordinator and guard their own data.

    Parameters
    ----------
    address : str
        "host:port" to listen at, for the nodes to connect to.
    members : sequence of str
        The names in the certificates of the nodes, in the order of their features.
    certificates : path
        The folder with the authority's certificate and the keys of the coordinator.
    name : str, default="coordinator"
        The name in the coordinator's own certificate.
    terms : Terms or dict, optional
        What the people at the nodes are asked to approve.
    deadline : float or None, default=600.0
        How many seconds a node may take to answer; None: for ever.
    patience : float, default=60.0
        How many seconds to wait for a node to connect, or to come back, and for approvals.

    Examples
    --------
    >>> from atomcast import FederatedCluster, Lasso  # doctest: +SKIP
    >>> cluster = FederatedCluster("0.0.0.0:7443", ["north", "south"], "keys")  # doctest: +SKIP
    >>> model = Lasso(beta=16.0, cluster=cluster)  # doctest: +SKIP
    >>> model.fit(cluster.shards("cohort"), y)  # doctest: +SKIP
    """

    def __init__(
        self,
        address: str,
        members: Sequence[str],
        certificates: str | os.PathLike[str],
        *,
        name: str = "coordinator",
        terms: Terms | Mapping[str, Any] | None = None,
        deadline: float | None = DEADLINE,
        patience: float = 60.0,
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f'address must be "host:port", got {address!r}')
        self.address, self.certificates, self.name = address, certificates, name
        self.members = checked_party_names(members, len(members))
        if any("=" in name or " " in name for name in self.members) or len(self.members) < 2:
            raise ValueError(f"members must be two or more names without spaces, got {members!r}")
        self.nodes = len(self.members)
        self.terms = terms if isinstance(terms, Terms) else Terms(**(terms or {}))
        self.deadline = check_deadline(deadline)
        self.patience = check_positive("patience", patience, "seconds to wait for a node")
        self._switchboard: Switchboard | None = None

    def listen(self) -> int:
        """Start to listen, if that was not done; returns the port."""
        if self._switchboard is None:
            check_installed()
            from atomcast.federated.identity import Credentials
            from atomcast.federated.switchboard import Switchboard

            credentials = Credentials(self.certificates, self.name)
            self._switchboard = Switchboard(self.address, self.members, credentials)
        return self._switchboard.port

    def shards(self, alias: str) -> PartyShards:
        """What the members hold under this alias, for `fit` and `predict`."""
        from atomcast.federated.kinds import Describe, Description
        from atomcast.federated.party_shards import PartyShards

        answers = self.calls().all(Describe(alias))
        infos = [answer for answer in answers if isinstance(answer, Description)]
        if len(infos) < self.nodes:
            raise ValueError(f"not all members say what they hold under {alias!r}")
        for member, info in zip(self.members, infos, strict=True):
            if not 0 <= info.features <= MOST_FEATURES:
                raise FalseMessageError(
                    f"{member} says that it has {info.features} features, at most {MOST_FEATURES} "
                    "are believed"
                )
            if (info.rows, info.order) != (infos[0].rows, infos[0].order):
                raise ValueError(
                    f"{member} holds {info.rows} rows under {alias!r}, and {self.members[0]} "
                    f"{infos[0].rows}, or they are in another order: align them first with "
                    "`atomcast align`"
                )
        return PartyShards(self, alias, infos)

    def open(self, problem: Problem, shards: Shards) -> FederatedSession:
        """Wait for the members, and for their approval."""
        refuse_sums(problem, "a federated cluster")
        from atomcast.federated.federated_session import FederatedSession
        from atomcast.federated.party_shards import PartyShards

        if not isinstance(shards, PartyShards) or shards.cluster is not self:
            raise ValueError(
                "the data of a FederatedCluster stay with its members: fit to "
                'cluster.shards("alias"), with the alias that the nodes have given to their files'
            )
        return FederatedSession(self, problem, shards)

    def combined(self, alias: str, rows: int, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The product of new data with coefficients of shape (n,) or (n, T), over all members."""
        from atomcast.federated.kinds import PartialPrediction, Predict

        flat, outputs = coef.reshape(-1), int(np.prod(coef.shape[1:]))
        ids = np.flatnonzero(flat)
        calls = self.calls()
        self.limit(rows, outputs)
        calls.where = "in a prediction"
        answers = calls.all(Predict(alias, ids, flat[ids]))
        parts = [answer.values for answer in answers if isinstance(answer, PartialPrediction)]
        sound = [len(part) == rows * outputs and np.isfinite(part).all() for part in parts]
        if sound != [True] * self.nodes:
            raise FalseMessageError("a member's part of the prediction is missing, or no numbers")
        return np.sum(parts, axis=0).reshape(rows, *coef.shape[1:])

    def close(self) -> None:
        """Stop listening; nodes go on trying to connect until the next fit."""
        if self._switchboard is not None:
            self._switchboard.close()
            self._switchboard = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- for sessions -----------------------------------------------------------------------

    def calls(self, farewell: float | None = None) -> Calls:
        """A way to ask the members, which may take no longer for a farewell than said."""
        from atomcast.federated.calls import Calls

        self.listen()
        assert self._switchboard is not None
        return Calls(
            self._switchboard,
            self.members,
            lambda: (farewell or self.deadline, farewell or self.patience),
        )

    def limit(self, rows: int, features: int = 1) -> None:
        """Let messages be as long as so many features of so many rows need."""
        from atomcast.federated.frames import longest

        assert self._switchboard is not None
        self._switchboard.longest = longest(rows, features)

    def introductions(self, calls: Calls) -> list[Introduce]:
        """What members are told of each other."""
        return [calls.line(node).claim for node in range(self.nodes)]

    def recheck(self, claims: Sequence[Introduce]) -> None:
        """Raise IdentityError if somebody's certificate was revoked in the meantime."""
        assert self._switchboard is not None
        self._switchboard.credentials.recheck(claims)

    def peers(self, calls: Calls) -> list[Peer]:
        """The members, as their certificates say, which may have been revoked by now."""
        assert self._switchboard is not None
        known = self._switchboard.credentials.known
        return [known(claim) for claim in self.introductions(calls)]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # so that the copies that scikit-learn makes share the connections

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_switchboard": None}

    def __repr__(self) -> str:
        return f"FederatedCluster({self.address!r}, members={list(self.members)})"
