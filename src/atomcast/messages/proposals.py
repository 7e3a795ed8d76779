"""What nodes say to each other in a round: requests, proposals and the agreement."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.errors import FalseMessageError
from atomcast.messages.atom import Atom

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

#: Scores closer than this, relatively, are a tie: rounding depends on the shape of a shard.
TIE = 1e-12
#: Up to so many rows, a loop over plain numbers is faster than calls on arrays.
FEW = 12
#: So many proposals of many signals are looked at in one piece.
PIECE = 1 << 16


@dataclass(frozen=True)
class Request:
    """What a node is asked to propose; every node derives the same one from what it knows.

    Parameters
    ----------
    count : int
        How many atoms the round can take.
    threshold : float
        Only atoms with a merit above this are of use.
    known_too : bool
        Whether an atom that was broadcast before may be proposed again.
    partial_sums : bool
        Whether S_i of Algorithm 3 is to be sent along.
    random : bool
        Whether atoms are drawn at random, by a hash of their ids, instead of by merit.
    complete : bool
        Whether all atoms count, also where the selection leaves some out.
    blocks : bool
        Whether nodes are to take block steps of their own, where they contribute to a sum.
    signals : int
        How many signals choose an atom each; 0: all atoms are for one.
    candidates : int
        Of so many atoms, those that better ones will make superfluous are left out; 0: of none.
    """

    count: int = 1
    threshold: float = -np.inf
    known_too: bool = True
    partial_sums: bool = False
    random: bool = False
    complete: bool = False
    signals: int = 0
    blocks: bool = False
    candidates: int = 0

    @cached_property
    def single(self) -> bool:
        """Whether it takes the best atom of all, known or not, however good: one a node will do."""
        best = self.count == 1 and self.known_too and self.threshold == -np.inf
        return best and not (self.random or self.signals)


class Proposals(NamedTuple):
    """The proposals of N nodes in one table, sorted by node and then by rank.

    Parameters
    ----------
    node, id, score, merit : arrays of shape (p,)
        One row a proposed atom. The merit is what it is ranked by: a random number where atoms
        are drawn at random; it says nothing where they have won already.
    best : array of shape (N,)
        The largest merit on each node, of all its atoms; -inf on a node without atoms.
    partial : array of shape (N,) or None
        The partial sums S_i.
    sum : array of shape (m,) or None
        In the place of proposals, the sum of what these nodes contribute to one vector.
    signals : int
        How many signals choose an atom each; what stands for id is then id * signals + signal.
    counts : array of shape (N,) or None
        How many atoms each node proposes, where signals have chosen among them already: the rows
        are then those that win, one a signal, in the order of signals.
    """

    node: NDArray[np.int64]
    id: Ids
    score: Floats
    merit: Floats
    best: Floats
    partial: Floats | None = None
    signals: int = 0
    sum: Floats | None = None
    counts: NDArray[np.int64] | None = None

    @property
    def per_node(self) -> NDArray[np.int64]:
        """How many atoms each node proposes, shape (N,)."""
        if self.counts is not None:
            return self.counts
        return np.bincount(self.node, minlength=len(self.best))

    def of(self, heard: NDArray[np.bool_]) -> Proposals:
        """What some of the nodes propose, where the others are not heard; `heard` is (N,)."""
        rows = heard[self.node]
        return Proposals(
            self.node[rows],
            self.id[rows],
            self.score[rows],
            self.merit[rows],
            np.where(heard, self.best, -np.inf),
            None if self.partial is None else np.where(heard, self.partial, 0.0),
        )

    @staticmethod
    def of_sum(nodes: int, total: Floats) -> Proposals:
        """The sum of what some of N nodes contribute, in the place of proposals."""
        none = np.zeros(0, dtype=np.int64)
        return Proposals(none, none, np.zeros(0), np.zeros(0), np.zeros(nodes), sum=total)

    @staticmethod
    def merged(parts: list[Proposals]) -> Proposals:
        """One table of the tables of several processes, each with as many nodes as all."""
        partial = None
        if parts[0].partial is not None:
            partial = np.sum([np.asarray(part.partial) for part in parts], axis=0)
        total = None
        if parts[0].sum is not None:
            total = np.sum([np.asarray(part.sum) for part in parts], axis=0)
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("node", "id", "score", "merit")
        }
        order = np.argsort(joined["node"], kind="stable")
        return Proposals(
            **{name: column[order] for name, column in joined.items()},
            best=np.max([part.best for part in parts], axis=0),
            partial=partial,
            sum=total,
            signals=parts[0].signals,
        )


class OneProposal(NamedTuple):
    """What one node says where a round takes a single atom, known or not: in plain numbers.

    Arrays of one element take longer than all else in a short round.
    """

    node: int
    id: int
    score: float
    merit: float
    best: float
    partial: float | None

    def table(self, nodes: int) -> Proposals:
        """The same as a table, in which the other nodes say nothing."""
        best, partial = np.full(nodes, -np.inf), None
        best[self.node] = self.best
        if self.partial is not None:
            partial = np.zeros(nodes)
            partial[self.node] = self.partial
        return Proposals(
            np.array([self.node]),
            np.array([self.id]),
            np.array([self.score]),
            np.array([self.merit]),
            best,
            partial,
        )


class OneEach(NamedTuple):
    """What each of a few nodes says in such a round, by node."""

    id: tuple[int, ...]
    score: tuple[float, ...]
    merit: tuple[float, ...]
    best: tuple[float, ...]
    partial: tuple[float, ...] | None

    def table(self) -> Proposals:
        """The same as a table."""
        return Proposals(
            np.arange(len(self.id)),
            np.array(self.id),
            np.array(self.score),
            np.array(self.merit),
            np.array(self.best),
            None if self.partial is None else np.array(self.partial),
        )


@dataclass(frozen=True)
class Choice:
    """Which atom each of many signals has chosen, and its score; shape (c,), by signal."""

    signal: Ids
    id: Ids
    score: Floats


class Agreement(NamedTuple):
    """What everybody knows after the proposals: the winners, the best merit, the sum of S_i.

    Where a node was not heard, the agreement is not `complete`: the atoms of that node may have any
    merit, so that no gap is certified. Scores are about the present iterate, unless `version` says
    for each of them in which round its iterate was; -1 is an iterate that only its owner knows.
    Where nodes contribute to a `sum`, that is the winner: nobody owns it, and everybody has it.
    Where many signals choose, the winners are all atoms that were chosen, and `choice` says by
    which signals. Where nodes are to send mixtures of their own atoms, it is `mixed`: what is then
    cast is no winner, but the point that all mixtures lead to.
    """

    best: float
    owner: NDArray[np.int64]
    id: Ids
    score: Floats
    inner: float | None = None
    complete: bool = True
    version: Ids | None = None
    sum: Atom | None = None
    choice: Choice | None = None
    mixed: bool = False

    @property
    def told(self) -> int:
        """How many scores with their indices it takes to tell it."""
        return len(self.id) if self.choice is None else len(self.choice.id)

    def new_to(self, known: Container[int]) -> list[tuple[int, int]]:
        """The owner and id of each winner that is not known, in order."""
        if len(self.id) == 1:  # as in most short rounds
            id = self.id.item()
            return [] if id in known else [(self.owner.item(), id)]
        pairs = zip(self.owner.tolist(), self.id.tolist(), strict=True)
        return [(owner, id) for owner, id in pairs if id not in known]

    @property
    def summed(self) -> list[Atom]:
        """The sum that has won, if the step wants it."""
        return [] if self.sum is None or not len(self.id) else [self.sum]

    def first(self, count: int) -> Agreement:
        """The same agreement with fewer winners."""
        return self.of(slice(count))

    def of(self, rows: Ids | slice) -> Agreement:
        """The same agreement with some of its winners."""
        return self._replace(
            owner=self.owner[rows],
            id=self.id[rows],
            score=self.score[rows],
            version=None if self.version is None else self.version[rows],
        )


def ranking(merit: Floats, id: Ids, node: Ids | None = None) -> Ids:
    """Order by node, then by falling merit, where merits that tie are ordered by global id.

    A tie is a chain of neighbours closer than `TIE`, so that the outcome does not hang on how
    rounding falls: that differs between shards of different shape.
    """
    if node is None and len(merit) <= FEW:
        few = _ranking_of_few(merit.tolist(), id.tolist())
        if few is not None:
            return np.array(few, dtype=np.int64)
    order = _by_node_and_merit(merit, node)
    sorted_merit = merit[order]
    new_group = sorted_merit[:-1] - sorted_merit[1:] > TIE * np.abs(sorted_merit[:-1])
    if node is not None:
        new_group |= node[order][1:] != node[order][:-1]
    if new_group.all():
        return order
    group = np.concatenate(([0], np.cumsum(new_group)))
    return np.asarray(order[np.lexsort((id[order], group))])


def leaders(merit: Floats, id: Ids, node: Ids, count: int, signals: int = 0) -> Ids:
    """The best `count` rows of every node, ordered as by `ranking`.

    Where signals choose, it is the best row of every node and signal.
    """
    if signals:
        node, count = node * signals + id % signals, 1
    if len(merit) <= FEW:
        few = _leaders_of_few(merit.tolist(), id.tolist(), node.tolist(), count)
        if few is not None:
            return np.array(few, dtype=np.int64)
    order = _by_node_and_merit(merit, node)
    rank = rank_in_group(node[order])
    # Rows that tie with a node's last place stay in for the moment: the smallest id wins it.
    last = np.full(int(node.max(initial=-1)) + 1, -np.inf)
    at_last = order[rank == count - 1]
    last[node[at_last]] = merit[at_last] - 2 * TIE * np.abs(merit[at_last])
    rows = order[merit[order] >= last[node[order]]]
    rows = rows[ranking(merit[rows], id[rows], node[rows])]
    return np.asarray(rows[rank_in_group(node[rows]) < count])


def rank_in_group(group: Ids) -> Ids:
    """The place 0, 1, 2, ... of each row within its run of equal group numbers."""
    place = np.arange(len(group))
    starts = np.concatenate(([True], group[1:] != group[:-1]))[: len(group)]
    return np.asarray(place - np.maximum.accumulate(np.where(starts, place, 0)))


def random_order(id: Ids, round: int) -> Floats:
    """A number in [0, 1) for every atom, the same on every node: a hash of id and round."""
    with np.errstate(over="ignore"):
        word = id.astype(np.uint64) + np.uint64(round + 1) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
        word ^= word >> np.uint64(31)
    return (word >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _by_node_and_merit(merit: Floats, node: Ids | None) -> Ids:
    order = np.argsort(-merit)
    if node is None:
        return order
    # Two sorts, the second one by radix, beat one sort by two keys several times over.
    short = node.astype(np.uint16) if np.max(node, initial=0) < 2**16 else node
    return np.asarray(order[np.argsort(short[order], kind="stable")])


def _ranking_of_few(merit: list[float], id: list[int]) -> list[int] | None:
    """What `ranking` says of a few rows of one table; None where a merit is not a number."""
    order = sorted(range(len(merit)), key=merit.__getitem__, reverse=True)
    ranked: list[int] = []
    tied: list[int] = []
    above = np.inf
    for row in order:
        here = merit[row]
        if here != here:
            return None
        if tied and above - here > TIE * abs(above):
            ranked += tied if len(tied) == 1 else sorted(tied, key=id.__getitem__)
            tied = []
        tied.append(row)
        above = here
    return ranked + sorted(tied, key=id.__getitem__)


def _leaders_of_few(
    merit: list[float], id: list[int], node: list[int], count: int
) -> list[int] | None:
    """What `leaders` says of a few rows; None where a merit is not a number."""
    rows_of: dict[int, list[int]] = {}
    if any(number != number for number in merit):
        return None
    for row, holder in enumerate(node):
        rows_of.setdefault(holder, []).append(row)
    chosen: list[int] = []
    for holder in sorted(rows_of):
        rows = rows_of[holder]
        merits = [merit[row] for row in rows]
        if len(rows) >= count:
            last = sorted(merits, reverse=True)[count - 1]
            floor = last - 2 * TIE * abs(last)
            rows = [row for row in rows if merit[row] >= floor]
            merits = [merit[row] for row in rows]
        ranked = _ranking_of_few(merits, [id[row] for row in rows]) or []
        chosen += [rows[place] for place in ranked[:count]]
    return chosen


def _clear_winner(merit: Sequence[float]) -> int:
    """The row with the largest merit, if nothing ties with it; else -1."""
    best, top = max(merit) if merit else np.nan, -1
    floor = best - 2 * TIE * abs(best)
    for row, here in enumerate(merit):
        if not here < floor:  # or is not a number
            if top >= 0:
                return -1
            top = row
    return top


def _largest(numbers: Floats) -> float:
    """The largest of a few or many numbers; -inf if there are none."""
    if len(numbers) > FEW:
        return float(numbers.item(numbers.argmax()))  # a third of the time of `max`
    largest = -np.inf
    for number in numbers.tolist():
        if number > largest or number != number:  # what is not a number stays
            largest = number
    return largest


def _sum(numbers: Floats) -> float:
    """The sum of a few or many numbers."""
    if len(numbers) > FEW:
        return float(np.add.reduce(numbers))  # half the time of `sum`
    total = 0.0
    for number in numbers.tolist():
        total += number
    return total


def checked_best(best: Floats) -> float:
    """The largest of the best merits of all nodes.

    Raises
    ------
    FalseMessageError
        If one of them is no number; the message names the node.
    """
    largest = _largest(best)
    if largest < np.inf:
        return largest
    node = int(np.argmin(best < np.inf))
    raise FalseMessageError(
        f"node {node} says that its best atom has the merit {best[node]}: its data is out of scale "
        "(rescale it, so that products of values can be computed), or the node is broken"
    )


def agree(proposals: Proposals, count: int) -> Agreement:
    """The agreement that everybody reaches: the best `count` of all proposals."""
    if proposals.signals:
        return _chosen_by_signals(proposals)
    alone = len(proposals.best) == 1  # what a node proposes is in order
    rows = slice(count) if alone else _first_rows(proposals.merit, proposals.id, count)
    return Agreement(
        best=checked_best(proposals.best),
        owner=proposals.node[rows],
        id=proposals.id[rows],
        score=proposals.score[rows],
        inner=None if proposals.partial is None else _sum(proposals.partial),
    )


def agree_on_one(each: OneEach) -> Agreement:
    """The same where each of a few nodes proposes one atom, and one can win."""
    id, score, merit, best, partial = each
    top = _clear_winner(merit)
    if top < 0:
        ranked = _ranking_of_few(list(merit), list(id))
        top = 0 if ranked is None else ranked[0]
    if not sum(best) < np.inf:
        checked_best(np.array(best))  # says whose is no number
    inner = None
    if partial is not None:
        inner = 0.0
        for part in partial:
            inner += part
    winner, its = np.empty(1, np.int64), np.empty(1)  # a third of the time of `np.array`
    winner[0], its[0] = id[top], score[top]
    return Agreement(max(best), _one(top), winner, its, inner)


@cache
def _one(node: int) -> Ids:
    """A node by itself: there are few, who win again and again."""
    alone = np.array((node,))
    alone.flags.writeable = False
    return alone


def _chosen_by_signals(proposals: Proposals) -> Agreement:
    """The best atom of every signal that something was proposed for."""
    best, signals = checked_best(proposals.best), proposals.signals
    rows = best_of_signals(proposals) if proposals.counts is None else slice(None)
    pairs = proposals.id[rows]
    # There may be as many as the data has rows: most numbers are small enough for four bytes.
    small = signals < 1 << 31 and pairs.max(initial=0) < signals << 31
    whole: Any = np.int32 if small else np.int64
    atom, signal = np.empty(len(pairs), whole), np.empty(len(pairs), whole)
    np.divmod(pairs, signals, out=(atom, signal), casting="unsafe")
    choice = Choice(signal, atom, proposals.score[rows])
    winners, first = _first_of_each(atom)
    owner = proposals.node[rows][first]
    return Agreement(best, owner, winners, choice.score[first], choice=choice)


def _first_of_each(ids: Ids) -> tuple[Ids, Ids]:
    """What `np.unique` finds, with the place of the first of each; in pieces, for little memory."""
    found = [np.zeros((2, 0), dtype=np.int64)]
    for start in range(0, len(ids), PIECE):
        some, place = np.unique(ids[start : start + PIECE], return_index=True)
        found.append(np.array([some, start + place]))
    each, place = np.concatenate(found, axis=1)
    once, first = np.unique(each, return_index=True)
    return once, place[first]


def best_of_signals(proposals: Proposals) -> Ids:
    """The row that wins each signal, by signal: mostly, one is the best, and nothing to sort."""
    floor, pieces = np.full(proposals.signals, -np.inf), range(0, len(proposals.id), PIECE)
    rows = [slice(start, start + PIECE) for start in pieces]  # few at a time take little memory
    for some in rows:
        np.maximum.at(floor, proposals.id[some] % proposals.signals, proposals.merit[some])
    floor -= 2 * TIE * np.abs(floor, where=np.isfinite(floor), out=np.zeros_like(floor))
    merit, near = proposals.merit, np.zeros(len(proposals.id), dtype=bool)
    for some in rows:
        near[some] = merit[some] >= floor[proposals.id[some] % proposals.signals]
    near = near.nonzero()[0]
    signal = proposals.id[near] % proposals.signals
    winner = np.full(proposals.signals, -1)
    winner[signal] = near
    tied = near[np.bincount(signal, minlength=proposals.signals)[signal] > 1]
    if len(tied):
        id = proposals.id[tied]
        first = tied[leaders(merit[tied], id, np.zeros_like(id), 1, proposals.signals)]
        winner[proposals.id[first] % proposals.signals] = first
    return winner[winner >= 0]


def _first_rows(merit: Floats, id: Ids, count: int) -> Ids | slice:
    """The first `count` rows by `ranking`; a single one as a slice, which is cheaper to take."""
    if len(merit) > FEW:
        few = None
    else:
        merits = merit.tolist()
        top = _clear_winner(merits) if count == 1 else -1
        if top >= 0:
            return slice(top, top + 1)
        few = _ranking_of_few(merits, id.tolist())
    if few is not None:
        if count == 1 or len(few) == 1:
            return slice(few[0], few[0] + 1) if few else slice(0)
        return np.array(few[:count], dtype=np.int64)
    if count == 1 and len(merit):  # mostly, one is the best, and there is nothing to sort
        top = int(merit.argmax())
        best = merit.item(top)
        if np.count_nonzero(merit >= best - 2 * TIE * abs(best)) == 1:
            return slice(top, top + 1)
    return ranking(merit, id)[:count]
