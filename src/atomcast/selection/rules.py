"""Which atoms a node may propose: all of them, some drawn at random, or m well spread centers.

`Exact` and `RandomViolators` choose among all atoms. `RandomSubset` and `MCenters` (Algorithms 4
and 5 of the paper) score a part of the atoms only, which makes a round cheaper; the gap over that
part certifies nothing, so that such a run ends with one complete round, which gives the true gap.
`Balanced` lets slow nodes score a part only, and comes back to all atoms until the gap is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from atomcast._checks import check_choice, check_count
from atomcast.atoms.held import SpacedAtoms
from atomcast.messages.proposals import Agreement, Request
from atomcast.selection.balanced import BalancedCenters, BalancedSubset
from atomcast.selection.choosers import (
    Amount,
    CenterChooser,
    Chooser,
    Rows,
    SubsetChooser,
    amounts,
    check_amount,
)


class Selection:
    """A rule for what may be proposed, which stands between the loop and a node.

    A rule that says nothing lets all atoms be proposed, the best ones first. One that asks nodes
    for something else than the loop does is a `Rewording`, one that leaves atoms out a `Subset`.
    """


class Rewording(Selection, ABC):
    """A rule that lets nodes propose other atoms, or fewer, than the loop asks for."""

    @abstractmethod
    def asked(self, request: Request, nodes: int) -> Request:
        """What each of `nodes` nodes is asked for where the loop asks for `request`."""


class Subset(Selection, ABC):
    """A rule that leaves atoms out: the gap over the others is no certificate."""

    @abstractmethod
    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """The choice among these atoms, given how many atoms every node holds."""

    def certifies(self, agreement: Agreement) -> bool:
        """Whether all atoms count in an agreement: not unless the rule comes back to them."""
        return False


@dataclass(frozen=True)
class Exact(Selection):
    """All atoms, the best ones first."""

    name: ClassVar[str] = "exact"


@dataclass(frozen=True)
class PerNode(Rewording):
    """All atoms, with an equal share of a round's places for every node: no global ranking."""

    name: ClassVar[str] = "per-node"

    def asked(self, request: Request, nodes: int) -> Request:
        """An equal share of the places."""
        return replace(request, count=max(request.count // nodes, 1))


@dataclass(frozen=True)
class RandomViolators(Rewording):
    """Any atoms that violate optimality, drawn at random, instead of the worst ones."""

    name: ClassVar[str] = "random-violators"

    def asked(self, request: Request, nodes: int) -> Request:
        """A draw, where there is room for more than the best atom."""
        return replace(request, random=True) if request.count > 1 else request


@dataclass(frozen=True)
class RandomSubset(Subset):
    """A fixed random part of each node's atoms.

    Parameters
    ----------
    m : int, float, sequence of int, callable or "equal-work", default="equal-work"
        How many atoms of each node: a number, a share of what it holds, a number for each node, a
        function of the round, or of node and round (never falling), or as many as give all nodes
        equal work.
    speeds : sequence of float, optional
        How fast each node is; m="equal-work" is then in proportion.
    seed : int, default=0
    """

    m: Amount = "equal-work"
    speeds: Sequence[float] | None = None
    seed: int = 0

    name: ClassVar[str] = "random-subset"

    def __post_init__(self) -> None:
        check_amount(self.m, self.speeds)
        check_count("seed", self.seed, "of the random choice", minimum=0)

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """A random order of each node's atoms, of which the first m are taken."""
        return SubsetChooser(partial(amounts, self.m, self.speeds, sizes), self.seed, owner)


@dataclass(frozen=True)
class MCenters(Subset):
    """Greedy m-centers of each node's atoms (Algorithm 4), in l1 distance or in kernel space.

    Parameters
    ----------
    m, speeds : as for `RandomSubset`
    """

    m: Amount = "equal-work"
    speeds: Sequence[float] | None = None

    name: ClassVar[str] = "m-centers"

    def __post_init__(self) -> None:
        check_amount(self.m, self.speeds)

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """Greedy selection on every node that this process holds."""
        check_distances(atoms)
        return CenterChooser(partial(amounts, self.m, self.speeds, sizes), atoms, owner)


@dataclass(frozen=True)
class Balanced(Subset):
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

    def __post_init__(self) -> None:
        check_choice("base", self.base, (RandomSubset.name, MCenters.name))
        check_count("seed", self.seed, "of the random order", minimum=0)

    def chooser(self, atoms: Any, owner: Rows, sizes: Rows) -> Chooser:
        """A choice that follows the speed of the nodes."""
        if self.base == RandomSubset.name:
            return BalancedSubset(sizes, self.seed, owner)
        check_distances(atoms)
        return BalancedCenters(sizes, atoms, owner)

    def certifies(self, agreement: Agreement) -> bool:
        """Where all atoms were scored, which slow nodes come back to."""
        return agreement.complete


SELECTIONS: dict[str, Callable[[], Selection]] = {
    rule.name: rule for rule in (Exact, PerNode, RandomViolators, RandomSubset, MCenters, Balanced)
}


EXACT = Exact()


def as_selection(selection: Any) -> Selection:
    """A selection from its name, or as it is."""
    if isinstance(selection, Selection):
        return selection
    if not isinstance(selection, str) or selection not in SELECTIONS:
        raise ValueError(
            f"selection must be one of {', '.join(map(repr, SELECTIONS))}, or an "
            f"atomcast.selection.rules.Selection, got {selection!r}"
        )
    return SELECTIONS[selection]()


def check_distances(atoms: Any) -> None:
    """Refuse atoms that are not at a distance from each other."""
    if not isinstance(atoms, SpacedAtoms):
        raise ValueError(
            f'selection="m-centers" needs distances between atoms, which {type(atoms).__name__}'
            ' does not have; use selection="random-subset" or "exact"'
        )
