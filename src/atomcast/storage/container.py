"""The container of models and checkpoints: safetensors, a schema version, and a checksum.

Reading one executes nothing: it yields numbers, texts and arrays, and whoever asked decides what
they mean. The checksum finds damage; it is no signature, so a file from a stranger can still hold
any weights it likes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._replacing import replacing

#: The version of the layout that this code writes; that of models whose data has to be prepared,
#: which a program that knows nothing of that must not read; and all that this code reads.
SCHEMA = 2
WITH_PREPARATION = 3
READABLE = (1, 2, WITH_PREPARATION)
#: The key of the safetensors metadata under which the header stands.
KEY = "atomcast"

#: How deep lists and objects in a header may be nested; ours are a few levels deep.
DEEPEST = 50

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds: a header of JSON values, and named arrays."""

    header: dict[str, Any]
    arrays: Arrays


def write_model_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays; an existing file is replaced only once the new one is complete."""
    from safetensors.numpy import save

    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = {"schema": SCHEMA, **header}
    header["digest"] = _digest(header, arrays)
    content = save(arrays, metadata={KEY: _json(header)})
    with replacing(path) as file:
        file.write(content)


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """Read a file written by `write_model_file`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is damaged, of another format, or of another schema version.
    """
    written_by = "atomcast.save_model or atomcast fit --out"
    return parse_model_file(read_content(path, "model"), path, "model", written_by)


def read_content(path: str | os.PathLike[str], what: str) -> bytes:
    """The bytes of a model file, or a FileNotFoundError or ValueError that says what is wrong."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check its name and folder")
    if not path.is_file():
        raise ValueError(f"{path} is not a file: a {what} is a single .safetensors file")
    return path.read_bytes()


def parse_model_file(
    content: bytes, path: str | os.PathLike[str], what: str, written_by: str
) -> ModelFile:
    """The same as `read_model_file` for bytes that were read; `path` is for messages."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = {name: np.array(array) for name, array in load(content).items()}
        length = int.from_bytes(content[:8], "little")
        header = _header(path, json.loads(content[8 : 8 + length]).get("__metadata__"), what)
    except (SafetensorError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{path} is no {what} file, or is damaged ({error}); one is written by {written_by}"
        ) from error
    if header.pop("digest", None) != _digest(header, arrays):
        raise ValueError(
            f"{path} is damaged: its content does not agree with its checksum; "
            "copy it again from where it was made"
        )
    return ModelFile(header, arrays)


def _header(
    path: str | os.PathLike[str], metadata: dict[str, str] | None, what: str
) -> dict[str, Any]:
    """The header, if the metadata of a safetensors file has one that we can read."""
    if not metadata or KEY not in metadata:
        raise ValueError(
            f"{path} is a safetensors file, but no {what} of atomcast: it was written by "
            "another program"
        )
    try:
        header = json.loads(metadata[KEY], parse_constant=_refuse_constant)
        _check_depth(header)
        schema = header["schema"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: its header cannot be read ({error})") from error
    if schema not in READABLE:
        raise ValueError(
            f"{path} has schema version {schema!r}, but this version of atomcast reads "
            f"{', '.join(map(str, READABLE))}: use the version of atomcast that wrote it"
        )
    return dict(header)


def json_object(header: dict[str, Any], key: str) -> dict[str, Any]:
    """The JSON object that a header has under a key."""
    value = header[key]
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be an object with a value for each name, got {value!r:.80}")
    return value


def _check_depth(value: Any) -> None:
    """Refuse what is nested so deeply that whoever walks through it would run out of stack."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [list(item.values()) if isinstance(item, dict) else item for item in level]
        level = [part for item in inner if isinstance(item, list) for part in item]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)


def _digest(header: dict[str, Any], arrays: Arrays) -> str:
    """A checksum over the header and over name, type, shape and bytes of every array."""
    import xxhash

    digest = xxhash.xxh3_128(_json(header).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return str(digest.hexdigest())


def text_array(texts: Iterable[str]) -> NDArray[np.uint8]:
    """Texts as one array of bytes (JSON in UTF-8), since a header of 100,000 names is slow."""
    content = json.dumps([str(text) for text in texts], ensure_ascii=True)
    return np.frombuffer(content.encode("ascii"), dtype=np.uint8)


def texts_of(array: NDArray[Any]) -> list[str]:
    """The texts in an array made by `text_array`."""
    texts = json.loads(array.tobytes())
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a list of texts was expected")
    return texts
