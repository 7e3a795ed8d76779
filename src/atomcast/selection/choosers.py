"""The choices that selections lead to: which of a process's atoms may be proposed in a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import signature
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count, check_numbers, check_positive
from atomcast.selection.m_centers import GreedyCenters

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: How many atoms a node may propose: a number, a share of what it holds, one number per node,
#: a function of the round, or of node and round, or "equal-work".
Amount = int | float | str | Sequence[int] | Callable[[int], int] | Callable[[int, int], int]


class Chooser(Protocol):
    """The choice of one process: which of its atoms may be proposed in a round."""

    #: By node, the largest distance from an atom to the nearest one chosen, where that is known.
    radius: dict[int, float]

    def rows(self, round: int) -> Rows:
        """The chosen atoms, sorted; a later round never has fewer."""
        ...


@runtime_checkable
class PacedChooser(Chooser, Protocol):
    """A choice that depends on how fast nodes are."""

    #: How many atoms a second each node scores, shape (N,).
    speeds: Floats | None


def check_amount(m: Any, speeds: Any) -> None:
    """Refuse an amount that `amounts` would not understand."""
    if isinstance(m, str):
        check_choice("m", m, ("equal-work",))
    elif isinstance(m, Integral):
        check_count("m", m, "atoms that a node may propose")
    elif isinstance(m, Real):
        check_positive("m", m, "the share of its atoms that a node may propose")
        if float(m) > 1:
            raise ValueError(f"m={m!r} is not accepted: a share is at most 1.0; or pass an int")
    elif isinstance(m, Sequence | np.ndarray):
        for count in m:
            check_count("m", count, "atoms that a node may propose", minimum=0)
    elif not callable(m):
        raise ValueError(
            'm must be a number of atoms, a share of them, "equal-work", a list with a number for '
            f"each node, or a function of the round, got {m!r}"
        )
    if speeds is not None:
        for speed in check_numbers("speeds", speeds, "how fast each node is").ravel().tolist():
            check_positive("speeds", speed, "how fast a node is")


def amounts(m: Amount, speeds: Sequence[float] | None, sizes: Rows, round: int) -> Rows:
    """How many atoms each node may propose in a round, shape (N,)."""
    nodes = len(sizes)
    if callable(m):
        told: Callable[..., int] = m
        both = len(signature(told).parameters) == 2
        asked = [told(node, round) for node in range(nodes)] if both else [told(round)] * nodes
        for one in dict.fromkeys(asked):
            check_count("m", one, "atoms that a node may propose")
        wanted: Any = np.array(asked)
    elif isinstance(m, str):
        speed = np.ones(nodes) if speeds is None else np.asarray(speeds, dtype=np.float64)
        if len(speed) != nodes:
            raise ValueError(f"speeds has {len(speed)} entries, but there are {nodes} nodes")
        busy = sizes > 0
        time = float(np.min(sizes[busy] / speed[busy])) if busy.any() else 0.0
        wanted = np.maximum(np.floor(time * speed + 1e-9), 1)
    elif isinstance(m, Integral):
        wanted = np.full(nodes, int(m))
    elif isinstance(m, Real):
        wanted = np.ceil(float(m) * sizes)
    else:
        wanted = np.asarray(m)
        if len(wanted) != nodes:
            raise ValueError(f"m has {len(wanted)} entries, but there are {nodes} nodes")
    return np.minimum(wanted, sizes).astype(np.int64)


class PartChooser(ABC):
    """What choosers have in common: the same amounts give the same choice, which is kept.

    Parameters
    ----------
    counts : callable
        How many atoms of each node are chosen in a round, shape (N,).
    """

    def __init__(self, counts: Callable[[int], Rows]) -> None:
        self.radius: dict[int, float] = {}
        self._counts = counts
        self._kept: tuple[Rows, Rows] | None = None

    def rows(self, round: int) -> Rows:
        """The chosen atoms, sorted; the same array as long as nothing changes."""
        counts = self._counts(round)
        if self._kept is None or not np.array_equal(self._kept[0], counts):
            parts = [np.zeros(0, dtype=np.int64), *self._chosen(counts)]
            self._kept = counts, np.sort(np.concatenate(parts))
        return self._kept[1]

    @abstractmethod
    def _chosen(self, counts: Rows) -> list[Rows]:
        """The choice of every node that this process holds."""


class SubsetChooser(PartChooser):
    """The first m atoms of a random order on every node."""

    def __init__(self, counts: Callable[[int], Rows], seed: int, owner: Rows) -> None:
        super().__init__(counts)
        self._orders = {
            int(node): np.random.default_rng((seed, int(node))).permutation(
                np.flatnonzero(owner == node)
            )
            for node in np.unique(owner)
        }

    def _chosen(self, counts: Rows) -> list[Rows]:
        return [order[: counts[node]] for node, order in self._orders.items()]


class CenterChooser(PartChooser):
    """Greedy centers of every node's atoms."""

    def __init__(self, counts: Callable[[int], Rows], atoms: Any, owner: Rows) -> None:
        super().__init__(counts)
        space = atoms.space()
        self._nodes = {
            int(node): GreedyCenters(space, np.flatnonzero(owner == node))
            for node in np.unique(owner)
        }

    def _chosen(self, counts: Rows) -> list[Rows]:
        for node, centers in self._nodes.items():
            centers.grow(int(counts[node]))
            self.radius[node] = centers.radius
        return [np.array(centers.centers, dtype=np.int64) for centers in self._nodes.values()]
