"""The contract of a step: from (active set, winners) to new weights, the same on every node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Ids, Request
from atomcast.messages.status import Status

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]


class OwnAtoms(Protocol):
    """The atoms of one who is alone, which can be looked at without a question."""

    #: Their global ids, strictly increasing.
    ids: Ids

    def look(self, replica: Replica) -> Floats:
        """The score of each of them, shape (n,)."""
        ...

    def atoms_of(self, ids: list[int]) -> Sequence[Atom]:
        """Those with these ids."""
        ...


class Step(ABC):
    """A rule for new weights. It owns its workspace, and never communicates.

    A rule must be able to `advance`. All else is optional: what stands here is right for rules that
    take one atom a round, and whose weights are all that they remember.
    """

    #: What messages and checkpoints call the rule; by default as its class.
    name: ClassVar[str]
    #: True if the rule keeps an account of vertices, and so needs a domain with finitely many.
    needs_polytope: ClassVar[bool] = False
    #: True if the weights depend on the set of known atoms alone, in whatever order they came.
    any_order: ClassVar[bool] = False
    #: True if no more than one atom joins in a round, beside a common scaling of the weights.
    one_atom: ClassVar[bool] = True
    #: After so many rounds with no new atom and no progress, only rounding is left.
    patience: ClassVar[float] = 100
    #: True if a step needs the word of every node.
    hears_all: ClassVar[bool] = False
    #: True if atoms that better ones make superfluous are left out of a round.
    thin: bool = False
    #: Algorithm 3 sends partial sums S_i; rules that know the whole active set need none.
    partial_sums: ClassVar[bool] = False
    #: True if nodes cast mixtures of their own atoms, which needs a ball and a coordinator.
    mixes: ClassVar[bool] = False
    #: True if nodes take steps of their own between sums, which needs a problem with blocks.
    needs_blocks: ClassVar[bool] = False

    #: Whether there is a coordinator to combine what nodes send; set where a run begins.
    coordinated: bool = False
    #: A node sends no mixture of fewer weights than this.
    min_mixture: int = 1
    #: Whether the weights of what is mixed go to the coordinator, too.
    reveals: bool = True
    #: How many values an atom has on average; set where a run begins.
    usual_size: float = 0.0
    #: How many atoms there are, where there is no cluster: none is ever sent then.
    alone: int = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__qualname__

    def request(self, replica: Replica) -> Request:
        """What the nodes are asked to propose in this round: one atom, known or not."""
        return _one_atom(self.partial_sums)

    def first(self, replica: Replica) -> int:
        """How many atoms to draw at random before the first step; 0: none."""
        return replica.problem.sample

    def wanted(self, replica: Replica, agreement: Agreement) -> Agreement:
        """The part of the agreement whose atoms the step needs: all of it."""
        return agreement

    def thinned(self, replica: Replica, atoms: Sequence[Atom], scores: Floats) -> Ids:
        """Which of its candidates a node proposes, where some make others superfluous: all."""
        return np.arange(len(atoms))

    def picked(self, replica: Replica, atoms: Sequence[Atom], agreement: Agreement) -> Ids:
        """Which candidates of an agreement a root that has seen them passes on: all of them."""
        return np.arange(len(atoms))

    @abstractmethod
    def advance(self, replica: Replica, agreement: Agreement) -> None:
        """Set the new weights, the same on every node."""

    def foresee(
        self, replica: Replica, own: OwnAtoms, penalty: float | None = None
    ) -> float | None:
        """Let atoms join before the first question, where none has to be sent; by default none.

        Returns the gap before, if any has joined that is of use. With a penalty, the weights are
        those where a unit of their norm costs so much, if such are found.
        """
        return None

    def settle(self, replica: Replica) -> None:
        """Set better weights than those of the problem before, from what it has made known.

        That takes no message; by default, weights stay what they were.
        """
        return None

    def verdict(self, replica: Replica, agreement: Agreement, gap: float) -> Status | None:
        """Whether the run has come to its end with this round: the gap is small enough."""
        return "optimal" if gap <= replica.target else None

    def memory(self) -> dict[str, NDArray[Any]]:
        """What the rule carries from round to round, and cannot find out from the weights."""
        return {}

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the memory of the same rule in another process."""
        return None


@cache
def _one_atom(partial_sums: bool) -> Request:
    return Request(count=1, partial_sums=partial_sums)


@dataclass(frozen=True)
class Vertices:
    """The iterate as a convex combination of vertices, taken from the weights.

    Parameters
    ----------
    position : array of shape (k,)
        Position of each vertex's atom in the active set; -1 for the origin.
    share : array of shape (k,)
        Its share in the combination; positive, summing to one.
    slope : array of shape (k,)
        The linear cost <v, grad f> of the vertex v.
    """

    position: NDArray[np.int64]
    share: Floats
    slope: Floats

    @staticmethod
    def of(replica: Replica) -> Vertices:
        """The vertices that carry the current iterate."""
        domain, weights = replica.domain, replica.active.weights
        position = np.flatnonzero(weights)
        scores = replica.active.scores()[position]
        share = np.abs(weights[position]) / domain.scale
        slope = domain.scale * np.sign(weights[position]) * scores
        rest = 1.0 - float(share.sum())
        if domain.has_origin and rest > 1e-15:
            position = np.append(position, -1)
            share, slope = np.append(share, rest), np.append(slope, 0.0)
        return Vertices(position, share, slope)

    def away(self) -> int:
        """The vertex that the iterate should leave: the one with the largest slope."""
        return int(np.argmax(self.slope))


def vertex_weights(replica: Replica, position: int, score: float) -> Floats:
    """The weights of the vertex that the atom at `position` contributes, given its score."""
    weights = np.zeros(len(replica.active))
    if position >= 0:
        weights[position] = replica.domain.scale * replica.domain.sign(score)
    return weights


def winner_vertex(replica: Replica, agreement: Agreement) -> Floats:
    """The weights of the vertex that the network agreed on."""
    id, score = int(agreement.id[0]), float(agreement.score[0])
    return replica.active.vertex(replica.domain, id, score)


def carried_vertex(replica: Replica, vertices: Vertices, k: int) -> Floats:
    """The weights of the k-th vertex that carries the iterate."""
    weights = np.zeros(len(replica.active))
    position = vertices.position[k]
    if position >= 0:
        weights[position] = replica.domain.scale * np.sign(replica.active.weights[position])
    return weights


def move(replica: Replica, change: Floats, max_step: float, leaving: int = -1) -> None:
    """Line search along a change of the weights; a full step empties the vertex `leaving`."""
    active = replica.active
    step = active.search(change, max_step)
    # What a full step leaves behind of the vertex is rounding, and would pass for a vertex.
    full = step >= max_step and leaving >= 0
    if full and abs(active.weights[leaving]) <= 1e-14 * replica.domain.scale:
        active.clear(leaving)
