"""`Shards.split`: one matrix that is all here, cut up among nodes."""

from __future__ import annotations

import copy
import mmap
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from atomcast._checks import check_count
from atomcast.data._blocks import MatrixShards, contiguous_bounds
from atomcast.data.matrices import (
    IntArray,
    Matrix,
    as_matrix,
    cut,
    oriented,
    ready,
    ready_or_falling,
)
from atomcast.data.matrices import take as take_atoms
from atomcast.data.party_names import checked_party_names
from atomcast.data.preparing import Preparing
from atomcast.data.shards import Shard, Shards
from atomcast.data.tables import is_table


class SplitShards(MatrixShards):
    """Cut a matrix that is all here into one shard per node.

    Parameters
    ----------
    X : array-like, scipy sparse or DataFrame of shape (rows, columns)
        Kept, not copied. Sparse data is cut from CSC if the atoms are columns and from CSR
        if they are rows; if `X` is in another layout, one converted copy is made (once per
        Shards object). float32 and float64 are kept; booleans and integers become float64
        shard by shard.
    nodes : int
        Number of nodes; more nodes than atoms leaves some shards empty.
    by : {"random", "contiguous"} or sequence of int
        "random": every atom goes to a node uniformly at random. "contiguous": blocks of
        nearly equal size, which are views of `X`. Sizes, one per node: blocks of these sizes.
    random_state : int, None, numpy Generator, SeedSequence or RandomState
        Seed of by="random"; the assignment stays the same in copies of this object.
    names : iterable of str, optional
        Names of the columns; default: the columns of a DataFrame, else none.
    party_names : iterable of str, optional
        Names of the nodes, for accounts and pictures; default: 0, 1, 2, ...
    prepare : Preparation, optional
        How to make numbers of a DataFrame before it is cut up.

    Examples
    --------
    >>> import numpy as np
    >>> from atomcast.data import Shards
    >>> shards = Shards.split(np.eye(5), nodes=2, by="contiguous")
    >>> shards.shard(1).ids
    array([3, 4])
    """

    kind = "split"
    #: Whether somebody has looked for NaN and infinity in the matrix, and found none.
    finite = False
    #: The rows that count where columns are atoms; None: all.
    kept: IntArray | None = None

    def __init__(
        self,
        X: Any,
        nodes: int,
        *,
        by: str | Sequence[int] = "random",
        random_state: Any = 0,
        names: Iterable[str] | None = None,
        party_names: Iterable[str] | None = None,
        prepare: Preparing | None = None,
    ) -> None:
        self._index = getattr(X, "index", None) if is_table(X) else None
        super().__init__(X, names, "X", prepare)
        self._nodes = check_count("nodes", nodes, "that hold the atoms")
        self._party_names = (
            None if party_names is None else checked_party_names(party_names, self._nodes)
        )
        self._by = by if isinstance(by, str) else _checked_sizes(by, self._nodes, self._matrix)
        if isinstance(by, str) and by not in ("random", "contiguous"):
            raise ValueError(
                f'by={by!r} is not accepted: use "random", "contiguous" or a sequence of sizes, '
                "one per node"
            )
        self._seed = _fixed_seed(random_state)
        self._oriented: dict[int, Matrix] = {}
        self._assignments: dict[int, IntArray] = {}

    @classmethod
    def of_checked(cls, X: Matrix, nodes: int, names: Iterable[str] | None = None) -> SplitShards:
        """The same of a matrix and names that are known to be right: nothing is checked again.

        Estimators have looked at every index of a sparse matrix, which takes as long as a step.
        """
        shards = cls.__new__(cls)
        shards._matrix, shards._nodes = X, nodes
        shards._names = None if names is None else tuple(map(str, names))
        shards._prepared = shards._party_names = shards._index = None
        shards._by, shards._seed = "random", 0
        shards._oriented, shards._assignments = {}, {}
        return shards

    def __repr__(self) -> str:
        rows, columns = self._matrix.shape
        return f"Shards.split(X of {rows} x {columns}, nodes={self._nodes}, by={self._by!r})"

    @property
    def nodes(self) -> int:
        return self._nodes

    @property
    def party_names(self) -> tuple[str, ...] | None:
        return self._party_names

    @property
    def matrix(self) -> Matrix:
        return self._matrix

    def assignment(self, axis: int = 1) -> IntArray:
        n = self.count(axis)
        if axis not in self._assignments:
            if self._nodes == 1:
                owners = np.zeros(n, dtype=np.int64)
            elif self._by == "random":
                owners = np.random.default_rng(self._seed).integers(self._nodes, size=n)
            else:
                owners = super().assignment(axis)
            owners.flags.writeable = False  # it is handed out, and every shard depends on it
            self._assignments[axis] = owners
        return self._assignments[axis]

    def shard(self, i: int, axis: int = 1, falling: bool = False) -> Shard:
        """What node `i` holds, if that is so wished with sparse indices that fall as they are."""
        self._check_node(i)
        ids = self._ids(i, axis)
        X = self.oriented(axis)
        if self._nodes == 1 or len(ids) == 0:
            block = cut(X, 0, len(ids), axis)
        elif ids[-1] - ids[0] + 1 == len(ids):
            block = cut(X, int(ids[0]), int(ids[-1]) + 1, axis)
        else:
            block = take_atoms(X, ids, axis)
        names = None
        if self._names is not None and axis == 1:
            names = tuple(self._names[j] for j in ids)
        entries = self._names if axis == 0 else None
        source = f"shard {i}"
        kept, falls = self.kept if axis == 1 else None, False
        if falling and kept is None:
            block, falls = ready_or_falling(block)
        else:
            block = ready(block)
        return Shard(
            block,
            ids,
            names,
            source,
            entry_names=entries,
            finite=self.finite,
            kept=kept,
            falls=falls,
        )

    def oriented(self, axis: int) -> Matrix:
        """The matrix in the layout in which atoms can be cut out; converted once."""
        if axis not in self._oriented:
            self._oriented[axis] = oriented(self._matrix, axis)
        return self._oriented[axis]

    def _held(self, i: int) -> str:
        words = {1: "columns", 0: "rows"}
        fits = [
            axis for axis in words if isinstance(self._by, str) or sum(self._by) == self.count(axis)
        ]
        return ", or ".join(f"{len(self._ids(i, axis)):,} {words[axis]}" for axis in fits)

    def row_labels(self, name: Any, axis: int = 1) -> Any:
        return self._index

    def _ids(self, i: int, axis: int) -> IntArray:
        if self._by == "random" and self._nodes > 1:
            return np.flatnonzero(self.assignment(axis) == i)
        if self._nodes == 1:
            return np.arange(self.count(axis))
        start, stop = self._bounds(axis)[i : i + 2]
        return np.arange(start, stop, dtype=np.int64)

    def _bounds(self, axis: int) -> IntArray:
        n = self.count(axis)
        if isinstance(self._by, str):
            # As numpy.array_split: the first n % nodes blocks have one atom more.
            small, larger = divmod(n, self._nodes)
            return contiguous_bounds([small + 1] * larger + [small] * (self._nodes - larger))
        bounds = contiguous_bounds([int(size) for size in self._by])
        if bounds[-1] != n:
            word = "columns" if axis == 1 else "rows"
            raise ValueError(
                f"by={list(self._by)} adds up to {bounds[-1]}, but X has {n} {word}, which are "
                f"the atoms here (axis={axis}): give sizes, one per node, that add up to {n}"
            )
        return bounds

    def with_matrix(self, X: Matrix) -> SplitShards:
        """The same cut of another matrix with as many columns."""
        other = copy.copy(self)  # by `__getstate__`, without what was cached of this matrix
        other._matrix, other.finite = as_matrix(X), False
        return other

    @property
    def cuts_rows(self) -> bool:
        """Whether sizes were given that only rows add up to."""
        return not isinstance(self._by, str) and sum(self._by) != self._matrix.shape[1]

    def with_rows(self, rows: IntArray) -> SplitShards:
        """The same cut of some of the rows."""
        matrix = self._matrix
        if sparse.issparse(matrix):  # not every layout gives out rows
            matrix = matrix.tocsr()
        return self.with_matrix(matrix[rows])

    def only_rows(self, rows: IntArray) -> SplitShards:
        """The same columns, of which only these rows, rising, count; they are not copied."""
        other = self.with_matrix(self.oriented(1))
        other.finite, other.kept = self.finite, rows
        return other

    def rows(self, axis: int = 1) -> int:
        return super().rows(axis) if self.kept is None or axis == 0 else len(self.kept)

    def __getstate__(self) -> dict[str, Any]:
        # Caches are left out: they can be made again, and the converted matrix is as large as X.
        # So is the index, against which the target was checked before anything was sent.
        state = {**self.__dict__, "_oriented": {}, "_assignments": {}, "_index": None}
        state["_matrix"] = _map_reference(self._matrix) or self._matrix
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        matrix = state["_matrix"]
        if isinstance(matrix, dict) and not sparse.issparse(matrix):  # as DOK matrices are, too
            state["_matrix"] = np.memmap(**matrix)
        self.__dict__.update(state)


def _checked_sizes(sizes: Sequence[int], nodes: int, X: Matrix) -> tuple[int, ...]:
    try:
        result = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise TypeError(
            f'by={sizes!r} is not accepted: use "random", "contiguous" or a sequence of whole '
            "numbers, one per node"
        ) from None
    if len(result) != nodes:
        raise ValueError(
            f"by has {len(result)} sizes, but nodes={nodes}: give one size per node "
            "(0 for an empty shard)"
        )
    if min(result) < 0:
        raise ValueError(f"by={list(result)} has a negative size: sizes are 0 or more")
    if sum(result) not in X.shape:
        raise ValueError(
            f"by={list(result)} adds up to {sum(result)}, but X has {X.shape[1]} columns and "
            f"{X.shape[0]} rows: sizes must add up to the number of atoms"
        )
    return result


def _fixed_seed(random_state: Any) -> Any:
    """Return a seed that gives the same assignment whenever, and in whichever copy, it is used."""
    if type(random_state) is int and random_state >= 0:
        return random_state
    if random_state is None:
        return np.random.SeedSequence().entropy
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    try:
        np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={random_state!r} is not accepted ({error}): give a whole number, "
            "None or a numpy Generator"
        ) from None
    return random_state


def _map_reference(X: Matrix) -> dict[str, Any] | None:
    """Return how to open a memory-mapped file again, or None if `X` is not exactly one.

    Pickled by value, a memory-map would travel as a copy of the whole file. Copy-on-write maps
    travel by value because the file lacks their changes.
    """
    if not isinstance(X, np.memmap) or not isinstance(X.base, mmap.mmap) or X.mode == "c":
        return None
    order = "C" if X.flags.c_contiguous else "F"
    return {
        "filename": X.filename,
        "dtype": X.dtype,
        "mode": "r",
        "offset": X.offset,
        "shape": X.shape,
        "order": order,
    }


Shards.split = SplitShards
