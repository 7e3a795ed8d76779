"""Checks of parameters that several modules share: the error names parameter, value and remedy."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache, partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Generic, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Numbers beyond these are refused: a few products of them would leave the range of floats, and a
#: certificate that is worked out from infinities or from zeros would be worth nothing.
SMALLEST, LARGEST = 1e-100, 1e100
#: What counts as a number: usual types first, for those of others take many times as long to tell.
NUMBER, WHOLE = (float, int, Real), (int, Integral)


def is_able(holder: Any, protocol: Any) -> TypeGuard[Any]:
    """Whether an object has what a protocol asks for.

    That is `isinstance`, which takes longer for a protocol than a round of a small fit does.
    """
    kind: Any = type(holder)
    return all(map(partial(hasattr, holder), _lacking(kind, protocol)))


@cache
def _lacking(kind: Any, protocol: Any) -> tuple[str, ...]:
    """What a protocol asks for, those before it in their line included, and a class has not."""
    line = (vars(part) for part in protocol.__mro__ if part not in (object, Protocol, Generic))
    names = (name for own in line for name in (*own, *own.get("__annotations__", ())))
    asked = dict.fromkeys(name for name in names if not name.startswith("_"))
    return tuple(name for name in asked if not hasattr(kind, name))


def check_positive(name: str, value: Any, meaning: str) -> float:
    """Return `value` as a float if it is a finite number above zero, else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, NUMBER) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number > 0 ({meaning}), got {value!r}")
    return float(value)


def check_not_negative(name: str, value: Any, meaning: str) -> float:
    """Return `value` as a float if it is a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, NUMBER) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number >= 0 ({meaning}), got {value!r}")
    return float(value)


def check_in_scale(name: str, numbers: ArrayLike, meaning: str = "") -> None:
    """Raise ValueError if the largest of some numbers is too large or too small to compute with."""
    if isinstance(numbers, float | int):  # far quicker without an array
        largest = float(abs(numbers))
    else:
        numbers = np.asarray(numbers)  # of which there may be many: no copy of them
        largest = float(np.maximum(numbers.max(initial=0.0), -numbers.min(initial=0.0)))
    if largest and not SMALLEST <= largest <= LARGEST:
        raise ValueError(
            f"{name} is out of scale{meaning and f' ({meaning})'}: its largest absolute value is "
            f"{largest:.3g}, and squares and products of values beyond {SMALLEST:g} and "
            f"{LARGEST:g} cannot be computed; rescale it, and all that is measured in its unit"
        )


def check_count(name: str, value: Any, meaning: str, minimum: int = 1) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, WHOLE) or int(value) < minimum:
        raise ValueError(f"{name} must be a whole number >= {minimum} ({meaning}), got {value!r}")
    return int(value)


def check_flags(holder: Any) -> None:
    """Raise ValueError unless all parameters of a dataclass that are flags are True or False."""
    kind: Any = type(holder)
    for name in _flags(kind):
        check_flag(name, getattr(holder, name))


@cache
def _flags(kind: Any) -> tuple[str, ...]:
    """The names of the parameters of a dataclass that are flags."""
    return tuple(field.name for field in fields(kind) if field.type in ("bool", bool))


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False, else raise ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_numbers(name: str, values: Any, meaning: str) -> NDArray[np.float64]:
    """Return numbers as an array, whatever its shape, or raise a ValueError that names them."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind == "c":  # all but the real parts would be dropped
            raise TypeError
        return numbers.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers ({meaning}), got {values!r:.200}") from None


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, else raise a ValueError that lists them."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value


def check_folder(name: str, path: Path) -> None:
    """Raise OSError unless a file can be made beside `path`: better before the work than after."""
    import tempfile

    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {folder}: create it first")
    try:
        tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=".part").close()
    except OSError as error:
        raise OSError(
            f"{name}: nothing can be written to the folder {folder} ({error.strerror}): "
            "give a path in another one, or make this one writable"
        ) from error


def visible(text: str) -> str:
    """A text in which nothing can command a terminal, or turn what people read around."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
