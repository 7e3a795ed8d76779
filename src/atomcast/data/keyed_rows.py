"""Rows that several parties bring into one order without showing each other their ids.

Each party hashes its ids with a secret that all parties share and nobody else has (HMAC-SHA256).
The hashes that all of them have, sorted, are the order. Whoever has the secret can try ids one by
one, so that parties learn which of *their guesses* the others have: docs/federated.md says when
that is too much.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from atomcast._replacing import replacing
from atomcast.data.alignment import checked_ids
from atomcast.data.matrices import IntArray

#: How many hexadecimal digits of a hash are kept: 128 bits.
DIGITS = 32
#: The shortest secret, in bytes: a shorter one could be guessed.
SHORTEST = 16


def read_secret(path: Path) -> bytes:
    """The secret in a file, without white space around it."""
    secret = path.read_bytes().strip()
    if len(secret) < SHORTEST:
        raise ValueError(
            f"{path} has a secret of {len(secret)} bytes, which could be guessed: use at least "
            f"{SHORTEST}, e.g. of `openssl rand -hex 32`"
        )
    return secret


def keyed_hashes(row_ids: Iterable[Any], secret: bytes, source: str) -> list[str]:
    """The keyed hash of each row id, in the order of the rows."""
    ids = checked_ids(row_ids, source).tolist()
    return [hmac.new(secret, str(id).encode(), hashlib.sha256).hexdigest()[:DIGITS] for id in ids]


def common_order(parties: Sequence[Sequence[str]]) -> list[str]:
    """The hashes that all parties have, in one order."""
    common = sorted(set(parties[0]).intersection(*parties[1:]))
    if not common:
        raise ValueError(
            "no row is common to all parties: did they use the same secret, and write ids alike?"
        )
    return common


def rows_in_order(hashes: Sequence[str], order: Sequence[str], source: str) -> IntArray:
    """The place of each row of the order among the rows with these hashes."""
    places = {hash: row for row, hash in enumerate(hashes)}
    missing = [hash for hash in order if hash not in places]
    if missing:
        raise ValueError(
            f"{source} lacks {len(missing)} of the {len(order)} rows of the order: was the order "
            "made from this file, and with this secret?"
        )
    return np.array([places[hash] for hash in order], dtype=np.int64)


def order_digest(order: Sequence[str], secret: bytes) -> str:
    """What parties compare before the first round: a keyed hash of all rows in their order."""
    return hmac.new(secret, "\n".join(order).encode(), hashlib.sha256).hexdigest()


def read_hashes(path: Path) -> list[str]:
    """The hashes in a file that `write_hashes` has written."""
    hashes = path.read_text().split()
    if not all(len(one) == DIGITS and not one.strip("0123456789abcdef") for one in hashes):
        raise ValueError(f"{path} is no file of keyed hashes: `atomcast align hash` writes one")
    if len(set(hashes)) < len(hashes):
        raise ValueError(f"{path} has a hash twice: it was altered, or joined from several files")
    return hashes


def write_hashes(path: Path, hashes: Iterable[str]) -> None:
    """Write hashes, a line each."""
    with replacing(path, encoding="ascii") as file:
        file.writelines(f"{hash}\n" for hash in hashes)
