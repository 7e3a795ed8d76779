"""Damage to files, at places that are always the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from atomcast.storage.container import read_model_file, write_model_file

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


def outcome(read: Callable[..., Any], path: Any) -> Any:
    """What reading gives, or the ValueError that names the file; any other error is a failure."""
    try:
        return read(path)
    except ValueError as error:
        if str(path) not in str(error):
            raise AssertionError(f"the file is not named in {error!r}") from error
        return error


def rewritten(path: Any, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    """Write a model file anew, checksum included, after a change to its header and arrays."""
    file = read_model_file(path)
    change(file.header, file.arrays)
    file.header.pop("schema", None)
    write_model_file(path, file.header, file.arrays)
