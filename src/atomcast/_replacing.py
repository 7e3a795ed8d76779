"""Files that are written in one go: whoever reads one sees the old content or the new."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str], **text: Any) -> Iterator[IO[Any]]:
    """A file to write to, which takes the place of `path` once it is complete.

    The unfinished file stands in the same folder under a name that nobody can foresee, and must
    not exist yet: in a folder that others may write to, no link of theirs leads us elsewhere.

    Parameters
    ----------
    path : path
        A pipe or a device is written to as it is.
    **text
        `encoding` and `newline` of a text file; without, it is one of bytes.
    """
    target, letter = Path(path), "" if text else "b"
    if target.exists() and not target.is_file():
        with open(target, "w" + letter, **text) as file:
            yield file
        return
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    created = open(unfinished, "x" + letter, **text)  # noqa: SIM115
    try:
        with created as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave a name without content
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
