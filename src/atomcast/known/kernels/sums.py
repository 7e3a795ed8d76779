"""Weighted sums of kernel columns over a fixed set of points: what scoring comes down to.

`kernel_sums` picks the fastest way for the data: a fused loop for dense points, a scatter over
columns for sparse ones, bits for binary ones, and plain NumPy for everything else and for small
data, where compiling would cost more than it saves: few dense points are kept ready for products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast._threads import ranges, run_all, thread_count
from atomcast.known.kernels.functions import RBF, Custom, Kernel, Laplacian, square_lengths
from atomcast.known.kernels.labels import Codes, LabelCode
from atomcast.known.kernels.points import Points, dense_rows, is_binary

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Points with fewer values than this in all are summed by NumPy.
COMPILE_FROM = 1 << 20
#: Binary points with at most so many features are kept as bits.
MOST_BITS = 4096
#: So many columns at a time are better summed one by one in a fused pass than as a block.
FEW = 8
#: Points with so many values in all are worth several threads.
MANY = 1 << 24
#: So many columns of a block are computed at a time.
COLUMNS = 512
#: Blocks with so many values are worth compiled code.
LARGE = 1 << 16
#: With no more features than this, distances are nothing beside exponentials: if there are so many,
#: a loop that keeps none of them is several times as fast as NumPy.
NARROW, EXPONENTIALS = 8, 1 << 18


class KernelSums:
    """Sums over kernel columns by NumPy, for any kernel and any points.

    Parameters
    ----------
    points : array or CSR matrix of shape (n, d)
    kernel : Kernel
    code : LabelCode
    labels : int array of shape (n,)
        The class of each point.
    """

    #: Whether a block is worth keeping; where values are as fast to compute as to read, it is not.
    cacheable = True

    def __init__(self, points: Points, kernel: Kernel, code: LabelCode, labels: Codes) -> None:
        self.points = points
        self.kernel = kernel
        self.code = code
        self.labels = labels

    def block(self, others: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The kernel between all points and others, shape (n, m)."""
        return self.kernel.block(self.points, others, dtype)

    def add(
        self, total: Floats, scale: float, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Scale a total, and add sum_j w_j <label_i, label_j> (k(x_i, z_j) + 1) to each entry.

        Parameters
        ----------
        total : array of shape (n,)
            Changed in place.
        scale : float
        others, labels, weights : the points z_j, their classes and weights, m of each
        """
        total *= scale
        self._add_all(_row_ranges(len(total)), total, others, labels, weights)

    def add_block(
        self,
        rows: Rows,
        total: Floats,
        block: NDArray[Any],
        some: Rows,
        labels: Codes,
        weights: Floats,
    ) -> None:
        """Add the sum to some entries, from kernel values that were computed before.

        Parameters
        ----------
        rows : array of shape (r,)
            Which entries the rows of the block belong to.
        total : array of shape (n,)
        block : array of shape (r, m)
        some : array of shape (s,)
            Those rows of the block that are asked for.
        labels, weights : the classes and weights of the points that its columns belong to
        """
        spread, at = self.code.spread(labels, weights), rows[some]
        sums = block_products(block, some, spread) + spread.sum(axis=0)
        total[at] += self.code.combine(self.labels[at], sums)

    def add_to(
        self, rows: Rows, total: Floats, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Add the sum to some entries only."""
        parts = [rows[part] for part in _row_ranges(len(rows))]
        self._add_all(parts, total, others, labels, weights)

    def _add_all(self, parts: Sequence[Rows | slice], *added: Any) -> None:
        """Add to the entries of each part; not in threads where functions are those of users."""
        calls = [partial(self._add_rows, part, *added) for part in parts]
        if isinstance(self.kernel, Custom):
            for call in calls:
                call()
        else:
            run_all(calls)

    def _add_rows(
        self, rows: Rows | slice, total: Floats, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """The same for few entries, of which so many columns at a time take little memory."""
        points, spread = self.points[rows], self.code.spread(labels, weights)
        sums = self._narrow(points, others, spread)
        if sums is None:
            sums = np.tile(spread.sum(axis=0), (points.shape[0], 1))
            for start in range(0, len(weights), COLUMNS):
                part = slice(start, start + COLUMNS)
                sums += self.kernel.block(points, others[part]) @ spread[part]
        total[rows] += self.code.combine(self.labels[rows], sums)

    def _narrow(self, points: Points, others: Points, spread: Floats) -> Floats | None:
        """The sums over points of few features; None if another way is as good."""
        if not isinstance(self.kernel, RBF) or sparse.issparse(points) or sparse.issparse(others):
            return None
        few = len(points) * len(others) < EXPONENTIALS
        if few or points.shape[1] > NARROW or spread.shape[1] > 1:
            return None
        from atomcast.known.kernels._loops import add_narrow

        (x, _), (z, _) = self.kernel.scaled(points), self.kernel.scaled(others)
        sums = np.zeros(len(x))
        add_narrow(np.ascontiguousarray(x.T), z, np.ascontiguousarray(spread[:, 0]), sums)
        return sums[:, None]


class SmallSums(KernelSums):
    """The RBF kernel of few dense points, which are kept as products with a column need them."""

    kernel: RBF

    @cached_property
    def _factor(self) -> Floats:
        return self.kernel.left_factor(self.points)

    def add(
        self, total: Floats, scale: float, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Scale a total and add columns; see `KernelSums.add`."""
        if len(weights) > FEW or sparse.issparse(others):
            super().add(total, scale, others, labels, weights)
            return
        spread = self.code.spread(labels, weights)
        sums = self.kernel.values(self._factor, others) @ spread + spread.sum(axis=0)
        total *= scale
        total += self.code.combine(self.labels, sums)


def block_products(block: NDArray[Any], rows: Rows, vectors: Floats) -> Floats:
    """The product of some rows of a block with vectors, in double precision, shape (r, c)."""
    if block.size < LARGE:
        return np.asarray(block[rows].astype(np.float64, copy=False) @ vectors)
    from atomcast.known.kernels._loops import some_products

    result = np.empty((vectors.shape[1], len(rows)))
    for vector, out in zip(vectors.T, result, strict=True):
        some_products(block, rows.astype(np.uint64), np.ascontiguousarray(vector), out)
    return result.T


class DenseSums(KernelSums):
    """The RBF kernel of dense points: few columns in one fused pass over the data."""

    kernel: RBF

    def add(
        self, total: Floats, scale: float, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Scale a total and add columns; see `KernelSums.add`."""
        if len(weights) > FEW:
            super().add(total, scale, others, labels, weights)
            return
        from atomcast.known.kernels._loops import add_rbf

        factors = weights[:, None] * self.code.table[labels]
        points, codes, gamma = self.points, self.labels, self.kernel.gamma
        near = others
        if others.dtype != points.dtype or not isinstance(others, np.ndarray):
            near = np.ascontiguousarray(dense_rows(others), dtype=points.dtype)
        if points.size < MANY:
            add_rbf(points, near, gamma, codes, factors, scale, total)
            return
        # More parts than threads, so that none waits long for another that was held up.
        run_all([
            partial(add_rbf, points[rows], near, gamma, codes[rows], factors, scale, total[rows])
            for rows in ranges(len(total), 8 * thread_count())
        ])  # fmt: skip


class SparseSums(KernelSums):
    """The RBF kernel of sparse points: a column by scatter over the features of its point."""

    kernel: RBF

    @cached_property
    def _columns(self) -> tuple[Any, NDArray[Any], Floats]:
        """The points column by column, the rows of their entries, and what is left out of them."""
        columns, usual = less_usual(self.points.tocsc())
        # Signed numbers might be negative, and count from the end: to look takes time.
        return columns, columns.indices.view(f"u{columns.indices.itemsize}"), usual

    @cached_property
    def _norms(self) -> Floats:
        return square_lengths(self.points)

    @cached_property
    def _products(self) -> Floats:
        return np.zeros(self.points.shape[0])

    def add(
        self, total: Floats, scale: float, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Scale a total and add columns; see `KernelSums.add`."""
        if len(weights) > FEW:
            super().add(total, scale, others, labels, weights)
            return
        from atomcast.known.kernels._loops import add_exp, add_scattered

        factors = weights[:, None] * self.code.table[labels]
        (columns, rows, usual), gamma = self._columns, self.kernel.gamma
        near = others if sparse.issparse(others) else sparse.csr_array(others)
        for j in range(len(weights)):
            part = slice(near.indptr[j], near.indptr[j + 1])
            features, values = near.indices[part], near.data[part].astype(np.float64)
            add_scattered(columns.indptr, rows, columns.data, features, values, self._products)
            # What all points have in common is in no column, but in every product.
            norm = float(values @ values) - 2.0 * float(values @ usual[features])
            keep = scale if j == 0 else 1.0
            add_exp(self._products, self._norms, norm, gamma, self.labels, factors[j], keep, total)


def less_usual(columns: Any) -> tuple[Any, Floats]:
    """Columns (CSC) without what most rows have: the fewer entries, the faster to scatter.

    Where one value stands in more than half of a column, and no other but zero, it is subtracted
    from the column. Returns the columns and the values subtracted, zero for most of them.
    """
    n, d = columns.shape
    usual, rows, data = np.zeros(d), [], []
    for feature in range(d):
        part = slice(columns.indptr[feature], columns.indptr[feature + 1])
        have, values = columns.indices[part], columns.data[part]
        if 2 * len(have) > n and (values == values[0]).all():
            usual[feature] = values[0]
            lacking = np.ones(n, dtype=bool)
            lacking[have] = False
            have = np.flatnonzero(lacking).astype(have.dtype)
            values = np.full(len(have), -values[0], dtype=values.dtype)
        rows.append(have)
        data.append(values)
    if not usual.any():
        return columns, usual
    ends = np.cumsum([0, *map(len, rows)]).astype(columns.indptr.dtype)
    parts = np.concatenate(data), np.concatenate(rows), ends
    return sparse.csc_array(parts, shape=(n, d)), usual


class BinarySums(KernelSums):
    """Points of zeros and ones: a distance is a number of bits, a kernel value a table entry."""

    cacheable = False
    kernel: RBF | Laplacian

    def __init__(
        self, points: Points, kernel: RBF | Laplacian, code: LabelCode, labels: Codes
    ) -> None:
        super().__init__(points, kernel, code, labels)
        self.bits = packed(points)
        self._table = np.exp(-kernel.gamma * np.arange(points.shape[1] + 1.0))

    def block(self, others: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The kernel between all points and others, shape (n, m)."""
        if not is_binary(others):
            return super().block(others, dtype)
        out = np.empty((len(self.bits), others.shape[0]), dtype=dtype)
        fill_bit_block(self.bits, packed(others), self._table[None], out)
        return out

    def add(
        self, total: Floats, scale: float, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Scale a total and add columns; see `KernelSums.add`."""
        if not is_binary(others):
            super().add(total, scale, others, labels, weights)
            return
        if len(weights) > FEW:
            total *= scale
            self.add_to(np.arange(len(total)), total, others, labels, weights)
            return
        from atomcast.known.kernels._loops import add_bit_column

        bits = packed(others)
        for j in range(len(weights)):
            factors = np.outer(weights[j] * self.code.table[labels[j]], self._table + 1.0)
            keep = scale if j == 0 else 1.0
            add_bit_column(self.bits, self.labels, bits[j], factors, keep, total)

    def add_to(
        self, rows: Rows, total: Floats, others: Points, labels: Codes, weights: Floats
    ) -> None:
        """Add the sum to some entries only."""
        if not is_binary(others):
            KernelSums.add_to(self, rows, total, others, labels, weights)
            return
        from atomcast.known.kernels._loops import add_bits

        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=self.code.classes))
        known, chosen = packed(others[order]), rows.astype(np.uint64)
        table = signed_table(self._table, self.code.other)
        run_all([
            partial(
                add_bits, chosen[part], self.bits, self.labels, known, ends, weights[order],
                table, total,
            )
            for part in ranges(len(rows), 16)
        ])  # fmt: skip


def signed_table(table: Floats, other: float) -> Floats:
    """<label, label> (k + 1) by number of bits, of equal labels (row 0) and of others (row 1)."""
    return np.outer([1.0, other], table + 1.0)


def fill_bit_block(
    bits: NDArray[np.uint64],
    known: NDArray[np.uint64],
    table: Floats,
    out: NDArray[Any],
    codes: tuple[Codes, Codes] | None = None,
) -> None:
    """Put the table's values between rows of bits into a block, on all threads.

    Parameters
    ----------
    bits, known : arrays of shape (n, words) and (m, words)
    table : array of shape (1, bits + 1), or (2, bits + 1) with codes; see `signed_table`
    out : array of shape (n, m), or wider
    codes : the class of each row of `bits` and of `known`, optional
    """
    from atomcast.known.kernels._loops import bit_block

    if codes is None:
        codes = np.zeros(len(bits), dtype=np.uint8), np.zeros(len(known), dtype=np.uint8)
    left, right = codes
    values = table.astype(out.dtype)
    run_all([
        partial(bit_block, bits[part], left[part], known, right, values, out[part])
        for part in ranges(len(bits), 8)
    ])  # fmt: skip


def kernel_sums(points: Points, kernel: Kernel, code: LabelCode, labels: Codes) -> KernelSums:
    """The fastest way to sum kernel columns over these points."""
    size = points.data.size if sparse.issparse(points) else points.size
    bits = size >= COMPILE_FROM // 4 and points.shape[1] <= MOST_BITS
    if bits and isinstance(kernel, RBF | Laplacian) and is_binary(points):
        return BinarySums(points, kernel, code, labels)
    if size >= COMPILE_FROM and isinstance(kernel, RBF):
        if sparse.issparse(points):
            return SparseSums(points, kernel, code, labels)
        if points.flags.c_contiguous:
            return DenseSums(points, kernel, code, labels)
    if size < COMPILE_FROM and isinstance(kernel, RBF) and isinstance(points, np.ndarray):
        return SmallSums(points, kernel, code, labels)
    return KernelSums(points, kernel, code, labels)


def packed(points: Points) -> NDArray[np.uint64]:
    """Points of zeros and ones as bits, shape (n, ceil(d / 64))."""
    n, d = points.shape
    out = np.zeros((n, -(-d // 64)), dtype=np.uint64)
    by_bytes = out.view(np.uint8)
    for part in _row_ranges(n):
        ones = np.zeros((part.stop - part.start, d), dtype=bool)
        if sparse.issparse(points):
            ends = points.indptr[part.start : part.stop + 1]
            listed = slice(ends[0], ends[-1])
            # A single point, as every round has one, must be quick.
            rows = np.repeat(np.arange(len(ones)), np.diff(ends)) if n > 1 else 0
            ones[rows, points.indices[listed]] = points.data[listed]
        else:
            ones[:] = points[part]
        bits = np.packbits(ones, axis=1, bitorder="little")
        by_bytes[part, : bits.shape[1]] = bits
    return out


def _row_ranges(n: int, height: int = 1 << 11) -> list[slice]:
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]
