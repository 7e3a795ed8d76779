"""Messages as bytes: only those of `kinds` can be said.

A message is a version, the number of its kind, and its fields in order: numbers, texts, bytes and
arrays of numbers. No field names a file, a class or a function. A size is compared with the bytes
that are there before anything is made of them.
"""

from __future__ import annotations

import struct
from typing import Any, get_type_hints

import numpy as np

from atomcast.federated.kinds import KINDS, Floats, Ids, Message

#: The version of all messages; another one is refused.
VERSION = 1
#: The longest text, in bytes.
LONGEST_TEXT = 4096
_HEAD = struct.Struct("<BBI")


class SchemaError(ValueError):
    """Bytes that are no message, or a message with a field that cannot be."""


_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_SCALARS = {int: struct.Struct("<q"), float: struct.Struct("<d"), bool: struct.Struct("<?")}
_ARRAYS = {Floats: np.dtype("<f8"), Ids: np.dtype("<i8")}


_FIELDS = {kind: tuple(get_type_hints(kind).items()) for kind in KINDS}


def encode(message: Message) -> bytes:
    """A message as bytes."""
    parts = []
    for name, form in _FIELDS[type(message)]:
        value = getattr(message, name)
        if form in _SCALARS:
            parts.append(_SCALARS[form].pack(value))
            continue
        if form in _ARRAYS:
            value = np.ascontiguousarray(value, dtype=_ARRAYS[form]).tobytes()
        elif form is str:
            value = value.encode()
            if len(value) > LONGEST_TEXT:
                raise SchemaError(f"{name} has {len(value)} bytes, at most {LONGEST_TEXT}")
        parts += [len(value).to_bytes(4, "little"), value]
    body = b"".join(parts)
    return _HEAD.pack(VERSION, _NUMBERS[type(message)], len(body)) + body


def decode(content: bytes) -> Message:
    """The message that these bytes are, all of them; SchemaError if they are none."""
    if len(content) < _HEAD.size:
        raise SchemaError(f"a message of {len(content)} bytes is too short to be one")
    version, number, size = _HEAD.unpack_from(content)
    if version != VERSION:
        raise SchemaError(
            f"a message of version {version}, but this party speaks version {VERSION}: use the "
            "same version of atomcast everywhere"
        )
    if number >= len(KINDS) or size != len(content) - _HEAD.size:
        raise SchemaError(f"a message of kind {number} and {size} bytes cannot be")
    kind, at, values = KINDS[number], _HEAD.size, {}
    for name, form in _FIELDS[kind]:
        values[name], at = _field(content, at, form, f"{kind.__name__}.{name}")
    if at != len(content):
        raise SchemaError(f"{kind.__name__} has {len(content) - at} bytes too many")
    return kind(**values)


def _field(content: bytes, at: int, form: Any, name: str) -> tuple[Any, int]:
    """One field, and where the next begins."""
    size = _SCALARS[form].size if form in _SCALARS else 4
    if len(content) - at < size:
        raise SchemaError(f"{name} is cut off")
    if form is bool:
        if content[at] > 1:
            raise SchemaError(f"{name} is neither true nor false")
        return bool(content[at]), at + 1
    if form in _SCALARS:
        return _SCALARS[form].unpack_from(content, at)[0], at + size
    length, at = int.from_bytes(content[at : at + 4], "little"), at + 4
    if length > len(content) - at:
        raise SchemaError(f"{name} claims {length} bytes, of which {len(content) - at} are there")
    piece, at = content[at : at + length], at + length
    if form in _ARRAYS:
        if length % 8:
            raise SchemaError(f"{name} is no array of numbers")
        return np.frombuffer(piece, dtype=_ARRAYS[form]), at
    if form is bytes:
        return piece, at
    try:
        if length <= LONGEST_TEXT:
            return piece.decode(), at
    except UnicodeDecodeError:
        pass
    raise SchemaError(f"{name} is no text of up to {LONGEST_TEXT} bytes")
