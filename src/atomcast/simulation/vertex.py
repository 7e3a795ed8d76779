"""The log protocol: each vertex of a tree as a small machine, from messages to messages.

Entries go down the tree, proposals come up. A proposal for version v says that its nodes have the
first v entries, so that it acknowledges them too: at a time-out, a vertex repeats the newest entry
to every child whose proposal is missing. A vertex that notices a hole asks a neighbour for what it
lacks, again and again. Nothing here knows of time or of loss: who calls `on_timeout`, and which
messages arrive, how often and in which order, is up to the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from atomcast.simulation.log_messages import (
    Ask,
    Deliver,
    Fetch,
    LogEntry,
    Message,
    MissedEntries,
    News,
    Nodes,
    Offer,
)

#: A repair has so many entries at most; who lacks more asks again.
CHUNK = 32

_HANDLERS = {
    News: "_on_news",
    Offer: "_on_offer",
    Ask: "_on_ask",
    MissedEntries: "_on_answer",
    Fetch: "_on_fetch",
    Deliver: "_on_deliver",
}


@dataclass(frozen=True)
class Place:
    """What a vertex knows of the network.

    Parameters
    ----------
    number : int
    parent : int
        -1 for the root.
    below : mapping from child to the nodes of its subtree
    own : the vertex itself if it is a node with atoms, else no node
    others : tuple of int
        Further neighbours, whom to ask where the parent does not answer.
    height : int
        Edges to the farthest vertex of the subtree.
    """

    number: int
    parent: int
    below: dict[int, Nodes]
    own: Nodes
    others: tuple[int, ...] = ()
    height: int = 0

    @property
    def everyone(self) -> Nodes:
        """The nodes of the subtree of this vertex."""
        return self.own | sum(self.below.values())


class Vertex:
    """A node, or the coordinator of a star: its copy of the log, and what it waits for."""

    heard: Nodes  # at this version, in the subtree of this vertex
    sent: Nodes  # of these, told to the parent
    answered: dict[int, Nodes]  # by child
    asked: bool  # for what is missing, since the last time-out
    tries: int  # time-outs at this version

    def __init__(self, place: Place) -> None:
        self.place = place
        self.everyone = place.everyone
        self.runs = 0  # that have begun; how many have ended is in the log
        self.restart()

    def restart(self) -> list[Message]:
        """Forget everything but one's own atoms, and ask for the log."""
        self.log: list[LogEntry] = []
        self.ended = 0
        self.held: dict[int, LogEntry] = {}
        self.aware = 0  # how many entries there are, as far as this vertex has heard
        self.passing: dict[int, tuple[int, int]] = {}  # atom on its way up: version, child
        self.missing: dict[int, tuple[int, int]] = {}  # atom fetched from below: version, owner
        self.recovering = self.place.parent >= 0
        self._enter_version()
        return [self._ask(self.place.parent)] if self.recovering else []

    def start(self) -> list[Message]:
        """Begin a run: the first one, or another one after the log has said that one is over."""
        self.recovering = self.recovering and self.runs > 0
        self.runs += 1
        return [] if self.behind else self._offer_if_complete()

    @property
    def version(self) -> int:
        """How many entries are applied here: all those before the first hole."""
        return len(self.log)

    @property
    def behind(self) -> bool:
        """Whether there are entries that this vertex lacks; it must not propose then."""
        return self.aware > len(self.log) or self.recovering

    @property
    def idle(self) -> bool:
        """Whether no run is going on, as far as this vertex knows."""
        return self.ended >= self.runs

    @property
    def waiting(self) -> bool:
        """Whether there is something to repeat after a time-out."""
        if self.behind or self.missing:
            return True
        if self.idle:
            return False
        return self.heard != self.everyone or (self.place.parent >= 0 and self.sent != self.heard)

    def on_message(self, message: Message) -> list[Message]:
        """Take a message; returns what to send for it."""
        out: list[Message] = getattr(self, _HANDLERS[type(message)])(message)
        return out

    def on_timeout(self) -> list[Message]:
        """Repeat what has remained without an answer."""
        self.tries += 1
        out = self._fetches(self.missing, again=True)
        if self.behind:
            self.asked = True
            return [*out, self._ask(self._whom_to_ask())]
        if self.idle:
            return out
        out += [
            self._nudge(child)
            for child, nodes in self.place.below.items()
            if self.answered[child] != nodes
        ]
        if self.place.parent >= 0 and self.sent != self.heard:
            out.append(self._offer(again=self.sent != 0))
        return out

    def pass_on(self, entry: LogEntry) -> list[Message]:
        """The entry for every child, without the atoms that came from there."""
        out: list[Message] = []
        for child in self.place.below:
            carried = [
                atom.id
                for atom, owner in zip(entry.atoms, entry.owners, strict=True)
                if owner != child and self.passing.get(atom.id, (-1, -1))[1] != child
            ]
            out.append(News(self.place.number, child, entry, tuple(carried)))
        return out

    def has_all(self, news: News) -> bool:
        """Whether the entry is complete here: atoms are in it, on their way up, or one's own."""
        return all(
            owner == self.place.number or atom.id in news.carried or atom.id in self.passing
            for atom, owner in zip(news.entry.atoms, news.entry.owners, strict=True)
        )

    # -- messages ---------------------------------------------------------------------------

    def _on_news(self, news: News) -> list[Message]:
        version = news.entry.version
        if version < len(self.log):  # the parent repeats itself: it has not heard from us
            newest = version == len(self.log) - 1 and not (self.behind or self.idle)
            return [self._offer(again=True)] if newest else []
        self.aware = max(self.aware, version + 1)
        out: list[Message] = []
        if version not in self.held and self.has_all(news):
            self.held[version] = news.entry
            out = self.pass_on(news.entry)
        return out + self._settle(news.source)

    def _on_offer(self, offer: Offer) -> list[Message]:
        if offer.version > len(self.log):  # the child has more than we have
            return self._notice(offer.version, offer.source)
        if offer.version < len(self.log) or self.behind:
            return []
        self.answered[offer.source] |= offer.heard
        self.heard |= offer.heard
        return self._offer_if_complete()

    def _on_ask(self, ask: Ask) -> list[Message]:
        if ask.version > len(self.log):
            return self._notice(ask.version, ask.source)
        entries = tuple(self.log[ask.version : ask.version + CHUNK])
        return [MissedEntries(self.place.number, ask.source, entries, len(self.log))]

    def _on_answer(self, answer: MissedEntries) -> list[Message]:
        before = len(self.log)
        for entry in answer.entries:
            if entry.version >= before:
                self.held[entry.version] = entry
        self.aware = max(self.aware, answer.head)
        was_recovering, self.recovering = self.recovering, False
        out = self._settle(answer.source)
        if self.behind or self.idle:
            return out
        if len(self.log) > before:  # the children have probably missed what we have missed
            return out + [self._nudge(child) for child in self.place.below]
        if answer.source == self.place.parent and (was_recovering or not answer.entries):
            out.append(self._offer(again=True))  # we were asked where we are
        return out

    def _on_fetch(self, fetch: Fetch) -> list[Message]:
        _, _, owner, version, ids, again = fetch
        number, parent = self.place.number, self.place.parent
        if owner == number and min(ids) < 0 and (self.behind or version != len(self.log)):
            return []  # a mixture follows from the log; the root will ask again
        here = tuple(id for id in ids if owner == number or id in self.passing)
        out: list[Message] = []
        if here:
            out.append(Deliver(number, parent, owner, version, here, again))
        # What is under way already is repeated after our own time-out, not after the parent's.
        new = {id: (version, owner) for id in ids if id not in here and id not in self.missing}
        self.missing |= new
        return out + self._fetches(new, again)

    def _on_deliver(self, deliver: Deliver) -> list[Message]:
        asked_for = tuple(id for id in deliver.ids if self.missing.pop(id, None) is not None)
        for id in asked_for:
            self.passing[id] = deliver.version, deliver.source
        if not asked_for or self.place.parent < 0:
            return []
        number, parent = self.place.number, self.place.parent
        return [deliver._replace(source=number, target=parent, ids=asked_for)]

    # -- what follows -----------------------------------------------------------------------

    def _settle(self, whom: int) -> list[Message]:
        """Apply what is next in order, then propose, or ask a neighbour for what is missing."""
        before = len(self.log)
        while len(self.log) in self.held:
            self._apply(self.held.pop(len(self.log)))
        if len(self.log) > before:
            self._enter_version()
        if self.recovering:
            return []
        if self.aware > len(self.log):
            return self._notice(self.aware, whom)
        return self._offer_if_complete() if len(self.log) > before else []

    def _apply(self, entry: LogEntry) -> None:
        self.log.append(entry)
        self.ended += entry.final

    def _notice(self, version: int, whom: int) -> list[Message]:
        """There are entries that we lack: ask for them, once until the next time-out."""
        self.aware = max(self.aware, version)
        if self.asked or self.recovering:
            return []
        self.asked = True
        return [self._ask(whom)]

    def _enter_version(self) -> None:
        """At a new version, nobody has been heard but oneself."""
        self.heard = self.place.own
        self.answered = dict.fromkeys(self.place.below, 0)
        self.sent = 0
        self.asked = False
        self.tries = 0
        if self.passing or self.missing:
            now = len(self.log)
            self.passing = {id: at for id, at in self.passing.items() if at[0] >= now}
            self.missing = {id: at for id, at in self.missing.items() if at[0] >= now}

    def _offer_if_complete(self) -> list[Message]:
        done = self.heard == self.everyone and self.sent != self.heard and not self.idle
        return [self._offer(again=self.sent != 0)] if done and self.place.parent >= 0 else []

    def _offer(self, again: bool) -> Offer:
        self.sent = self.heard
        return Offer(self.place.number, self.place.parent, len(self.log), self.heard, again)

    def _ask(self, whom: int) -> Ask:
        return Ask(self.place.number, whom, len(self.log))

    def _whom_to_ask(self) -> int:
        """The parent, and every second time one of the other neighbours."""
        others = self.place.others
        if self.place.parent < 0 or (others and self.tries % 2 == 0):
            return others[(self.tries // 2) % len(others)]
        return self.place.parent

    def _nudge(self, child: int) -> Message:
        """The newest entry once more; to a child that has it, only how many there are."""
        if self.answered[child] or not self.log:
            return MissedEntries(self.place.number, child, (), len(self.log))
        entry = self.log[-1]
        pairs = zip(entry.atoms, entry.owners, strict=True)
        carried = tuple(atom.id for atom, owner in pairs if owner != child)
        return News(self.place.number, child, entry, carried, again=True)

    def _fetches(self, missing: dict[int, tuple[int, int]], again: bool) -> list[Message]:
        wanted: dict[tuple[int, int], list[int]] = {}
        for id, at in missing.items():
            wanted.setdefault(at, []).append(id)
        return [
            Fetch(self.place.number, self._towards(owner), owner, version, tuple(ids), again)
            for (version, owner), ids in wanted.items()
        ]

    def _towards(self, owner: int) -> int:
        return next(child for child, nodes in self.place.below.items() if nodes >> owner & 1)


class Root(Vertex):
    """The vertex that writes the log: the coordinator of a star, or the root of a tree."""

    spoken: Nodes = 0  # whoever has offered something, though too late for this version
    since = 0  # offers for older versions do not count as a sign that a wait is worth while

    def append(self, entry: LogEntry) -> list[Message]:
        """Add an entry, whose atoms must be here; returns the news for everybody."""
        assert entry.version == len(self.log)
        assert not self.missing
        out = self.pass_on(entry)
        self._apply(entry)
        self.aware = len(self.log)
        self._enter_version()
        return out

    def fetch(self, winners: Iterable[tuple[int, int]]) -> list[Message]:
        """Ask the owners of winners, given as (owner, id), for their atoms."""
        version = len(self.log)
        self.missing = {id: (version, owner) for owner, id in winners if owner != self.place.number}
        return self._fetches(self.missing, again=False)

    def _on_offer(self, offer: Offer) -> list[Message]:
        if offer.version >= self.since:
            self.spoken |= offer.heard
        return super()._on_offer(offer)
