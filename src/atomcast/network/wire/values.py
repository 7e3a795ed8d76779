"""How the values of an atom are written: in the smallest number type that loses nothing.

Data is seldom as wide as its type: binary features, counts, prices with two decimals and
standardised categories all fit in one or two bytes, or in a few bits. Each type is accepted
only if reading it back gives the same bits, so exactness does not rest on an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.network.wire.buffer import (
    UNFOLD_LIMIT,
    Buffer,
    Reader,
    WireError,
    pack_bits,
    unpack_bits,
)

__all__ = [
    "MAX_PALETTE",
    "NumberType",
    "ValuePlan",
    "bit_patterns",
    "find_palette",
    "needs_float64",
    "plan_values",
    "read_values",
]

Floats = NDArray[np.floating[Any]]
Bits = NDArray[np.unsignedinteger[Any]]

_MAX_EXPONENT = 6
_POWERS = 10.0 ** np.arange(_MAX_EXPONENT + 1)
MAX_PALETTE = 256
_PALETTE_FLAG = 0x80
_TYPE_SAMPLE = 32
_FLOAT, _BITS = Struct("<d"), Struct("<Q")
_BEYOND_FLOAT32 = 2**29 - 1
_PALETTE_SAMPLE = 512
_FIRST_SAMPLE = 300  # enough to see that there are more than MAX_PALETTE


class NumberType(IntEnum):
    """How a number is stored; stands in bits 0-3 of the value byte.

    An INT type holds `value * 10**exponent`, with the exponent in bits 4-6 of the value byte.
    """

    FLOAT64 = 0
    FLOAT32 = 1
    FLOAT16 = 2
    BFLOAT16 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    UINT8 = 7


_STORED_AS = tuple(map(np.dtype, ("<f8", "<f4", "<f2", "<u2", "<i1", "<i2", "<i4", "<u1")))
_ITEM_SIZE = tuple(dtype.itemsize for dtype in _STORED_AS)
_INTEGER_RANGES = {
    NumberType.INT8: (-(2**7), 2**7 - 1),
    NumberType.UINT8: (0, 2**8 - 1),
    NumberType.INT16: (-(2**15), 2**15 - 1),
    NumberType.INT32: (-(2**31), 2**31 - 1),
}


@dataclass(slots=True)  # not frozen: that costs a microsecond per message
class ValuePlan:
    """What will be written for an array of values, and how many bytes it takes.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n,)
    type : NumberType
    exponent : int
        Decimal places kept by an INT type.
    palette : ndarray, shape (k,), optional
        The distinct values, sorted by bit pattern, if each value is sent as its place there.
    size : int
        Bytes that `parts` takes.
    """

    values: Floats
    type: NumberType
    exponent: int
    palette: Floats | None
    size: int

    @property
    def code_byte(self) -> int:
        """The value byte of the header."""
        flag = 0 if self.palette is None else _PALETTE_FLAG
        return flag | self.exponent << 4 | self.type

    def parts(self) -> list[Buffer]:
        """The bytes to send."""
        if self.palette is None:
            return [_store(self.values, self.type, self.exponent).data]
        k = self.palette.size
        stored = _store(self.palette, self.type, self.exponent)
        head: list[Buffer] = [bytes((k - 1,)), stored.data]
        if k == 1:
            return head
        known, sent = bit_patterns(self.palette), bit_patterns(self.values)
        places = sent == known[1] if k == 2 else np.searchsorted(known, sent)
        return [*head, pack_bits(places, (k - 1).bit_length())]


def plan_values(values: Floats, backed: bool = False) -> ValuePlan:
    """Choose the smallest lossless form of an array of values.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n,)
    backed : bool
        Whether something else in the message spends at least a bit per value, so that a
        constant may take none however many there are (see `UNFOLD_LIMIT`).
    """
    n = values.size
    if not n:
        return ValuePlan(values, NumberType.INT8, 0, None, 0)
    bits = bit_patterns(values)
    is_constant = bits[0] == bits[-1] and (bits == bits[0]).all()
    if is_constant and (backed or n <= UNFOLD_LIMIT):
        number_type, exponent = _type_of_constant(int(bits[0]), values.dtype.itemsize)
        item_size = _ITEM_SIZE[number_type]
        if n == 1:
            return ValuePlan(values, number_type, exponent, None, item_size)
        return ValuePlan(values, number_type, exponent, values[:1], 1 + item_size)
    if needs_float64(values):
        number_type, exponent = NumberType.FLOAT64, 0
    else:
        with np.errstate(all="ignore"):  # what overflows is not lossless, and no news
            number_type, exponent = _smallest_type(values)
    item_size = _ITEM_SIZE[number_type]
    palette = find_palette(bits, item_size)
    if palette is None:
        return ValuePlan(values, number_type, exponent, None, n * item_size)
    size = _palette_size(n, palette.size, item_size)
    return ValuePlan(values, number_type, exponent, palette.view(values.dtype), size)


def read_values(
    reader: Reader, code_byte: int, n: int, dtype: np.dtype[np.floating[Any]]
) -> Floats:
    """Read n values as `ValuePlan.parts` wrote them, shape (n,).

    The caller has made sure that n is not absurd: a palette of one takes no bytes per value.
    """
    type_number, exponent = code_byte & 0x0F, code_byte >> 4 & 0x07
    if type_number >= len(NumberType) or exponent > _MAX_EXPONENT:
        raise WireError(f"Damaged message: unknown value code {code_byte:#04x}.")
    number_type = NumberType(type_number)
    if number_type == NumberType.FLOAT64 and dtype.itemsize < 8:
        raise WireError("Damaged message: float64 values for an atom of float32.")
    if not code_byte & _PALETTE_FLAG:
        return _read_numbers(reader, number_type, exponent, n, dtype)
    k = 1 + reader.byte("number of distinct values")
    palette = _read_numbers(reader, number_type, exponent, k, dtype)
    if k == 1:
        return np.full(n, palette[0], dtype=dtype)
    width = (k - 1).bit_length()
    places = unpack_bits(reader.take(-(-n * width // 8), "values"), n, width)
    if n and places.max() >= k:
        raise WireError(f"Damaged message: value number {places.max()} of {k} distinct values.")
    return palette[places]


def _read_numbers(
    reader: Reader,
    number_type: NumberType,
    exponent: int,
    n: int,
    dtype: np.dtype[np.floating[Any]],
) -> Floats:
    data = reader.take(n * _ITEM_SIZE[number_type], "values")
    stored = np.frombuffer(data, dtype=_STORED_AS[number_type])
    # A copy, because bytes within a message are not aligned and belong to the receive buffer.
    with np.errstate(invalid="ignore"):  # a signalling NaN stays what it is: the sender's affair
        return _restore(stored, number_type, exponent, dtype)


def bit_patterns(values: Floats) -> Bits:
    """The bit patterns of values, so that -0.0 and 0.0 differ."""
    return values.view(np.uint64 if values.dtype.itemsize == 8 else np.uint32)


def _store(values: Floats, number_type: NumberType, exponent: int) -> NDArray[Any]:
    """Convert to the stored type; what does not fit comes out wrong, and the caller checks."""
    if number_type == NumberType.BFLOAT16:
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    if number_type >= NumberType.INT8:
        scaled = values.astype(np.float64, copy=False)
        scaled = np.rint(scaled * _POWERS[exponent] if exponent else scaled)
        return scaled.astype(_STORED_AS[number_type])
    return values.astype(_STORED_AS[number_type], copy=False)


def _restore(
    stored: NDArray[Any], number_type: NumberType, exponent: int, dtype: np.dtype[Any]
) -> Floats:
    """Undo `_store`. One IEEE division at most, so every machine gets the same bits."""
    if number_type == NumberType.BFLOAT16:
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(dtype, copy=False)
    if exponent and number_type >= NumberType.INT8:
        quotients: Floats = np.divide(stored, _POWERS[exponent], dtype=np.float64)
        return quotients.astype(dtype, copy=False)
    return stored.astype(dtype)


def _is_lossless(values: Floats, number_type: NumberType, exponent: int = 0) -> bool:
    back = _restore(_store(values, number_type, exponent), number_type, exponent, values.dtype)
    return bool((bit_patterns(back) == bit_patterns(values)).all())


@lru_cache(maxsize=1024)
def _type_of_constant(bits: int, item_size: int) -> tuple[NumberType, int]:
    """Cached, because the atoms of one data set tend to be made of the same constants."""
    unsigned, floating = (np.uint64, np.float64) if item_size == 8 else (np.uint32, np.float32)
    with np.errstate(all="ignore"):
        return _smallest_type(np.array([bits], dtype=unsigned).view(floating))


def needs_float64(values: Floats) -> bool:
    """Whether one look settles that `_smallest_type` would find nothing smaller.

    It looks at the last value of the sample there: float32 holds no number with any of the lowest
    29 bits set, and no integer type one that is not within rounding of a decimal.
    """
    if values.dtype.itemsize != 8:
        return False
    n = values.size
    step = -(-n // _TYPE_SAMPLE)
    probe = values.item((n - 1) // step * step)
    scaled = abs(probe) * 10.0**_MAX_EXPONENT
    if not scaled < 2.0**40:  # also infinity and NaN
        return False
    # Rounding moves a decimal by less than a few parts in 2^52; 2^-48 is out of its reach.
    if abs(scaled - round(scaled)) <= 2.0**-48 * scaled:
        return False
    return bool(_BITS.unpack(_FLOAT.pack(probe))[0] & _BEYOND_FLOAT32)


def _smallest_type(values: Floats) -> tuple[NumberType, int]:
    """The smallest type that loses nothing, and its exponent.

    A few values settle what most arrays are *not*, at a cost that does not grow with n; only
    a type that suits those is tried on all values.
    """
    is_wide = values.dtype.itemsize == 8
    sample = values[:: -(-values.size // _TYPE_SAMPLE)]
    decimals = _smallest_integer_type(values, sample)
    if decimals and _ITEM_SIZE[decimals[0]] <= 2:
        return decimals
    if not is_wide or _is_lossless(sample, NumberType.FLOAT32):
        for number_type in (NumberType.FLOAT16, NumberType.BFLOAT16, NumberType.FLOAT32):
            if _is_lossless(sample, number_type) and _is_lossless(values, number_type):
                return number_type, 0
    return decimals or (NumberType.FLOAT64, 0)


def _smallest_integer_type(values: Floats, sample: Floats) -> tuple[NumberType, int] | None:
    """The smallest INT type that holds `values * 10**exponent`, and the exponent, if any."""
    probe = sample[-1:]  # spares arrays of arbitrary floats the larger test
    if _decimal_places(probe) is None or (exponent := _decimal_places(sample)) is None:
        return None
    for places in range(exponent, _MAX_EXPONENT + 1):
        if _is_lossless(values, NumberType.INT32, places):
            low, high = (round(float(v) * 10**places) for v in (values.min(), values.max()))
            for number_type, (lowest, highest) in _INTEGER_RANGES.items():
                if lowest <= low and high <= highest:
                    return number_type, places
    return None


def _decimal_places(sample: Floats) -> int | None:
    """The fewest decimal places that write every value of a small sample exactly."""
    wide = sample.astype(np.float64, copy=False)[:, None]
    back = np.rint(wide * _POWERS) / _POWERS
    exact = (back.astype(sample.dtype, copy=False) == sample[:, None]).all(axis=0)
    first = int(exact.argmax())
    return first if exact[first] else None


def _palette_size(n: int, k: int, item_size: int) -> int:
    return 1 + k * item_size + -(-n * (k - 1).bit_length() // 8)


def find_palette(bits: Bits, item_size: int) -> Bits | None:
    """The sorted distinct patterns, if sending places in this list is smaller; else None."""
    n = bits.size
    step = -(-n // _PALETTE_SAMPLE)
    if n > MAX_PALETTE and _are_many(bits[: _FIRST_SAMPLE * step : step]):
        return None
    distinct = _distinct(bits[::step])
    if distinct.size > MAX_PALETTE or _palette_size(n, distinct.size, item_size) >= n * item_size:
        return None
    if step > 1:
        distinct = _distinct(bits)
    pays = _palette_size(n, distinct.size, item_size) < n * item_size
    return distinct if pays and 2 <= distinct.size <= MAX_PALETTE else None


def _are_many(bits: Bits) -> bool:
    """Whether there are more distinct patterns than a palette can hold."""
    ordered = bits.copy()
    ordered.sort()
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) >= MAX_PALETTE


def _distinct(bits: Bits) -> Bits:
    ordered = np.sort(bits)
    keep = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]
