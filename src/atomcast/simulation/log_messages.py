"""What the vertices of an unreliable network say to each other, and the log that they share.

The shared state is a function of an append-only log. Every message carries a version, that is a
number of entries, so that whoever receives it notices what it has missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement

#: Sets of nodes are whole numbers: bit i stands for node i.
Nodes = int


@dataclass(frozen=True, eq=False)
class LogEntry:
    """One entry of the log: the agreement of a round, and the atoms that are new in it.

    Parameters
    ----------
    version : int
        Its place in the log, from 0.
    round : int
    agreement : Agreement
        The winners, with their scores.
    atoms : tuple of Atom
        Those of the winners that were never broadcast before.
    owners : tuple of int
        The node that holds each of these; the root if it is a point that follows from mixtures.
    senders : Nodes
        Those whose mixtures it follows from: they know so what they have sent before they died.
    final : bool
        Whether it only closes a run: there is no step to take for it.
    """

    version: int
    round: int
    agreement: Agreement
    atoms: tuple[Atom, ...] = ()
    owners: tuple[int, ...] = ()
    senders: Nodes = 0
    final: bool = False


class News(NamedTuple):
    """From parent to child: the newest entry, with those of its atoms that the child lacks."""

    source: int
    target: int
    entry: LogEntry
    carried: tuple[int, ...]
    again: bool = False


class Offer(NamedTuple):
    """From child to parent: the best proposals of the nodes `heard`, all at this version."""

    source: int
    target: int
    version: int
    heard: Nodes
    again: bool = False


class Ask(NamedTuple):
    """To a neighbour: I have so many entries, send me what follows."""

    source: int
    target: int
    version: int


class MissedEntries(NamedTuple):
    """To a neighbour: entries that it lacks (maybe none), and how many I have."""

    source: int
    target: int
    entries: tuple[LogEntry, ...]
    head: int


class Fetch(NamedTuple):
    """Towards a node: your atoms have won, send them to the root."""

    source: int
    target: int
    owner: int
    version: int
    ids: tuple[int, ...]
    again: bool = False


class Deliver(Fetch):
    """From a node towards the root: the atoms that were asked for."""

    __slots__ = ()


Message = News | Offer | Ask | MissedEntries | Fetch | Deliver
