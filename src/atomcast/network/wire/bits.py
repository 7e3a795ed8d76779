"""Bytes below the wire format: a bounds-checked reader, bit packing; and indices.

Everything here is vectorised: no Python loop runs over the numbers of an atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "UNFOLD_LIMIT",
    "Buffer",
    "Field",
    "Reader",
    "WireError",
    "from_bits",
    "pack",
    "plan_indices",
]
__all__ += ["read_indices", "to_bits", "unpack"]

Buffer = bytes | memoryview
Integers = NDArray[np.integer[Any]]

UNFOLD_LIMIT = 2**22
"""How many numbers may come out of fewer bits than one each.

A constant vector of any length fits in a few bytes, so the length of a message bounds what it
unfolds to only if something else does. Longer vectors spend at least one bit per number, and
a receiver can refuse a length that the message cannot back before it allocates anything.
"""

_GOLDEN = math.log((math.sqrt(5) - 1) / 2)


class WireError(ValueError):
    """A message that cannot be decoded: damaged, truncated or of another version."""


@dataclass(slots=True, eq=False)  # not frozen: that costs a microsecond per message
class Field:
    """A part of a message: the byte that names its code, its size, and what writes it."""

    code: int
    nbytes: int
    write: Callable[[], Sequence[Buffer]]


class Reader:
    """Takes one field after the other from a buffer; refuses to read beyond its end."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at, self._end = data, 0, len(data)

    @property
    def remaining(self) -> int:
        """Number of bytes not yet read."""
        return self._end - self._at

    def take(self, size: int, what: str) -> memoryview:
        """Return the next `size` bytes; `what` names the field in the error."""
        start = self._at
        self._at = stop = start + size
        if stop > self._end:
            raise WireError(
                f"Truncated message: {what} needs {size} bytes, {self._end - start} are left. "
                "Ask the sender for this atom again."
            )
        return self._data[start:stop]

    def varint(self, what: str) -> int:
        """Return the next LEB128 number, below 2**63."""
        if self._at < self._end and (byte := self._data[self._at]) < 0x80:  # as most are
            self._at += 1
            return byte
        number = 0
        for shift in range(0, 63, 7):
            if self._at == self._end:
                self.take(1, what)  # says that it is missing
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise WireError(f"Damaged message: {what} is longer than 63 bits.")


def to_bits(numbers: Integers, width: int) -> NDArray[np.uint8]:
    """The low `width` bits of each number, low bit first, a bit a byte; shape (n * width,)."""
    container = np.dtype("<u1" if width <= 8 else "<u8")
    octets = numbers.astype(container).view(np.uint8).reshape(-1, container.itemsize)
    return np.unpackbits(octets, axis=1, count=width, bitorder="little").ravel()


def from_bits(bits: NDArray[np.uint8], n: int, width: int) -> NDArray[np.int64]:
    """Undo `to_bits`, for a width of at most 63; shape (n,)."""
    container = np.dtype("<u1" if width <= 8 else "<u8")
    padded = np.zeros((n, 8 * container.itemsize), dtype=np.uint8)
    padded[:, :width] = bits.reshape(n, width)
    return np.packbits(padded, bitorder="little").view(container).astype(np.int64)


def pack(bits: NDArray[Any]) -> memoryview:
    """Eight bits to a byte, filled from its low end."""
    return np.packbits(bits, bitorder="little").data


def unpack(data: memoryview) -> NDArray[np.uint8]:
    """Undo `pack`, with the bits that fill the last byte."""
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")


# --- indices --------------------------------------------------------------------------------


def plan_indices(indices: Integers, d: int) -> tuple[Field, bool]:
    """Choose how to write strictly increasing indices below d.

    Returns
    -------
    field : Field
    absent : bool
        Whether the indices written are the others, because that is smaller.
    """
    field = _plan_gaps(indices, d)
    if 2 * indices.size > d and d <= UNFOLD_LIMIT:
        others = _plan_gaps(_others(indices, d), d)
        if others.nbytes < field.nbytes:
            return others, True
    return field, False


def read_indices(reader: Reader, n: int, d: int, absent: bool) -> NDArray[np.int64]:
    """Read the n indices of an atom of length d from the rest of a message, shape (n,)."""
    if absent and d > UNFOLD_LIMIT:
        raise WireError(f"Damaged message: absent indices listed for d={d} > {UNFOLD_LIMIT}.")
    indices = _read_gaps(reader, d - n if absent else n)
    if indices.size and not 0 <= indices[-1] < d:
        raise WireError(f"Damaged message: indices leave the range of an atom of d={d}.")
    return _others(indices, d) if absent else indices


def _others(indices: Integers, d: int) -> NDArray[np.int64]:
    """The rows below d that are not among these."""
    is_other = np.ones(d, dtype=bool)
    is_other[indices] = False
    return is_other.nonzero()[0].astype(np.int64, copy=False)


def _plan_gaps(indices: Integers, d: int) -> Field:
    """Rice-code how many rows are skipped before each: the high parts in unary, then the low bits.

    That comes within a few per cent of the entropy of a random support (Golomb 1966; Rice 1979).
    The width suits geometric gaps (A. Kiely, IPN report 42-159, 2004); with 0 this is a bitmap.
    """
    if not indices.size:
        return Field(0, 1, lambda: [b"\0"])
    n, first, last = indices.size, int(indices[0]), int(indices[-1])
    gaps = np.empty_like(indices)
    np.subtract(indices[1:], indices[:-1], out=gaps[1:])
    gaps -= 1
    gaps[0] = first
    if first < 0 or last >= d or gaps.min() < 0:
        raise ValueError(
            f"Cannot send an atom whose indices do not increase strictly from 0 to d - 1 = {d - 1}:"
            " build atoms of data that may be wrong with Atom.checked(...), which says more."
        )
    width, size, total = 0, last + 1, last + 1 - n
    suitable = 1 + math.floor(math.log2(_GOLDEN / -math.log1p(n / total))) if total else 0
    if suitable > 0:
        rice = n * suitable + n + int((gaps >> suitable).sum())
        width, size = (suitable, rice) if rice < size else (0, size)

    def write() -> list[Buffer]:
        ends = ((gaps >> width) + 1).cumsum() - 1
        bits = np.zeros(size, dtype=np.uint8)
        bits[ends] = 1
        bits[size - n * width :] = to_bits(gaps, width) if width else 0
        return [bytes((width,)), pack(bits)]

    return Field(0, 1 + -(-size // 8), write)


def _read_gaps(reader: Reader, n: int) -> NDArray[np.int64]:
    """Read n Rice-coded indices; they increase, or the last one is negative."""
    width = reader.take(1, "indices")[0]
    bits = unpack(reader.take(reader.remaining, "indices"))
    ones = bits[: max(0, bits.size - n * width)].view(bool).nonzero()[0][:n]
    end = int(ones[-1]) + 1 if ones.size else 0
    if ones.size != n or bits.size - n * width - end not in range(8):
        raise WireError(f"Damaged message: its end does not hold {n} indices.")
    if not width or not n:
        return ones
    # The i-th one stands behind the sum of all high parts so far, and i ones.
    order = np.arange(n)
    high = ones - order
    # Within these bounds the sum stays under 2**64, so that int64 shows an overflow as a sign.
    if max(n, int(high[-1])).bit_length() + width > 62:
        raise WireError(f"Damaged message: {n} indices with {width} low bits leave any range.")
    low = from_bits(bits[end : end + n * width], n, width)
    return (high << width) + low.cumsum() + order
