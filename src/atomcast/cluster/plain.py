"""Objects as plain data: JSON and raw arrays, which other processes can read without unpickling.

A problem, a step and their parts are objects of this package that hold numbers, texts, arrays and
each other. That is all this form can say: reading it can only make such objects.
"""

from __future__ import annotations

import functools
import importlib
import json
import types
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_PACKAGE = "atomcast"
_LENGTH = 8  # bytes that say how long the JSON text is
_NUMBERS = "biufc"


def pack(thing: Any) -> bytes:
    """Write a thing as bytes that `unpack` turns into an equal one.

    Raises
    ------
    TypeError
        If some part of it is not plain: a user's own class, a lambda, an open file.
    """
    writer = _Writer()
    tree = writer.tree(thing, "")
    kinds = [
        {"dtype": array.dtype.str, "shape": array.shape, "order": _order(array)}
        for array in writer.arrays
    ]
    text = json.dumps({"tree": tree, "arrays": kinds}).encode()
    parts = [len(text).to_bytes(_LENGTH, "little"), text]
    parts += [array.tobytes(order=_order(array)) for array in writer.arrays]
    return b"".join(parts)


def unpack(message: bytes | bytearray | memoryview) -> Any:
    """Read what `pack` wrote; the arrays are copies that may be changed."""
    view = memoryview(message)
    start = _LENGTH + int.from_bytes(view[:_LENGTH], "little")
    head = json.loads(bytes(view[_LENGTH:start]))
    arrays = []
    for kind in head["arrays"]:
        dtype = np.dtype(kind["dtype"])
        if dtype.kind not in _NUMBERS + "SU":
            raise TypeError(f"an array of type {dtype} is not plain data")
        count = int(np.prod(kind["shape"], dtype=np.int64))
        flat = np.frombuffer(view, dtype, count, start)
        arrays.append(flat.reshape(kind["shape"], order=kind["order"]).copy(order="K"))
        start += flat.nbytes
    return _Reader(arrays).thing(head["tree"])


def _order(array: NDArray[Any]) -> Any:
    """The memory order, which is kept because sums may round differently in another one."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def attributes(thing: Any) -> dict[str, Any]:
    """Everything an object holds, by name."""
    slots = [
        name
        for kind in type(thing).__mro__
        for name in getattr(kind, "__slots__", ())
        if hasattr(thing, name)
    ]
    return {**{name: getattr(thing, name) for name in slots}, **getattr(thing, "__dict__", {})}


def _joined(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


class _Writer:
    """Turns things into trees that JSON can hold, keeping arrays aside and shared parts shared."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # an id must not be used again while we write

    def tree(self, thing: Any, path: str) -> Any:
        if thing is None or isinstance(thing, bool | int | float | str):
            return thing
        if id(thing) in self._numbers:
            return {"@": "same", "as": self._numbers[id(thing)]}
        if isinstance(thing, list):
            return [self.tree(item, f"{path}[{k}]") for k, item in enumerate(thing)]
        if isinstance(thing, tuple):
            return {"@": "tuple", "items": self.tree(list(thing), path)}
        if isinstance(thing, dict):
            items = [
                [self.tree(name, path), self.tree(part, _joined(path, name))]
                for name, part in thing.items()
            ]
            return {"@": "dict", "items": items}
        if isinstance(thing, np.generic):
            return {"@": "scalar", "array": self.tree(np.asarray(thing), path)}
        if isinstance(thing, functools.partial):
            parts = [thing.func, list(thing.args), thing.keywords]
            return {"@": "partial", "parts": self.tree(parts, path)}
        if isinstance(thing, types.MethodType):
            of = self.tree(thing.__self__, path)
            return {"@": "method", "of": of, "name": thing.__name__}
        if isinstance(thing, type) and issubclass(thing, np.generic):
            return {"@": "number_type", "dtype": np.dtype(thing).str}
        if isinstance(thing, types.FunctionType | type):
            return {"@": "name", "name": self._name(thing, path)}
        number = self._numbers[id(thing)] = len(self._numbers)
        self._kept.append(thing)
        return {"number": number, **self._object(thing, path)}

    def _object(self, thing: Any, path: str) -> dict[str, Any]:
        if isinstance(thing, np.ndarray):
            if thing.dtype.kind not in _NUMBERS + "SU":
                raise TypeError(
                    f"{path or 'this'} is an array of type {thing.dtype}, which is not plain data"
                )
            self.arrays.append(thing)
            return {"@": "array", "index": len(self.arrays) - 1}
        if sparse.issparse(thing):
            matrix = thing if thing.format in ("csc", "csr") else thing.tocsc()
            kept = [matrix.data, matrix.indices, matrix.indptr]
            kind = {"format": matrix.format, "array": isinstance(thing, sparse.sparray)}
            return {"@": "sparse", **kind, "shape": matrix.shape, "parts": self.tree(kept, path)}
        if isinstance(thing, np.random.Generator):
            return {"@": "generator", "state": self.tree(thing.bit_generator.state, path)}
        state = {
            name: self.tree(part, _joined(path, name)) for name, part in attributes(thing).items()
        }
        return {"@": "object", "class": self._name(type(thing), path), "state": state}

    @staticmethod
    def _name(thing: Any, path: str) -> str:
        name = f"{thing.__module__}:{thing.__qualname__}"
        if not _ours(thing.__module__) or "<" in name:
            raise TypeError(
                f"{path or 'this'} is {name}, which the ranks that MPICluster.launch starts cannot "
                "load: they know only what atomcast itself brings. Start your own script with "
                "mpirun and use MPICluster() there"
            )
        return name


class _Reader:
    """Turns trees into things again."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = arrays
        self._made: dict[int, Any] = {}

    def thing(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.thing(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        make = getattr(self, f"_{tree['@']}")
        made = make(tree)
        if "number" in tree:
            self._made[tree["number"]] = made
        return made

    def _same(self, tree: Any) -> Any:
        return self._made[tree["as"]]

    def _tuple(self, tree: Any) -> Any:
        return tuple(self.thing(tree["items"]))

    def _dict(self, tree: Any) -> Any:
        return dict(self.thing(tree["items"]))

    def _scalar(self, tree: Any) -> Any:
        return self.thing(tree["array"])[()]

    def _partial(self, tree: Any) -> Any:
        function, positional, named = self.thing(tree["parts"])
        return functools.partial(function, *positional, **named)

    def _method(self, tree: Any) -> Any:
        return getattr(self.thing(tree["of"]), tree["name"])

    def _name(self, tree: Any) -> Any:
        return _named(tree["name"])

    def _number_type(self, tree: Any) -> Any:
        return np.dtype(tree["dtype"]).type

    def _array(self, tree: Any) -> Any:
        return self._arrays[tree["index"]]

    def _sparse(self, tree: Any) -> Any:
        kind = f"{tree['format']}_{'array' if tree['array'] else 'matrix'}"
        return getattr(sparse, kind)(tuple(self.thing(tree["parts"])), shape=tuple(tree["shape"]))

    def _generator(self, tree: Any) -> Any:
        generator = np.random.default_rng()
        generator.bit_generator.state = self.thing(tree["state"])
        return generator

    def _object(self, tree: Any) -> Any:
        kind = _named(tree["class"])
        made = self._made[tree["number"]] = kind.__new__(kind)
        for name, part in tree["state"].items():
            object.__setattr__(made, name, self.thing(part))
        return made


def _named(name: str) -> Any:
    """The class or function of this package that has this name."""
    module, _, path = name.partition(":")
    if not _ours(module):
        raise TypeError(f"{name!r} is not a part of {_PACKAGE}")
    thing = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    if not isinstance(thing, type | types.FunctionType):
        raise TypeError(f"{name!r} is neither a class nor a function")
    return thing


def _ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
