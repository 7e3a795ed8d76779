"""The wire format: what an atom looks like between two nodes.

`decode(encode(atom), atom.d)` is the same atom bit for bit, in whatever form is smallest; the
layout is described in docs/wire-format.md. Rounding, where it is wanted, happens before
(`as_sent`), so that the owner of an atom can use it as everybody else received it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64, xxh3_64_intdigest

from atomcast.messages.atom import MAX_EXTRAS, MAX_LENGTH, NO_EXTRAS, Atom
from atomcast.network.wire.bits import (
    UNFOLD_LIMIT,
    Field,
    Reader,
    WireError,
    plan_indices,
    read_indices,
)
from atomcast.network.wire.values import FLOAT32 as FLOAT32_VALUES
from atomcast.network.wire.values import FLOAT64 as FLOAT64_VALUES
from atomcast.network.wire.values import (
    LITTLE,
    bit_patterns,
    plan_values,
    read_values,
    repeats,
    travels_as_it_is,
    widest,
)

__all__ = ["Cast", "WireError", "as_sent", "decode", "encode", "encoded_size", "varint"]

Cast = Literal["float16", "bfloat16"]

MAGIC = 0xA0  # high half of the first byte; the low half is the version
VERSION = 2
_SHORTEST = 9  # first byte, flags, value byte, id, d, checksum
_CHECKSUM_BYTES = 4

# The flags byte.
SPARSE = 0x01  # the atom holds indices
FLOAT32 = 0x02  # type of the values the atom holds
INT64 = 0x04  # type of the indices the atom holds
LISTED = 0x08  # the message lists indices; a dense atom with many equal values does so too
ABSENT = 0x10  # the indices listed are those without a value
EXTRAS = 0x20
NAME = 0x40
BACKGROUND = 0x80  # a dense atom's value where no index is listed is not 0.0

NOTHING = Field(0, 0, list)
#: Flags, values, how many they are, the background, and indices.
_Form = tuple[int, Field | NDArray[Any], bytes, bytes, Field]
#: What begins the message of an atom that is nothing but values as they are, by their type.
_PLAIN = {
    "d": bytes((MAGIC | VERSION, 0, FLOAT64_VALUES)),
    "f": bytes((MAGIC | VERSION, FLOAT32, FLOAT32_VALUES)),
}
_PLAIN_TYPES = {codes: np.dtype(char) for char, codes in _PLAIN.items()}
_TYPES: dict[int, np.dtype[Any]] = {0: np.dtype(np.float64), FLOAT32: np.dtype(np.float32)}


def encode(atom: Atom, cast: Cast | None = None) -> bytes:
    """Write an atom as bytes, in the smallest form that `decode` turns back into the same atom.

    Parameters
    ----------
    atom : Atom
    cast : {"float16", "bfloat16"}, optional
        Round the values first, to about 3 or 2 decimal digits. The owner must then go on with
        `as_sent(atom, cast)`, or its iterate will differ from everybody else's.

    Raises
    ------
    ValueError
        If the atom is malformed, or has a value too large for `cast`.

    Examples
    --------
    >>> import numpy as np
    >>> atom = Atom(id=7, d=1000, values=np.ones(3), indices=np.array([5, 80, 400]))
    >>> len(encode(atom))
    18
    """
    atom = atom if cast is None else as_sent(atom, cast)
    plain = _plain_head(atom)
    if plain is not None:
        content: Any = atom.values
        hasher = xxh3_64(plain)
        hasher.update(content)
        return b"".join((plain, content, _checksum(hasher.intdigest())))
    head, values, tail, indices = _plan(atom)
    body: Sequence[Any] = values.write() if isinstance(values, Field) else (values,)
    parts = (*body, tail, *indices.write())
    hasher = xxh3_64(head)
    for part in parts:
        hasher.update(part)
    return b"".join((head, *parts, _checksum(hasher.intdigest())))


def encoded_size(atom: Atom, cast: Cast | None = None) -> int:
    """Say how many bytes `encode` would return, without writing them."""
    atom = atom if cast is None else as_sent(atom, cast)
    plain = _plain_head(atom)
    if plain is not None:
        return len(plain) + atom.values.nbytes + _CHECKSUM_BYTES
    head, values, tail, indices = _plan(atom)
    return len(head) + values.nbytes + len(tail) + indices.nbytes + _CHECKSUM_BYTES


def decode(message: bytes | bytearray | memoryview, d: int) -> Atom:
    """Read an atom from the bytes of one message, all of them.

    Parameters
    ----------
    message : bytes-like
    d : int
        The length that the atom must have: no message makes its reader take more memory.

    Returns
    -------
    Atom
        Its arrays are its own: the message may be reused.

    Raises
    ------
    WireError
        If the message is damaged, truncated, too long, of another version, or of another length
        than d.
    """
    view = memoryview(message).cast("B")
    body = _checked_body(view)
    plain = _plain_atom(body, d)
    if plain is not None:
        return plain
    reader = Reader(body)
    _, flags, value_code = reader.take(3, "codes")
    atom_id, length = reader.varint("id"), reader.varint("d")
    if length != d:
        raise WireError(
            f"Atom {atom_id} has length {length}, but d={d} is expected: every node must hold the "
            "same rows, and solve the same problem."
        )
    dtype = _TYPES[flags & FLOAT32]
    n = reader.varint("number of values") if flags & LISTED else d
    _check_lengths(flags, n, d, len(view))

    values = read_values(reader, value_code, n, dtype)
    background = _read_coded(reader, 1, dtype)[0] if flags & BACKGROUND else 0.0
    extras = _read_extras(reader) if flags & EXTRAS else NO_EXTRAS
    name = _read_name(reader) if flags & NAME else ""
    if not flags & LISTED:
        if reader.remaining:
            raise WireError(f"Damaged message: {reader.remaining} bytes left over at the end.")
        return Atom(atom_id, d, values, None, extras, name)
    indices = read_indices(reader, n, d, bool(flags & ABSENT))
    if flags & SPARSE:
        if not flags & INT64:
            if indices.size and indices[-1] >= 2**31:
                raise WireError(f"Damaged message: index {indices[-1]} does not fit in int32.")
            indices = indices.astype(np.int32)
        return Atom(atom_id, d, values, indices, extras, name)
    dense = np.full(d, background, dtype=dtype)
    dense[indices] = values
    return Atom(atom_id, d, dense, None, extras, name)


def as_sent(atom: Atom, cast: Cast | None) -> Atom:
    """Return the atom as its receivers will have it: rounded to `cast`, in its own type.

    Rounding goes to the nearest number, ties to even, and doing it twice changes nothing.
    Extras (a label, a threshold) are never rounded. A value too large for `cast` is a ValueError.
    """
    if cast is None:
        return atom
    with np.errstate(over="ignore"):
        if cast == "float16":
            rounded: NDArray[np.floating[Any]] = atom.values.astype(np.float16)
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


# --- writing: all is decided, and its size known, before anything large is written -----------


def _plain_head(atom: Atom) -> bytes | None:
    """The head of an atom that is nothing but values which travel as they are; else None.

    Most measurements are such: to write and to read them must be quick.
    """
    values, id = atom.values, atom.id
    alone = atom.indices is None and not (atom.name or atom.extras.size)
    if not (alone and 0 <= id < 2**63 and atom.d == values.size <= MAX_LENGTH):
        return None
    codes = _PLAIN.get(values.dtype.char)
    if codes is None or not (values.flags.c_contiguous and travels_as_it_is(values)):
        return None
    return codes + varint(id) + varint(atom.d)


def _plan(atom: Atom) -> tuple[bytes, Field | NDArray[Any], bytes, Field]:
    """Head, values, small fields (background, extras, name) and indices of a message.

    Values that travel as they are, which must be quick, stand for themselves.
    """
    id, d, extras = atom.id, atom.d, atom.extras
    if not (0 <= id < 2**63 and 0 <= d <= MAX_LENGTH):
        raise ValueError(f"Cannot send {atom}: id must be from 0 to 2**63 - 1, d up to 2**62.")
    if extras.size > MAX_EXTRAS:
        raise ValueError(f"Cannot send {extras.size} extras, at most {MAX_EXTRAS}.")
    flags, values, n, tail, indices = _smallest_form(atom)
    if extras.size:
        flags |= EXTRAS
        tail += varint(extras.size) + _coded_extras(extras.tobytes())
    if atom.name:
        flags |= NAME
        name = atom.name.encode("utf-8", "surrogatepass")
        tail += varint(len(name)) + name
    code = values.code if isinstance(values, Field) else widest(values)
    codes = bytes((MAGIC | VERSION, flags, code))
    return codes + varint(id) + varint(d) + n, values, tail, indices


@lru_cache(maxsize=4096)
def varint(number: int) -> bytes:
    """Write one number from 0 to 2**63 - 1 as LEB128: 7 bits a byte, low bits first."""
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)


def _smallest_form(atom: Atom) -> _Form:
    """What is sent of an atom, and what says where that belongs."""
    values, indices, d = atom.values, atom.indices, atom.d
    if values.dtype.char not in "fd" or not values.flags.c_contiguous:
        raise ValueError(f"Cannot send {atom}: values must be contiguous float32 or float64.")
    if values.size != (d if indices is None else indices.size):
        raise ValueError(f"Cannot send {atom}: it has {values.size} values.")
    flags = FLOAT32 if values.itemsize == 4 else 0
    if indices is not None:
        flags |= SPARSE | (INT64 if indices.itemsize == 8 else 0)
        return _listed(flags, values, indices, d)
    if travels_as_it_is(values):
        return flags, values, b"", b"", NOTHING
    varied = not repeats(values)
    dense = flags, plan_values(values, varied), b"", b"", NOTHING
    if varied or d > UNFOLD_LIMIT:
        return dense
    # As the values that differ from a frequent one: few if the data was sparse once, before
    # somebody made it dense, centred it or scaled it.
    bits = bit_patterns(values)
    distinct, counts = np.unique(bits[:: max(1, d // 64)], return_counts=True)
    frequent = distinct[counts.argmax()]
    support = np.flatnonzero(bits != frequent)
    background = _coded(frequent.reshape(1).view(values.dtype)) if frequent else b""
    flags |= BACKGROUND if frequent else 0
    listed = _listed(flags, values[support], support, d, background)
    return min(dense, listed, key=_size)


def _size(form: _Form) -> int:
    _, values, n, background, indices = form
    return values.nbytes + len(n) + len(background) + indices.nbytes


def _listed(
    flags: int, values: NDArray[Any], indices: NDArray[Any], d: int, background: bytes = b""
) -> _Form:
    field, absent = plan_indices(indices, d)
    flags |= LISTED | (ABSENT if absent else 0)
    return flags, plan_values(values), varint(values.size), background, field


def _coded(values: NDArray[Any]) -> bytes:
    """A few values, behind the byte that names their code."""
    field = plan_values(values)
    return b"".join((bytes((field.code,)), *field.write()))


@lru_cache(maxsize=1024)
def _coded_extras(extras: bytes) -> bytes:
    """Cached, because most extras are labels, of which there are few."""
    return _coded(np.frombuffer(extras))


def _checksum(digest: int) -> bytes:
    """The low half of an XXH3 digest: ten times faster than CRC-32 on a long dense atom."""
    return (digest & 0xFFFFFFFF).to_bytes(_CHECKSUM_BYTES, "little")


# --- reading ----------------------------------------------------------------------------------


def _checked_body(view: memoryview) -> memoryview:
    """A message without its checksum, if it is one of this version and undamaged."""
    if len(view) < _SHORTEST:
        raise WireError(
            f"Truncated message: {len(view)} bytes, an atom takes at least {_SHORTEST}. "
            "Ask the sender for this atom again."
        )
    if view[0] & 0xF0 != MAGIC:
        raise WireError(f"Not an atom: the message starts with {view[0]:#04x}.")
    if view[0] & 0x0F != VERSION:
        raise WireError(
            f"Message of version {view[0] & 0x0F}, this node reads version {VERSION}: "
            "install the same release of atomcast on every node."
        )
    body, expected = view[:-_CHECKSUM_BYTES], bytes(view[-_CHECKSUM_BYTES:])
    found = _checksum(xxh3_64_intdigest(body))
    if found != expected:
        raise WireError(
            f"Damaged message: checksum {found.hex()}, expected {expected.hex()}. "
            "Ask the sender for this atom again."
        )
    return body


def _plain_atom(body: memoryview, d: int) -> Atom | None:
    """The atom, if it is nothing but d values as they are; else None.

    Of the head, only the id is read: all else is as `_plain_head` writes it.
    """
    dtype = _PLAIN_TYPES.get(bytes(body[:3])) if LITTLE and d else None
    if dtype is None:
        return None
    length, start = varint(d), len(body) - d * dtype.itemsize
    end = start - len(length)
    if not 3 < end < 13 or body[end:start] != length:
        return None
    id = 0
    for place in range(3, end):
        byte = body[place]
        if (byte >= 0x80) == (place == end - 1):  # the id does not end here
            return None
        id |= (byte & 0x7F) << 7 * (place - 3)
    return Atom(id, d, np.frombuffer(body, dtype, d, start).copy(), None, NO_EXTRAS)


def _check_lengths(flags: int, n: int, d: int, message_size: int) -> None:
    """Refuse what the message cannot hold, before anything is allocated."""
    unfolded = n if flags & SPARSE else d
    if n > d or d > MAX_LENGTH or unfolded > max(UNFOLD_LIMIT, 8 * message_size):
        raise WireError(f"Damaged message: {n} values of {d} in {message_size} bytes.")
    needs_list = flags & (SPARSE | ABSENT | BACKGROUND) and not flags & LISTED
    if needs_list or (flags & SPARSE and flags & BACKGROUND):
        raise WireError(f"Damaged message: flags {flags:#04x} contradict each other.")


def _read_coded(reader: Reader, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    return read_values(reader, reader.take(1, "value code")[0], n, dtype)


def _read_extras(reader: Reader) -> NDArray[Any]:
    n = reader.varint("number of extras")
    if n > MAX_EXTRAS:
        raise WireError(f"Damaged message: {n} extras, at most {MAX_EXTRAS} are sent.")
    return _read_coded(reader, n, np.dtype(np.float64))


def _read_name(reader: Reader) -> str:
    data = bytes(reader.take(reader.varint("length of the name"), "name"))
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise WireError(f"Damaged message: the name is not UTF-8 ({error}).") from error
