"""The writing half of the wire format: which form of an atom is smallest.

All decisions are made before anything large is written, so that the size of a message is
known without writing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import MAX_EXTRAS, MAX_LENGTH, Atom
from atomcast.network.wire.buffer import (
    CHECKSUM_BYTES,
    UNFOLD_LIMIT,
    Buffer,
    join_with_checksum,
    varint,
)
from atomcast.network.wire.indices import IndexPlan, plan_indices
from atomcast.network.wire.values import ValuePlan, bit_patterns, plan_values

__all__ = ["MAGIC", "VERSION", "MessagePlan", "background_step", "frequent_value", "plan_message"]

MAGIC = 0xA0  # high half of the first byte; the low half is the version
VERSION = 1

# The flags byte.
SPARSE = 0x01  # the atom holds indices
FLOAT32 = 0x02  # type of the values the atom holds
INT64 = 0x04  # type of the indices the atom holds
LISTED = 0x08  # the message lists indices; a dense atom with many equal values does so too
ABSENT = 0x10  # the indices listed are those without a value
EXTRAS = 0x20
NAME = 0x40
BACKGROUND = 0x80  # a dense atom's value where no index is listed is not 0.0

_BACKGROUND_SAMPLE = 64


@dataclass(slots=True)
class _Form:
    """Which values of an atom are sent, and what says where they belong."""

    flags: int
    values: ValuePlan
    indices: IndexPlan | None = None
    background: ValuePlan | None = None

    @property
    def size(self) -> int:
        size = self.values.size
        if self.indices is not None:
            size += 1 + len(varint(self.values.values.size)) + self.indices.size
        return size if self.background is None else size + 1 + self.background.size


@dataclass(slots=True)
class MessagePlan:
    """What will be written for an atom, and how many bytes it takes.

    Parameters
    ----------
    head : bytes
        All fields before the values.
    values : ValuePlan
    tail : list of buffers
        Small fields after the values: background, extras and name.
    indices : IndexPlan, optional
    """

    head: bytes
    values: ValuePlan
    tail: list[Buffer]
    indices: IndexPlan | None

    @property
    def size(self) -> int:
        """Bytes that `to_bytes` returns."""
        size = len(self.head) + self.values.size + CHECKSUM_BYTES
        size += sum(memoryview(part).nbytes for part in self.tail)
        return size if self.indices is None else size + self.indices.size

    def to_bytes(self) -> bytes:
        """Write the message."""
        indices = [] if self.indices is None else self.indices.parts()
        return join_with_checksum([self.head, *self.values.parts(), *self.tail, *indices])


def plan_message(atom: Atom) -> MessagePlan:
    """Choose the smallest form of a whole atom."""
    if not (0 <= atom.id < 2**63 and 0 <= atom.d <= MAX_LENGTH):
        raise ValueError(f"Cannot send {atom}: id must be from 0 to 2**63 - 1, d up to 2**62.")
    if atom.extras.size > MAX_EXTRAS:
        raise ValueError(f"Cannot send {atom.extras.size} extras, at most {MAX_EXTRAS}.")
    form = _smallest_form(atom)
    flags, tail = form.flags, list[Buffer]()
    if form.background is not None:
        tail += [bytes((form.background.code_byte,)), *form.background.parts()]
    if atom.extras.size:
        flags |= EXTRAS
        extras = plan_values(atom.extras)
        tail += [varint(atom.extras.size), bytes((extras.code_byte,)), *extras.parts()]
    if atom.name:
        flags |= NAME
        name = atom.name.encode("utf-8", "surrogatepass")
        tail += [varint(len(name)), name]
    codes = bytes((MAGIC | VERSION, flags, form.values.code_byte))
    head = varint(atom.id) + varint(atom.d)
    if form.indices is None:
        return MessagePlan(codes + head, form.values, tail, None)
    head = codes + bytes((form.indices.code_byte,)) + head + varint(form.values.values.size)
    return MessagePlan(head, form.values, tail, form.indices)


def _smallest_form(atom: Atom) -> _Form:
    values, indices = atom.values, atom.indices
    if values.dtype.char not in "fd" or not values.flags.c_contiguous:
        raise ValueError(f"Cannot send {atom}: values must be contiguous float32 or float64.")
    flags = FLOAT32 if values.dtype.itemsize == 4 else 0
    if indices is not None:
        if indices.size != values.size:
            raise ValueError(f"Cannot send {atom}: it has {indices.size} indices.")
        flags |= SPARSE | (INT64 if indices.dtype.itemsize == 8 else 0)
        return _listed(flags, plan_values(values, backed=True), plan_indices(indices, atom.d))
    if values.size != atom.d:
        raise ValueError(f"Cannot send {atom}: it has {values.size} values.")
    dense = _Form(flags, plan_values(values))
    background = frequent_value(values)
    if background is None or atom.d > UNFOLD_LIMIT:
        return dense
    # As the values that differ from the background: few if the data was sparse once, before
    # somebody made it dense, centred it or scaled it.
    pattern = bit_patterns(background)[0]
    support = np.flatnonzero(bit_patterns(values) != pattern)
    sparse = _listed(flags, plan_values(values[support]), plan_indices(support, atom.d))
    if pattern:
        sparse.flags |= BACKGROUND
        sparse.background = plan_values(background)
    return sparse if sparse.size < dense.size else dense


def _listed(flags: int, values: ValuePlan, indices: IndexPlan) -> _Form:
    return _Form(flags | LISTED | (ABSENT if indices.absent else 0), values, indices)


def background_step(n: int) -> int:
    """How far apart the values are that `frequent_value` looks at."""
    return max(1, n // _BACKGROUND_SAMPLE)


def frequent_value(values: NDArray[Any]) -> NDArray[Any] | None:
    """The most frequent value of a sample, shape (1,), if any occurs twice there."""
    ordered = bit_patterns(values)[:: background_step(values.size)].copy()
    ordered.sort()
    if not np.count_nonzero(ordered[1:] == ordered[:-1]):  # several times faster than any()
        return None
    distinct, counts = np.unique(ordered, return_counts=True)
    most = int(counts.argmax())
    return distinct[most : most + 1].view(values.dtype)
