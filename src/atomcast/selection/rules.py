"""Which atoms a node may propose: all of them, some drawn at random, or m well spread centers.

`Exact` and `RandomViolators` choose among all atoms. `RandomSubset` and `MCenters` (Algorithms 4
and 5 of the paper) score a part of the atoms only, which makes a round cheaper; the gap over that
part certifies nothing, so that such a run ends with one complete round, which gives the true gap.
`Balanced` lets slow nodes score a part only, and comes back to all atoms until the gap is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count, check_positive
from atomcast.selection.centers import GreedyCenters

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

#: How many atoms a node may propose: a number, a share of what it holds, one number per node,
#: a function of the round, or "equal-work".
Amount = int | float | str | Sequence[int] | Callable[[int], int]


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


class Selection(Protocol):
    """A rule for what may be proposed."""

    #: Whether atoms are left out, so that the gap over the others is no certificate.
    restricted: ClassVar[bool]
    #: Whether violators are drawn at random instead of by merit.
    random: ClassVar[bool]
    #: Whether every node has an equal share of the places, so that none need be ranked.
    per_node: ClassVar[bool]
    #: Whether slow nodes leave atoms out for as long as the others have something to propose.
    balanced: ClassVar[bool]

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """The choice among these atoms, given how many atoms every node holds."""
        ...


@dataclass(frozen=True)
class Exact:
    """All atoms, the best ones first."""

    name: ClassVar[str] = "exact"
    restricted: ClassVar[bool] = False
    random: ClassVar[bool] = False
    per_node: ClassVar[bool] = False
    balanced: ClassVar[bool] = False

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """There is nothing to choose."""
        raise RuntimeError("an exact selection leaves nothing to choose: all atoms count")


@dataclass(frozen=True)
class PerNode(Exact):
    """All atoms, with an equal share of a round's places for every node: no global ranking."""

    name: ClassVar[str] = "per-node"
    per_node: ClassVar[bool] = True


@dataclass(frozen=True)
class RandomViolators(Exact):
    """Any atoms that violate optimality, drawn at random, instead of the worst ones."""

    name: ClassVar[str] = "random-violators"
    random: ClassVar[bool] = True


@dataclass(frozen=True)
class RandomSubset:
    """A fixed random part of each node's atoms.

    Parameters
    ----------
    m : int, float, sequence of int, callable or "equal-work", default="equal-work"
        How many atoms of each node: a number, a share of what it holds, a number for each node, a
        function of the round (never falling), or as many as give all nodes equal work.
    speeds : sequence of float, optional
        How fast each node is; m="equal-work" is then in proportion.
    seed : int, default=0
    """

    m: Amount = "equal-work"
    speeds: Sequence[float] | None = None
    seed: int = 0

    name: ClassVar[str] = "random-subset"
    restricted: ClassVar[bool] = True
    random: ClassVar[bool] = False
    per_node: ClassVar[bool] = False
    balanced: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_amount(self.m, self.speeds)

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """A random order of each node's atoms, of which the first m are taken."""
        return _SubsetChooser(self, owner, sizes)


@dataclass(frozen=True)
class MCenters:
    """Greedy m-centers of each node's atoms (Algorithm 4), in l1 distance or in kernel space.

    Parameters
    ----------
    m, speeds : as for `RandomSubset`
    """

    m: Amount = "equal-work"
    speeds: Sequence[float] | None = None

    name: ClassVar[str] = "m-centers"
    restricted: ClassVar[bool] = True
    random: ClassVar[bool] = False
    per_node: ClassVar[bool] = False
    balanced: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_amount(self.m, self.speeds)

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """Greedy selection on every node that this process holds."""
        check_distances(atoms)
        return _CenterChooser(self, atoms, owner, sizes)


@dataclass(frozen=True)
class Balanced:
    """As many atoms of each node as it can score while the fastest scores all of its own.

    How fast nodes are is measured whenever they score everything, as in the first round. Where what
    they have looked at since has nothing left to offer, all of them score everything once more: so
    the run goes on until the gap over all atoms is within the tolerance.

    Parameters
    ----------
    base : {"random-subset", "m-centers"}, default="random-subset"
        Which atoms a slow node looks at: in each round the next ones of a random order, or
        centers (Algorithm 4).
    seed : int, default=0
        Of the random order.
    """

    base: str = "random-subset"
    seed: int = 0

    name: ClassVar[str] = "balanced"
    restricted: ClassVar[bool] = False
    random: ClassVar[bool] = False
    per_node: ClassVar[bool] = False
    balanced: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("base", self.base, (RandomSubset.name, MCenters.name))
        check_count("seed", self.seed, "of the random order", minimum=0)

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """A choice that follows the speed of the nodes."""
        from atomcast.selection.balanced import BalancedCenters, BalancedSubset

        if self.base == RandomSubset.name:
            return BalancedSubset(self.seed, owner, sizes)
        check_distances(atoms)
        return BalancedCenters(atoms, owner, sizes)


SELECTIONS: dict[str, Callable[[], Any]] = {
    rule.name: rule for rule in (Exact, PerNode, RandomViolators, RandomSubset, MCenters, Balanced)
}


EXACT = Exact()


def as_selection(selection: Any) -> Any:
    """A selection from its name, or as it is."""
    if isinstance(selection, tuple(SELECTIONS.values())):  # type: ignore[arg-type]
        return selection
    rule: Any = SELECTIONS[check_choice("selection", selection, tuple(SELECTIONS))]()
    return rule


def check_distances(atoms: Any) -> None:
    """Refuse atoms that are not at a distance from each other."""
    if not hasattr(atoms, "space"):
        raise ValueError(
            f'selection="m-centers" needs distances between atoms, which {type(atoms).__name__}'
            ' does not have; use selection="random-subset" or "exact"'
        )


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
    elif not callable(m):
        for count in m:
            check_count("m", count, "atoms that a node may propose", minimum=0)
    for speed in speeds or ():
        check_positive("speeds", speed, "how fast a node is")


def amounts(m: Amount, speeds: Sequence[float] | None, sizes: Rows, round: int) -> Rows:
    """How many atoms each node may propose in a round, shape (N,)."""
    nodes = len(sizes)
    if callable(m):
        wanted: Any = np.full(nodes, check_count("m", m(round), "atoms that a node may propose"))
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


class _Chooser(ABC):
    """What choosers have in common: the same amounts give the same choice, which is kept."""

    def __init__(self, rule: RandomSubset | MCenters, sizes: Rows) -> None:
        self.radius: dict[int, float] = {}
        self._rule, self._sizes = rule, sizes
        self._kept: tuple[Rows, Rows] | None = None

    def rows(self, round: int) -> Rows:
        """The chosen atoms, sorted; the same array as long as nothing changes."""
        counts = amounts(self._rule.m, self._rule.speeds, self._sizes, round)
        if self._kept is None or not np.array_equal(self._kept[0], counts):
            parts = [np.zeros(0, dtype=np.int64), *self._chosen(counts)]
            self._kept = counts, np.sort(np.concatenate(parts))
        return self._kept[1]

    @abstractmethod
    def _chosen(self, counts: Rows) -> list[Rows]:
        """The choice of every node that this process holds."""


class _SubsetChooser(_Chooser):
    def __init__(self, rule: RandomSubset, owner: Rows, sizes: Rows) -> None:
        super().__init__(rule, sizes)
        self._orders = {
            int(node): np.random.default_rng((rule.seed, int(node))).permutation(
                np.flatnonzero(owner == node)
            )
            for node in np.unique(owner)
        }

    def _chosen(self, counts: Rows) -> list[Rows]:
        return [order[: counts[node]] for node, order in self._orders.items()]


class _CenterChooser(_Chooser):
    def __init__(self, rule: MCenters, atoms: Any, owner: Rows, sizes: Rows) -> None:
        super().__init__(rule, sizes)
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
