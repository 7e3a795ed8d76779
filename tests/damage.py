"""Damage to files, at places that are always the same."""

from __future__ import annotations

from collections.abc import Iterator

MASKS = (0x01, 0x80, 0xFF)


def damaged(content: bytes, places: int = 50, cuts: int = 12) -> Iterator[bytes]:
    """Copies with a byte flipped, the head and the tail densely, and copies that were cut off."""
    size = len(content)
    ends = {*range(min(size, places // 2)), *range(max(0, size - places // 2), size)}
    for position in sorted(ends | {k * (size - 1) // places for k in range(places)}):
        copy = bytearray(content)
        copy[position] ^= MASKS[position % 3]
        yield bytes(copy)
    for k in range(cuts):
        yield content[: k * size // cuts]
