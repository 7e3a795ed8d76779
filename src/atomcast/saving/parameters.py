"""Constructor parameters of an estimator as JSON, and back."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

#: Parts of a `SparseModel` that a file may name, with their fields, and where they are.
PARTS = {
    "SquaredLoss": "atomcast.objectives",
    "LogisticLoss": "atomcast.objectives",
    "L1Ball": "atomcast.domains",
    "Simplex": "atomcast.domains",
    "SolidSimplex": "atomcast.domains",
}
#: Classes that a file may name, which make an objective of a target.
MAKERS = {"SquaredError": "atomcast.objectives", "Logistic": "atomcast.objectives"}

#: Longest description of a parameter that cannot be saved.
_LONGEST = 200


def encoded(value: Any) -> Any:
    """A parameter as JSON; what has no such form is only described, as {"not saved": ...}.

    Clusters and callbacks are of the second kind: where and how to fit again is up to whoever
    loads the model.
    """
    from atomcast.loop.solver import Solver

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [encoded(item) for item in value]
    if isinstance(value, dict):
        return {"items": [[encoded(key), encoded(item)] for key, item in value.items()]}
    if isinstance(value, Solver):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        # Where to resume from is a matter of one run: a model that is fitted again starts afresh.
        kept = {key: item for key, item in named.items() if key not in ("callbacks", "resume")}
        return {"solver": {key: encoded(item) for key, item in kept.items()}}
    if isinstance(value, type) and _is_ours(value, MAKERS):
        return {"class": value.__name__}
    if _is_ours(type(value), PARTS):
        given = {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
        return {"part": type(value).__name__, "with": given}
    return {"not saved": repr(value)[:_LONGEST]}


def _is_ours(kind: type, known: Mapping[str, str]) -> bool:
    """Whether this is the class that a list has under its name, and not another one."""
    return kind.__name__ in known and kind is _known(kind.__name__, known)


def _known(name: Any, known: Mapping[str, str]) -> Any:
    if name not in known:
        raise ValueError(f"{name!r} is none of {', '.join(known)}")
    return getattr(importlib.import_module(known[name]), name)


def decoded(value: Any) -> Any:
    """The parameter that was encoded."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict) and "items" in value:
        return {decoded(key): decoded(item) for key, item in value["items"]}
    if isinstance(value, dict) and "solver" in value:
        from atomcast.loop.solver import Solver

        return Solver(**{key: decoded(item) for key, item in value["solver"].items()})
    if isinstance(value, dict) and "class" in value:
        return _known(value["class"], MAKERS)
    if isinstance(value, dict) and "part" in value:
        given = {key: decoded(item) for key, item in value["with"].items()}
        return _known(value["part"], PARTS)(**given)
    return value


def is_saved(value: Any) -> bool:
    """Whether an encoded parameter can be decoded, all of it."""
    if isinstance(value, list):
        return all(map(is_saved, value))
    if isinstance(value, dict):
        return "not saved" not in value and all(map(is_saved, value.values()))
    return True


def readable(value: Any) -> Any:
    """An encoded parameter as people would write it: for tables and for --json."""
    if isinstance(value, list):
        return [readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "not saved" in value:
        return value["not saved"]
    if "class" in value:
        return value["class"]
    if "part" in value:
        given = ", ".join(f"{key}={readable(item)}" for key, item in value["with"].items())
        return f"{value['part']}({given})"
    if "items" in value:
        return {str(readable(key)): readable(item) for key, item in value["items"]}
    return {key: readable(item) for key, item in value.get("solver", value).items()}
