"""Traffic as it is counted: messages that cross their edges at the same time, and sums of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

Kind = Literal[
    "proposal", "partial sum", "index", "candidate", "atom", "corner", "control", "prediction",
    "repair", "target", "mixture", "image", "combination",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
Counts = NDArray[np.int64]

#: On the wire a number takes eight bytes: a float64 or an int64.
NUMBER = 8

#: Networks with at most so many nodes have few enough patterns of messages to remember them.
SMALL = 32


@dataclass(frozen=True)
class Count:
    """An amount of traffic: real values, bytes on the wire, messages."""

    values: int = 0
    bytes: int = 0
    messages: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.values + other.values, self.bytes + other.bytes, self.messages + other.messages
        )


class Payload:
    """What the messages of a wave carry of one kind.

    Parameters
    ----------
    values, bytes : arrays of shape (m,) or (1,)
        The size of each message's share; one element where all messages are equal. Without
        `bytes`, values are plain numbers of eight bytes each.
    """

    __slots__ = ("_bytes", "_total", "values")

    def __init__(self, values: Counts, bytes: Counts | None = None) -> None:
        self.values = _compact(values)
        self._bytes = None if bytes is None else _compact(bytes)
        self._total = (-1, 0, 0)

    @property
    def bytes(self) -> Counts:
        """The bytes of each message's share."""
        return NUMBER * self.values.astype(np.int64) if self._bytes is None else self._bytes

    def total(self, messages: int) -> tuple[int, int]:
        """The values and bytes of so many messages together; parts are often sent again."""
        if self._total[0] != messages:
            size = self.bytes
            self._total = (
                messages,
                int(self.values.sum()) * (messages if len(self.values) == 1 else 1),
                int(size.sum()) * (messages if len(size) == 1 else 1),
            )
        return self._total[1:]


def numbers(count: Counts | int) -> Payload:
    """A part of so many plain numbers, eight bytes each."""
    return Payload(np.atleast_1d(np.asarray(count, dtype=np.int64)))


def _compact(amount: Counts) -> Counts:
    """The same amounts in less memory: a ledger keeps them for as long as it lives."""
    if len(amount) > 1:
        smallest, largest = amount.min(), amount.max()
        if smallest == largest:
            return amount[:1].copy()
        if largest < 2**31:
            return amount.astype(np.int32)
    return amount


def proposal_parts(offered: Counts, partial: bool) -> dict[Kind, Payload]:
    """What a message with so many proposals carries: scores, their indices, and a partial sum.

    A node with nothing to propose still says how good its best atom is: the gap needs that.
    """
    if len(offered) > SMALL:
        return _parts(offered, partial)
    return dict(_known_parts(tuple(offered.tolist()), partial))


@lru_cache(maxsize=4096)
def _known_parts(offered: tuple[int, ...], partial: bool) -> dict[Kind, Payload]:
    """The same for a small network, once: rounds are mostly alike."""
    return _parts(np.array(offered, dtype=np.int64), partial)


def _parts(offered: Counts, partial: bool) -> dict[Kind, Payload]:
    parts: dict[Kind, Payload] = {"proposal": numbers(np.maximum(offered, 1))}
    if np.any(offered):
        parts["index"] = numbers(offered)
    if partial:
        parts["partial sum"] = numbers(1)
    return parts


@dataclass(frozen=True)
class Wave:
    """Messages that cross their edges at the same time, or are counted as if they did.

    A message may carry parts of several kinds; it counts as one message, of its first kind.

    Parameters
    ----------
    round : int
    ends : pair of arrays of shape (L,)
        Source and target of every link of the network.
    links : array of shape (m,)
        The links that carry a message.
    parts : mapping from kind to Payload
        What the messages carry.
    """

    round: int
    ends: tuple[Counts, Counts]
    links: Counts
    parts: Mapping[Kind, Payload]

    @property
    def source(self) -> Counts:
        """The node that sends each message."""
        return self.ends[0][self.links]

    @property
    def target(self) -> Counts:
        """The node that receives each message."""
        return self.ends[1][self.links]

    @property
    def main(self) -> Kind:
        """The kind under which the messages count."""
        return next(iter(self.parts))

    def count(self, kind: Kind) -> Count:
        """The traffic of one kind in the whole wave."""
        part = self.parts.get(kind)
        if part is None:
            return Count()
        m = len(self.links)
        return Count(*part.total(m), m if kind == self.main else 0)


#: The ends of all links, those that carry a message, and what they carry.
Carried = tuple[tuple[Counts, Counts], Counts, Mapping[Kind, Payload]]


class Traffic(Protocol):
    """Waves that follow each other at once, whose totals are known before they are worked out."""

    values: int
    bytes: int
    messages: int

    def waves(self) -> Iterable[Carried]:
        """The ends of all links, the links used and what they carry, of each wave in turn."""
        ...


class Talk:
    """Waves that were worked out: those of a round, or of all rounds that are alike."""

    __slots__ = ("_waves", "bytes", "messages", "values")

    def __init__(self, waves: Sequence[Carried]) -> None:
        self._waves, total = waves, Count()
        for carried in waves:
            wave = Wave(0, *carried)
            total = sum(map(wave.count, wave.parts), total)
        self.values, self.bytes, self.messages = total.values, total.bytes, total.messages

    def waves(self) -> Sequence[Carried]:
        """One after the other."""
        return self._waves
