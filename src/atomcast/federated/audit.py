"""The audit log of a node: what was asked, answered and refused, a line each, in a chain of hashes.

A line is on the disk before what it tells of leaves the node. Each line has the hash of the one
before, so that none can be altered, left out or put in between without all later hashes changing;
the last hash, the head, is told to the coordinator, so that the end cannot be cut off either.
What a node has used of its budget is counted from these lines: there is no second account.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
#: What the first line refers to.
START = "0" * 64


class TamperedError(ValueError):
    """The log is not what the node has written; the message names the line."""


class AuditLog:
    """The log of one node, which one process at a time may write.

    Parameters
    ----------
    path : path
        Made if it does not exist. A last line that was cut off by a power failure is dropped: what
        it was to tell of has not left.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = open(path, "a+b")  # noqa: SIM115
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(
                f"{path} is in use by another process: is this node running already?"
            ) from None
        self._drop_unfinished()
        self.entries = list(read_log(path))
        self.head = self.entries[-1]["hash"] if self.entries else START
        self._broken = False

    def _drop_unfinished(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._file.truncate(whole)

    def write(self, event: str, durable: bool = True, **what: Any) -> Entry:
        """Add a line; if it is to be `durable`, it is on the disk when this returns."""
        if self._broken:
            raise OSError("a line of the audit log could not be written: restart the node")
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        entry = {"line": len(self.entries) + 1, "time": now, "event": event, **what}
        entry["before"] = self.head
        entry["hash"] = _hash(entry)
        self._broken = True  # until the line is there: what follows a half line would look tampered
        self._file.write(_line(entry) + b"\n")
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())
        self._broken = False
        self.head = entry["hash"]
        self.entries.append(entry)
        return entry

    def close(self) -> None:
        """Let another process write."""
        self._file.close()


def read_log(path: Path) -> Iterator[Entry]:
    """The entries of a log; TamperedError at the first that does not fit into the chain."""
    before = START
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                told = entry.pop("hash")
                fits = entry["before"] == before and entry["line"] == number
                fits = fits and _hash(entry) == told
                fits = fits and line == _line({**entry, "hash": told}) + b"\n"
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                fits = False
            if not fits:
                raise TamperedError(
                    f"{path}: line {number} is not what the node has written, or a line before it "
                    "is missing: the log was altered from there on"
                )
            before = told
            yield {**entry, "hash": told}


def check_head(entries: list[Entry], head: str, path: Path) -> None:
    """Raise TamperedError unless the log once had this head."""
    if head not in {START, *(entry["hash"] for entry in entries)}:
        raise TamperedError(
            f"{path} never had the head {head}: lines were cut off its end, or it is another log"
        )


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, sort_keys=True, ensure_ascii=True).encode()


def _hash(entry: Entry) -> str:
    return hashlib.sha256(_line(entry)).hexdigest()
