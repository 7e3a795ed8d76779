"""A network as a queue of events: it loses, delays, repeats and reorders messages, by seed."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from itertools import count

from atomcast.network.faults import Faults
from atomcast.simulation.log_messages import Message, News, Offer
from atomcast.simulation.vertex import Root, Vertex

#: Seconds for a hop where the network has no latency: time-outs and reordering need some.
NOMINAL = 1e-3
#: A time-out is so many hops, for each level of the tree below.
PATIENCE = 2.5
#: After so many time-outs in vain, the next ones are longer, up to so many times.
STEADY, LONGEST = 20, 4
#: A message that is overtaken is held back for up to so many hops.
HELD_BACK = 8


class Simulator:
    """Vertices and the messages between them, in simulated time.

    Parameters
    ----------
    vertices : sequence of Vertex
        Exactly one of them is a Root.
    faults : Faults
    latency : float
        Seconds for a hop.
    sent : callable
        Called with every message that is sent, lost ones too; returns the seconds that its bytes
        take to pass over the link.

    Attributes
    ----------
    now : float
        The simulated time in seconds.
    lost : int
        Messages that did not arrive.
    """

    def __init__(
        self,
        vertices: Sequence[Vertex],
        faults: Faults,
        latency: float,
        sent: Callable[[Message], float],
    ) -> None:
        self.vertices = vertices
        (self.root,) = [vertex for vertex in vertices if isinstance(vertex, Root)]
        self.faults = faults
        self.now = 0.0
        self.lost = 0
        self._latency = max(latency, 0.0) or NOMINAL
        self._transfer = 0.0  # the longest so far
        self._sent = sent
        self._random = random.Random(faults.seed)
        self._events: list[tuple[float, int, int, Message | None, bool]] = []
        self._number = count()
        self._due = [math.inf] * len(vertices)
        self._at = [0] * len(vertices)
        self._dead: set[int] = set()
        self._side: list[frozenset[int]] = []

    # -- faults -----------------------------------------------------------------------------

    def turn(self, clock: int) -> None:
        """Let nodes die and come back, and partitions begin and heal, as of this round."""
        dead = {
            outage.node
            for outage in self.faults.outages
            if outage.start <= clock and (outage.end is None or clock < outage.end)
        }
        back, self._dead = self._dead - dead, dead
        self._side = [
            frozenset(partition.nodes)
            for partition in self.faults.partitions
            if partition.start <= clock < partition.end
        ]
        for number in dead:
            self._due[number] = math.inf
        for number in sorted(back):
            self.send(self.vertices[number].restart())
            self._arm(number)

    def alive(self, number: int) -> bool:
        """Whether a vertex is running."""
        return number not in self._dead

    def _cut(self, message: Message) -> bool:
        source, target = message[0], message[1]
        return any((source in side) != (target in side) for side in self._side)

    # -- time -------------------------------------------------------------------------------

    @property
    def hop(self) -> float:
        """Seconds within which a message has usually crossed an edge."""
        return self._latency + 3 * self.faults.delay + self._transfer

    def patience(self, number: int) -> float:
        """The time-out of a vertex: enough for news to go down its subtree and offers up."""
        return PATIENCE * (1 + self.vertices[number].place.height) * self.hop

    def send(self, messages: Sequence[Message]) -> None:
        """Put messages on their way, as far as they get."""
        faults = self.faults
        for message in messages:
            transfer = self._sent(message)
            if transfer > self._transfer:
                self._transfer = transfer
            arrives = not (self._cut(message) if self._side else False)
            heard = not faults.loss or self._random.random() >= faults.loss
            relayed = not heard and faults.per == "receiver" and isinstance(message, News)
            if not arrives or not (heard or relayed):
                self.lost += 1
                continue
            self._queue(message, transfer, heard)
            if faults.duplicates and self._random.random() < faults.duplicates:
                self._queue(message, transfer, heard)

    def _queue(self, message: Message, transfer: float, heard: bool) -> None:
        faults, wait = self.faults, self._latency + transfer
        if faults.delay:
            wait += self._random.expovariate(1.0 / faults.delay)
        if faults.reorder and self._random.random() < faults.reorder:
            wait += self._random.uniform(1.0, HELD_BACK) * self.hop
        if faults.slow and isinstance(message, Offer):
            wait += (faults.slow.get(message.source, 1.0) - 1.0) * self._latency
        event = (self.now + wait, next(self._number), message[1], message, heard)
        heapq.heappush(self._events, event)

    def run(self, done: Callable[[], bool], seconds: float) -> bool:
        """Let time pass until something is done, or for so many seconds; whether it is done."""
        end = self.now + seconds
        while not done():
            if not self._events or self._events[0][0] > end:
                self.now = end
                return False
            self.now, _, number, message, heard = heapq.heappop(self._events)
            if message is None:
                self._time_out(number)
            elif number in self._dead:
                self.lost += 1
            else:
                self._deliver(number, message, heard)
        return True

    def _deliver(self, number: int, message: Message, heard: bool) -> None:
        vertex = self.vertices[number]
        if heard:
            out = vertex.on_message(message)
        else:  # lost on its receiver, but not on those beyond
            self.lost += 1
            assert isinstance(message, News)
            out = vertex.pass_on(message.entry) if vertex.has_all(message) else []
        if out:
            self.send(out)
        self._arm(number)

    def _time_out(self, number: int) -> None:
        if self._due[number] != self.now:
            return  # it has been put off
        self._due[number] = math.inf
        vertex = self.vertices[number]
        if vertex.waiting:
            self.send(vertex.on_timeout())
            self._arm(number)

    def arm(self) -> None:
        """Set the timer of the root, which has something new to wait for."""
        self._arm(self.root.place.number)

    def _arm(self, number: int) -> None:
        """Set or clear a vertex's timer; at a new version, it starts again."""
        vertex = self.vertices[number]
        if not vertex.waiting:
            self._due[number] = math.inf
            return
        new = self._at[number] != len(vertex.log)
        if self._due[number] < math.inf and not new:
            return
        self._at[number] = len(vertex.log)
        longer = min(2 ** max(vertex.tries - STEADY, 0), LONGEST)
        self._due[number] = self.now + longer * self.patience(number)
        heapq.heappush(self._events, (self._due[number], next(self._number), number, None, True))
