"""Flooding: every vertex passes on what it hears for the first time, over all its other edges.

A vertex uses nothing but its own neighbourhood. It forwards each record once, in the wave after
it first heard of it, over all its edges except the one that the record first came by (of edges
that brought it in the same wave: the one from the neighbour with the smallest number). Records
that cross a link in the same wave share a message.

So a record crosses deg(source) + sum over the others of (deg(v) - 1) = 2M - (V - 1) links. On a
tree that is V - 1: flooding a tree is the best broadcast there is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atomcast.messages.proposals import rank_in_group
from atomcast.network.links import Links
from atomcast.network.record_sets import Bits, Scales, all_of, own_records
from atomcast.network.wave import Counts

#: From this many words on all links together, compiled code repays its loading.
LARGE = 1 << 20


def flood(links: Links, source: Counts, amounts: Counts) -> Iterator[tuple[Counts, Counts]]:
    """Carry records from their sources to every vertex, wave by wave.

    Parameters
    ----------
    links : Links
    source : array of shape (r,)
        The vertex where each record starts.
    amounts : array of shape (k, r)
        Sizes of each record, of k kinds.

    Yields
    ------
    used : array of shape (m,)
        The links that carry a message in this wave.
    carried : array of shape (k, m)
        The sizes of the messages: sums of those of their records.
    """
    known = own_records(source, links.vertices)
    scales = Scales(amounts)
    large = len(links.source) * known.shape[1] >= LARGE
    yield from (_dense_waves if large else _sparse_waves)(links, source, known, scales)
    if not np.array_equal(known, np.broadcast_to(all_of(len(source)), known.shape)):
        raise RuntimeError("a record did not reach every node: the network is not connected")


def _dense_waves(
    links: Links, source: Counts, known: Bits, scales: Scales
) -> Iterator[tuple[Counts, Counts]]:
    """All links at once, in compiled code: for many records, which are everywhere soon."""
    from atomcast.network.flood_kernel import wave

    fresh, came = known.copy(), np.zeros((len(links.source), known.shape[1]), dtype=np.uint64)
    heard, brought = np.empty_like(fresh), np.empty_like(came)
    while fresh.any():
        sizes = np.zeros((len(links.source), len(scales.digits)), dtype=np.int64)
        full = wave(
            links.source,
            links.reverse,
            links.start,
            fresh,
            came,
            known,
            heard,
            brought,
            scales.digits,
            sizes,
        )
        used = np.flatnonzero(full)
        if len(used):
            yield used, scales.combine(sizes[used].T)
        fresh, heard = heard, fresh
        came, brought = brought, came


def _sparse_waves(
    links: Links, source: Counts, known: Bits, scales: Scales
) -> Iterator[tuple[Counts, Counts]]:
    """Only the vertices that have news: the work is that of the messages."""
    front = np.unique(source)
    fresh = known[front]
    came_by, came = np.zeros(0, dtype=np.int64), fresh[:0]
    while len(front):
        # A vertex sends over the reverse of each link into it.
        into, offsets = links.into(front)
        counts = np.diff(np.append(offsets, len(into)))
        payload = np.repeat(fresh, counts, axis=0)
        payload[np.searchsorted(into, came_by)] &= ~came
        full = payload.any(axis=1)
        if not full.all():
            into, payload = into[full], payload[full]
        used = links.reverse[into]
        if len(used):
            yield used, scales.weigh(payload)
        front, fresh, came_by, came = _hear(links, used, payload, known)


def _hear(
    links: Links, used: Counts, payload: Bits, known: Bits
) -> tuple[Counts, Bits, Counts, Bits]:
    """Deliver messages: who learned what, and which link brought it first.

    Returns
    -------
    front, fresh : arrays of shape (f,) and (f, words)
        The vertices that learned something, in order, and what.
    came_by, came : arrays of shape (c,) and (c, words)
        The links, in order, that brought something first, and what.
    """
    order = np.argsort(used)
    used, payload = used[order], payload[order]
    payload &= ~known[links.target[used]]
    new = payload.any(axis=1)
    if not new.all():
        used, payload = used[new], payload[new]
    target = links.target[used]
    starts = np.flatnonzero(rank_in_group(target) == 0)
    front = target[starts]
    if len(front) == len(target):  # everybody heard from one neighbour: no two can tell the same
        fresh = payload
    else:
        fresh = np.bitwise_or.reduceat(payload, starts, axis=0)
        payload = _first_in_group(payload, target)
    known[front] |= fresh
    return front, fresh, used, payload


def _first_in_group(sets: Bits, group: Counts) -> Bits:
    """Each set without what an earlier set of its group contains."""
    rank = rank_in_group(group)
    # The union of all earlier sets, by doubling: after the step of width s, that of the last 2s.
    union = np.zeros_like(sets)
    later = np.flatnonzero(rank > 0)
    union[later] = sets[later - 1]
    width = 1
    while width <= int(rank.max(initial=0)):
        later = np.flatnonzero(rank > width)
        union[later] |= union[later - width]
        width *= 2
    return sets & ~union
