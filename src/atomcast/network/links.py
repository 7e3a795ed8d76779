"""Links: the edges of a network in both directions, and the clock of what crosses them.

Every hop of every message goes through `Links.carry`: it is entered in the ledger there, and it
takes its time there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast.network.ledger import Ledger
from atomcast.network.wave import Counts, Kind, Payload, Talk

Floats = NDArray[np.float64]
#: The links that carry a message, and what they carry.
OneWave = tuple[Counts, Mapping[Kind, Payload]]

#: So many talks are remembered, at most.
MOST = 1000


class Links:
    """A network of V vertices: every edge is two links, ordered by target and then by source.

    Parameters
    ----------
    vertices : int
        V; vertices are numbered from 0.
    edges : array of shape (M, 2)
        The vertices at the two ends of each edge.
    latency, bandwidth : float or array of shape (M,)
        Seconds that a message needs to cross an edge, whatever its size, and bytes a second that
        an edge carries in each direction.
    names : array of shape (V,), optional
        The number of each vertex in the ledger; default: its own.

    Attributes
    ----------
    source, target : arrays of shape (2M,)
    reverse : array of shape (2M,)
        The link in the other direction.
    start : array of shape (V + 1,)
        The links into vertex v are start[v], ..., start[v + 1] - 1; those out of it are their
        reverses.
    timed : bool
        Whether messages take any time.
    """

    def __init__(
        self,
        vertices: int,
        edges: ArrayLike,
        latency: ArrayLike = 0.0,
        bandwidth: ArrayLike = np.inf,
        names: Counts | None = None,
    ) -> None:
        self.vertices = vertices
        ends = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        m = len(ends)
        source = np.concatenate((ends[:, 0], ends[:, 1]))
        target = np.concatenate((ends[:, 1], ends[:, 0]))
        order = np.lexsort((source, target))
        self.source, self.target = source[order], target[order]
        place = np.empty(2 * m, dtype=np.int64)
        place[order] = np.arange(2 * m)
        self.reverse = place[(order + m) % max(2 * m, 1)]
        self.start = np.searchsorted(self.target, np.arange(vertices + 1))
        self.names = np.arange(vertices) if names is None else names
        self.ends = self.names[self.source], self.names[self.target]
        self.latency = np.tile(np.broadcast_to(latency, m), 2)[order]
        self.bandwidth = np.tile(np.broadcast_to(bandwidth, m), 2)[order]
        self.timed = bool(np.any(self.latency > 0) or np.any(np.isfinite(self.bandwidth)))
        self.clock: Floats = np.zeros(vertices)
        self._free: Floats = np.zeros(2 * m)
        self._known: dict[Hashable, Talk] = {}

    @cached_property
    def edges(self) -> Counts:
        """The edges by the numbers of their ends in the ledger, shape (M, 2)."""
        once = self.ends[0] < self.ends[1]
        return np.stack((self.ends[0][once], self.ends[1][once]), axis=1)

    def into(self, vertices: Counts) -> tuple[Counts, Counts]:
        """The links into each of these vertices, and where each vertex's links begin.

        Vertices must increase; then so do the links.
        """
        counts = self.start[vertices + 1] - self.start[vertices]
        offsets = np.cumsum(counts) - counts
        links = np.repeat(self.start[vertices] - offsets, counts) + np.arange(int(counts.sum()))
        return links, offsets

    def between(self, source: Counts, target: Counts) -> Counts:
        """The links from each source to its target, which must exist."""
        key = self.target * self.vertices + self.source
        return np.searchsorted(key, target * self.vertices + source)

    def part(self, links: Counts) -> Links:
        """The network that has only these links and their reverses; it shares the clock."""
        forth = links[self.source[links] < self.target[links]]
        back = self.reverse[links[self.source[links] > self.target[links]]]
        kept = np.unique(np.concatenate((forth, back)))
        part = Links(
            self.vertices,
            np.stack((self.source[kept], self.target[kept]), axis=1),
            self.latency[kept],
            self.bandwidth[kept],
            self.names,
        )
        part.clock = self.clock
        return part

    def carry(self, links: Counts, parts: Mapping[Kind, Payload], ledger: Ledger) -> None:
        """Send a message over each of these links at the same time, and deliver it.

        A sender starts once it has received all that was sent to it before, and once the link has
        passed on what it was given before.
        """
        if not len(links):
            return
        now = self._pass_time(links, parts) if self.timed else 0.0
        ledger.deliver(self.ends, links, parts, now)

    def carry_all(
        self, key: Hashable, waves: Callable[[], Iterable[OneWave]], ledger: Ledger
    ) -> None:
        """Send one wave after the other; they are the same whenever `key` is, unless it is None.

        Where messages take no time, they are worked out once, and kept once: most rounds are alike.
        """
        if self.timed:
            for links, parts in waves():
                self.carry(links, parts, ledger)
            return
        talk = self._known.get(key)
        if talk is None:
            talk = Talk([(self.ends, links, parts) for links, parts in waves() if len(links)])
            if len(self._known) >= MOST:
                self._known.clear()
            if key is not None:
                self._known[key] = talk
        if talk.messages:
            ledger.enter(talk)

    def work(self, vertices: Counts, seconds: Floats) -> float:
        """Let vertices compute for so many seconds each; says when the last of them is done."""
        self.timed = True
        self.clock[vertices] += seconds
        return float(self.clock[vertices].max(initial=0.0))

    def arrival(self, links: Counts, parts: Mapping[Kind, Payload]) -> Floats:
        """When messages would arrive if they were sent now, shape (m,)."""
        return np.asarray(self._sent(links, parts) + self.latency[links])

    def _sent(self, links: Counts, parts: Mapping[Kind, Payload]) -> Floats:
        """When the last byte of each message would leave its sender."""
        size = sum((part.bytes for part in parts.values()), np.zeros(1, dtype=np.int64))
        begin = np.maximum(self.clock[self.source[links]], self._free[links])
        return np.asarray(begin + size / self.bandwidth[links])

    def _pass_time(self, links: Counts, parts: Mapping[Kind, Payload]) -> float:
        sent = self._sent(links, parts)
        self._free[links] = sent
        arrival = sent + self.latency[links]
        np.maximum.at(self.clock, self.target[links], arrival)
        return float(arrival.max())
