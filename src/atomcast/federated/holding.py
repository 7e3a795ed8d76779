"""What a node holds under an alias: features that may be scored, of rows in the agreed order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from atomcast.data.keyed_rows import (
    keyed_hashes,
    order_digest,
    read_hashes,
    read_secret,
    rows_in_order,
)
from atomcast.data.matrices import Matrix, oriented, ready, take
from atomcast.data.parts import Part
from atomcast.data.readers import read_part
from atomcast.data.shards import Shard
from atomcast.federated.policy import DataSource, Policy
from atomcast.storage.fingerprint import shard_fingerprint

#: The longest name of a feature.
LONGEST_NAME = 200


def plain_name(name: str, features: int = 1) -> bool:
    """Whether others will take this as the name of features: short, and seen as it is."""
    return len(name) + 2 <= (LONGEST_NAME + 2) * features and name.isprintable()


@dataclass(frozen=True, eq=False)
class Holding:
    """The usable part of a local file.

    Parameters
    ----------
    matrix : array or scipy sparse matrix of shape (rows, features)
    names : tuple of str or None
        The names that the file has.
    labels : tuple of str
        What policy and reports call features: names, or numbers of columns of the file.
    order : str
        The keyed hash of the order of rows; "" if there is no secret.
    withheld : dict of str to str
        Why features of the file are left out, by name.
    """

    matrix: Matrix
    names: tuple[str, ...] | None
    labels: tuple[str, ...]
    order: str
    withheld: dict[str, str]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.matrix.shape[0])

    @property
    def features(self) -> int:
        """How many features may be scored."""
        return int(self.matrix.shape[1])

    @cached_property
    def digest(self) -> str:
        """What tells these features from others: never told, for guesses could be compared."""
        values = shard_fingerprint(self.shard(0, ""), 1)
        about = json.dumps([self.labels, self.rows, self.order, values])
        return hashlib.sha256(about.encode()).hexdigest()

    @property
    def people(self) -> str:
        """What tells these rows, in their order, from others."""
        return f"{self.rows} rows {self.order}".strip()

    def name(self, feature: int) -> str:
        """What reports call a feature."""
        return self.labels[feature]

    def shard(self, start: int, source: str) -> Shard:
        """The features with global ids from `start` on."""
        ids = start + np.arange(self.features, dtype=np.int64)
        return Shard(self.matrix, ids, self.names, source, origin=start)


def load_holding(source: DataSource, policy: Policy, like: DataSource | None = None) -> Holding:
    """Read a file, and keep what the policy permits; columns of new data may be of few rows.

    It is prepared as its source says, or as `like` was.
    """
    part, columns = _prepared(source, like or source)
    matrix, order = _ordered(part, source)
    matrix = ready(oriented(matrix, 1))
    names = part.names or tuple(f"column {j}" for j in range(matrix.shape[1]))
    for name in names:
        if not plain_name(name):
            raise ValueError(
                f"{source.path} has a column {name[:LONGEST_NAME]!r}: names of features that may "
                f"leave have at most {LONGEST_NAME} characters that can be printed; rename it"
            )
    pairs = zip(names, columns or names, strict=True)
    withheld = {name: "not allowed" for name, column in pairs if not policy.permits(name, column)}
    for j in _rare(matrix, names, columns or names, policy) if not source.new else ():
        withheld.setdefault(names[j], f"a value occurs fewer than {policy.min_count} times")
    kept = np.array([j for j, name in enumerate(names) if name not in withheld], dtype=np.int64)
    if len(kept) < len(names):
        matrix = take(matrix, kept, 1)
    labels = tuple(names[j] for j in kept)
    return Holding(matrix, None if part.names is None else labels, labels, order, withheld)


def _rare(
    matrix: Matrix, names: Sequence[str], columns: Sequence[str], policy: Policy
) -> Iterator[int]:
    """Features that show rare values, by themselves or as the rest of their category."""
    if not policy.min_count:
        return
    yield from policy.too_rare(matrix)
    made = np.array([name != column for name, column in zip(names, columns, strict=True)])
    for category in dict.fromkeys(np.array(columns)[made].tolist()):
        places = np.flatnonzero(made & (np.array(columns) == category))
        yield from places[policy.too_telling(matrix[:, places])].tolist()


def _prepared(source: DataSource, like: DataSource) -> tuple[Part, tuple[str, ...]]:
    """The numbers of a table, and the columns of the table that they were made of, if they were.

    What it takes to make them is learned from another, if need be.
    """
    if like.prepare is None:
        return read_part(source.path, row_ids=source.row_ids), ()
    part = read_part(source.path, row_ids=source.row_ids, raw=True)
    model = part if like is source else read_part(like.path, row_ids=like.row_ids, raw=True)
    prepared = like.prepare.learned(model.matrix, like.path.name)
    made = Part(prepared.matrix(part.matrix, source.path.name), prepared.names, part.row_ids)
    return made, tuple(column.name for column in prepared.columns for _ in column.names)


def _ordered(part: Part, source: DataSource) -> tuple[Matrix, str]:
    """The matrix with its rows in the agreed order, and the keyed hash of that order."""
    if source.secret is None:
        if source.order is not None:
            raise ValueError(f"{source.path}: an order of rows needs the secret it was made with")
        return part.matrix, ""
    if part.row_ids is None:
        raise ValueError(f"{source.path} has no row ids to put in order: name their column row_ids")
    secret = read_secret(source.secret)
    hashes = keyed_hashes(part.row_ids, secret, source.path.name)
    if source.order is None:
        return part.matrix, order_digest(hashes, secret)
    order = read_hashes(source.order)
    rows = rows_in_order(hashes, order, source.path.name)
    matrix = part.matrix.tocsr()[rows] if hasattr(part.matrix, "tocsr") else part.matrix[rows]
    return matrix, order_digest(order, secret)
