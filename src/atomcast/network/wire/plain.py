"""The shortest way for the commonest atom: dense float64 that no form makes smaller.

Its message is a head, the values as they are, and a checksum. Writing and reading it takes a few
calls; the ways through all other forms take dozens, which is most of what a short message costs.
What is written here is what `plan_message` would write.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import Atom
from atomcast.network.wire.buffer import CHECKSUM_BYTES, join_with_checksum, varint
from atomcast.network.wire.plan import MAGIC, VERSION, background_step, frequent_value
from atomcast.network.wire.values import MAX_PALETTE, bit_patterns, find_palette, needs_float64

__all__ = ["is_plain", "plain_message", "plain_size", "read_plain"]

_START = bytes((MAGIC | VERSION, 0, 0))  # no flags; float64 without a palette
FLOAT64 = np.dtype(np.float64)
_SAMPLE = 800  # sorting more would take longer than looking twice
_LONGEST_NUMBER = 35  # bits of an id or a length that are read here; longer ones are rare


def is_plain(atom: Atom) -> bool:
    """Whether an atom is dense float64, nothing else, and smallest as it is."""
    values: NDArray[Any] = atom.values
    if atom.indices is not None or atom.name or atom.extras.size or values.dtype != FLOAT64:
        return False
    if values.size != atom.d or not atom.d or not 0 <= atom.id < 2**_LONGEST_NUMBER:
        return False
    if not values.flags.c_contiguous or not needs_float64(values):
        return False
    return _is_varied(values)


def _is_varied(values: NDArray[Any]) -> bool:
    """Whether neither a palette nor a background pays; where possible, one sample settles both."""
    step = _sample_step(values.size)
    if step:
        ordered = bit_patterns(values)[::step].copy()
        ordered.sort()
        if not np.count_nonzero(ordered[1:] == ordered[:-1]):
            return True
    return frequent_value(values) is None and find_palette(bit_patterns(values), 8) is None


@lru_cache(maxsize=256)
def _sample_step(n: int) -> int:
    """A step that hits all the background's sample, and more values than a palette holds; or 0."""
    wide = background_step(n)
    steps = [step for step in range(1, wide + 1) if wide % step == 0]
    return max((step for step in steps if MAX_PALETTE < -(-n // step) <= _SAMPLE), default=0)


def plain_message(atom: Atom) -> bytes:
    """The message of a plain atom."""
    return join_with_checksum((_head(atom), atom.values.data))


def plain_size(atom: Atom) -> int:
    """How many bytes `plain_message` returns."""
    return len(_head(atom)) + 8 * atom.d + CHECKSUM_BYTES


def _head(atom: Atom) -> bytes:
    return _START + varint(atom.id) + varint(atom.d)


def read_plain(body: memoryview, d: int) -> Atom | None:
    """The plain atom of length d in a message without checksum; None if it may be another."""
    if body[1] or body[2]:
        return None
    id, position = _varint(body, 3)
    length, position = _varint(body, position)
    if not d or length != d or len(body) != position + 8 * d:
        return None
    values = np.empty(d)
    values.data.cast("B")[:] = body[position:]
    return Atom(id, d, values)


def _varint(body: memoryview, position: int) -> tuple[int, int]:
    """A number and where it ends; a length that fits no message if it is not a short one."""
    number = 0
    for shift in range(0, _LONGEST_NUMBER, 7):
        if position == len(body):
            break
        byte = body[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    return 2**62, len(body)
