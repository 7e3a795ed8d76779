"""The numba loops behind kernel sums. Imported only where the data is large enough to pay.

Indices are unsigned: with signed ones the compiler also prepares for negative indices, and does
not vectorise. The exponential has a loop of its own over a block that stays in cache, because in
the loop over features it would stop vectorisation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba import uint64 as uint64_type
from numba.extending import intrinsic

from atomcast.known.kernels._vectors import WIDTH, square_distance

BLOCK, TILE = 256, 64
#: Reordering of sums is all that is needed to vectorise them; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


def _popcount(typing_context: Any, word: Any) -> Any:
    """The number of ones among the bits of a word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _power_of_two(typing_context: Any, shifted: Any) -> Any:
    """2^k for a number that was rounded to k by adding ROUND, which leaves k in its low bits."""
    single = shifted == types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, real = ir.IntType(32 if single else 64), args[0].type
        biased = builder.add(
            builder.bitcast(args[0], whole), ir.Constant(whole, 127 if single else 1023)
        )
        return builder.bitcast(builder.shl(biased, ir.Constant(whole, 23 if single else 52)), real)

    return shifted(shifted), codegen


popcount: Any = intrinsic(_popcount)
power_of_two: Any = intrinsic(_power_of_two)
uint64: Any = uint64_type


# The exponential of the C library does not vectorise. This one does: 2^k exp(r), |r| <= log(2)/2,
# where adding and subtracting ROUND rounds to the whole number k and leaves it in the low bits.
ROUND = 1.5 * 2.0**52
LOG2_HIGH, LOG2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
SERIES = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))
C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0 = SERIES


# The same in single precision, where fewer terms are enough.
SINGLE_ROUND, PER_OCTAVE = np.float32(1.5 * 2.0**23), np.float32(1.4426950408889634)
OCTAVE_HIGH, OCTAVE_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
S6, S5, S4, S3, S2, S1, S0 = (np.float32(c) for c in SERIES[6:])
LEAST = np.float32(-87.0)


# Without flags of its own it would inherit those of its caller, and reordering would undo rounding.
@njit(cache=True, nogil=True, fastmath={"contract"})
def one_plus_exp(factor: Any, values: Any) -> None:  # pragma: no cover - compiled
    """Turn values v into 1 + exp(factor v), where factor v <= 0; exact to rounding, and at 0."""
    for i in range(uint64(len(values))):
        x = max(factor * values[i], -700.0)
        shifted = x * 1.4426950408889634 + ROUND
        k = shifted - ROUND
        r = (x - k * LOG2_HIGH) - k * LOG2_LOW
        p = ((((C12 * r + C11) * r + C10) * r + C9) * r + C8) * r + C7
        p = (((((((p * r + C6) * r + C5) * r + C4) * r + C3) * r + C2) * r + C1) * r) + C0
        values[i] = 1.0 + p * power_of_two(shifted)


@njit(cache=True, nogil=True, fastmath=REORDER)
def add_rbf(
    X: Any, Z: Any, gamma: Any, codes: Any, factors: Any, scale: Any, total: Any
) -> None:  # pragma: no cover - compiled
    """total_i = scale total_i + sum_j factors[j, code_i] (exp(-gamma ||x_i - z_j||^2) + 1)."""
    n, d, m = uint64(X.shape[0]), uint64(X.shape[1]), uint64(Z.shape[0])
    values = np.zeros(BLOCK)
    block = uint64(BLOCK)
    vectors = d * uint64(X.itemsize) >= uint64(WIDTH)
    for b in range(uint64((n + block - uint64(1)) // block)):
        start = uint64(b * block)
        size = min(block, n - start)
        for j in range(m):
            z = Z[j]
            for i in range(size):
                x = X[start + i]
                if vectors:
                    values[i] = square_distance(x, z, d)
                    continue
                s = X.dtype.type(0)
                for f in range(d):
                    difference = x[f] - z[f]
                    s += difference * difference
                values[i] = s
            one_plus_exp(-gamma, values)
            keep = scale if j == 0 else 1.0
            for i in range(size):
                k = start + i
                total[k] = keep * total[k] + factors[j, codes[k]] * values[i]


@njit(cache=True, nogil=True, fastmath=REORDER)
def add_narrow(X: Any, Z: Any, weights: Any, total: Any) -> None:  # pragma: no cover - compiled
    """total_i += sum_j w_j (exp(-||x_i - z_j||^2) + 1), where points x are columns, z are rows.

    Each is summed in the same order, whichever others there are.
    """
    features, n, block = uint64(X.shape[0]), uint64(X.shape[1]), uint64(BLOCK)
    values, sums = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(uint64(0), n, block):
        size = min(block, n - uint64(start))
        sums[:] = 0.0
        for j in range(uint64(len(Z))):
            values[:] = 0.0
            for f in range(features):
                part, z = X[f, start : start + size], Z[j, f]
                for i in range(size):
                    difference = part[i] - z
                    values[i] += difference * difference
            one_plus_exp(-1.0, values)
            for i in range(block):
                sums[i] += weights[j] * values[i]
        for i in range(size):
            total[start + i] += sums[i]


@njit(cache=True, nogil=True)
def add_scattered(
    indptr: Any, indices: Any, data: Any, features: Any, values: Any, products: Any
) -> None:  # pragma: no cover - compiled
    """Add <x_i, z> to every product, from the columns (CSC) of the features that z has."""
    for k in range(uint64(len(features))):
        feature = features[k]
        value = values[k]
        for e in range(uint64(indptr[feature]), uint64(indptr[feature + 1])):
            products[indices[e]] += value * data[e]


@njit(cache=True, nogil=True)
def add_exp(
    products: Any,
    norms: Any,
    norm: Any,
    gamma: Any,
    codes: Any,
    factors: Any,
    scale: Any,
    total: Any,
) -> None:  # pragma: no cover - compiled
    """total_i = scale total_i + factors[code_i] (exp(-gamma distance_i^2) + 1), clears products."""
    values = np.zeros(BLOCK)
    n, block = uint64(len(total)), uint64(BLOCK)
    for b in range(uint64((n + block - uint64(1)) // block)):
        start = uint64(b * block)
        size = min(block, n - start)
        for i in range(size):
            values[i] = max(norms[start + i] + norm - 2.0 * products[start + i], 0.0)
            products[start + i] = 0.0
        one_plus_exp(-gamma, values)
        for i in range(size):
            k = start + i
            total[k] = scale * total[k] + factors[codes[k]] * values[i]


@njit(cache=True, nogil=True)
def distance(left: Any, i: Any, right: Any, j: Any) -> Any:  # pragma: no cover - compiled
    """The number of bits in which row i of the left and row j of the right differ."""
    differing = uint64(0)
    for word in range(uint64(left.shape[1])):
        differing += popcount(left[i, word] ^ right[j, word])
    return differing


@njit(cache=True, nogil=True)
def add_bits(
    rows: Any, bits: Any, codes: Any, known: Any, ends: Any, weights: Any, table: Any, total: Any
) -> None:  # pragma: no cover - compiled
    """total[row] += sum_j w_j table[whether their codes differ, bits in which they differ].

    Known points are in order of their codes, code c up to ends[c]. Four rows at a time, so that
    no sum waits for the one before it; every row is summed in the same order, wherever it stands.
    """
    count, one = uint64(len(rows)), uint64(1)
    last = count - one
    two_words = bits.shape[1] == 2
    for quarter in range((count + uint64(3)) // uint64(4)):
        r = uint64(4) * uint64(quarter)
        a, b = rows[r], rows[min(r + one, last)]
        c, d = rows[min(r + one + one, last)], rows[min(r + uint64(3), last)]
        sa, sb, sc, sd = 0.0, 0.0, 0.0, 0.0
        start = uint64(0)
        for code in range(len(ends)):
            stop = uint64(ends[code])
            ta, tb = table[int(codes[a] != code)], table[int(codes[b] != code)]
            tc, td = table[int(codes[c] != code)], table[int(codes[d] != code)]
            if two_words:
                a0, a1, b0, b1 = bits[a, 0], bits[a, 1], bits[b, 0], bits[b, 1]
                c0, c1, d0, d1 = bits[c, 0], bits[c, 1], bits[d, 0], bits[d, 1]
                for j in range(start, stop):
                    low, high, w = known[j, 0], known[j, 1], weights[j]
                    sa += w * ta[popcount(a0 ^ low) + popcount(a1 ^ high)]
                    sb += w * tb[popcount(b0 ^ low) + popcount(b1 ^ high)]
                    sc += w * tc[popcount(c0 ^ low) + popcount(c1 ^ high)]
                    sd += w * td[popcount(d0 ^ low) + popcount(d1 ^ high)]
            else:
                for j in range(start, stop):
                    sa += weights[j] * ta[distance(bits, a, known, j)]
                    sb += weights[j] * tb[distance(bits, b, known, j)]
                    sc += weights[j] * tc[distance(bits, c, known, j)]
                    sd += weights[j] * td[distance(bits, d, known, j)]
            start = stop
        total[a] += sa
        if r + one < count:
            total[b] += sb
        if r + one + one < count:
            total[c] += sc
        if r + uint64(3) < count:
            total[d] += sd


@njit(cache=True, nogil=True)
def add_bit_column(
    bits: Any, codes: Any, point: Any, factors: Any, scale: Any, total: Any
) -> None:  # pragma: no cover - compiled
    """total_i = scale total_i + factors[code_i, bits in which row i and the point differ]."""
    words = uint64(len(point))
    if words == 2:
        low, high = point[0], point[1]
        for i in range(uint64(len(total))):
            differing = popcount(bits[i, 0] ^ low) + popcount(bits[i, 1] ^ high)
            total[i] = scale * total[i] + factors[codes[i], differing]
    else:
        for i in range(uint64(len(total))):
            differing = uint64(0)
            for word in range(words):
                differing += popcount(bits[i, word] ^ point[word])
            total[i] = scale * total[i] + factors[codes[i], differing]


@njit(cache=True, nogil=True, fastmath=REORDER)
def row_products(block: Any, vector: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The product of the first rows of a block with a vector, in double precision."""
    for r in range(uint64(len(out))):
        row = block[r]
        s = 0.0
        for j in range(uint64(len(vector))):
            s += np.float64(row[j]) * vector[j]
        out[r] = s


@njit(cache=True, nogil=True, fastmath=REORDER)
def some_products(
    block: Any, rows: Any, vector: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """The product of some rows of a block with a vector, in double precision."""
    for r in range(uint64(len(rows))):
        row = block[rows[r]]
        s = 0.0
        for j in range(uint64(len(vector))):
            s += np.float64(row[j]) * vector[j]
        out[r] = s


@njit(cache=True, nogil=True)
def gather_lower(
    matrix: Any, positions: Any, start: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """The part of a matrix at some positions, from row `start` on and up to the diagonal."""
    for i in range(uint64(start), uint64(len(positions))):
        row = matrix[positions[i]]
        for j in range(i + uint64(1)):
            out[i, j] = row[positions[j]]


@njit(cache=True, nogil=True, fastmath={"contract"})
def exponential(x: Any) -> Any:  # pragma: no cover - compiled
    """exp(x) of a number in single precision that is not positive, but for rounding."""
    x = min(max(x, LEAST), np.float32(0.0))
    shifted = x * PER_OCTAVE + SINGLE_ROUND
    k = shifted - SINGLE_ROUND
    r = (x - k * OCTAVE_HIGH) - k * OCTAVE_LOW
    p = (((((S6 * r + S5) * r + S4) * r + S3) * r + S2) * r + S1) * r + S0
    return p * power_of_two(shifted)


@njit(cache=True, nogil=True)
def mirror(matrix: Any, start: Any, stop: Any) -> None:  # pragma: no cover - compiled
    """Copy rows start to stop, up to the diagonal, to the columns that they mirror.

    Tile by tile, so that what is written stays in cache.
    """
    size, end = uint64(TILE), uint64(stop)
    for top in range(uint64(start), end, size):
        for left in range(uint64(0), min(uint64(top) + size, end), size):
            mirror_tile(matrix, uint64(top), min(uint64(top) + size, end), uint64(left))


@njit(cache=True, nogil=True)
def mirror_tile(matrix: Any, top: Any, last: Any, left: Any) -> None:  # pragma: no cover - compiled
    """Copy what a tile has below the diagonal."""
    for j in range(left, min(left + uint64(TILE), last)):
        for i in range(max(top, j + uint64(1)), last):
            matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def finish_rbf(
    matrix: Any, start: Any, stop: Any, codes: Any, other: Any
) -> None:  # pragma: no cover - compiled
    """Turn exponents in rows start to stop, up to the diagonal, into values, and mirror these.

    A value is <label, label> (exp + 1); all in single precision, tile by tile.
    """
    size, end, one = uint64(TILE), uint64(stop), np.float32(1.0)
    for top in range(uint64(start), end, size):
        last = min(uint64(top) + size, end)
        for left in range(uint64(0), last, size):
            for i in range(uint64(top), last):
                row, code = matrix[i], codes[i]
                for j in range(uint64(left), min(uint64(left) + size, i + uint64(1))):
                    value = exponential(row[j]) + one
                    row[j] = value if codes[j] == code else other * value
            mirror_tile(matrix, uint64(top), last, uint64(left))


@njit(cache=True, nogil=True)
def apply_labels(
    rows: Any, left: Any, right: Any, other: Any
) -> None:  # pragma: no cover - compiled
    """Turn k into <label, label> (k + 1), in place, in as many columns as there are labels."""
    for i in range(uint64(rows.shape[0])):
        code = left[i]
        for j in range(uint64(len(right))):
            product = 1.0 if right[j] == code else other
            rows[i, j] = product * (rows[i, j] + 1.0)


@njit(cache=True, nogil=True)
def bit_block(
    bits: Any, codes: Any, known: Any, known_codes: Any, table: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """out[i, j] = table[whether their codes differ, bits in which i and j differ]."""
    m, two_words = uint64(known.shape[0]), bits.shape[1] == 2
    for i in range(uint64(bits.shape[0])):
        code = codes[i]
        if two_words:
            low, high = bits[i, 0], bits[i, 1]
            for j in range(m):
                differing = popcount(low ^ known[j, 0]) + popcount(high ^ known[j, 1])
                out[i, j] = table[uint64(known_codes[j] != code), differing]
        else:
            for j in range(m):
                out[i, j] = table[uint64(known_codes[j] != code), distance(bits, i, known, j)]
