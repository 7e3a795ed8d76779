"""The contract of a node's atoms: score them all, hand one out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica
    from atomcast.messages.proposals import Request


class Bounds(NamedTuple):
    """What is known of the scores of n atoms.

    Parameters
    ----------
    scores, off : arrays of shape (n,)
        About what each score is, and how far it may be off.
    unread : bool
        Whether to find out took no look at the atoms as they are.
    """

    scores: NDArray[np.float64]
    off: NDArray[np.float64]
    unread: bool = True


class Atoms(Protocol):
    """What one node holds. It knows its own atoms and the replica, and nothing else.

    What more atoms may be able to do, they say by the members of `BatchedAtoms`, `BoundedAtoms`,
    `DivisibleAtoms`, `SpacedAtoms`, `SlopeAtoms`, `FollowingAtoms` or `AtomFamilies`; none is
    needed for an exact selection.
    """

    #: Length of an atom, and number of atoms.
    d: int
    n: int

    def scores(self, replica: Replica) -> NDArray[np.float64]:
        """The score a_j . grad g(A alpha) of every atom, shape (n,)."""
        ...

    def atom(self, j: int, id: int) -> Atom:
        """The j-th atom as it travels, under its global id."""
        ...


@runtime_checkable
class BatchedAtoms(Atoms, Protocol):
    """Atoms of which many at a time are handed out faster than one by one."""

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> Sequence[Atom]:
        """The atoms at these places, as `atom` would hand them out, under their global ids."""
        ...


@runtime_checkable
class BoundedAtoms(Atoms, Protocol):
    """Vectors, scored by a product with the gradient, of which it need not be found for all."""

    #: Whether there are so many that this may pay.
    large: bool
    #: Beyond this share of the atoms, it is quicker to find all scores than those of some.
    vain: float
    #: What `bounds` takes, as a share of the time that it takes to find all scores; or else one.
    pace: float

    def bounds(self, replica: Replica) -> Bounds | None:
        """Scores and how far each may be off, if that takes less work than to find them."""
        ...

    def give_up(self) -> None:
        """Hear that bounds have left so much open that they were vain."""
        ...

    def read(self, replica: Replica, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """The scores of some atoms, by position."""
        ...

    def lengths(self, columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Numbers that are no smaller than the norms of all atoms, or of some."""
        ...


@runtime_checkable
class DivisibleAtoms(Atoms, Protocol):
    """Atoms of which a selection may leave some out."""

    def take(self, rows: NDArray[np.int64]) -> Atoms:
        """Some of the atoms, by position."""
        ...


@runtime_checkable
class SlopeAtoms(Atoms, Protocol):
    """Atoms with one weight each, along which the score is the slope of the objective."""

    slopes: Literal[True]


@runtime_checkable
class SpacedAtoms(Atoms, Protocol):
    """Atoms that are at a distance from each other, which m-centers need."""

    def space(self) -> Any:
        """The atoms as points of a space."""
        ...


@runtime_checkable
class FollowingAtoms(Protocol):
    """Atoms that need the active set for more than their scores, such as their distances."""

    def follow(self, active: Any) -> None:
        """Belong to this active set from now on."""
        ...


@runtime_checkable
class SummedAtoms(Protocol):
    """What a node holds that hands out no atoms: it answers for all of it with one vector.

    The sum over all nodes is the atom of a round.
    """

    d: int
    n: int

    def contribution(self, replica: Replica, request: Request) -> NDArray[np.float64]:
        """What this node adds to the sum, shape (d,) or, with a few numbers beside, more."""
        ...

    def take(self, rows: NDArray[np.int64]) -> SummedAtoms:
        """What one of several nodes that live together holds of it, by position."""
        ...


@runtime_checkable
class AtomFamilies(Atoms, Protocol):
    """Atoms that are never enumerated: each of n families puts forward its best member.

    The member with number k of the family with global id j has the global id j * stride + k. The
    scores are those of the members put forward, and `atom` is given a member's id.
    """

    stride: int

    def members(self) -> NDArray[np.int64]:
        """The number, within its family, of each member that was scored last, shape (n,)."""
        ...
