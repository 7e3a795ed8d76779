"""What messages of the log hold: what is sent is sent, whether it arrives or not.

What a network without faults would say stands under the usual kinds, with a version number for
every message under "control". Everything that is said because something was lost, or might have
been, stands under "repair".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Proposals, Request
from atomcast.network.ledger import Ledger
from atomcast.network.links import Links
from atomcast.network.wave import NUMBER, Counts, Kind, Payload, proposal_parts
from atomcast.network.wire import codec as wire
from atomcast.simulation.log_messages import (
    Ask,
    Deliver,
    Fetch,
    LogEntry,
    Message,
    MissedEntries,
    News,
    Offer,
)

VERSION: tuple[int, int] = (1, NUMBER)

#: Values and bytes by kind.
Amounts = dict[Kind, tuple[int, int]]


class LogTraffic:
    """Enters messages in a ledger, those of a round that are alike in one go.

    Parameters
    ----------
    ledger : Ledger
    links : Links
        All links that messages may use.
    depth : array of shape (V,)
        How far each vertex is from the root: messages of one depth are one hop.
    below : list of int
        The nodes below each vertex, as bits: who has heard them all need not list them.
    """

    def __init__(self, ledger: Ledger, links: Links, depth: Counts, below: list[int]) -> None:
        nodes = ledger.nodes
        self._ledger = ledger
        self._links = links
        pairs = zip(links.source.tolist(), links.target.tolist(), strict=True)
        self._link = {pair: k for k, pair in enumerate(pairs)}
        self._bandwidth = links.bandwidth.tolist()
        self._depth = depth.tolist()
        self._words = -(-nodes // 64)  # numbers that it takes to say which nodes were heard
        self._whole = below
        self._waves: dict[tuple[int, tuple[Kind, ...]], list[tuple[int, Amounts]]] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        self._kinds: dict[int, Kind] = {}
        self._offered: list[int] = [0] * nodes
        self._offering = 0
        self._count, self._partial = 1, False
        self._cached: dict[tuple[int, bool], Amounts] = {}
        self._news_like: dict[tuple[int, tuple[int, ...], bool], Amounts] = {}
        self._offers_like: dict[tuple[int, bool, bool], Amounts] = {}

    def begin(self, proposals: Proposals, request: Request) -> None:
        """Say what each node proposes in this round."""
        offered = proposals.per_node
        self._offered = offered.tolist()
        self._offering = sum(1 << i for i in np.flatnonzero(offered).tolist())
        self._count, self._partial = request.count, request.partial_sums
        self._news_like.clear()
        self._offers_like.clear()

    def know(self, atoms: Iterable[Atom]) -> None:
        """Note how long these atoms are on the wire."""
        for atom in atoms:
            self.know_size(atom.id, "atom", atom.count, wire.encoded_size(atom))

    def know_size(self, id: int, kind: Kind, values: int, size: int) -> None:
        """Note how long something that travels as atoms do is on the wire."""
        self._sizes[id], self._kinds[id] = (values, size), kind

    def enter(self, message: Message) -> float:
        """Enter a message; returns the seconds that its bytes take to pass over the link."""
        amounts = _AMOUNTS[type(message)](self, message)
        link = self._link[message[0], message[1]]
        key = (self._depth[message[0]], tuple(amounts))
        self._waves.setdefault(key, []).append((link, amounts))
        limit = self._bandwidth[link]
        return sum(size for _, size in amounts.values()) / limit if limit < np.inf else 0.0

    def flush(self, now: float) -> None:
        """Enter in the ledger what has come together: one wave for each depth and set of kinds."""
        for messages in self._waves.values():
            used = np.array([link for link, _ in messages], dtype=np.int64)
            parts: dict[Kind, Payload] = {}
            for kind in messages[0][1]:
                table = np.array([amounts[kind] for _, amounts in messages], dtype=np.int64)
                parts[kind] = Payload(table[:, 0], table[:, 1])
            self._ledger.deliver(self._links.ends, used, parts, now)
        self._waves.clear()

    # -- what messages hold -----------------------------------------------------------------

    def _news(self, news: News) -> Amounts:
        key = news.entry.version, news.carried, news.again
        if key not in self._news_like:
            carried = set(news.carried)
            self._news_like[key] = self._entry(
                news.entry, lambda id, owner: id in carried, news.again
            )
        return self._news_like[key]

    def _entry(self, entry: LogEntry, wanted: Callable[[int, int], bool], again: bool) -> Amounts:
        """An entry with some of its atoms; the atoms first, if there are any."""
        pairs = zip(entry.atoms, entry.owners, strict=True)
        amounts = self._content([atom.id for atom, owner in pairs if wanted(atom.id, owner)])
        amounts |= self._proposals(len(entry.agreement.id), entry.agreement.inner is not None)
        control = 1 + (self._words if entry.senders else 0)
        amounts["control"] = control, NUMBER * control
        return _as_repair(amounts) if again else amounts

    def _offer(self, offer: Offer) -> Amounts:
        key = self._how_many(offer.heard), offer.heard == self._whole[offer.source], offer.again
        if key not in self._offers_like:
            amounts = dict(self._proposals(key[0], self._partial))
            control = 1 if key[1] else 1 + self._words
            amounts["control"] = control, NUMBER * control
            self._offers_like[key] = _as_repair(amounts) if offer.again else amounts
        return self._offers_like[key]

    def _how_many(self, heard: int) -> int:
        """The proposals that are left of those of some nodes."""
        left, total = heard & self._offering, 0
        while left and total < self._count:
            lowest = left & -left
            total += self._offered[lowest.bit_length() - 1]
            left ^= lowest
        return min(total, self._count)

    def _ask(self, ask: Ask) -> Amounts:
        return {"repair": VERSION}

    def _answer(self, answer: MissedEntries) -> Amounts:
        values, size = VERSION
        for entry in answer.entries:
            whole = self._entry(entry, lambda id, owner: owner != answer.target, again=True)
            values, size = values + whole["repair"][0], size + whole["repair"][1]
        return {"repair": (values, size)}

    def _fetch(self, fetch: Fetch) -> Amounts:
        amount = 1 + len(fetch.ids), NUMBER * (1 + len(fetch.ids))
        return {"repair" if fetch.again else "control": amount}

    def _deliver(self, deliver: Deliver) -> Amounts:
        amounts = self._content(deliver.ids) | {"control": VERSION}
        return _as_repair(amounts) if deliver.again else amounts

    def _content(self, ids: Sequence[int]) -> Amounts:
        """Some atoms, mixtures or a point."""
        amounts: Amounts = {}
        for id in ids:
            values, size = amounts.get(self._kinds[id], (0, 0))
            amounts[self._kinds[id]] = values + self._sizes[id][0], size + self._sizes[id][1]
        return amounts

    def _proposals(self, offered: int, partial: bool) -> Amounts:
        key = offered, partial
        if key not in self._cached:
            parts = proposal_parts(np.array([offered]), partial)
            self._cached[key] = {
                kind: (int(part.values[0]), int(part.bytes[0])) for kind, part in parts.items()
            }
        return self._cached[key]


def _as_repair(amounts: Amounts) -> Amounts:
    values = sum(values for values, _ in amounts.values())
    return {"repair": (values, sum(size for _, size in amounts.values()))}


_AMOUNTS: dict[type, Callable[..., Amounts]] = {
    News: LogTraffic._news,
    Offer: LogTraffic._offer,
    Ask: LogTraffic._ask,
    MissedEntries: LogTraffic._answer,
    Fetch: LogTraffic._fetch,
    Deliver: LogTraffic._deliver,
}
