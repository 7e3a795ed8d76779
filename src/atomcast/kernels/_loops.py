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

BLOCK = 256
#: Reordering of sums is all that is needed to vectorise them; NaNs keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


def _popcount(typing_context: Any, word: Any) -> Any:
    """The number of ones among the bits of a word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _power_of_two(typing_context: Any, shifted: Any) -> Any:
    """2^k for a number that was rounded to k by adding ROUND, which leaves k in its low bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, real = ir.IntType(64), ir.DoubleType()
        biased = builder.add(builder.bitcast(args[0], whole), ir.Constant(whole, 1023))
        return builder.bitcast(builder.shl(biased, ir.Constant(whole, 52)), real)

    return types.float64(types.float64), codegen


popcount: Any = intrinsic(_popcount)
power_of_two: Any = intrinsic(_power_of_two)
uint64: Any = uint64_type


# The exponential of the C library does not vectorise. This one does: 2^k exp(r), |r| <= log(2)/2,
# where adding and subtracting ROUND rounds to the whole number k and leaves it in the low bits.
ROUND = 1.5 * 2.0**52
LOG2_HIGH, LOG2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
SERIES = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))
C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0 = SERIES


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
    for b in range(uint64((n + block - uint64(1)) // block)):
        start = uint64(b * block)
        size = min(block, n - start)
        for j in range(m):
            z = Z[j]
            for i in range(size):
                x = X[start + i]
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
def add_bits(
    rows: Any,
    bits: Any,
    codes: Any,
    known: Any,
    known_codes: Any,
    weights: Any,
    table: Any,
    other: Any,
    total: Any,
) -> None:  # pragma: no cover - compiled
    """total[row] += sum_j <label, label_j> w_j table[bits in which row and point j differ]."""
    m, words = uint64(known.shape[0]), uint64(known.shape[1])
    for r in range(uint64(len(rows))):
        i = rows[r]
        everything = 0.0
        own = 0.0
        code = codes[i]
        if words == 2:
            low, high = bits[i, 0], bits[i, 1]
            for j in range(m):
                differing = popcount(low ^ known[j, 0]) + popcount(high ^ known[j, 1])
                term = weights[j] * table[differing]
                everything += term
                own += term * (known_codes[j] == code)
        else:
            for j in range(m):
                differing = uint64(0)
                for word in range(words):
                    differing += popcount(bits[i, word] ^ known[j, word])
                term = weights[j] * table[differing]
                everything += term
                own += term * (known_codes[j] == code)
        total[i] += (1.0 - other) * own + other * everything


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
def add_symmetric(
    block: Any, first: Any, vector: Any, total: Any
) -> None:  # pragma: no cover - compiled
    """Add the product of a vector with rows of a symmetric matrix, and with their mirror.

    The block holds rows `first` and on, up to the end of the square on the diagonal, which holds
    its own mirror. Sums are in double precision.
    """
    across = uint64(first)
    for r in range(uint64(block.shape[0])):
        row = block[r]
        factor = vector[across + r]
        s = 0.0
        for j in range(across):
            value = np.float64(row[j])
            s += value * vector[j]
            total[j] += factor * value
        for j in range(across, uint64(block.shape[1])):
            s += np.float64(row[j]) * vector[j]
        total[across + r] += s


@njit(cache=True, nogil=True, fastmath=REORDER)
def row_products(block: Any, vector: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The product of the first rows of a block with a vector, in double precision."""
    for r in range(uint64(len(out))):
        row = block[r]
        s = 0.0
        for j in range(uint64(len(vector))):
            s += np.float64(row[j]) * vector[j]
        out[r] = s


@njit(cache=True, nogil=True)
def apply_labels(
    rows: Any, left: Any, right: Any, other: Any
) -> None:  # pragma: no cover - compiled
    """Turn k into <label, label> (k + 1), in place."""
    for i in range(uint64(rows.shape[0])):
        code = left[i]
        for j in range(uint64(rows.shape[1])):
            product = 1.0 if right[j] == code else other
            rows[i, j] = product * (rows[i, j] + 1.0)


@njit(cache=True, nogil=True)
def bit_block(bits: Any, known: Any, table: Any, out: Any) -> None:  # pragma: no cover - compiled
    """out[i, j] = table[bits in which i and j differ]."""
    m, words = uint64(known.shape[0]), uint64(known.shape[1])
    for i in range(uint64(bits.shape[0])):
        if words == 2:
            low, high = bits[i, 0], bits[i, 1]
            for j in range(m):
                differing = popcount(low ^ known[j, 0]) + popcount(high ^ known[j, 1])
                out[i, j] = table[differing]
        else:
            for j in range(m):
                differing = uint64(0)
                for word in range(words):
                    differing += popcount(bits[i, word] ^ known[j, word])
                out[i, j] = table[differing]
