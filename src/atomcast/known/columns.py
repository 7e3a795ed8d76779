"""Growing stores of columns: the atoms that everybody knows, ready for fast products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import product
from atomcast.known.sparse_products import Compressed, crossed, dots, mixed, some, spread
from atomcast.messages.atom import Atom, AtomBatch

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Chosen = Positions | slice

#: Sparse columns with a larger share of nonzeros than this are multiplied with each other as dense
#: ones, if these take no more than so many values.
THIN, DENSE = 0.15, 1 << 21
#: So many rows of dense columns are scaled at a time, and so many columns squared.
PART, FEW = 1024, 16
#: Columns of fewer values are not looked at for signs: they take little memory, and less time.
LONG = 1 << 14
#: A dense buffer of at least so many values has room for so many: what is not used takes no memory.
#: A larger one is not copied where it can grow in place. From 32 MB on, the C library would map all
#: buffers anew, whose pages take longer to come by than columns to copy.
LARGE, ROOM = 1 << 17, 4_000_000


class Columns(Protocol):
    """K columns of length d, in order of arrival; appending never moves what is there."""

    d: int
    count: int

    def append(self, atoms: Sequence[Atom]) -> None:
        """Add atoms as further columns."""
        ...

    def combine(self, weights: Floats) -> Floats:
        """The weighted sum of the columns, shape (d,), or m of them, shape (m, d)."""
        ...

    def scores(self, vector: Floats) -> Floats:
        """The inner product of every column with a vector, shape (count,)."""
        ...

    def measured(self, start: int, stop: int, vector: Floats) -> tuple[Floats, Floats]:
        """The products of columns start to stop with a vector, and the norms of these columns."""
        ...

    def measured_one(self, position: int, vector: Floats) -> tuple[float, float]:
        """The same of a single column."""
        ...

    def products(self, block: Floats) -> Floats:
        """The inner products of every column with the columns of a block, shape (count, m)."""
        ...

    def among(self, start: int) -> Floats:
        """The inner products of every column with those from start on, shape (count, m)."""
        ...

    def block(self, start: int, stop: int) -> Floats:
        """Columns start to stop as a dense array, shape (d, stop - start)."""
        ...

    def column(self, position: int) -> Floats:
        """A single column as a dense array, shape (d,), not to be changed."""
        ...

    def cross(self, left: Chosen, right: Chosen, diagonal: Floats) -> Floats:
        """The products a_j' diag(diagonal) a_k of some columns with others, shape (l, r).

        A diagonal of one number is constant.
        """
        ...

    def scaled_products(self, chosen: Positions, scales: Floats, which: Positions) -> Floats:
        """The products of m columns, each times a row of scales, with each other, shape (m, m)."""
        ...

    def lengths(self, diagonal: Floats, start: int = 0) -> Floats:
        """The product a_j' diag(diagonal) a_j of each column from start on with itself."""
        ...

    @property
    def compiled(self) -> Any:
        """The arrays that compiled passes take."""
        ...

    def thin(self, count: int) -> bool:
        """Whether products with so many columns should look at nonzeros alone."""
        ...

    @property
    def stored(self) -> int:
        """How many values are stored."""
        ...


def grown(buffer: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    """A buffer with room for `needed` entries: the same one, or a copy at least twice as large."""
    if needed <= len(buffer):
        return buffer
    larger = np.empty((max(needed, 2 * len(buffer)), *buffer.shape[1:]), dtype=buffer.dtype)
    larger[:used] = buffer[:used]
    return larger


class DenseColumns:
    """Columns stored densely in float64, one after the other in memory."""

    #: Whether there is nothing but 1 and -1 in them.
    signs: ClassVar[bool] = False

    def __init__(self, d: int) -> None:
        self.d = d
        self.count = 0
        self._rows = np.empty((4, d))  # row k of the buffer is column k, contiguous

    def append(self, atoms: Sequence[Atom]) -> None:
        """Add atoms as further columns."""
        self._make_room(self.count + len(atoms))
        if type(atoms) is AtomBatch and atoms.indices is None:
            self._rows[self.count : self.count + len(atoms)] = atoms.values
            self.count += len(atoms)
            return
        for atom in atoms:
            self._rows[self.count] = atom.values if atom.indices is None else atom.dense()
            self.count += 1

    def _make_room(self, needed: int) -> None:
        """Let the buffer grow where it is, if nobody looks at it: a copy takes as much again."""
        if needed <= len(self._rows):
            return
        if needed * self.d < LARGE:
            self._rows = grown(self._rows, self.count, needed)
        elif needed * self.d < ROOM:
            self._rows = grown(self._rows, self.count, ROOM // self.d)
        else:
            room = max(needed, len(self._rows) + len(self._rows) // 8)
            try:
                self._rows.resize((room, self.d))
            except ValueError:  # somebody does
                self._rows = grown(self._rows, self.count, needed)

    def combine(self, weights: Floats) -> Floats:
        """The weighted sum of the columns, shape (d,), or m of them, shape (m, d)."""
        return weights @ self._rows[: self.count]

    def scores(self, vector: Floats) -> Floats:
        """The inner product of every column with a vector, shape (count,)."""
        return self._rows[: self.count] @ vector

    def measured(self, start: int, stop: int, vector: Floats) -> tuple[Floats, Floats]:
        """The products of columns start to stop with a vector, and the norms of these columns."""
        rows = self._rows[start:stop]
        return rows @ vector, np.sqrt(np.vecdot(rows, rows))

    def measured_one(self, position: int, vector: Floats) -> tuple[float, float]:
        """The same of a single column."""
        row = self._rows[position]
        return float(row.dot(vector)), math.sqrt(row.dot(row))  # `@` takes longer of one row

    def products(self, block: Floats) -> Floats:
        """The inner products of every column with the columns of a block, shape (count, m)."""
        return product(self._rows[: self.count], block)

    def among(self, start: int) -> Floats:
        """The inner products of every column with those from start on, shape (count, m)."""
        new = self._rows[start : self.count]
        result = np.empty((self.count, len(new)))
        result[:start] = product(self._rows[:start], new.T)
        result[start:] = product(new, new.T)  # which takes half the operations of any other
        return result

    def block(self, start: int, stop: int) -> Floats:
        """Columns start to stop as a dense array, shape (d, stop - start)."""
        return self._rows[start:stop].T

    def column(self, position: int) -> Floats:
        """A single column as a dense array, shape (d,), not to be changed."""
        return self._rows[position]

    def atoms(self) -> list[Atom]:
        """The columns as atoms again; their ids are their positions."""
        return [Atom(k, self.d, self.column(k)) for k in range(self.count)]

    def lengths(self, diagonal: Floats, start: int = 0) -> Floats:
        """The product a_j' diag(diagonal) a_j of each column from start on with itself."""
        squares = [
            self._rows[k : min(k + FEW, self.count)] ** 2 @ diagonal  # which stay in the cache
            for k in range(start, self.count, FEW)
        ]
        return np.concatenate([np.zeros(0), *squares])

    @property
    def compiled(self) -> Floats:
        """The columns as compiled passes take them: rows of an array."""
        return self._rows

    def thin(self, count: int) -> bool:
        """There are no zeros to leave out."""
        return False

    @property
    def stored(self) -> int:
        """How many values are stored."""
        return self.count * self.d

    def cross(self, left: Chosen, right: Chosen, diagonal: Floats) -> Floats:
        """The products a_j' diag(diagonal) a_k of some columns with others, shape (l, r)."""
        rows = self._rows[: self.count]
        if left is right:
            return _squared(rows, left, np.sqrt(diagonal))
        return (rows[left] * diagonal) @ rows[right].T

    def scaled_products(self, chosen: Positions, scales: Floats, which: Positions) -> Floats:
        """The products of m columns, each times a row of scales, with each other, shape (m, m)."""
        return _squared(self._rows, chosen, scales, which)


class SparseColumns:
    """Columns stored by their nonzeros (compressed sparse columns)."""

    def __init__(self, d: int) -> None:
        self.d = d
        self.count = 0
        self._data = np.empty(256)
        self._indices: NDArray[Any] = np.empty(256, dtype=np.int32 if d < 2**31 else np.int64)
        self._starts = np.zeros(5, dtype=np.int64)
        self._parts: Compressed | None = None

    def append(self, atoms: Sequence[Atom]) -> None:
        """Add atoms as further columns."""
        if not atoms:
            return
        used, count = int(self._starts[self.count]), self.count + len(atoms)
        indices: NDArray[Any]
        if type(atoms) is AtomBatch:
            assert atoms.starts is not None
            values, indices = atoms.values, np.asarray(atoms.indices)
            stops = used + atoms.starts[1:]
        else:
            values = np.concatenate([atom.values for atom in atoms])
            indices = np.concatenate([np.asarray(atom.indices) for atom in atoms])
            stops = used + np.cumsum([atom.values.size for atom in atoms])
        needed = int(stops[-1])
        self._starts = grown(self._starts, self.count + 1, count + 1)
        if not used and self._can_keep(values, indices):
            self._data, self._indices = values, indices
        else:
            self._data = grown(self._data, used, needed)
            self._indices = grown(self._indices, used, needed)
            self._data[used:needed], self._indices[used:needed] = values, indices
        self._starts[self.count + 1 : count + 1] = stops
        self.count = count
        self._parts = None

    def _can_keep(self, values: NDArray[Any], indices: NDArray[Any]) -> bool:
        """Whether arrays are just what buffers of ours would be: the first need not be copied."""
        alike = values.dtype == self._data.dtype and indices.dtype == self._indices.dtype
        return alike and bool(values.flags.carray and indices.flags.carray)

    @property
    def _used(self) -> Compressed:
        """Values, places and starts, as far as they are in use, as SciPy wants them."""
        if self._parts is None:
            nnz = int(self._starts[self.count])
            starts = self._starts[: self.count + 1].astype(self._indices.dtype)
            self._parts = self._data[:nnz], self._indices[:nnz], starts
        return self._parts

    def _matrix(self) -> sparse.csc_array:
        """The columns as a matrix of SciPy's, sharing the buffers."""
        return sparse.csc_array(self._used, shape=(self.d, self.count), copy=False)

    def combine(self, weights: Floats) -> Floats:
        """The weighted sum of the columns, shape (d,), or m of them, shape (m, d)."""
        if weights.ndim == 1:
            return mixed(*self._used, np.ascontiguousarray(weights), self.d)
        return np.array([self.combine(one) for one in weights])  # faster than all at once

    def scores(self, vector: Floats) -> Floats:
        """The inner product of every column with a vector, shape (count,)."""
        return dots(*self._used, np.ascontiguousarray(vector))

    def measured(self, start: int, stop: int, vector: Floats) -> tuple[Floats, Floats]:
        """The products of columns start to stop with a vector, and the norms of these columns."""
        cuts = self._starts[start : stop + 1]
        part = slice(cuts[0], cuts[-1])
        values, known = self._data[part], vector[self._indices[part]]
        return _sums(values * known, cuts - cuts[0]), np.sqrt(
            _sums(values * values, cuts - cuts[0])
        )

    def products(self, block: Floats) -> Floats:
        """The inner products of every column with the columns of a block, shape (count, m)."""
        result: Floats = self._matrix().T @ block
        return result

    def among(self, start: int) -> Floats:
        """The inner products of every column with those from start on, shape (count, m)."""
        return self.products(self.block(start, self.count))

    def lengths(self, diagonal: Floats, start: int = 0) -> Floats:
        """The product a_j' diag(diagonal) a_j of each column from start on with itself."""
        cuts = self._starts[start : self.count + 1]
        part = slice(cuts[0], cuts[-1])
        return _sums(self._data[part] ** 2 * diagonal[self._indices[part]], cuts - cuts[0])

    def thin(self, count: int) -> bool:
        """Whether products with so many columns should look at nonzeros alone."""
        return self.stored < THIN * self.d * self.count or count == self.count

    @property
    def compiled(self) -> tuple[Floats, NDArray[Any], NDArray[np.int64]]:
        """The columns as compiled passes take them: values, places, starts."""
        return self._data, self._indices, self._starts

    @property
    def stored(self) -> int:
        """How many values are stored."""
        return int(self._starts[self.count])

    def block(self, start: int, stop: int) -> Floats:
        """Columns start to stop as a dense array, shape (d, stop - start)."""
        cuts, width = self._starts[start : stop + 1], stop - start
        part, dense = slice(cuts[0], cuts[-1]), np.zeros(self.d * width)
        dense[self._indices[part] * np.int64(width) + np.arange(width).repeat(np.diff(cuts))] = (
            self._data[part]
        )
        return dense.reshape(self.d, width)

    def column(self, position: int) -> Floats:
        """A single column as a dense array, shape (d,), not to be changed."""
        return self.block(position, position + 1)[:, 0]

    def cross(self, left: Chosen, right: Chosen, diagonal: Floats) -> Floats:
        """The products a_j' diag(diagonal) a_k of some columns with others, shape (l, r)."""
        if left is right and self.stored > THIN * self.d * self.count <= THIN * DENSE:
            return _squared(spread(*self._used, self.d), left, np.sqrt(diagonal))
        chosen = self._some(left)
        values, rows, starts = chosen if left is right else self._some(right)
        if not diagonal.ndim:  # there are fewer products than values, as a rule
            return diagonal * crossed((values, rows, starts), chosen, self.d).T
        return crossed((values * diagonal[rows], rows, starts), chosen, self.d).T

    def _some(self, chosen: Chosen) -> Compressed:
        """Values, places and starts of some of the columns."""
        if not isinstance(chosen, slice):
            return some(self._used, chosen)
        values, rows, starts = self._used
        first, last, _ = chosen.indices(self.count)
        part = slice(starts[first], starts[last])
        return values[part], rows[part], starts[first : last + 1] - starts[first]

    def scaled_products(self, chosen: Positions, scales: Floats, which: Positions) -> Floats:
        """The products of m columns, each times a row of scales, with each other, shape (m, m)."""
        rows = self._matrix().T[chosen]
        scale = scales[np.repeat(which, np.diff(rows.indptr)), rows.indices]
        rows = sparse.csr_array((rows.data * scale, rows.indices, rows.indptr), rows.shape)
        result: Floats = (rows @ rows.T).toarray()
        return result

    def measured_one(self, position: int, vector: Floats) -> tuple[float, float]:
        """The same of a single column."""
        part = slice(*self._starts[position : position + 2])
        values = self._data[part]
        return float(values @ vector[self._indices[part]]), math.sqrt(values @ values)

    def atoms(self) -> list[Atom]:
        """The columns as atoms again; their ids are their positions."""
        cuts = [slice(*self._starts[k : k + 2]) for k in range(self.count)]
        return [Atom(k, self.d, self._data[cut], self._indices[cut]) for k, cut in enumerate(cuts)]


def _squared(
    rows: Floats, chosen: Chosen, scales: Floats, which: Positions | None = None
) -> Floats:
    """The products of chosen rows, times a vector or times a row of scales each, with each other.

    One array times its own transpose takes half the operations of any other product.
    """
    if not scales.ndim:
        few = rows[chosen]
        return scales**2 * (few @ few.T)
    result: Floats = np.zeros(())
    for start in range(0, rows.shape[1], PART):  # what is scaled stays in the cache, and small
        part = slice(start, start + PART)
        scaled = rows[chosen, part] * (scales[part] if which is None else scales[which, part])
        result = result + scaled @ scaled.T if start else scaled @ scaled.T
    return result


def _sums(values: Floats, cuts: Positions) -> Floats:
    """The sum of the values between each cut and the next."""
    starts = cuts[:-1]
    if len(starts) and starts[-1] == len(values):
        values = np.append(values, 0.0)
    sums = np.add.reduceat(values, starts)
    sums[cuts[1:] == starts] = 0.0
    return sums


def bends_of(atoms: AtomBatch, diagonal: Floats, along: Floats | None) -> Floats:
    """The bend a' (diag(diagonal) - along along') a of each atom, shape (k,).

    A diagonal of one number is constant.
    """
    if atoms.indices is None or atoms.starts is None:
        dense = atoms.values.astype(np.float64, copy=False)
        bends = np.vecdot(dense, dense * diagonal)
        return bends if along is None else bends - (dense @ along) ** 2
    values, rows, starts = atoms.values, atoms.indices, atoms.starts
    squares = np.square(values, dtype=np.float64)
    if diagonal.ndim:
        bends = _sums(diagonal[rows] * squares, starts)
    else:
        bends = diagonal * _sums(squares, starts)
    return bends if along is None else bends - _sums(along[rows] * values, starts) ** 2


def with_appended(columns: Columns | None, d: int, atoms: Sequence[Atom]) -> Columns:
    """Append atoms to a store of the right kind; the first dense atom makes the store dense.

    Which kind that is depends on the values alone, so that it is the same on every node.
    """
    parts = [atoms] if type(atoms) is AtomBatch else atoms
    any_dense = any(part.indices is None for part in parts)
    if columns is None:
        columns = _new_store(d, parts) if any_dense else SparseColumns(d)
    elif any_dense and (
        isinstance(columns, SparseColumns)
        or (isinstance(columns, DenseColumns) and columns.signs and not _all_signs(parts))
    ):
        known = columns.atoms()
        columns = DenseColumns(d)
        columns.append(known)
    columns.append(atoms)
    return columns


def _new_store(d: int, parts: Sequence[Atom | AtomBatch]) -> DenseColumns:
    if d < LONG or not _all_signs(parts):
        return DenseColumns(d)
    from atomcast.known.sign_columns import SignColumns  # which is made of dense ones

    return SignColumns(d)


def _is_sign(values: NDArray[Any]) -> bool:
    """Whether there is nothing but 1 and -1; the first value tells most others apart."""
    return bool(abs(values.flat[0]) == 1.0 and np.all(np.abs(values) == 1.0))


def _all_signs(parts: Sequence[Atom | AtomBatch]) -> bool:
    """Whether atoms are dense, and say nothing but 1 and -1."""
    return all(
        part.indices is None and (part.values.dtype == np.int8 or _is_sign(part.values))
        for part in parts
    )
