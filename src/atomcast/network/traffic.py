"""Traffic as a ledger keeps it: its totals, and the waves that it came in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from atomcast.network.wave import Count, Counts, Kind, Payload, Wave

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
