"""The wire format: what an atom looks like between two nodes.

`decode(encode(atom))` is the same atom bit for bit, in whatever form is smallest; the layout is
described in docs/wire-format.md. Rounding, where it is wanted, happens before (`as_sent`), so
that the owner of an atom can use it as everybody else received it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.atom import MAX_LENGTH, NO_EXTRAS, Atom
from atomcast.network.wire_buffer import (
    CHECKSUM_BYTES,
    UNFOLD_LIMIT,
    Buffer,
    Reader,
    WireError,
    join_with_checksum,
    split_checksum,
    varint,
)
from atomcast.network.wire_indices import IndexPlan, plan_indices, read_indices
from atomcast.network.wire_values import ValuePlan, bit_patterns, plan_values, read_values

__all__ = ["Cast", "WireError", "as_sent", "decode", "encode", "encoded_size"]

Cast = Literal["float16", "bfloat16"]

_MAGIC = 0xA0  # high half of the first byte; the low half is the version
_VERSION = 1
_SHORTEST = 9  # first byte, flags, value byte, id, d, checksum

_SPARSE = 0x01  # the atom holds indices
_FLOAT32 = 0x02
_INT64 = 0x04  # type of the indices the atom holds
_LISTED = 0x08  # the message lists indices; a dense atom with many zeros does so too
_ABSENT = 0x10  # the indices listed are those without a value
_EXTRAS = 0x20
_NAME = 0x40
_KNOWN_FLAGS = 0x7F


def encode(atom: Atom, cast: Cast | None = None) -> bytes:
    """Write an atom as bytes, in the smallest form that `decode` turns back into the same atom.

    Parameters
    ----------
    atom : Atom
    cast : {"float16", "bfloat16"}, optional
        Round the values first, to about 3 or 2 decimal digits. The owner must then go on with
        `as_sent(atom, cast)`, or its iterate will differ from everybody else's.

    Returns
    -------
    bytes

    Examples
    --------
    >>> import numpy as np
    >>> atom = Atom(id=7, d=1000, values=np.ones(3), indices=np.array([5, 80, 400]))
    >>> len(encode(atom))
    18
    """
    return _plan(as_sent(atom, cast)).to_bytes()


def encoded_size(atom: Atom, cast: Cast | None = None) -> int:
    """Say how many bytes `encode` would return, without writing them."""
    return _plan(as_sent(atom, cast)).size


def decode(message: bytes | bytearray | memoryview) -> Atom:
    """Read an atom from the bytes of one message, all of them.

    Returns
    -------
    Atom
        Its arrays are its own: the message may be reused.

    Raises
    ------
    WireError
        If the message is damaged, truncated, too long, or of another version.
    """
    view = memoryview(message).cast("B")
    _check_start(view)
    reader = Reader(split_checksum(view))
    reader.byte("version")
    flags = reader.byte("flags")
    if flags & ~_KNOWN_FLAGS:
        raise WireError(f"Damaged message: unknown flags {flags:#04x}.")
    value_byte = reader.byte("value code")
    index_byte = reader.byte("index code") if flags & _LISTED else 0
    atom_id, d = reader.varint("id"), reader.varint("d")
    n = reader.varint("number of values") if flags & _LISTED else d
    _check_lengths(flags, n, d, len(view))

    dtype: np.dtype[Any] = np.dtype(np.float32 if flags & _FLOAT32 else np.float64)
    values = read_values(reader, value_byte, n, dtype)
    extras = _read_extras(reader, len(view)) if flags & _EXTRAS else NO_EXTRAS
    name = _read_name(reader) if flags & _NAME else ""
    if not flags & _LISTED:
        if reader.remaining:
            raise WireError(f"Damaged message: {reader.remaining} bytes left over at the end.")
        return Atom(atom_id, d, values, None, extras, name)
    listed = read_indices(reader, index_byte, n, d, bool(flags & _ABSENT))
    if flags & _SPARSE:
        return Atom(atom_id, d, values, _with_type(listed, flags), extras, name)
    dense = np.zeros(d, dtype=dtype)
    dense[listed] = values
    return Atom(atom_id, d, dense, None, extras, name)


def as_sent(atom: Atom, cast: Cast | None) -> Atom:
    """Return the atom as its receivers will have it: rounded to `cast`, in its own type.

    Rounding goes to the nearest number, ties to even, and doing it twice changes nothing.
    Extras (a label, a threshold) are never rounded.

    Raises
    ------
    ValueError
        If a value is too large for `cast`.
    """
    if cast is None:
        return atom
    with np.errstate(over="ignore"):
        if cast == "float16":
            rounded = atom.values.astype(np.float16)
        elif cast == "bfloat16":
            bits = atom.values.astype(np.float32).view(np.uint32)
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
            rounded = bits.view(np.float32)
        else:
            raise ValueError(f"cast={cast!r}: expected 'float16', 'bfloat16' or None.")
    if not np.isfinite(rounded).all():
        raise ValueError(
            f"cast={cast!r}: atom {atom.id} has a value of {np.abs(atom.values).max():.3g}, "
            "too large for this type: rescale the data, or use 'bfloat16' or None."
        )
    return replace(atom, values=rounded.astype(atom.values.dtype))


@dataclass(slots=True)
class _Plan:
    """All decisions about one message, before anything large is written."""

    header: bytes
    values: ValuePlan
    extras: ValuePlan | None
    name: bytes
    indices: IndexPlan | None

    @property
    def size(self) -> int:
        size = len(self.header) + self.values.size + len(self.name) + CHECKSUM_BYTES
        if self.extras is not None:
            size += len(_extras_head(self.extras)) + self.extras.size
        return size if self.indices is None else size + self.indices.size

    def to_bytes(self) -> bytes:
        parts: list[Buffer] = [self.header, *self.values.parts()]
        if self.extras is not None:
            parts += [_extras_head(self.extras), *self.extras.parts()]
        if self.name:
            parts.append(self.name)
        if self.indices is not None:
            parts += self.indices.parts()
        return join_with_checksum(parts)


def _plan(atom: Atom) -> _Plan:
    flags, values, indices = _smallest_form(atom)
    extras, name = None, b""
    if atom.extras.size:
        flags |= _EXTRAS
        extras = plan_values(atom.extras)
    if atom.name:
        flags |= _NAME
        name = atom.name.encode("utf-8", "surrogatepass")
        name = varint(len(name)) + name
    if not (0 <= atom.id < 2**63 and 0 <= atom.d <= MAX_LENGTH):
        raise ValueError(f"Cannot send {atom}: id must be from 0 to 2**63 - 1, d up to 2**62.")
    header = bytes((_MAGIC | _VERSION, flags, values.code_byte))
    if indices is None:
        header += varint(atom.id) + varint(atom.d)
    else:
        header += bytes((indices.code_byte,)) + varint(atom.id) + varint(atom.d)
        header += varint(values.values.size)
    return _Plan(header, values, extras, name, indices)


def _smallest_form(atom: Atom) -> tuple[int, ValuePlan, IndexPlan | None]:
    """Return the flags, the values to send, and the indices to list, if any."""
    if atom.values.dtype.char not in "fd" or not atom.values.flags.c_contiguous:
        raise ValueError(f"Cannot send {atom}: values must be contiguous float32 or float64.")
    flags = _FLOAT32 if atom.values.dtype.itemsize == 4 else 0
    if atom.indices is not None:
        if atom.indices.size != atom.values.size:
            raise ValueError(f"Cannot send {atom}: it has {atom.indices.size} indices.")
        flags |= _SPARSE | (_INT64 if atom.indices.dtype.itemsize == 8 else 0)
        indices = plan_indices(atom.indices, atom.d)
        values = plan_values(atom.values, backed=True)
        return flags | _listed_flags(indices), values, indices
    if atom.values.size != atom.d:
        raise ValueError(f"Cannot send {atom}: it has {atom.values.size} values.")
    dense = plan_values(atom.values)
    bits = bit_patterns(atom.values)  # not the values, so that -0.0 is kept
    n = int(np.count_nonzero(bits))
    if n == atom.d or atom.d > UNFOLD_LIMIT:
        return flags, dense, None
    support = np.flatnonzero(bits)
    values, indices = plan_values(atom.values[support]), plan_indices(support, atom.d)
    if 1 + len(varint(n)) + values.size + indices.size < dense.size:
        return flags | _listed_flags(indices), values, indices
    return flags, dense, None


def _listed_flags(indices: IndexPlan) -> int:
    return _LISTED | (_ABSENT if indices.absent else 0)


def _extras_head(extras: ValuePlan) -> bytes:
    return varint(extras.values.size) + bytes((extras.code_byte,))


def _check_start(view: memoryview) -> None:
    if len(view) < _SHORTEST:
        raise WireError(
            f"Truncated message: {len(view)} bytes, an atom takes at least {_SHORTEST}. "
            "Ask the sender for this atom again."
        )
    if view[0] & 0xF0 != _MAGIC:
        raise WireError(f"Not an atom: the message starts with {view[0]:#04x}.")
    if view[0] & 0x0F != _VERSION:
        raise WireError(
            f"Message of version {view[0] & 0x0F}, this node reads version {_VERSION}: "
            "install the same release of atomcast on every node."
        )


def _check_lengths(flags: int, n: int, d: int, message_size: int) -> None:
    """Refuse what the message cannot hold, before anything is allocated."""
    unfolded = n if flags & _SPARSE else d
    if n > d or d > MAX_LENGTH or unfolded > max(UNFOLD_LIMIT, 8 * message_size):
        raise WireError(f"Damaged message: {n} values of {d} in {message_size} bytes.")
    if flags & (_SPARSE | _ABSENT) and not flags & _LISTED:
        raise WireError(f"Damaged message: flags {flags:#04x} need a list of indices.")


def _read_extras(reader: Reader, message_size: int) -> NDArray[Any]:
    n = reader.varint("number of extras")
    if n > max(UNFOLD_LIMIT, 8 * message_size):
        raise WireError(f"Damaged message: {n} extras in {message_size} bytes.")
    value_byte = reader.byte("value code of the extras")
    return read_values(reader, value_byte, n, np.dtype(np.float64))


def _read_name(reader: Reader) -> str:
    data = bytes(reader.take(reader.varint("length of the name"), "name"))
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise WireError(f"Damaged message: the name is not UTF-8 ({error}).") from error


def _with_type(indices: NDArray[np.int64], flags: int) -> NDArray[Any]:
    if flags & _INT64:
        return indices
    if indices.size and indices[-1] >= 2**31:
        raise WireError(f"Damaged message: index {indices[-1]} does not fit in int32.")
    return indices.astype(np.int32)
