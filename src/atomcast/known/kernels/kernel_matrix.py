"""The augmented kernel between known points, kept within a budget of memory."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import run_all
from atomcast.known.columns import grown
from atomcast.known.kernels.functions import RBF, Kernel, Laplacian, LastRow
from atomcast.known.kernels.labels import Codes, LabelCode
from atomcast.known.kernels.points import Points, is_binary
from atomcast.known.kernels.sums import MOST_BITS, BinarySums, fill_bit_block, packed, signed_table

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: Blocks with more values than this are worth compiled code, where there is any.
LARGE_BLOCK = 1 << 20
#: Up to so many points, the matrix is kept in double precision whatever was asked for.
FULL_PRECISION_UP_TO = 4096
#: Rows in a block.
HEIGHT = 512


class AugmentedKernel:
    """K~ = <y_i, y_j> (k(x_i, x_j) + 1) + delta_ij / C between points that everybody knows.

    Rows are kept in blocks of equal height, up to the diagonal: the matrix is symmetric, so that
    half of it is enough, and blocks never move when points are added.

    Parameters
    ----------
    kernel : Kernel
    code : LabelCode
    cache_bytes : int
        As long as the blocks fit in so many bytes they are kept; beyond, rows are computed anew.
    dtype : float32 or float64
        The precision of blocks once there are many points; the first blocks are kept in full.
    """

    def __init__(self, kernel: Kernel, code: LabelCode, cache_bytes: int, dtype: Any) -> None:
        self.kernel = kernel
        self.code = code
        self.cache_bytes = cache_bytes
        self.count = 0
        self.diagonal: Floats = np.zeros(0)
        self.ridge: Floats = np.zeros(0)
        self._dtype = np.dtype(dtype)
        self._points: Points = None
        self._labels: Codes = np.zeros(0, dtype=np.uint8)
        self._blocks: list[NDArray[Any]] | None = []
        self._bits: BitLog | None = BitLog() if isinstance(kernel, RBF | Laplacian) else None
        self._last_row = LastRow(kernel) if isinstance(kernel, RBF) else None

    @property
    def blocks(self) -> list[NDArray[Any]] | None:
        """Block b holds rows HEIGHT * b and on; None if they do not fit in the budget."""
        return self._blocks

    def extend(self, points: Points, labels: Codes, weights: Floats | None = None) -> None:
        """Take in all points known now; the first `count` of them are the ones known before.

        The weights are those of the new ones.
        """
        old, self.count = self.count, len(labels)
        self._points, self._labels = points, labels
        ridge = self.code.ridge(labels[old:], weights)
        own = self.kernel.diagonal(points[old:]) + 1.0 + ridge
        if not (own > 0).all():
            raise not_positive(f"the product of a point with itself is {own.min() - 1.0:.3g}")
        self.ridge = np.concatenate([self.ridge, ridge])
        self.diagonal = np.concatenate([self.diagonal, own])
        if self._bits is not None and not self._bits.append(points[old:]):
            self._bits = None
        start = old
        while start < self.count and self._make_room(start):
            assert self._blocks is not None
            first = start - start % HEIGHT
            stop = min(first + HEIGHT, self.count)
            block = self._blocks[start // HEIGHT]
            rows = block[start - first : stop - first, :stop]
            if self._last_row is not None and stop - old == 1 and isinstance(points, np.ndarray):
                # As in every round of one atom: it must be quick.
                np.multiply(self._last_row.of(points) + 1.0, self._signs(start), out=rows[0])
                rows[0, start] = own[0]
            else:
                self._compute(np.arange(start, stop), stop, rows)
            block[: start - first, start:stop] = rows[:, first:start].T
            start = stop

    def _signs(self, position: int) -> Floats:
        """<label, label> of a point with all, shape (count,)."""
        return self.code.table[self._labels[position]].take(self._labels)

    def _make_room(self, start: int) -> bool:
        """Have a block for the row `start`; False if that would exceed the budget."""
        if self._blocks is None:
            return False
        if start // HEIGHT == len(self._blocks):
            width = start - start % HEIGHT + HEIGHT
            dtype = self._dtype if width > FULL_PRECISION_UP_TO else np.dtype(np.float64)
            used = sum(block.nbytes for block in self._blocks)
            if used + HEIGHT * width * dtype.itemsize > self.cache_bytes:
                self._blocks = None
                return False
            self._blocks.append(np.zeros((HEIGHT, width), dtype=dtype))
        return True

    def _compute(self, positions: Positions, width: int, out: NDArray[Any]) -> None:
        """Put rows of the matrix up to column `width` into `out`, computed from the points."""
        left, right = self._labels[positions], self._labels[:width]
        if self._bits is not None and len(positions) * width >= LARGE_BLOCK // 16:
            self._bits.fill(self.kernel, positions, out, (left, right), self.code.other)
        else:
            points = self._points[positions], self._points[:width]
            out[:, :width] = self._between(*points, left, right, out.dtype)
        out[np.arange(len(positions)), positions] = self.diagonal[positions]

    def _between(
        self, some: Points, others: Points, left: Codes, right: Codes, dtype: Any = np.float64
    ) -> NDArray[Any]:
        """The values <label, label> (k + 1) between points of these classes."""
        rows = self.kernel.block(some, others, dtype)
        if rows.size >= LARGE_BLOCK:
            from atomcast.known.kernels._loops import apply_labels

            apply_labels(rows, left, right, self.code.other)
        else:
            rows += 1
            rows *= self.code.table.astype(rows.dtype)[left][:, right]
        return rows

    def row(self, position: int) -> NDArray[Any]:
        """One row of the matrix, shape (count,), not to be changed."""
        block = position // HEIGHT
        if self._blocks is None or block < len(self._blocks) - 1:
            return self.rows(np.array([position]))[0]
        return self._blocks[block][position % HEIGHT, : self.count]

    def rows(self, positions: Positions) -> Floats:
        """Some rows of the matrix, shape (m, count)."""
        if self._blocks is None:
            dtype = self._dtype if self.count > FULL_PRECISION_UP_TO else np.dtype(np.float64)
            rows = np.empty((len(positions), self.count), dtype=dtype)
            self._compute(positions, self.count, rows)
            return rows.astype(np.float64, copy=False)
        out = np.empty((len(positions), self.count))
        for b, block in enumerate(self._blocks):
            first = HEIGHT * b
            last = min(first + HEIGHT, self.count)
            inside = (positions >= first) & (positions < last)
            out[inside, :last] = block[positions[inside] - first, :last]
            above = positions < first
            if above.any():
                out[above, first:last] = block[: last - first, positions[above]].T
        return out

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
        out : array of shape (m, m)
        """
        if self._blocks is None:
            out[start:] = self.rows(positions[start:])[:, positions]
            out[:start, start:] = out[start:, :start].T
            return
        from atomcast.known.kernels._loops import gather_square

        ends = np.searchsorted(positions, HEIGHT * np.arange(len(self._blocks) + 1))
        columns = positions.astype(np.uint64)
        for b, (first, stop) in enumerate(pairwise(np.maximum(ends, start).tolist())):
            if first < stop:
                gather_square(self._blocks[b], HEIGHT * b, columns, first, stop, out)

    def part(self, start: int, columns: Positions) -> Floats:
        """Rows `start` and on of some columns before them, or of any if start is 0."""
        if self._blocks is None or start == 0:
            return self.rows(columns)[:, start:].T
        out = np.empty((self.count - start, len(columns)))
        for b in range(start // HEIGHT, len(self._blocks)):
            first = HEIGHT * b
            rows = slice(max(start, first), min(first + HEIGHT, self.count))
            local = self._blocks[b][rows.start - first : rows.stop - first]
            out[rows.start - start : rows.stop - start] = local[:, columns]
        return out

    def times(self, vector: Floats) -> Floats:
        """The product of the matrix with a vector, shape (count,), summed in double precision."""
        used = np.flatnonzero(vector)
        if self._blocks is not None and len(used) * self.count >= LARGE_BLOCK:
            return self._times_blocks(vector)
        result = np.zeros(self.count)
        for start in range(0, len(used), HEIGHT):
            group = used[start : start + HEIGHT]
            result += vector[group] @ self.rows(group)
        return result

    def row_products(self, start: int, vector: Floats) -> Floats:
        """The product of rows `start` and on with a vector, shape (count - start,)."""
        if self._blocks is None or (self.count - start) * self.count < LARGE_BLOCK:
            if start == self.count - 1:
                return np.array([self.row(start) @ vector])
            used = np.flatnonzero(vector)
            parts = [
                self.rows(np.arange(first, min(first + HEIGHT, self.count)))[:, used] @ vector[used]
                for first in range(start, self.count, HEIGHT)
            ]
            return np.concatenate(parts)
        from atomcast.known.kernels._loops import row_products

        result = np.zeros(self.count)
        for b in range(start // HEIGHT, len(self._blocks)):
            rows = slice(HEIGHT * b, min(HEIGHT * (b + 1), self.count))
            row_products(self._blocks[b], vector[: rows.stop], result[rows])
        return result[start:]

    def _times_blocks(self, vector: Floats) -> Floats:
        """The product by one pass over the blocks, each of which counts for its mirror too."""
        from atomcast.known.kernels._loops import add_symmetric

        assert self._blocks is not None
        padded = np.zeros(HEIGHT * len(self._blocks))
        padded[: self.count] = vector
        # Sums of four groups, whatever the number of threads, so that all nodes round alike.
        results = np.zeros((4, len(padded)))

        def add(group: int) -> None:
            assert self._blocks is not None
            for b in range(group, len(self._blocks), 4):
                add_symmetric(self._blocks[b], HEIGHT * b, padded, results[group])

        run_all([partial(add, group) for group in range(4)])
        return results.sum(axis=0)[: self.count]


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
