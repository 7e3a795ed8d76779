"""The augmented kernel between known points, kept within a budget of memory."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import ranges, run_all
from atomcast.data.matrices import cut
from atomcast.data.sparse_format import is_sparse
from atomcast.known.columns import grown
from atomcast.known.kernels.functions import (
    BENIGN,
    FACTOR,
    RBF,
    Kernel,
    Laplacian,
    LastRow,
    left_factor,
    pieces,
)
from atomcast.known.kernels.labels import Codes, LabelCode
from atomcast.known.kernels.points import Points, is_binary
from atomcast.known.kernels.rows import RowRecipe, Rows
from atomcast.known.kernels.sums import MOST_BITS, BinarySums, fill_bit_block, packed, signed_table

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Blocks with more values than this are worth compiled code, where there is any.
LARGE_BLOCK = 1 << 20
#: Up to so many points, the matrix is kept in double precision whatever was asked for.
FULL_PRECISION_UP_TO = 512
#: There is room for so many from the start: four megabytes come in large pages and, once they were
#: given back, stay with the process, where most systems hand out less page by page, every time.
ROOM = 728
#: So many rows at a time are computed, and so many values where nothing is kept.
HEIGHT, VALUES = 512, 1 << 20
#: Where more than so many times as many points come as were known, what was computed of these does
#: not matter.
FEW_KNOWN = 8
#: A product with a vector of which no more than one in so many is used takes the rows of these.
FEW_USED = 4
#: With room for fewer rows than this, none is kept; nor where errors cost more than this: weights
#: that are so large need double precision, in which rows do not pass.
LEAST_ROWS, DEAR = 16, 1000.0
#: Rows of points with more features are not computed one by one: a product of many is quicker.
WIDE = 32


#: Rounding to single precision, and how many times its standard error counts.
UNIT, TIMES = float(np.finfo(np.float32).eps), 1.5


class AugmentedKernel:
    """K~ = <y_i, y_j> (k(x_i, x_j) + 1) + delta_ij / C between points that everybody knows.

    The whole matrix is kept, though it is symmetric: whoever changes a weight reads its row.

    Parameters
    ----------
    kernel : Kernel
    code : LabelCode
    cache_bytes : int
        As long as the matrix fits in so many bytes it is kept; beyond, rows are computed anew.
    dtype : float32 or float64
        The precision of the matrix once there are many points.
    shared : bool
        Whether several threads ask for rows.

    Attributes
    ----------
    matrix : array of shape (m, m) with m >= count, or None
        Rows and columns beyond those of known points are not filled yet; None if it does not fit.
        A point that comes alone has its column filled when somebody asks for more than its row:
        writing down a column touches a page for every point, and few are ever read.
    """

    def __init__(
        self, kernel: Kernel, code: LabelCode, cache_bytes: int, dtype: Any, shared: bool = False
    ) -> None:
        self.kernel, self.shared = kernel, shared
        self.code = code
        self.cache_bytes = cache_bytes
        self.count = 0
        self.diagonal: Floats = np.zeros(0)
        self.ridge: Floats = np.zeros(0)
        self._matrix: NDArray[Any] | None = np.empty((0, 0))
        self._columns = 0  # so many of them are filled
        self._dtype = np.dtype(dtype)
        self._points: Points = None
        self._labels: Codes = np.zeros(0, dtype=np.uint8)
        self._bits: BitLog | None = BitLog() if isinstance(kernel, RBF | Laplacian) else None
        self._last_row = LastRow(kernel) if isinstance(kernel, RBF) else None
        #: What exponents of the RBF kernel are sums of is at most this, of so many points.
        self._exponent, self._measured = 0.0, 0
        #: How rows come about when they are first needed; None if all are there.
        self._recipe: RowRecipe | None = None
        self._passing: Rows | Literal["unknown"] | None = "unknown"
        #: Whether all points came with the first ones.
        self._at_once = True

    @property
    def matrix(self) -> NDArray[Any] | None:
        """The matrix, whole; see above."""
        self._fill_rows()
        self._fill_columns()
        return self._matrix

    @property
    def kept(self) -> bool:
        """Whether there is room for the matrix."""
        return self._matrix is not None

    @property
    def precise(self) -> bool:
        """Whether kernel values are in double precision."""
        dtype = self._row_dtype if self._matrix is None else self._matrix.dtype
        return bool(dtype == np.float64)

    @property
    def _row_dtype(self) -> np.dtype[Any]:
        """The precision of rows that are computed anew."""
        return self._dtype if self.count > FULL_PRECISION_UP_TO else np.dtype(np.float64)

    def rounding_of(self, weights: Floats) -> float:
        """What a sum of values in single precision, times weights, is hardly ever off by.

        That is some standard errors, where the rounding of each is independent of the others.
        """
        size = float(np.max(self.diagonal - self.ridge))
        if isinstance(self.kernel, RBF) and self._bits is None:
            largest = self._largest_exponent(self.kernel)
            # Exponents were rounded first: as sums of products, or as squares of differences.
            squares = self._at_once and self._recipe is not None
            size += min(largest, math.sqrt(largest) if squares else BENIGN)
        return TIMES * UNIT * size * float(np.linalg.norm(weights))

    def _largest_exponent(self, kernel: RBF) -> float:
        """What exponents are sums of is at most this; of points known before, that was found."""
        new = cut(self._points, self._measured, self.count, 0)
        for rows in pieces(*new.shape):
            largest = kernel.largest_exponent(cut(new, rows.start, rows.stop, 0))
            self._exponent = max(self._exponent, largest)
        self._measured = self.count
        return self._exponent

    def sharpen(self) -> bool:
        """Compute all values in double precision from now on; False if there is no room for it."""
        double = np.dtype(np.float64)
        lacking = self.kept and double.itemsize * self.count**2 > self.cache_bytes
        if self._dtype == double or lacking:
            return False
        self._dtype, self._passing = double, None
        if self._matrix is not None and self._matrix.dtype != double:
            self._matrix, self._recipe, self._columns = np.empty((0, 0)), None, 0
            self._make_room(0)
            self._append_block(0)
        return True

    def let_go(self) -> bool:
        """Keep no values, and compute them in double precision from now on; True."""
        self._dtype, self._matrix, self._recipe = np.dtype(np.float64), None, None
        self._passing = None
        return True

    def rows_at(self, positions: Positions) -> Rows:
        """The rows of some points, increasing, and columns at these; computed as they are read."""
        if self._recipe is None or (self.shared and len(positions) == self.count):
            assert self.matrix is not None
        assert self._matrix is not None
        recipe = RowRecipe.whole(self.diagonal) if self._recipe is None else self._recipe
        return Rows(self._matrix, positions, recipe, self.ridge[positions])

    def _fill_rows(self) -> None:
        """Compute all rows, where they were to be computed as they are read."""
        if self._recipe is not None:
            self._recipe = None
            self._append_block(0)

    def _fill_columns(self) -> None:
        if self._matrix is not None:
            for k in range(self._columns, self.count):
                self._matrix[:k, k] = self._matrix[k, :k]
        self._columns = self.count

    def forget_points(self) -> None:
        """Let go of the points, until more are taken in."""
        self._points = None

    def extend(self, points: Points, labels: Codes, weights: Floats | None = None) -> None:
        """Take in all points known now; the first `count` of them are the ones known before.

        The weights are those of the new ones.
        """
        old, alone = self.count, len(labels) == self.count + 1
        some, self._recipe = self._recipe is not None, None  # then they would be needed again
        if not alone or (self._matrix is not None and old == len(self._matrix)):
            self._fill_columns()
        self.count, self._passing, self._at_once = len(labels), "unknown", not old
        self._points, self._labels = points, labels
        ridge = self.code.ridge(labels[old:], weights)
        new = cut(points, old, self.count, 0)
        own = self.kernel.diagonal(new) + 1.0 + ridge
        if not own.min(initial=1.0) > 0:
            raise not_positive(f"the product of a point with itself is {own.min() - 1.0:.3g}")
        self.ridge = np.concatenate([self.ridge, ridge])
        self.diagonal = np.concatenate([self.diagonal, own])
        if self._bits is not None and not self._bits.append(new):
            self._bits = None
        self._make_room(old)
        if self._matrix is None:
            return
        if some:
            self._append_block(0)
        elif alone and self._last_row is not None and isinstance(points, np.ndarray):
            # As in every round of one atom: it must be quick.
            values = (self._last_row.of(points) + 1.0) * self._signs(old)
            self._matrix[old, :old], self._matrix[old, old] = values[:old], own[0]
        elif alone:
            self._compute(np.arange(old, self.count), self.count, self._matrix[old : self.count])
        else:
            self._recipe = self._later(old)
            if self._recipe is None:
                self._append_block(old)

    def _append_block(self, old: int) -> None:
        """Compute the rows of new points, and mirror them."""
        assert self._matrix is not None
        if not old and self.count <= HEIGHT and self._bits is None:  # few that are all there are
            matrix, codes = self._matrix[: self.count, : self.count], self._labels
            self._fill(self._points, self._points, codes, codes, matrix)
            np.einsum("ii->i", matrix)[:] = self.diagonal
            self._columns = self.count
            return
        large = (self.count - old) * self.count >= LARGE_BLOCK
        if large and isinstance(self.kernel, RBF) and self._bits is None and self._append_rbf(old):
            return
        for start in range(old, self.count, HEIGHT):
            stop = min(start + HEIGHT, self.count)
            rows = self._matrix[start:stop]
            self._compute(np.arange(start, stop), stop, rows)
            if rows.shape[0] * stop < LARGE_BLOCK:
                self._matrix[:start, start:stop] = rows[:, :start].T
            else:
                from atomcast.known.kernels._loops import mirror

                mirror(self._matrix, start, stop)
        self._columns = self.count

    def _later(self, old: int) -> RowRecipe | None:
        """How to compute rows as they are read, if that is of use: most points then need none."""
        kernel, points = self.kernel, self._points
        if not isinstance(kernel, RBF) or is_sparse(points) or self._bits is not None:
            return None
        assert self._matrix is not None
        few = old * FEW_KNOWN >= self.count
        if few or self._matrix.dtype != np.float32 or self._labels.dtype != np.uint8:
            return None
        units = kernel.units(points) if points.shape[1] <= WIDE else None
        if units is None:
            return None
        recipe = self._filled_as_needed(units, self.count)
        if self.shared:
            recipe.slot[:-1] = np.arange(self.count)
        return recipe

    def _filled_as_needed(self, units: NDArray[np.float32], room: int) -> RowRecipe:
        """How rows of these points come about, with room for so many."""
        codes, other = self._labels.astype(np.uint8), np.float32(self.code.other)
        return RowRecipe.filled_as_needed(self.diagonal, units, codes, other, room)

    @property
    def all_rows(self) -> Rows | None:
        """All rows, as far as they fit; None if they do not, and others are too slow to compute."""
        return self.rows_at(np.arange(self.count)) if self.kept else self.passing

    @property
    def passing(self) -> Rows | None:
        """All rows, of which there is room only for some at a time; None if that is too slow."""
        if self._passing == "unknown":
            self._passing = self._passing_rows()
        return self._passing

    def _passing_rows(self) -> Rows | None:
        kernel, points = self.kernel, self._points
        if not isinstance(kernel, RBF) or is_sparse(points) or self._bits is not None:
            return None
        if DEAR * float(self.ridge.min()) < 1.0:
            return None
        room = self.cache_bytes // (self._row_dtype.itemsize * self.count)
        double = self._row_dtype == np.float64
        if double or room < LEAST_ROWS or self._labels.dtype != np.uint8:
            return None
        units = kernel.units(points, max(self.cache_bytes // 16, FACTOR))
        if units is None:
            return None
        recipe = self._filled_as_needed(units, min(room, self.count))
        matrix = np.empty((min(room, self.count), self.count), np.float32)
        return Rows(matrix, np.arange(self.count), recipe, self.ridge)

    def _append_rbf(self, old: int) -> bool:
        """The same where single precision is asked for and enough; whether that is so."""
        matrix, kernel, points = self._matrix, self.kernel, self._points
        assert matrix is not None
        assert isinstance(kernel, RBF)
        if matrix.dtype != np.float32 or is_sparse(points):
            return False
        right = kernel.exponents(points)
        if right is None:
            return False
        from atomcast.known.kernels._loops import finish_rbf

        start, other = old, np.float32(self.code.other)
        while start < self.count:
            # Few rows stay in cache until they are finished, but a product of fewer is slow.
            stop = min(start + max(VALUES // 4 // max(start, HEIGHT), 128), self.count)
            left = left_factor(right, slice(start, stop))
            np.matmul(left, right[:, :stop], out=matrix[start:stop, :stop])
            finish_rbf(matrix, start, stop, self._labels, other)
            start = stop
        new = np.arange(old, self.count)
        matrix[new, new] = self.diagonal[old:]
        self._columns = self.count
        return True

    def _signs(self, position: int) -> Floats:
        """<label, label> of a point with all, shape (count,)."""
        return self.code.table[self._labels[position]].take(self._labels)

    def _make_room(self, old: int) -> None:
        """Have a place for every point, mostly for more, or none if the budget is spent."""
        if self._matrix is None or self.count <= len(self._matrix):
            return
        full = self.count <= FULL_PRECISION_UP_TO
        dtype = np.dtype(np.float64) if full else self._dtype
        most = math.isqrt(self.cache_bytes // dtype.itemsize)
        if self.count > most:
            self._matrix = None
            return
        # Many that come first may be all there are.
        more = 5 * self.count // 4 if old else self.count
        side = min(max(2 * len(self._matrix), more), most)
        # What is not filled takes no memory.
        larger = np.empty(max(side, ROOM if full else 0) ** 2, dtype)[: side**2].reshape(side, side)
        larger[:old, :old] = self._matrix[:old, :old]
        self._matrix = larger

    def _compute(self, positions: Positions, width: int, out: NDArray[Any]) -> None:
        """Put rows of the matrix up to column `width` into `out`, computed from the points."""
        left, right = self._labels[positions], self._labels[:width]
        if self._bits is not None and len(positions) * width >= LARGE_BLOCK // 16:
            self._bits.fill(self.kernel, positions, out, (left, right), self.code.other)
        else:
            self._fill(self._some(positions), cut(self._points, 0, width, 0), left, right, out)
        out[np.arange(len(positions)), positions] = self.diagonal[positions]

    def _some(self, positions: Positions) -> Points:
        """Some of the points, which mostly follow each other, and are then not copied."""
        first, stop = int(positions[0]), int(positions[-1]) + 1
        if stop - first == len(positions) and np.all(np.diff(positions) == 1):
            return cut(self._points, first, stop, 0)
        return self._points[positions]

    def _between(self, some: Points, others: Points, left: Codes, right: Codes) -> Floats:
        """The values <label, label> (k + 1) between points of these classes."""
        values = np.empty((some.shape[0], others.shape[0]))
        self._fill(some, others, left, right, values)
        return values

    def _fill(
        self, some: Points, others: Points, left: Codes, right: Codes, out: NDArray[Any]
    ) -> None:
        """Put the same into the first columns of an array."""
        values = out[:, : len(right)]
        if isinstance(self.kernel, RBF) and not (is_sparse(some) or is_sparse(others)):
            self.kernel.fill(some, others, values)
        else:
            values[:] = self.kernel.block(some, others, out.dtype)
        if values.size >= LARGE_BLOCK:
            from atomcast.known.kernels._loops import apply_labels

            apply_labels(out, left, right, self.code.other)
        else:
            values += 1
            if self.code.other == 1.0:
                return
            table = self.code.table.astype(out.dtype)
            if self.code.other == -1.0:  # two signs, which take no memory
                values *= table[0, left][:, None]
                values *= table[0, right]
            else:
                values *= table[:, right][left]

    def row(self, position: int) -> Floats:
        """One row of the matrix, shape (count,), not to be changed."""
        last = position == self.count - 1 and self._recipe is None
        matrix = self._matrix if last else self.matrix
        if matrix is None:
            return self.rows(np.array([position]))[0]
        return matrix[position, : self.count].astype(np.float64, copy=False)

    def rows(self, positions: Positions) -> Floats:
        """Some rows of the matrix, shape (m, count)."""
        if self.matrix is not None:
            return self.matrix[positions, : self.count].astype(np.float64, copy=False)
        rows = np.empty((len(positions), self.count), dtype=self._row_dtype)
        self._compute(positions, self.count, rows)
        return rows.astype(np.float64, copy=False)

    def _pieces(self, positions: Positions) -> list[Positions]:
        """Some positions in parts of which the rows take little memory."""
        height = max(VALUES // max(self.count, 1), 16)
        return [positions[start : start + height] for start in range(0, len(positions), height)]

    def rows_with(self, points: Points, labels: Codes, weights: Floats | None = None) -> Floats:
        """The rows that m more points would have, shape (m, count + m)."""
        parts = [
            self._between(points, others, labels, codes)
            for others, codes in ((self._points, self._labels), (points, labels))
        ]
        own = self.kernel.diagonal(points) + 1.0 + self.code.ridge(labels, weights)
        np.fill_diagonal(parts[1], own)
        return np.hstack(parts)

    def fill_square(self, positions: Positions, start: int, out: NDArray[Any]) -> None:
        """Put the part that belongs to some points, in order, into `out`, but for the first rows.

        Parameters
        ----------
        positions : array of shape (m,)
        start : int
            The part of so many points is there already.
        out : array of shape (m, m), or larger
        """
        if self.matrix is not None:
            from atomcast.known.kernels._loops import gather_lower, mirror

            gather_lower(self.matrix, positions.astype(np.uint64), start, out)
            mirror(out, start, len(positions))
            return
        for part in self._pieces(np.arange(start, len(positions))):
            out[part, : len(positions)] = self.rows(positions[part])[:, positions]
        out[:start, start : len(positions)] = out[start : len(positions), :start].T

    def between(self, positions: Positions, others: Positions) -> Floats:
        """The matrix at some rows and columns, without the ridge, in double precision."""
        if self.matrix is not None:
            values = self.matrix[np.ix_(positions, others)].astype(np.float64, copy=False)
            return values - self.ridge[others] * (positions[:, None] == others)
        out, labels = np.empty((len(positions), len(others))), self._labels
        right, codes = self._points[others], labels[others]
        for rows in pieces(*out.shape):
            part = positions[rows]
            out[rows] = self._between(self._points[part], right, labels[part], codes)
        return out

    def times(self, vector: Floats) -> Floats:
        """The product of the matrix with a vector, shape (count,), summed in double precision."""
        used = np.flatnonzero(vector)
        if self._matrix is not None and len(used) * self.count >= LARGE_BLOCK:
            if FEW_USED * len(used) < self.count:
                return self.rows_at(np.arange(self.count)).combined(vector)
            return self.row_products(0, vector)
        result = np.zeros(self.count)
        for piece in self._pieces(used):
            result += vector[piece] @ self.rows(piece)
        return result

    def row_products(self, start: int, vector: Floats) -> Floats:
        """The product of rows `start` and on with a vector, shape (count - start,)."""
        if start == self.count - 1:  # as in every round of one atom
            return np.array([self.row(start) @ vector])
        if self._recipe is not None:
            whole = np.zeros(self.count)
            whole[: len(vector)] = vector
            return self.rows_at(np.arange(self.count)).combined(whole)[start:]
        result = np.empty(self.count - start)
        if self.matrix is None or result.size * self.count < LARGE_BLOCK:
            used = np.flatnonzero(vector)
            for piece in self._pieces(np.arange(start, self.count)):
                result[piece - start] = self.rows(piece)[:, used] @ vector[used]
            return result
        from atomcast.known.kernels._loops import row_products

        rows, padded = self.matrix[start:], np.ascontiguousarray(vector)
        run_all([
            partial(row_products, rows[part], padded, result[part])
            for part in ranges(len(result), 4)
        ])  # fmt: skip
        return result


class BitLog:
    """Points of zeros and ones as bits, in order of arrival."""

    def __init__(self) -> None:
        self.count = 0
        self._bits = np.zeros((0, 0), dtype=np.uint64)

    def append(self, points: Points) -> bool:
        """Add points; False if they are not all binary."""
        if points.shape[1] > MOST_BITS or not is_binary(points):
            return False
        bits = packed(points)
        if not self.count:
            self._bits = np.zeros((64, bits.shape[1]), dtype=np.uint64)
        self._bits = grown(self._bits, self.count, self.count + len(bits))
        self._bits[self.count : self.count + len(bits)] = bits
        self.count += len(bits)
        return True

    def fill(
        self,
        kernel: Any,
        positions: Positions,
        out: NDArray[Any],
        codes: tuple[Codes, Codes],
        other: float,
    ) -> None:
        """Put <label, label> (k + 1) between some points and as many first ones into `out`."""
        table = np.exp(-kernel.gamma * np.arange(64.0 * self._bits.shape[1] + 1))
        known = self._bits[: len(codes[1])]
        fill_bit_block(self._bits[positions], known, signed_table(table, other), out, codes)


def kernel_block(kernel: Kernel, X: Points, Z: Points, dtype: Any) -> NDArray[Any]:
    """The kernel between two sets of points, by bits where that is possible and worth it."""
    large = X.shape[0] * Z.shape[0] >= LARGE_BLOCK and X.shape[1] <= MOST_BITS
    if large and isinstance(kernel, RBF | Laplacian) and is_binary(X):
        nothing = np.zeros(X.shape[0], dtype=np.uint8)
        return BinarySums(X, kernel, LabelCode(2, np.ones(2)), nothing).block(Z, dtype)
    return kernel.block(X, Z, dtype)


def not_positive(symptom: str) -> ValueError:
    """The error for a kernel that is no kernel."""
    return ValueError(
        f"the kernel is not positive semidefinite on this data: {symptom}; use a positive "
        'semidefinite kernel, such as kernel="rbf"'
    )
