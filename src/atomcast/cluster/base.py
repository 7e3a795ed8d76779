"""The contract of a cluster: where the nodes run, and the three verbs the loop knows."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.atom import Atom
from atomcast.data.shards import Shards
from atomcast.network.ledger import Ledger
from atomcast.problem import Problem
from atomcast.protocol import Agreement, Request
from atomcast.replica import Replica
from atomcast.result import Status


class Session(Protocol):
    """An open cluster: nodes that have loaded their shards and are ready for rounds.

    Attributes
    ----------
    nodes : int
        How many nodes there are.
    n : int
        How many atoms they hold together.
    ledger : Ledger
        The account of what they have said.
    """

    nodes: int
    n: int
    ledger: Ledger

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let every node score its atoms and propose; return what they agree on."""
        ...

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Let the owners broadcast the winners that are not known yet; return those atoms."""
        ...

    def vote(self, status: Status | None) -> Status | None:
        """Agree on whether to stop, where nodes may see different clocks or callbacks."""
        ...

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node that holds each of these atoms, shape (k,); -1 where there is none."""
        ...

    def fingerprint(self) -> str:
        """What tells these atoms from others; the same however they are spread over nodes."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Cluster(Protocol):
    """Where nodes run. It is only a description until it is opened."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        ...

    def open(self, problem: Problem, shards: Shards) -> Session:
        """Load the shards, check them, and make the nodes ready."""
        ...
