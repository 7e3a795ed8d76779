"""Bytes below the wire format: a bounds-checked reader, varints and bit packing.

Everything here is vectorised: no Python loop runs over the numbers of an atom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64, xxh3_64_intdigest

__all__ = [
    "CHECKSUM_BYTES",
    "UNFOLD_LIMIT",
    "Buffer",
    "Reader",
    "WireError",
    "join_with_checksum",
    "pack_bits",
    "pack_varints",
    "split_checksum",
    "unpack_bits",
    "unpack_varints",
    "varint",
    "varint_sizes",
]

Buffer = bytes | memoryview

UNFOLD_LIMIT = 2**22
"""How many numbers may come out of fewer bits than one each.

A constant vector of any length fits in a few bytes, so the length of a message bounds what it
unfolds to only if something else does. Longer vectors spend at least one bit per number, and
a receiver can refuse a length that the message cannot back before it allocates anything.
"""

CHECKSUM_BYTES = 4
_MAX_VARINT_BYTES = 9  # 9 * 7 = 63 bits: what fits in an int64


class WireError(ValueError):
    """A message that cannot be decoded: damaged, truncated or of another version."""


class Reader:
    """Takes one field after the other from a buffer; refuses to read beyond its end."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        """Number of bytes not yet read."""
        return len(self._data) - self._position

    def take(self, size: int, what: str) -> memoryview:
        """Return the next `size` bytes; `what` names the field in the error."""
        if size > self.remaining:
            raise WireError(
                f"Truncated message: {what} needs {size} bytes, {self.remaining} are left. "
                "Ask the sender for this atom again."
            )
        start = self._position
        self._position = start + size
        return self._data[start : self._position]

    def byte(self, what: str) -> int:
        """Return the next byte as a number."""
        position = self._position
        if position == len(self._data):
            self.take(1, what)  # raises
        self._position = position + 1
        return self._data[position]

    def varint(self, what: str) -> int:
        """Return the next LEB128 number, below 2**63."""
        number = 0
        for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
            byte = self.byte(what)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise WireError(f"Damaged message: {what} is longer than 63 bits.")


def varint(number: int) -> bytes:
    """Write one number from 0 to 2**63 - 1 as LEB128: 7 bits a byte, low bits first."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def varint_sizes(numbers: NDArray[Any], largest: int) -> NDArray[np.int64]:
    """Bytes that each number takes as LEB128, shape (n,)."""
    sizes = np.ones(numbers.size, dtype=np.int64)
    for shift in range(7, largest.bit_length(), 7):
        sizes += numbers >= 1 << shift
    return sizes


def pack_varints(numbers: NDArray[Any], largest: int) -> memoryview:
    """Write many numbers as LEB128, one after the other."""
    sizes = varint_sizes(numbers, largest)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.empty(int(ends[-1]) if ends.size else 0, dtype=np.uint8)
    for place in range(int(sizes.max(initial=0))):  # at most 9 times, whatever n is
        longer = sizes > place
        septets = (numbers[longer] >> 7 * place) & 0x7F
        continues = (sizes[longer] > place + 1).astype(np.uint8) << 7
        out[starts[longer] + place] = septets.astype(np.uint8) | continues
    return out.data


def unpack_varints(data: memoryview, count: int) -> NDArray[np.int64]:
    """Read exactly `count` LEB128 numbers that fill `data`, shape (count,)."""
    septets = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(septets < 0x80) + 1
    if ends.size != count or (count and ends[-1] != septets.size) or (not count and septets.size):
        raise WireError(f"Damaged message: {ends.size} index gaps where {count} were announced.")
    if not count:
        return np.empty(0, dtype=np.int64)
    starts = np.concatenate(([0], ends[:-1]))
    sizes = ends - starts
    if sizes.max() > _MAX_VARINT_BYTES:
        raise WireError("Damaged message: an index gap is longer than 63 bits.")
    place = np.arange(septets.size) - np.repeat(starts, sizes)
    return np.add.reduceat((septets & 0x7F).astype(np.int64) << 7 * place, starts)


_CONTAINERS = tuple(np.dtype(f"<u{size}") for size in (1, 2, 4, 4, 8, 8, 8, 8))


def _container(width: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The smallest unsigned integer that holds `width` bits, from 1 to 64."""
    return _CONTAINERS[(width - 1) >> 3]


def pack_bits(numbers: NDArray[Any], width: int) -> memoryview:
    """Write the low `width` bits of each number, low bit first, without gaps."""
    container = _container(width)
    contained = numbers.astype(container)
    if width == 1:
        return np.packbits(contained & 1, bitorder="little").data
    octets = contained.view(np.uint8)
    if width == 8 * container.itemsize:
        return octets.data
    octets = octets.reshape(-1, container.itemsize)
    bits = np.unpackbits(octets, axis=1, count=width, bitorder="little")
    return np.packbits(bits, bitorder="little").data


def unpack_bits(data: memoryview, count: int, width: int) -> NDArray[np.int64]:
    """Read `count` numbers of `width` bits (at most 63) as `pack_bits` wrote them."""
    if not width or not count:
        return np.zeros(count, dtype=np.int64)
    container = _container(width)
    octets = np.frombuffer(data, dtype=np.uint8)
    if width == 8 * container.itemsize:
        return octets.view(container).astype(np.int64)
    bits = np.unpackbits(octets, count=count * width, bitorder="little")
    if width == 1:
        return bits.astype(np.int64)
    padded = np.zeros((count, 8 * container.itemsize), dtype=np.uint8)
    padded[:, :width] = bits.reshape(count, width)
    return np.packbits(padded, bitorder="little").view(container).astype(np.int64)


def join_with_checksum(parts: Sequence[Buffer]) -> bytes:
    """Concatenate parts and append a checksum of them, copying each part once."""
    hasher = xxh3_64()
    for part in parts:
        hasher.update(part)
    return b"".join((*parts, _checksum(hasher.intdigest())))


def split_checksum(message: memoryview) -> memoryview:
    """Return a message without its checksum, after comparing it."""
    body = message[:-CHECKSUM_BYTES]
    expected = bytes(message[-CHECKSUM_BYTES:])
    found = _checksum(xxh3_64_intdigest(body))
    if found != expected:
        raise WireError(
            f"Damaged message: checksum {found.hex()}, expected {expected.hex()}. "
            "Ask the sender for this atom again."
        )
    return body


def _checksum(digest: int) -> bytes:
    """The low half of an XXH3 digest: ten times faster than CRC-32 on a long dense atom."""
    return (digest & 0xFFFFFFFF).to_bytes(CHECKSUM_BYTES, "little")
