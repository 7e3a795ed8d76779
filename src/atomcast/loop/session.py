"""The contract of a cluster: where the nodes run, and the verbs the loop knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_positive
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Request
from atomcast.messages.status import Status
from atomcast.network.ledger import Ledger
from atomcast.network.star import Star
from atomcast.network.topology import Topology
from atomcast.problems.problem import Problem

if TYPE_CHECKING:
    from atomcast.loop.result import Result
    from atomcast.loop.resuming import Past
    from atomcast.loop.solver import Solver

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

#: For how many seconds a node is waited for, if nobody says otherwise.
DEADLINE = 600.0


def check_deadline(deadline: float | None) -> float | None:
    """The deadline, or ValueError unless it is a positive number of seconds or None."""
    if deadline is None:
        return None
    return check_positive("deadline", deadline, "seconds to wait for a node, or None: for ever")


@dataclass(frozen=True)
class RunSpec:
    """What a session is told of a run before its first round.

    Parameters
    ----------
    common : mapping
        By name, what all processes must have in common beside the problem: step, tolerance, ...
    checkpoint : bool
        Whether this process wants to write checkpoints.
    resume : bool
        Whether the run goes on from a checkpoint.
    """

    common: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: bool = False
    resume: bool = False


class Closing(ABC):
    """What is open until a `with` block ends, and is then told with which error it did."""

    @abstractmethod
    def close(self, error: BaseException | None) -> None:
        """Let go of everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # To close a path after one of its results is no error.
        self.close(None if isinstance(error, GeneratorExit) else error)


class Session(Closing):
    """An open cluster: nodes that have loaded their shards and are ready for rounds.

    A session must be able to `begin`, to `propose` and to `cast`. All else is optional: what stands
    here is right where one process decides. Runs can be resumed where it is `Resumable`, too.

    Attributes
    ----------
    nodes : int
        How many nodes there are.
    n : int
        How many atoms they hold together.
    ledger : Ledger
        The account of what they have said.
    speaks : bool
        Whether this process tells the user how the run goes; one process of a cluster does.
    """

    nodes: int
    n: int
    ledger: Ledger
    speaks: bool = True
    #: Whether a run can begin with atoms of an earlier one, which their owners broadcast again.
    recalls: bool = False
    #: Whether the nodes can cast mixtures of their atoms: somebody must be there to combine them.
    mixes: bool = False
    #: Whether nodes can be asked, while mixtures are combined, about weights that they keep.
    asks: bool = False
    #: Whether weights that nodes keep are in other processes.
    apart: bool = False
    #: How many values a row or column that is an atom has on average, as all nodes know.
    usual_size: float = 0.0
    #: How many atoms of all nodes were left unread in the last round, because bounds told enough.
    unread: int = 0
    #: Whether there is no cluster at all: then nothing is sent, and no other one does the same.
    alone: bool = False

    @abstractmethod
    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Make the nodes ready for a run from this state, and check that all mean the same run.

        Returns the replica that the loop is to use: this one, or one that stands for the nodes'.
        """

    @abstractmethod
    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let every node score its atoms and propose; return what they agree on."""

    @abstractmethod
    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Let the owners broadcast the winners that are not known yet; return those atoms."""

    def everything(self, drawn: bool = False) -> Sequence[Atom]:
        """All atoms, where one who is alone can hand them out at once.

        They come in the order of their ids, or in that in which they would be drawn at random.
        """
        return ()

    def put_together(self, ids: Ids, weights: Floats) -> tuple[Ids, Floats]:
        """The weights that a run with mixtures ends with, where nodes know their own alone."""
        return ids, weights

    def leave(self) -> None:
        """Know that all processes end the run after this round, whatever callbacks do yet."""
        return None

    def vote(self, status: Status | None) -> Status | None:
        """Agree on whether to stop, where nodes may see different clocks or callbacks."""
        return status

    def close(self, error: BaseException | None) -> None:
        """Let go of what the session holds, such as processes; by default nothing."""
        return None


@runtime_checkable
class Resumable(Protocol):
    """What a session must be able to tell for its runs to be resumed from a checkpoint."""

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node that holds each of these atoms, shape (k,); -1 where there is none."""
        ...

    def fingerprint(self) -> str:
        """What tells these atoms from others; the same however they are spread over nodes."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """What a session of several processes does with a file: one reads it, all have it."""

    def shared(self, read: Callable[[], bytes]) -> bytes:
        """What `read` returns in the process that speaks; its errors are raised in all."""
        ...


class Cluster(ABC):
    """Where nodes run. It is only a description until it is opened.

    A cluster must have `nodes` and be able to `open` a session. All else is optional: what stands
    here is right for a cluster that one process can look over.
    """

    #: How many nodes there are.
    nodes: int

    @abstractmethod
    def open(self, problem: Problem, shards: Shards) -> Session:
        """Load the shards, check them, and make the nodes ready."""

    def place(self, shards: Shards) -> Shards:
        """The shards as this process knows them once it has heard what the others hold."""
        return shards

    def total(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of an array over all processes."""
        return part

    def network(self) -> Topology:
        """What the nodes talk over, for the account: a star, unless the cluster says otherwise."""
        return Star(self.nodes)


class LoopElsewhere(Cluster):
    """A cluster whose processes run the loop by themselves, and tell this one how it goes."""

    def open(self, problem: Problem, shards: Shards) -> Session:
        """There is no session here: the loop, and all that it says to nodes, is elsewhere."""
        raise TypeError(f"{self!r} runs the loop by itself: use Solver().solve_path(...)")

    @abstractmethod
    def solve_path(
        self,
        solver: Solver,
        problems: Iterable[Problem],
        shards: Shards,
        names: Sequence[str],
        past: Past | None,
    ) -> Iterator[Result]:
        """As `Solver.solve_path`; the callbacks of the solver are called in this process."""
