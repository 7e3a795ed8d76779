"""Flooding: every vertex passes on what it hears for the first time, over all its other edges.

A vertex uses nothing but its own neighbourhood. It forwards each record once, in the wave after
it first heard of it, over all its edges except the one that the record first came by (of edges
that brought it in the same wave: the one from the neighbour with the smallest number). Records
that cross a link in the same wave share a message.

So a record crosses deg(source) + sum over the others of (deg(v) - 1) = 2M - (V - 1) links. On a
tree that is V - 1: flooding a tree is the best broadcast there is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from atomcast.network.links import Links
from atomcast.network.wave import Counts
from atomcast.protocol import rank_in_group

#: Sets of records, one row a set, 64 records a word.
Bits = NDArray[np.uint64]


def flood(links: Links, source: Counts, send: Callable[[Counts, Bits], None]) -> None:
    """Carry records from their sources to every vertex, wave by wave.

    Parameters
    ----------
    links : Links
    source : array of shape (r,)
        The vertex where each record starts.
    send : callable
        Called once a wave with the links that carry a message, shape (m,), and the set of records
        in each message, shape (m, words).
    """
    known = _own_records(source, links.vertices)
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
        send(used, payload)
        front, fresh, came_by, came = _hear(links, used, payload, known)
    if not np.array_equal(known, np.broadcast_to(all_of(len(source)), known.shape)):
        raise RuntimeError("a record did not reach every node: the network is not connected")


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


def _own_records(source: Counts, vertices: int) -> Bits:
    """What each vertex knows before the first wave."""
    record = np.arange(len(source))
    known = np.zeros((vertices, -(-len(source) // 64)), dtype=np.uint64)
    bit = np.left_shift(np.uint64(1), (record % 64).astype(np.uint64))
    np.bitwise_or.at(known, (source, record // 64), bit)
    return known


def all_of(records: int) -> Bits:
    """The set of all records, shape (words,)."""
    return as_set(np.ones(records, dtype=bool))


def as_set(member: NDArray[np.bool_]) -> Bits:
    """The set of the records that are marked, shape (words,)."""
    padded = np.zeros(-(-len(member) // 64) * 64, dtype=bool)
    padded[: len(member)] = member
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def weigh(sets: Bits, amount: Counts) -> Counts:
    """The sum of the amounts of the records in each set.

    Parameters
    ----------
    sets : array of shape (m, words)
    amount : array of shape (r,)
        A whole number for each record, not negative.

    Returns
    -------
    array of shape (m,), or (1,) if all sums are equal
    """
    total = np.zeros(len(sets), dtype=np.int64)
    largest = int(amount.max(initial=0))
    if largest and int(amount.min()) == largest:
        total = largest * np.bitwise_count(sets).sum(axis=1, dtype=np.int64)
    else:
        for place in range(largest.bit_length()):  # one digit of all amounts at a time
            digit = as_set((amount >> place) & 1 > 0)
            total += np.bitwise_count(sets & digit).sum(axis=1, dtype=np.int64) << place
    return total[:1] if len(total) and np.all(total == total[0]) else total
