"""Shards in fewer digits, for atoms that take fewer bytes.

A node rounds its whole shard when it loads it, not each atom when it is sent: so it scores its
atoms as everybody else would receive them, and the gap is certified for exactly those atoms.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.shards import Shard
from atomcast.messages.atom import Atom
from atomcast.network.wire import codec as wire


def rounded(shard: Shard, cast: wire.Cast | None) -> Shard:
    """The shard with values rounded to `cast`, in their own type; it is copied if there is one."""
    if cast is None:
        return shard
    matrix = shard.matrix
    if sparse.issparse(matrix):
        smaller = matrix.copy()
        smaller.data = _rounded(matrix.data, cast, shard.source)
        smaller.eliminate_zeros()  # what is too small for the type is not sent
    else:
        smaller = _rounded(matrix, cast, shard.source)
    return dataclasses.replace(shard, matrix=smaller)


def _rounded(values: NDArray[Any], cast: wire.Cast, source: str) -> NDArray[Any]:
    try:
        flat = Atom(0, values.size, values.ravel(order="A"))
        smaller = wire.as_sent(flat, cast).values
    except ValueError:
        raise ValueError(
            f"cast={cast!r}: {source} has a value of {np.abs(values).max():.3g}, too large for "
            "this type; rescale the data, or use 'bfloat16' or None"
        ) from None
    in_columns = values.flags.f_contiguous and not values.flags.c_contiguous
    return smaller.reshape(values.shape, order="F" if in_columns else "C")
