"""What goes over a star in a round: totals at once, messages edge by edge when they are asked for.

The totals are what a run needs in every round, for its trace. They take a few additions of plain
numbers; the arrays of messages take longer than the messages themselves do on MPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atomcast.network.wave import Count, Counts, Kind, Part, Wave

#: The ends of all links, those that carry a message, and what they carry.
StarWave = tuple[tuple[Counts, Counts], Counts, dict[Kind, Part]]


class Star(NamedTuple):
    """The links of a star: the ends of all, and those of each node up to the centre and down."""

    ends: tuple[Counts, Counts]
    up: Counts
    down: Counts


class Talk:
    """Proposals of all nodes on their way up, and the agreement on its way down."""

    __slots__ = ("_waves", "bytes", "messages", "values")

    def __init__(self, star: Star, up: dict[Kind, Part], down: dict[Kind, Part]) -> None:
        self._waves = [(star.ends, star.up, up), (star.ends, star.down, down)]
        total = Count()
        for ends, links, parts in self._waves:
            wave = Wave(0, ends, links, parts)
            total = sum((wave.count(kind) for kind in parts), total)
        self.values, self.bytes, self.messages = total.values, total.bytes, total.messages

    def waves(self) -> list[StarWave]:
        """Up, and down again."""
        return self._waves


class Broadcast:
    """Atoms on their way up from their owners, and down to every node that does not have them.

    Parameters
    ----------
    star : Star
    owners, values, sizes : sequences of int, length k
        The owner of each atom, its real numbers, and its bytes.
    """

    __slots__ = ("_owners", "_sizes", "_star", "_values", "bytes", "messages", "values")

    def __init__(
        self, star: Star, owners: Sequence[int], values: Sequence[int], sizes: Sequence[int]
    ) -> None:
        self._star, self._owners, self._values, self._sizes = star, owners, values, sizes
        nodes, senders = len(star.up), len(set(owners))
        # Every atom crosses the edge of every node once, up or down.
        self.values, self.bytes = nodes * sum(values), nodes * sum(sizes)
        # A node that has sent all there is has nothing to receive.
        self.messages = senders + (nodes - 1 if senders == 1 else nodes)

    def waves(self) -> list[StarWave]:
        """Up from the owners, and down to all who lack something."""
        ends, up, down = self._star
        sent = np.zeros((2, len(up)), dtype=np.int64)
        for row, amounts in zip(sent, (self._values, self._sizes), strict=True):
            np.add.at(row, np.asarray(self._owners), amounts)
        missing = sent.sum(axis=1, keepdims=True) - sent
        waves: list[StarWave] = []
        for carried, links in ((sent, up), (missing, down)):
            used = np.flatnonzero(carried[1])
            waves.append((ends, links[used], {"atom": Part(*carried[:, used])}))
        return waves
