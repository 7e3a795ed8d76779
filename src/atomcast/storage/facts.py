"""What an object says: the one walk over objects, for whoever compares or remembers them."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

Facts = dict[str, str]


class Untold(str):
    """A fact that does not tell one thing from another of its kind, such as an open file."""


def facts(thing: Any, passing: str, path: str = "") -> Facts:
    """What an object of this package means, as texts by path; arrays are told by their hash.

    Attributes that begin with an underscore are workspace, and do not count.

    Parameters
    ----------
    thing : object
    passing : {"immaterial", "private"}
        Of a class that says this of itself, only the name counts.
    path : str
        How to get to it from where the walk began.
    """
    import xxhash

    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, bool | int | float | complex | str | bytes):
        return {path: repr(thing)}
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        digest = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(thing).data)
        return {path: f"an array of {thing.dtype.str}, shape {thing.shape}, hash {digest}"}
    name = type(thing).__qualname__
    parts: Mapping[Any, Any] | None
    if isinstance(thing, type) or getattr(type(thing), passing, False):
        name, parts = getattr(thing, "__qualname__", name), {}
    elif isinstance(thing, types.FunctionType):
        held = [cell.cell_contents for cell in thing.__closure__ or ()]
        name, parts = f"{thing.__module__}.{thing.__qualname__}", dict(enumerate(held))
    elif isinstance(thing, types.MethodType):
        name, parts = f"method {thing.__name__}", {"self": thing.__self__}
    else:
        parts = _parts(thing)
    if parts is None:
        return {path: Untold(f"some {name}")}
    found: Facts = {f"type of {path}" if path else "type": name}
    for key, part in parts.items():
        found |= facts(part, passing, f"{path}.{key}" if path else str(key))
    return found


def _parts(thing: Any) -> Mapping[Any, Any] | None:
    """What an object holds, by name; None if nobody can look into it."""
    if isinstance(thing, Mapping):
        return thing
    if isinstance(thing, list | tuple):
        return dict(enumerate(thing))
    if isinstance(thing, np.ndarray):
        return dict(enumerate(thing.tolist()))
    if isinstance(thing, functools.partial):
        return {"function": thing.func, **dict(enumerate(thing.args)), **thing.keywords}
    if sparse.issparse(thing):
        matrix = thing.tocsc()
        names = ("shape", "data", "indices", "indptr")
        return {name: getattr(matrix, name) for name in names}
    slots = [
        name
        for kind in type(thing).__mro__
        for name in getattr(kind, "__slots__", ())
        if hasattr(thing, name)
    ]
    if not slots and not hasattr(thing, "__dict__"):
        return None
    every = {**{name: getattr(thing, name) for name in slots}, **getattr(thing, "__dict__", {})}
    return {name: every[name] for name in every if not name.startswith("_")}
