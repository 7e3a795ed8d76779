"""Fingerprints: numbers that tell one problem, or one set of atoms, from another.

The fingerprint of data is a sum over its atoms, so that it is the same however the atoms are
spread over nodes, and a node needs only its own. It is exact: no rounding enters it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.storage.facts import Untold, facts

if TYPE_CHECKING:
    from atomcast.data.shards import Shard

Words = NDArray[np.uint64]

#: So many values are looked at together, which bounds the memory that it takes.
PIECE = 1 << 18
_ODD = np.uint64(0x9E3779B97F4A7C15)


def shard_fingerprint(shard: Shard, axis: int) -> int:
    """The sum, modulo 2^64, of a hash of each atom of a shard with its global id.

    Data that is dense on one node and sparse on another, or in single and in double precision,
    has the same fingerprint if its values are the same.

    Parameters
    ----------
    shard : Shard
    axis : {0, 1}
        Whether the atoms are rows (0) or columns (1).
    """
    matrix = shard.matrix if axis == 1 else shard.matrix.T
    hashes = _sparse(matrix.tocsc()) if sparse.issparse(matrix) else _dense(matrix)
    return int(_mixed(hashes + shard.ids.astype(np.uint64) * _ODD + np.uint64(1)).sum())


def data_fingerprint(n: int, parts: Iterable[int]) -> str:
    """The fingerprint of n atoms, from those of the shards that they are in."""
    return f"{n} {sum(parts) % 2**64:016x}"


def _dense(matrix: NDArray[Any]) -> Words:
    """A hash of each column, shape (n,)."""
    d, n = matrix.shape
    result = np.zeros(n, dtype=np.uint64)
    rows = _row_factors(d)[:, None]
    width = max(PIECE // max(d, 1), 1)
    for j in range(0, n, width):
        part = _words(matrix[:, j : j + width])
        result[j : j + width] = (part * rows).sum(axis=0, dtype=np.uint64)
    return result


def _sparse(matrix: sparse.csc_array) -> Words:
    """A hash of each column, shape (n,); what is not stored is zero, and adds nothing."""
    words = _words(matrix.data) * _row_factors(matrix.shape[0])[matrix.indices]
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]


def _words(values: NDArray[Any]) -> Words:
    """The bits of values as float64, well mixed; zero, of either sign, gives zero."""
    return _mixed(np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64))


def _row_factors(d: int) -> Words:
    """An odd factor for each row."""
    return _mixed(np.arange(1, d + 1, dtype=np.uint64) * _ODD) | np.uint64(1)


def _mixed(words: Words) -> Words:
    """A permutation of 64-bit words that keeps zero (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def object_fingerprint(thing: Any) -> str:
    """A hash of what an object of this package means, that is, of its facts.

    Raises
    ------
    ValueError
        If it holds something whose meaning cannot be told, such as an open file.
    """
    import xxhash

    said = sorted(facts(thing, passing="immaterial").items())
    for path, text in said:
        if isinstance(text, Untold):
            where = f" ({path})" if path else ""
            raise ValueError(f"there is no way to tell {text} from another{where}")
    return xxhash.xxh3_128_hexdigest(repr(said).encode())
