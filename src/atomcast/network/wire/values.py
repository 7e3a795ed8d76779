"""How the values of an atom are written: in the smallest number type that loses nothing.

Data is seldom as wide as its type: binary features, counts, prices with two decimals and
standardised categories all fit in one or two bytes, or in a few bits. Each type is accepted only
if reading it back gives the same bits, so exactness does not rest on an argument.
"""

from __future__ import annotations

from functools import lru_cache
from sys import byteorder
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.network.wire.bits import (
    UNFOLD_LIMIT,
    Buffer,
    Field,
    Reader,
    WireError,
    from_bits,
    pack,
    to_bits,
    unpack,
)

__all__ = ["bit_patterns", "plan_values", "read_values", "repeats", "travels_as_it_is", "widest"]

Floats = NDArray[np.floating[Any]]
Bits = NDArray[np.unsignedinteger[Any]]

# Types of stored numbers, bits 0-3 of the value byte: an integer type holds value * 10**exponent.
FLOAT64, FLOAT32, FLOAT16, BFLOAT16, INT8, INT16, INT32, UINT8 = range(8)
PALETTE = 0x80

_STORED_AS = tuple(map(np.dtype, ("<f8", "<f4", "<f2", "<u2", "<i1", "<i2", "<i4", "<u1")))
_MAX_EXPONENT = 6
_POWERS = 10.0 ** np.arange(_MAX_EXPONENT + 1)
_MAX_PALETTE = 256
_MOST = float(_POWERS[-1])
#: A double times this, minus what that is beyond the double, has 29 bits less (Veltkamp 1968).
_BEYOND_SINGLE = 2.0**29 + 1.0
_PATTERNS: dict[int, np.dtype[Any]] = {8: np.dtype(np.uint64), 4: np.dtype(np.uint32)}
LITTLE = byteorder == "little"


def repeats(values: Floats) -> bool:
    """Whether any two of 64 evenly spaced values are equal: if not, no value is frequent."""
    sample = values[:: values.size // 64 or 1].copy()
    sample.sort()
    return 1 in np.equal(sample[1:], sample[:-1]).tobytes()  # several times faster than any()


def travels_as_it_is(values: Floats) -> bool:
    """Whether values, in this order of bytes, are what to write, as measurements are."""
    return LITTLE and _fills_its_type(values) and not repeats(values)


def plan_values(values: Floats, varied: bool | None = None) -> Field:
    """Choose the smallest lossless form of an array of values.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n,)
    varied : bool, optional
        That no two in a sample are equal, where the caller has looked.
    """
    bits = bit_patterns(values)
    if not bits.size:
        return Field(INT8, 0, list)
    n = bits.size
    if bits.item(0) == bits.item(-1) and (n == 1 or (bits == bits[0]).all()):
        number_type, exponent = _type_of_constant(bits.item(0), values.dtype)
        palette: Bits | None = None if n == 1 else bits[:1]
    else:
        number_type, exponent = _smallest_type(values)
        varied = not repeats(values) if varied is None else varied
        palette = None if varied else _find_palette(bits)
    code, item = number_type | exponent << 4, _STORED_AS[number_type].itemsize
    plain = Field(code, n * item, lambda: [_store(values, number_type, exponent).data])
    if palette is None:
        return plain
    k, width = palette.size, _place_width(n, palette.size)

    def write() -> list[Buffer]:
        numbers = _store(palette.view(values.dtype), number_type, exponent)
        places = pack(to_bits(np.searchsorted(palette, bits), width)) if width else b""
        return [bytes((k - 1,)), numbers.data, places]

    short = Field(PALETTE | code, 1 + k * item + -(-n * width // 8), write)
    return short if short.nbytes < plain.nbytes else plain


def read_values(reader: Reader, code: int, n: int, dtype: np.dtype[np.floating[Any]]) -> Floats:
    """Read n values as `plan_values` wrote them, shape (n,).

    The caller has made sure that n is not absurd: a palette of one takes no bytes per value.
    """
    if not code & PALETTE:
        return _read_numbers(reader, code, n, dtype)
    k = 1 + reader.take(1, "number of distinct values")[0]
    palette = _read_numbers(reader, code & ~PALETTE, k, dtype)
    width = _place_width(n, k)
    data = reader.take(-(-n * width // 8), "values")
    if not width:
        return np.full(n, palette[0])
    places = from_bits(unpack(data)[: n * width], n, width)
    if n and places.max() >= k:
        raise WireError(f"Damaged message: value number {places.max()} of {k} distinct values.")
    return palette[places]


def bit_patterns(values: Floats) -> Bits:
    """The bit patterns of values, so that -0.0 and 0.0 differ."""
    return values.view(_PATTERNS[values.itemsize])


def _place_width(n: int, k: int) -> int:
    """Bits for a place in a palette of k."""
    return (k - 1).bit_length() or int(n > UNFOLD_LIMIT)


def _find_palette(bits: Bits) -> Bits | None:
    """The sorted distinct patterns, if they are few."""
    step = max(1, bits.size // 512)
    distinct = _distinct(bits[::step])
    if step > 1 and distinct.size <= _MAX_PALETTE:  # the sample spares most arrays a long sort
        distinct = _distinct(bits)
    return distinct if distinct.size <= _MAX_PALETTE else None


def _distinct(bits: Bits) -> Bits:
    """As numpy.unique, several times faster for a few hundred."""
    ordered = np.sort(bits)
    keep = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def _read_numbers(reader: Reader, code: int, n: int, dtype: np.dtype[Any]) -> Floats:
    number_type, exponent = code & 0x0F, code >> 4
    if number_type > UINT8 or exponent > _MAX_EXPONENT:
        raise WireError(f"Damaged message: unknown value code {code:#04x}.")
    stored_as = _STORED_AS[number_type]
    if stored_as.itemsize > dtype.itemsize:
        raise WireError("Damaged message: float64 values for an atom of float32.")
    stored = np.frombuffer(reader.take(n * stored_as.itemsize, "values"), stored_as)
    # A copy, because bytes within a message are not aligned and belong to the receive buffer.
    if stored_as == dtype:
        return stored.copy()
    if number_type >= INT8:
        return _restore(stored, number_type, exponent, dtype)
    with np.errstate(invalid="ignore"):  # a signalling NaN stays what it is: the sender's affair
        return _restore(stored, number_type, exponent, dtype)


def _store(values: Floats, number_type: int, exponent: int) -> NDArray[Any]:
    """Convert to the stored type; what does not fit comes out wrong, and the caller checks."""
    if number_type == BFLOAT16:
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    if number_type >= INT8:
        values = np.rint(values.astype(np.float64, copy=False) * _POWERS[exponent])
    return values.astype(_STORED_AS[number_type], copy=False)


def _restore(stored: NDArray[Any], number_type: int, exponent: int, dtype: np.dtype[Any]) -> Floats:
    """Undo `_store`. One IEEE division at most, so every machine gets the same bits."""
    if number_type == BFLOAT16:
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(dtype, copy=False)
    if number_type >= INT8 and exponent:
        quotients: Floats = np.divide(stored, _POWERS[exponent], dtype=np.float64)
        return quotients.astype(dtype, copy=False)
    return stored.astype(dtype)


def _is_lossless(values: Floats, number_type: int, exponent: int = 0) -> bool:
    back = _restore(_store(values, number_type, exponent), number_type, exponent, values.dtype)
    return bool((bit_patterns(back) == bit_patterns(values)).all())


def _smallest_type(values: Floats) -> tuple[int, int]:
    """The smallest type that loses nothing, and its exponent.

    A few values settle what most arrays are *not*; only a type that suits those is tried on all.
    """
    if _fills_its_type(values):
        return widest(values), 0
    sample = values[:: -(-values.size // 32)]
    with np.errstate(all="ignore"):  # what overflows is not lossless, and no news
        exponents = range(_decimal_places(sample), _MAX_EXPONENT + 1)
        exponent = next((e for e in exponents if _is_lossless(values, INT32, e)), None)
        if exponent is not None:
            ends = [round(float(end) * 10**exponent) for end in (values.min(), values.max())]
            fitting = [t for t in (INT8, UINT8, INT16) if _holds(t, *ends)]
            if fitting:
                return fitting[0], exponent
        for number_type in (FLOAT16, BFLOAT16, FLOAT32):
            if _is_lossless(sample, number_type) and _is_lossless(values, number_type):
                return number_type, 0
    return (FLOAT64, 0) if exponent is None else (INT32, exponent)


def widest(values: Floats) -> int:
    """The code of values that are written as they are."""
    return FLOAT64 if values.itemsize == 8 else FLOAT32


def _fills_its_type(values: Floats) -> bool:
    """Whether the last values are no short decimals, and the last one is no smaller float."""
    if not values.size:
        return False
    probe = values.item(-1)
    if values.itemsize == 8:
        far = probe * _BEYOND_SINGLE
        if far - (far - probe) == probe:  # rounded to the 24 bits of a float32, it is the same
            return False
        # Products of small numbers are nearly exact: mostly, they tell what `round` takes long for.
        if -1e6 < probe < 1e6 and 1e-3 < probe * _MOST % 1.0 < 1.0 - 1e-3:
            return True
        return round(probe, _MAX_EXPONENT) != probe
    pattern = bit_patterns(values[-1:]).item()
    # Of single precision, one in ten looks like a decimal by chance: a few are needed.
    few = values[-4:].tolist()
    return bool(pattern % 2**13) and any(np.float32(round(x, _MAX_EXPONENT)) != x for x in few)


def _holds(number_type: int, low: int, high: int) -> bool:
    info = np.iinfo(_STORED_AS[number_type])
    return bool(info.min <= low and high <= info.max)


@lru_cache(maxsize=1024)
def _type_of_constant(bits: int, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Cached, because the atoms of one data set tend to be made of the same constants."""
    return _smallest_type(np.array([bits], dtype=f"u{dtype.itemsize}").view(dtype))


def _decimal_places(sample: Floats) -> int:
    """The fewest decimal places that write every value of a small sample; 7 if none do."""
    wide = sample.astype(np.float64, copy=False)[:, None]
    back = np.rint(wide * _POWERS) / _POWERS
    exact = (back.astype(sample.dtype, copy=False) == sample[:, None]).all(axis=0)
    return int(exact.argmax()) if exact.any() else _MAX_EXPONENT + 1
