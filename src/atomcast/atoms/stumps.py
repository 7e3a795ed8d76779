"""Decision stumps over a node's features: a family of atoms that is never enumerated.

A stump looks at one feature and says polarity where it is above a threshold, and the opposite
elsewhere; where the feature is missing it says what was best. A feature with m distinct values has
m thresholds: one below all of them, which gives a constant, and one between any two neighbours.
Sorting each feature once makes every later search for the best stump a single pass over the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.explicit import gradient_of
from atomcast.atoms.stump_scan import SortedFeatures, best_splits, sort_dense, sort_sparse
from atomcast.data.shards import Shard
from atomcast.messages.atom import Atom, AtomBatch

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]

#: Up to so many numbers, sparse features are sorted as if they were dense, which needs no numba.
SMALL = 1 << 16


class Stump(NamedTuple):
    """A stump in the form that travels in the extras of an atom.

    Parameters
    ----------
    feature : int
        Global id of the feature.
    threshold : float
    polarity : float
        What it says above the threshold, 1 or -1.
    missing : float
        What it says where the feature is missing, 1 or -1.
    """

    feature: int
    threshold: float
    polarity: float
    missing: float

    def predict(self, column: NDArray[Any]) -> Floats:
        """What the stump says of each value of its feature: 1 or -1, shape (d,)."""
        said = np.where(column > self.threshold, self.polarity, -self.polarity)
        return np.where(np.isnan(column), self.missing, said)


class StumpAtoms:
    """All stumps over some features, of which each feature puts forward its best one.

    Parameters
    ----------
    matrix : array or CSC matrix of shape (d, n)
        The features; NaN means missing.
    ids : array of shape (n,)
        Global ids of the features.
    names : tuple of str, optional
        Names of the features.
    """

    def __init__(
        self, matrix: Any, ids: NDArray[np.int64], names: tuple[str, ...] | None = None
    ) -> None:
        self.matrix = matrix
        self.feature_ids = ids
        self.names = names
        self.d, self.n = matrix.shape
        #: A stump has the id feature * stride + 4 * rank + 2 * (missing as above) + (negative).
        self.stride = family_size(self.d)
        if sparse.issparse(matrix) and self.d * self.n > SMALL:
            self.features: SortedFeatures = sort_sparse(matrix)
        else:
            dense = matrix.toarray() if sparse.issparse(matrix) else matrix
            self.features = sort_dense(dense)
        self._members: NDArray[np.int64] = np.zeros(self.n, dtype=np.int64)

    def scores(self, replica: Replica) -> Floats:
        """The score of the best stump of every feature, shape (n,); `members` says which it is."""
        splits = best_splits(self.features, -gradient_of(replica))
        above = splits.contrast >= 0.0
        missing_above = (splits.missing >= 0.0) == above
        missing_above &= self.features.any_missing
        self._members = 4 * splits.rank + 2 * missing_above + ~above
        return -(np.abs(splits.contrast) + np.abs(splits.missing))

    def members(self) -> NDArray[np.int64]:
        """The place of each feature's best stump within its family, as of the last `scores`."""
        return self._members

    def column(self, j: int) -> Floats:
        """The j-th feature in full."""
        part = self.matrix[:, [j]]
        return np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=float)[:, 0]

    def atom(self, j: int, id: int) -> Atom:
        """The predictions of a stump of the j-th feature, with what it takes to repeat them."""
        code = id % self.stride
        rank, missing_above, negative = code // 4, bool(code & 2), bool(code & 1)
        column = self.column(j)
        missing = np.isnan(column)
        values = np.unique(column[~missing])
        polarity = -1.0 if negative else 1.0
        stump = Stump(int(self.feature_ids[j]), _threshold(values, rank), polarity, 1.0)
        predictions = stump.predict(column)
        if missing.any():
            said = polarity if missing_above else -polarity
            predictions[missing] = said
        else:  # nothing to learn from: side with the majority
            said = 1.0 if predictions.sum() >= 0 else -1.0
        extras = np.array(stump._replace(missing=said), dtype=np.float64)
        name = "" if self.names is None else self.names[j]
        return Atom(id, self.d, predictions, extras=extras, name=name)

    def batch(self, places: NDArray[np.int64], ids: list[int]) -> AtomBatch:
        """The predictions of several stumps, in a byte each."""
        said, extras = np.empty((len(ids), self.d), dtype=np.int8), np.empty((len(ids), 4))
        for k, (j, id) in enumerate(zip(places.tolist(), ids, strict=True)):
            atom = self.atom(j, id)
            said[k], extras[k] = atom.values, atom.extras
        names = None if self.names is None else [self.names[j] for j in places]
        return AtomBatch(ids, self.d, said, names=names, extras=extras)


def _threshold(values: Floats, rank: int) -> float:
    """A number between the distinct values before and after a rank."""
    if rank == 0:
        return -float(np.finfo(np.float64).max)
    low, high = float(values[rank - 1]), float(values[rank])
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


def family_size(d: int) -> int:
    """How many stumps there can be over one feature of d examples."""
    return 4 * (d + 1)


def stump_atoms(shard: Shard) -> StumpAtoms:
    """The stumps over the columns of a node's shard."""
    matrix = shard.matrix.tocsc() if sparse.issparse(shard.matrix) else shard.matrix
    return StumpAtoms(matrix, shard.ids, shard.names)
