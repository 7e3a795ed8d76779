"""What users may say of views and kernels, turned into a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.view_atoms import view_points
from atomcast.data.grouped import GroupedShards
from atomcast.data.shards import Shard, Shards
from atomcast.domains.group_ball import as_groups, check_whole_groups
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.view_kernels import FittedKernel, ViewKernel

Ints = NDArray[np.int64]
Kernels = tuple[ViewKernel, ...]

#: Kernels on every view if nobody says otherwise: three widths around the mean distance, a plane.
USUAL: Kernels = (
    *(ViewKernel(KernelSpec("rbf"), factor) for factor in (0.25, 1.0, 4.0)),
    ViewKernel(KernelSpec("linear")),
)
PRECOMPUTED: Kernels = (ViewKernel(None),)
_ACCEPTED = (
    'a name ("rbf", "linear", "poly", "laplacian"), a function of two sets of points, a dict such '
    'as {"kernel": "rbf", "gamma": 0.5} or {"kernel": "rbf", "factor": 4}, a list of these, '
    '"precomputed", or a dict from views (by number or party name) to any of these'
)


def stacked(kernels: Any, X: Any) -> Any:
    """Precomputed matrices side by side, if they were given as a list or with three dimensions."""
    if not (isinstance(kernels, str) and kernels == "precomputed"):
        return X
    if isinstance(X, np.ndarray) and X.ndim == 3:
        X = list(X)
    if isinstance(X, list | tuple) and len(X) and all(np.ndim(part) == 2 for part in X):
        rows = {len(part) for part in X}
        if len(rows) > 1:
            raise ValueError(f"X is a list of kernels with {sorted(rows)} rows: all need the same")
        return np.hstack([np.asarray(part) for part in X])
    return X


def in_views(
    views: Any, kernels: Any, shards: Shards, given: bool
) -> tuple[Shards, tuple[Ints, ...], tuple[str, ...]]:
    """Shards in which each view is on one node, the columns of each view, and their names.

    Parameters
    ----------
    views, kernels : as the user gave them
    shards : Shards
    given : bool
        Whether it was the user who cut the data into shards, which is then as it is.
    """
    named = None
    if views is None and given:
        views = "sources"
    if isinstance(views, str) and views == "sources":
        named = shards.party_names
    if views is None and isinstance(kernels, str) and kernels == "precomputed":
        views = _square_blocks(shards.rows(), shards.count())
    elif views is None:
        views = [list(range(shards.count()))]
    groups = as_groups(views, None, shards, called="views")
    if not given:
        shards = GroupedShards(shards.matrix, shards.nodes, groups.labels, shards.names)
    check_whole_groups(groups, shards, called="view")
    columns = [groups.members(k) for k in range(len(groups))]
    if not isinstance(views, str):  # in the order in which the user gave them
        firsts = {int(c[0]): c for c in columns}
        columns = [firsts[min(_numbers(view, shards))] for view in views]
    held = np.unique(shards.assignment())
    names = [named[i] for i in held] if named else [f"view {k}" for k in range(len(columns))]
    return shards, tuple(columns), tuple(names)


def _numbers(view: Iterable[Any], shards: Shards) -> list[int]:
    names = list(shards.names or ())
    return [names.index(c) if isinstance(c, str) else int(c) for c in view]


def _square_blocks(rows: int, columns: int) -> list[list[int]]:
    if columns % rows:
        raise ValueError(
            f'X has {columns} columns and {rows} rows: with kernels="precomputed" and no views, '
            "give one or more square matrices, side by side or as a list"
        )
    return [list(range(start, start + rows)) for start in range(0, columns, rows)]


def in_kernels(kernels: Any, names: tuple[str, ...]) -> tuple[Kernels, ...]:
    """The kernels of each view."""
    if not isinstance(kernels, Mapping) or "kernel" in kernels:
        return (_several(kernels),) * len(names)
    by_view: dict[int, Kernels] = {}
    for view, own in kernels.items():
        number = names.index(view) if view in names else view
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise ValueError(f"kernels has the view {view!r}, but the views are {names}")
        if not 0 <= number < len(names):
            raise ValueError(f"kernels has the view {view}, but there are {len(names)}, from 0")
        by_view[int(number)] = _several(own)
    missing = [name for k, name in enumerate(names) if k not in by_view]
    if missing:
        raise ValueError(f"kernels says nothing of {missing[0]}: name the kernels of every view")
    return tuple(by_view[k] for k in range(len(names)))


def _several(kernels: Any) -> Kernels:
    if kernels is None:
        return USUAL
    if isinstance(kernels, str) and kernels == "precomputed":
        return PRECOMPUTED
    listed = kernels if isinstance(kernels, list | tuple) else [kernels]
    if not listed:
        raise ValueError(f"kernels is empty: accepted are {_ACCEPTED}")
    return tuple(_one(kernel) for kernel in listed)


def _one(kernel: Any) -> ViewKernel:
    if isinstance(kernel, Mapping):
        unknown = set(kernel) - {"kernel", "gamma", "degree", "coef0", "factor"}
        if unknown:
            raise ValueError(f"kernels has a parameter {min(map(str, unknown))!r}: {_ACCEPTED}")
        rest = {name: value for name, value in kernel.items() if name != "factor"}
        return ViewKernel(_certain(KernelSpec(**rest)), kernel.get("factor", 1.0))
    if isinstance(kernel, str) or callable(kernel):
        return ViewKernel(_certain(KernelSpec(kernel)))
    raise ValueError(f"kernels has {kernel!r}: accepted are {_ACCEPTED}")


def _certain(spec: KernelSpec) -> KernelSpec:
    if spec.kernel in ("sigmoid", "precomputed"):
        raise ValueError(f"kernels has {spec.kernel!r} among others: accepted are {_ACCEPTED}")
    return spec


class Holders:
    """The nodes of shards, each of which reads its own part once."""

    def __init__(self, shards: Shards | None) -> None:
        self.shards = shards
        self._read: dict[int, Shard] = {}

    def points(self, columns: NDArray[np.int64]) -> Any:
        """The columns of a view, from the node that holds them all."""
        assert self.shards is not None
        owners = self.shards.assignment()[columns]
        if np.any(owners != owners[0]):
            raise ValueError(
                f"a view is split: columns {columns[0]} ... {columns[-1]} are on the nodes "
                f"{np.unique(owners)}; a whole view must live on one node"
            )
        owner = int(owners[0])
        if owner not in self._read:
            self._read[owner] = self.shards.shard(owner)
        return view_points(self._read[owner], columns)

    def examples(self, function: FittedKernel) -> Any:
        """The examples that a function is made of; none where kernel values are given."""
        if function.points is not None or function.kernel.spec is None:
            return function.points
        return self.points(function.columns)
