"""How the row numbers of a sparse atom are written: as gaps, in the smallest of three codes.

Rice codes with the parameter that suits the mean gap come within a few per cent of the entropy
of a random support (Golomb 1966; Rice 1979); with parameter 0 they are a bitmap. Integers of equal
size are smaller at a fixed width, and gaps of very unequal size as varints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.network.wire.buffer import (
    UNFOLD_LIMIT,
    Buffer,
    Reader,
    WireError,
    pack_bits,
    pack_varints,
    unpack_bits,
    unpack_varints,
    varint_sizes,
)

__all__ = ["GapCode", "IndexPlan", "plan_indices", "read_indices"]

Integers = NDArray[np.signedinteger[Any]]

_GOLDEN = math.log((math.sqrt(5) - 1) / 2)


class GapCode(IntEnum):
    """How gaps are written; stands in bits 6-7 of the index byte."""

    RICE = 0
    FIXED = 1
    VARINT = 2


@dataclass(slots=True)  # not frozen: that costs a microsecond per message
class IndexPlan:
    """What will be written for a set of indices, and how many bytes it takes.

    Parameters
    ----------
    gaps : ndarray of int, shape (n,)
        Number of rows skipped before each index.
    largest : int
        Largest gap.
    code : GapCode
    width : int
        Low bits kept apart (RICE) or bits per gap (FIXED); 0 for VARINT.
    size : int
        Bytes that `parts` takes.
    absent : bool
        Whether the indices written are those that the atom does *not* have.
    """

    gaps: Integers
    largest: int
    code: GapCode
    width: int
    size: int
    absent: bool = False

    @property
    def code_byte(self) -> int:
        """The index byte of the header."""
        return self.code << 6 | self.width

    def parts(self) -> list[Buffer]:
        """The bytes to send; they are the end of the message, which saves their length."""
        if not self.gaps.size:
            return []
        if self.code is GapCode.VARINT:
            return [pack_varints(self.gaps, self.largest)]
        low: list[Buffer] = [pack_bits(self.gaps, self.width)] if self.width else []
        if self.code is GapCode.FIXED:
            return low
        high = self.gaps >> self.width
        high += 1
        ends = high.cumsum()
        unary = np.zeros(int(ends[-1]) + 1, dtype=bool)
        unary[ends] = True
        return [*low, np.packbits(unary[1:], bitorder="little").data]


def plan_indices(indices: Integers, d: int) -> IndexPlan:
    """Choose the smallest code for strictly increasing indices below d.

    Parameters
    ----------
    indices : ndarray of int32 or int64, shape (n,)
    d : int
        Length of the atom.
    """
    present = _plan_gaps(indices, d, absent=False)
    if 2 * indices.size <= d or d > UNFOLD_LIMIT:
        return present
    is_absent = np.ones(d, dtype=bool)
    is_absent[indices] = False
    absent = _plan_gaps(np.flatnonzero(is_absent), d, absent=True)
    return absent if absent.size < present.size else present


def _plan_gaps(indices: Integers, d: int, absent: bool) -> IndexPlan:
    n = indices.size
    if not n:
        return IndexPlan(indices, 0, GapCode.FIXED, 0, 0, absent)
    first, last = int(indices[0]), int(indices[-1])
    gaps = np.empty_like(indices)
    np.subtract(indices[1:], indices[:-1], out=gaps[1:])
    gaps -= 1
    gaps[0] = first
    if first < 0 or last >= d or gaps.min() < 0:
        raise ValueError(
            f"Cannot send an atom whose indices do not increase strictly from 0 to d - 1 = {d - 1}:"
            " build atoms of data that may be wrong with Atom.checked(...), which says more."
        )
    largest = int(gaps.max())
    width = _best_rice_width((last + 1 - n) / n)
    size, code = -(-(last + 1) // 8), GapCode.RICE  # with width 0: a bitmap up to the last index
    if width and (rice_size := _rice_size(gaps, width)) < size:
        size = rice_size
    else:
        width = 0
    fixed_width = largest.bit_length()
    fixed_size = -(-n * fixed_width // 8)
    if fixed_size < size and (fixed_width or n <= UNFOLD_LIMIT):
        size, code, width = fixed_size, GapCode.FIXED, fixed_width
    if n < size:  # a varint takes at least a byte
        varint_size = int(varint_sizes(gaps, largest).sum())
        if varint_size < size:
            size, code, width = varint_size, GapCode.VARINT, 0
    return IndexPlan(gaps, largest, code, width, size, absent)


def _best_rice_width(mean_gap: float) -> int:
    """Best parameter for geometric gaps of this mean (A. Kiely, IPN report 42-159, 2004)."""
    if mean_gap <= 0.0:
        return 0
    return max(0, 1 + math.floor(math.log2(_GOLDEN / -math.log1p(1.0 / mean_gap))))


def _rice_size(gaps: Integers, width: int) -> int:
    unary_bits = int((gaps >> width).sum()) + gaps.size
    return -(-gaps.size * width // 8) + -(-unary_bits // 8)


def read_indices(reader: Reader, code_byte: int, n: int, d: int, absent: bool) -> NDArray[np.int64]:
    """Read the n indices of an atom of length d from the rest of a message, shape (n,)."""
    code_number, width = code_byte >> 6, code_byte & 0x3F
    listed = d - n if absent else n
    if absent and d > UNFOLD_LIMIT:
        raise WireError(f"Damaged message: absent indices listed for d={d} > {UNFOLD_LIMIT}.")
    if code_number == GapCode.RICE:
        indices = _read_rice(reader, width, listed)
    elif code_number == GapCode.FIXED:
        packed = reader.take(-(-listed * width // 8), "indices")
        indices = _indices_of_gaps(unpack_bits(packed, listed, width), d)
    elif code_number == GapCode.VARINT:
        packed = reader.take(reader.remaining, "indices")
        indices = _indices_of_gaps(unpack_varints(packed, listed), d)
    else:
        raise WireError(f"Damaged message: unknown index code {code_number}.")
    if reader.remaining:
        raise WireError(f"Damaged message: {reader.remaining} bytes left over after the indices.")
    if listed and not 0 <= indices[-1] < d:
        raise WireError(f"Damaged message: indices leave the range of an atom of d={d}.")
    if not absent:
        return indices
    is_present = np.ones(d, dtype=bool)
    is_present[indices] = False
    return is_present.nonzero()[0].astype(np.int64, copy=False)


def _read_rice(reader: Reader, width: int, n: int) -> NDArray[np.int64]:
    """Read n Rice-coded indices; they increase, or the last one is negative."""
    low = reader.take(-(-n * width // 8), "low bits of the indices")
    unary = np.frombuffer(reader.take(reader.remaining, "high bits of the indices"), np.uint8)
    # The i-th one stands behind the sum of all high parts so far, and i ones.
    ones = np.unpackbits(unary, bitorder="little").view(bool).nonzero()[0]
    if ones.size != n or unary.size != (int(ones[-1]) // 8 + 1 if n else 0):
        raise WireError(f"Damaged message: {ones.size} indices where {n} were announced.")
    indices = ones.astype(np.int64, copy=False)
    if not width or not n:
        return indices
    order = np.arange(n)
    indices -= order
    # Below these bounds the sum stays under 2**64, so that int64 shows an overflow as a sign.
    if int(indices[-1]).bit_length() + width > 62 or n.bit_length() + width > 62:
        raise WireError(f"Damaged message: {n} indices with {width} low bits leave any range.")
    indices <<= width
    order += unpack_bits(low, n, width).cumsum()
    indices += order
    return indices


def _indices_of_gaps(gaps: NDArray[np.int64], d: int) -> NDArray[np.int64]:
    """Undo the gaps, shape (n,), refusing a sum beyond int64."""
    if not gaps.size:
        return gaps
    if gaps.max() >= d:
        raise WireError(f"Damaged message: an index gap of {int(gaps.max())} in an atom of d={d}.")
    gaps += 1
    indices = gaps.cumsum()
    indices -= 1
    # Every gap is below d <= 2**62, so the first sum to leave int64 turns negative.
    if indices.min() < 0:
        raise WireError(f"Damaged message: indices leave the range of an atom of d={d}.")
    return indices
