"""The wire format: what an atom looks like between two nodes.

`decode(encode(atom), atom.d)` is the same atom bit for bit, in whatever form is smallest; the
layout is described in docs/wire-format.md. Rounding, where it is wanted, happens before
(`as_sent`), so that the owner of an atom can use it as everybody else received it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast.messages.atom import MAX_EXTRAS, MAX_LENGTH, NO_EXTRAS, Atom
from atomcast.network.wire import plan
from atomcast.network.wire.buffer import UNFOLD_LIMIT, Reader, WireError, split_checksum
from atomcast.network.wire.indices import read_indices
from atomcast.network.wire.plain import is_plain, plain_message, plain_size, read_plain
from atomcast.network.wire.plan import plan_message
from atomcast.network.wire.values import read_values

__all__ = ["Cast", "WireError", "as_sent", "decode", "encode", "encoded_size"]

Cast = Literal["float16", "bfloat16"]

_SHORTEST = 9  # first byte, flags, value byte, id, d, checksum


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
    atom = as_sent(atom, cast)
    return plain_message(atom) if is_plain(atom) else plan_message(atom).to_bytes()


def encoded_size(atom: Atom, cast: Cast | None = None) -> int:
    """Say how many bytes `encode` would return, without writing them."""
    atom = as_sent(atom, cast)
    return plain_size(atom) if is_plain(atom) else plan_message(atom).size


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
    _check_start(view)
    body = split_checksum(view)
    plain = read_plain(body, d)
    if plain is not None:
        return plain
    reader = Reader(body)
    reader.byte("version")
    flags = reader.byte("flags")
    value_byte = reader.byte("value code")
    index_byte = reader.byte("index code") if flags & plan.LISTED else 0
    atom_id, length = reader.varint("id"), reader.varint("d")
    if length != d:
        raise WireError(
            f"Atom {atom_id} has length {length}, but d={d} is expected: every node must hold the "
            "same rows, and solve the same problem."
        )
    n = reader.varint("number of values") if flags & plan.LISTED else d
    _check_lengths(flags, n, d, len(view))

    dtype: np.dtype[Any] = np.dtype(np.float32 if flags & plan.FLOAT32 else np.float64)
    values = read_values(reader, value_byte, n, dtype)
    background = _read_background(reader, dtype) if flags & plan.BACKGROUND else 0.0
    extras = _read_extras(reader) if flags & plan.EXTRAS else NO_EXTRAS
    name = _read_name(reader) if flags & plan.NAME else ""
    if not flags & plan.LISTED:
        if reader.remaining:
            raise WireError(f"Damaged message: {reader.remaining} bytes left over at the end.")
        return Atom(atom_id, d, values, None, extras, name)
    indices = read_indices(reader, index_byte, n, d, bool(flags & plan.ABSENT))
    if flags & plan.SPARSE:
        return Atom(atom_id, d, values, _with_type(indices, flags), extras, name)
    dense = np.full(d, background, dtype=dtype)
    dense[indices] = values
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


def _check_start(view: memoryview) -> None:
    if len(view) < _SHORTEST:
        raise WireError(
            f"Truncated message: {len(view)} bytes, an atom takes at least {_SHORTEST}. "
            "Ask the sender for this atom again."
        )
    if view[0] & 0xF0 != plan.MAGIC:
        raise WireError(f"Not an atom: the message starts with {view[0]:#04x}.")
    if view[0] & 0x0F != plan.VERSION:
        raise WireError(
            f"Message of version {view[0] & 0x0F}, this node reads version {plan.VERSION}: "
            "install the same release of atomcast on every node."
        )


def _check_lengths(flags: int, n: int, d: int, message_size: int) -> None:
    """Refuse what the message cannot hold, before anything is allocated."""
    unfolded = n if flags & plan.SPARSE else d
    if n > d or d > MAX_LENGTH or unfolded > max(UNFOLD_LIMIT, 8 * message_size):
        raise WireError(f"Damaged message: {n} values of {d} in {message_size} bytes.")
    is_listed, is_sparse = bool(flags & plan.LISTED), bool(flags & plan.SPARSE)
    needs_list = flags & (plan.SPARSE | plan.ABSENT | plan.BACKGROUND)
    if (needs_list and not is_listed) or (is_sparse and flags & plan.BACKGROUND):
        raise WireError(f"Damaged message: flags {flags:#04x} contradict each other.")


def _read_background(reader: Reader, dtype: np.dtype[Any]) -> Any:
    return read_values(reader, reader.byte("value code of the background"), 1, dtype)[0]


def _read_extras(reader: Reader) -> NDArray[Any]:
    n = reader.varint("number of extras")
    if n > MAX_EXTRAS:
        raise WireError(f"Damaged message: {n} extras, at most {MAX_EXTRAS} are sent.")
    value_byte = reader.byte("value code of the extras")
    return read_values(reader, value_byte, n, np.dtype(np.float64))


def _read_name(reader: Reader) -> str:
    data = bytes(reader.take(reader.varint("length of the name"), "name"))
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise WireError(f"Damaged message: the name is not UTF-8 ({error}).") from error


def _with_type(indices: NDArray[np.int64], flags: int) -> NDArray[Any]:
    if flags & plan.INT64:
        return indices
    if indices.size and indices[-1] >= 2**31:
        raise WireError(f"Damaged message: index {indices[-1]} does not fit in int32.")
    return indices.astype(np.int32)
