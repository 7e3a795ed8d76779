"""Sets of records, 64 to a word, and what the records of a set weigh together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.network.wave import Counts

#: Sets of records, one row a set, 64 records a word.
Bits = NDArray[np.uint64]


def as_set(member: NDArray[np.bool_]) -> Bits:
    """The set of the records that are marked, shape (words,)."""
    padded = np.zeros(-(-len(member) // 64) * 64, dtype=bool)
    padded[: len(member)] = member
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def all_of(records: int) -> Bits:
    """The set of all records, shape (words,)."""
    return as_set(np.ones(records, dtype=bool))


def own_records(source: Counts, vertices: int) -> Bits:
    """What each vertex holds if each record is at its source; shape (vertices, words)."""
    record = np.arange(len(source))
    held = np.zeros((vertices, -(-len(source) // 64)), dtype=np.uint64)
    bit = np.left_shift(np.uint64(1), (record % 64).astype(np.uint64))
    np.bitwise_or.at(held, (source, record // 64), bit)
    return held


class Scales:
    """Weigh sets of records by several amounts that each record has.

    An amount is a sum of binary digits, so that the weight of a set is a sum of sizes of
    intersections: one for each digit that occurs.

    Parameters
    ----------
    amounts : array of shape (k, r)
        Whole numbers, not negative.

    Attributes
    ----------
    digits : array of shape (p, words)
        The sets to intersect with.
    """

    def __init__(self, amounts: Counts) -> None:
        places: dict[bytes, tuple[int, Bits]] = {}
        terms = []
        for row, amount in enumerate(amounts):
            for member, factor in _digits(amount):
                digit = as_set(member)
                column, _ = places.setdefault(digit.tobytes(), (len(places), digit))
                terms.append((row, column, factor))
        self.digits = np.stack([digit for _, digit in places.values()])
        self._factors = np.zeros((len(amounts), len(places)), dtype=np.int64)
        for row, column, factor in terms:
            self._factors[row, column] += factor  # two digits of an amount may have the same set

    def weigh(self, sets: Bits) -> Counts:
        """The weight of each set by each amount, shape (k, m)."""
        sizes = [
            np.bitwise_count(sets & digit).sum(axis=1, dtype=np.int64) for digit in self.digits
        ]
        return self.combine(np.stack(sizes))

    def combine(self, sizes: Counts) -> Counts:
        """The weights, shape (k, m), from the sizes of the intersections, shape (p, m)."""
        return self._factors @ sizes


def _digits(amount: Counts) -> list[tuple[NDArray[np.bool_], int]]:
    """An amount for each record as a sum of factors times 0 or 1."""
    largest = int(amount.max(initial=0))
    if len(amount) and int(amount.min()) == largest:
        return [(np.ones(len(amount), dtype=bool), largest)]
    return [((amount >> k) & 1 > 0, 1 << k) for k in range(largest.bit_length())]
