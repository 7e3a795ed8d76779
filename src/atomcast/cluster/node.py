"""Nodes that live in one process: each scores its own atoms, all of them in one pass.

Simulated nodes often hold parts of one matrix. Scoring the matrix once and then looking at each
node's own columns gives exactly what the nodes would compute one by one, at the cost of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from math import inf, nextafter
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import is_able
from atomcast._threads import ranges, run_all
from atomcast.atoms.held import (
    AtomFamilies,
    Atoms,
    BatchedAtoms,
    BoundedAtoms,
    DivisibleAtoms,
    FollowingAtoms,
    SlopeAtoms,
    SummedAtoms,
)
from atomcast.cluster.choosing import propose_to_signals
from atomcast.cluster.screening import KnownHere, Screen
from atomcast.loop.replica import Replica
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import (
    TIE,
    Ids,
    OneProposal,
    Proposals,
    Request,
    leaders,
    random_order,
    rank_in_group,
    ranking,
)
from atomcast.selection.choosers import Chooser, PacedChooser
from atomcast.selection.rules import Subset

Floats = NDArray[np.float64]

#: Very many scores are looked through in pieces of this many, which stay in cache.
CHUNK = 1 << 16
#: So many levels are tried, each half as high, below which atoms need not be sorted.
LOOKS = 8
UNSEEN = None, np.zeros(0)
NO_ROOM = np.zeros(0, dtype=np.int64)


class Fleet:
    """One or more nodes, the atoms they hold, and who holds which.

    Parameters
    ----------
    atoms : Atoms
        The atoms of all nodes of the fleet.
    ids : array of shape (n,)
        Global id of each atom, strictly increasing.
    owner : array of shape (n,)
        The node that holds it.
    nodes : int
        How many nodes there are in the whole network.
    sizes : array of shape (nodes,), optional
        How many atoms each of them holds; needed where this process does not hold them all and
        nodes are to have equal work.
    """

    def __init__(
        self,
        atoms: Atoms,
        ids: Ids,
        owner: NDArray[np.int64],
        nodes: int,
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self.atoms = atoms
        self.ids = ids
        self.owner = owner
        self.nodes = nodes
        alone = nodes == 1  # and has all of them
        self._held_by = np.array([len(ids)]) if alone else np.bincount(owner, minlength=nodes)
        self._holders = self._held_by.nonzero()[0]
        # A column may stand for a family of so many atoms, of which it puts forward the best.
        self._families = atoms if is_able(atoms, AtomFamilies) else None
        self._stride = 1 if self._families is None else self._families.stride
        # Where ids have no holes, their places need no search.
        dense = len(ids) > 0 and int(ids[-1]) - int(ids[0]) + 1 == len(ids)
        self._first = int(ids[0]) if dense else None
        self._log = 0
        # Of known atoms held here, their places in the log and here, with room for more.
        self._room = self._known_at, self._local = NO_ROOM, NO_ROOM
        self._slopes = is_able(atoms, SlopeAtoms)
        self._holder = int(self._holders[0]) if len(self._holders) else -1
        self._screen: Screen | None = None
        if is_able(atoms, BoundedAtoms) and atoms.large and len(ids):
            self._screen = Screen(atoms, self._best_of_node, len(self._holders) == 1)
        self.sizes = self._held_by if sizes is None else sizes
        self._chooser: tuple[Subset, Chooser] | None = None
        self._part: _Part | None = None
        self._shares = self._cut(atoms) if is_able(atoms, SummedAtoms) else None
        few = len(self._holders) == 1 and 0 < len(ids) <= 4 * CHUNK
        self._single = few and self.columns_are_atoms
        #: The image that atoms were last looked at for, and their scores there.
        self._seen: tuple[Floats | None, Floats] = UNSEEN
        #: The merits of all atoms when they were scored last.
        self.merit: Floats = UNSEEN[1]
        #: What each node has sent as mixtures, for the active set that they are about.
        self.mixers: tuple[Any, list[Any]] | None = None
        #: How many atoms each node has scored for its last proposals, and how long that took.
        self.scored: NDArray[np.int64] = np.zeros(nodes, dtype=np.int64)
        self.seconds = 0.0
        #: How many of these were left unread, because bounds told enough of them.
        self.unread = 0
        #: Whether signals may choose among proposals before these are told: where all that counts
        #: of the others is how many there are.
        self.choose = False
        #: How many atoms a second each node scores, once that is known; for balanced selections.
        self.speeds: Floats | None = None

    # What proposals alone need: who has all atoms at hand makes none.

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where the atoms of each holder begin, in the order of owners."""
        counts = self._held_by[self._holders]
        return np.cumsum(counts) - counts

    @cached_property
    def _by_owner(self) -> NDArray[np.int64] | None:
        """The atoms in the order of their owners; None if they are so already."""
        owner = self.owner
        in_order = len(self._holders) <= 1 or bool(np.all(owner[1:] >= owner[:-1]))
        return None if in_order else np.argsort(owner, kind="stable")

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """Whether each atom was broadcast."""
        return np.zeros(len(self.ids), dtype=bool)

    @cached_property
    def _silent(self) -> Floats:
        """What the nodes of others say here: that they have no atoms."""
        return np.full(self.nodes, -np.inf)

    @cached_property
    def _nothing(self) -> Floats:
        """And that they have nothing to add."""
        return np.zeros(self.nodes)

    def propose(self, replica: Replica, request: Request) -> Proposals:
        """The proposals of every node of the fleet, each from its own atoms alone."""
        part, subset = self, replica.subset
        if subset is not None and not (request.complete or request.random):
            part = self._selected(replica, subset)
        return self._propose_from(part, replica, request)

    def propose_some(
        self, rows: NDArray[np.int64], replica: Replica, request: Request
    ) -> Proposals:
        """The proposals from these atoms alone, which must be divisible."""
        self._catch_up(replica)
        return self._propose_from(self._with(rows, self._local[:0]), replica, request)

    def shortlist(self, size: int) -> NDArray[np.int64] | None:
        """The atoms with the best merits when all were scored last; None if they are one thing."""
        if not isinstance(self.atoms, DivisibleAtoms) or len(self.merit) != len(self.ids):
            return None
        if len(self.ids) <= size:
            return np.arange(len(self.ids))
        return np.sort(np.argpartition(-self.merit, size)[:size])

    def _propose_from(self, part: Fleet, replica: Replica, request: Request) -> Proposals:
        # A random draw needs no scores.
        self.scored = np.zeros_like(part._held_by) if request.random else part._held_by
        start = perf_counter()
        proposals = part._propose(replica, request)
        self.seconds, self.unread = perf_counter() - start, part.unread
        return proposals

    def _selected(self, replica: Replica, selection: Subset) -> Fleet:
        """The same nodes with the atoms that they may propose, and those already broadcast."""
        chosen = self._choice(replica, selection)
        self._catch_up(replica)
        return self._with(chosen, self._local)

    def _choice(self, replica: Replica, selection: Subset) -> NDArray[np.int64]:
        """The atoms that may be proposed."""
        if self._chooser is None or self._chooser[0] is not selection:
            if not isinstance(self.atoms, DivisibleAtoms):
                raise ValueError(
                    f"selection={selection!r} leaves atoms out, but "
                    f'{type(self.atoms).__name__} cannot be divided: use selection="exact"'
                )
            if isinstance(self.atoms, FollowingAtoms):
                self.atoms.follow(replica.active)
            chooser = selection.chooser(self.atoms, self.owner, self.sizes)
            self._chooser, self._part = (selection, chooser), None
        chooser = self._chooser[1]
        if isinstance(chooser, PacedChooser):
            chooser.speeds = self.speeds
        chosen = chooser.rows(replica.round)
        replica.radius.update(chooser.radius)
        return chosen

    def _with(self, chosen: NDArray[np.int64], known: NDArray[np.int64]) -> Fleet:
        """The same nodes with some of their atoms: those chosen, and those already broadcast."""
        if len(chosen) == len(self.ids):  # as on small nodes in every round: it must be quick
            return self
        if self._part is None or not self._part.has(chosen, known):
            assert isinstance(self.atoms, DivisibleAtoms)
            rows = np.union1d(chosen, known)
            if len(rows) == len(self.ids):
                return self
            fleet = Fleet(self.atoms.take(rows), self.ids[rows], self.owner[rows], self.nodes)
            self._part = _Part(chosen, rows, fleet)
        return self._part.fleet

    def _cut(self, atoms: SummedAtoms) -> list[SummedAtoms]:
        """What each node answers for: those that live together still keep to themselves."""
        if len(self._holders) <= 1:
            return [atoms]
        return [atoms.take(np.flatnonzero(self.owner == node)) for node in self._holders]

    def _propose(self, replica: Replica, request: Request) -> Proposals:
        if self._shares is not None:
            said = [share.contribution(replica, request) for share in self._shares]
            return Proposals.of_sum(self.nodes, np.sum(said, axis=0))
        self._catch_up(replica)
        if request.signals:
            order = np.arange(len(self.ids)) if self._by_owner is None else self._by_owner
            columns = np.split(order, self._starts[1:])
            held = dict(zip(self._holders.tolist(), columns, strict=True))
            return propose_to_signals(self.atoms, self.ids, held, self.nodes, replica, self.choose)
        if replica.rewording is not None:
            request = replica.rewording.asked(request, self.nodes)
        scores = self._scores(replica, request)
        if len(self._holders) == 1 and self._families is None:
            many = len(scores) > 4 * CHUNK
            if many and request.random:
                return self._draw_of_many(replica, request, scores)
            if request.single:
                if many:
                    return self._propose_one_of_many(replica, request, scores)
                return self._best_one(replica, request, scores).table(self.nodes)
        merit = self.merit = replica.domain.merit(scores)
        best = self._best(merit)
        ids = self._ids_put_forward(replica)
        priority = random_order(self.ids, replica.round) if request.random else merit
        rows = self._candidates(merit, best, request)
        if len(rows) > 1:
            count = max(request.count, request.candidates)
            if len(self._holders) == 1:  # all of one node: only their order
                rows = rows[ranking(priority[rows], ids[rows])[:count]]
            elif count > 1 or not _increase(self.owner.take(rows)):
                rows = rows[leaders(priority[rows], ids[rows], self.owner[rows], count)]
            if request.candidates and not request.random:
                rows = self._thinned(replica, rows, ids, scores)
                rows = rows[rank_in_group(self.owner[rows]) < request.count]
        return Proposals(
            node=self.owner.take(rows),
            id=ids.take(rows),
            score=scores.take(rows),
            merit=priority.take(rows),
            best=best,
            partial=self._partial_sums(replica, scores) if request.partial_sums else None,
        )

    def _scores(self, replica: Replica, request: Request) -> Floats:
        """The score of every atom; of those that cannot be proposed, about what it is."""
        (image, scores), self._seen = self._seen, UNSEEN
        if image is not None and image is replica.active.image:
            self.unread = 0
            return scores
        if self._screen is None:
            return self.atoms.scores(replica)
        known = KnownHere(self._known, self._local, self._known_at)
        scores = self._screen.scores(replica, request, known)
        self.unread = self._screen.unread
        return scores

    def _best_of_node(self, numbers: Floats) -> Any:
        """The largest number of a node, or, where there are more nodes, of that of each atom."""
        best = self._best(numbers)
        return best[self._holder] if len(self._holders) == 1 else best[self.owner]

    def _thinned(
        self, replica: Replica, rows: NDArray[np.int64], ids: Ids, scores: Floats
    ) -> NDArray[np.int64]:
        """The rows that are of use beside each other, as far as their node can tell; in order."""
        kept = [rows[:0]]
        for own in np.split(rows, np.flatnonzero(np.diff(self.owner[rows])) + 1):
            atoms = self.atoms_of(ids[own].tolist())
            kept.append(own[np.sort(replica.step.thinned(replica, atoms, scores[own]))])
        return np.concatenate(kept)

    def propose_one(self, replica: Replica, request: Request) -> OneProposal | None:
        """What `propose` says, in plain numbers, if that is one atom of one node; else None."""
        plain = replica.subset is None and replica.rewording is None
        if not (self._single and request.single and plain):
            return None
        self.scored, start = self._held_by, perf_counter()
        self._catch_up(replica)
        found = self._best_one(replica, request, self._scores(replica, request))
        self.seconds = perf_counter() - start
        return found

    def _best_one(self, replica: Replica, request: Request, scores: Floats) -> OneProposal:
        """The proposal of one node, as in every round of the classic step: it must be quick."""
        merit = self.merit = replica.domain.merit(scores)
        row = int(merit.argmax())
        best = merit.item(row)
        floor = best - 2 * TIE * abs(best)
        merit[row] = -np.inf  # to look for the next one takes less than to compare all
        ties = merit.item(merit.argmax()) >= floor  # no, if the best is no number
        merit[row] = best
        if ties:
            tied = (merit >= floor).nonzero()[0]
            row = int(tied[leaders(merit[tied], self.ids[tied], self.owner[tied], 1)[0]])
        partial = self._partial_sum(replica, scores) if request.partial_sums else None
        id, score = self.ids.item(row), scores.item(row)
        return OneProposal(self._holder, id, score, merit.item(row), best, partial)

    def _propose_one_of_many(self, replica: Replica, request: Request, scores: Floats) -> Proposals:
        """The proposal of one node with very many atoms, from a single pass over their scores."""
        merit, starts = replica.domain.merit, range(0, len(scores), CHUNK)
        tops = np.empty(len(starts))

        def look(part: slice) -> None:
            for k in range(part.start, part.stop):
                tops[k] = merit(scores[k * CHUNK : (k + 1) * CHUNK]).max()

        run_all([partial(look, part) for part in ranges(len(starts), 4)])
        best = float(tops.max())
        floor = best - 2 * TIE * abs(best)
        near = [
            start + np.flatnonzero(merit(scores[start : start + CHUNK]) >= floor)
            for start, top in zip(starts, tops, strict=True)
            if top >= floor
        ]
        rows = np.concatenate(near)
        rows = rows[leaders(merit(scores[rows]), self.ids[rows], self.owner[rows], 1)]
        return self._of_one_node(replica, request, scores, rows, merit(scores[rows]), best)

    def _draw_of_many(self, replica: Replica, request: Request, scores: Floats) -> Proposals:
        """Atoms of one node drawn at random, without arrays as long as there are atoms."""
        best, drawn, count = -np.inf, [], request.count
        for start in range(0, len(scores), CHUNK):
            part = slice(start, min(start + CHUNK, len(scores)))
            merit = replica.domain.merit(scores[part])
            best = max(best, float(merit.max()))
            eligible = merit > request.threshold
            if not request.known_too:
                eligible &= ~self._known[part]
            rows = start + np.flatnonzero(eligible)
            order = random_order(self.ids[rows], replica.round)
            drawn.append(rows[leaders(order, self.ids[rows], self.owner[rows], count)])
        rows = np.concatenate(drawn)
        order = random_order(self.ids[rows], replica.round)
        first = leaders(order, self.ids[rows], self.owner[rows], count)
        return self._of_one_node(replica, request, scores, rows[first], order[first], best)

    def _of_one_node(
        self,
        replica: Replica,
        request: Request,
        scores: Floats,
        rows: NDArray[np.int64] | slice,
        merit: Floats,
        best: float,
    ) -> Proposals:
        """The proposals of a fleet that is one node."""
        everyone = self._silent.copy()
        everyone[self._holders[0]] = best
        return Proposals(
            node=self.owner[rows],
            id=self.ids[rows],
            score=scores[rows].copy(),  # atoms may use the array again
            merit=merit,
            best=everyone,
            partial=self._partial_sums(replica, scores) if request.partial_sums else None,
        )

    def atom(self, id: int) -> Atom:
        """The atom with this global id, as its owner would send it."""
        return self.atoms.atom(self._place(id // self._stride), id)

    def atoms_of(self, ids: list[int]) -> Sequence[Atom]:
        """The atoms with these global ids, in one piece where that is possible."""
        if len(ids) > 1 and is_able(self.atoms, BatchedAtoms):
            columns = np.array(ids, dtype=np.int64) // self._stride
            dense = self._first is not None
            places = columns - self._first if dense else self.ids.searchsorted(columns)
            return self.atoms.batch(places, ids)
        return [self.atom(id) for id in ids]

    @property
    def columns_are_atoms(self) -> bool:
        """Whether atoms can be looked at one by one: none are summed, or members of a family."""
        return self._families is None and self._shares is None

    def look(self, replica: Replica) -> Floats:
        """The score of every atom, which proposals about the same iterate need not find again."""
        scores = self.atoms.scores(replica)
        self._seen = replica.active.image, scores
        return scores

    def _place(self, column: int) -> int:
        """Where the column with this global id stands, or would stand."""
        if self._first is not None and 0 <= column - self._first < len(self.ids):
            return column - self._first
        return int(self.ids.searchsorted(column))

    def holds(self, id: int) -> bool:
        """Whether a node of this fleet holds the atom with this global id."""
        return bool(self.owners(np.array([id]))[0] >= 0)

    def owners(self, ids: Ids) -> Ids:
        """The node of this fleet that holds each of these atoms, shape (k,); -1 where none does."""
        owners = np.full(len(ids), -1, dtype=np.int64)
        columns = ids // self._stride
        places = self.ids.searchsorted(columns)
        held = self._found(places, columns)
        owners[held] = self.owner[places[held]]
        return owners

    def _found(self, places: NDArray[np.int64], columns: Ids) -> NDArray[np.bool_]:
        """Whether columns are held, by the places where they would stand."""
        if not len(self.ids):
            return np.zeros(len(columns), dtype=bool)
        return self.ids.take(places, mode="clip") == columns

    def _ids_put_forward(self, replica: Replica) -> Ids:
        """The atom that each column stands for in this round."""
        if self._families is None:
            return self.ids
        ids = self.ids * self._stride + self._families.members()
        self._known = np.isin(ids, replica.active.ids)
        return ids

    def _catch_up(self, replica: Replica) -> None:
        """Mark the atoms that were broadcast since the last round as known."""
        known = len(replica.active)
        if self._log == known:
            return
        if known == self._log + 1 and len(self.ids):  # the usual case, which must be quick
            column = replica.active.ids[-1] // self._stride
            place = self._place(column)
            if place < len(self.ids) and self.ids.item(place) == column:
                self._known[place] = True
                self._enter(1, self._log, place)
            self._log = known
            return
        columns = np.array(replica.active.ids[self._log :], dtype=np.int64)
        if self._stride > 1:
            columns //= self._stride
        places = self.ids.searchsorted(columns)
        held = self._found(places, columns).nonzero()[0]
        local = places[held]
        self._known[local] = True
        self._enter(len(held), self._log + held, local)
        self._log = known

    def _enter(self, more: int, known_at: int | Ids, local: int | Ids) -> None:
        """Remember the places of more known atoms that are held here."""
        old = len(self._local)
        count = old + more
        at, here = self._room
        if count > len(here):
            room = np.empty((2, max(2 * count, 16)), dtype=np.int64)
            room[:, :old] = self._known_at, self._local
            self._room = at, here = room[0], room[1]
        if isinstance(local, int):  # a single one, which must be quick
            at[old], here[old] = known_at, local
        else:
            at[old:count], here[old:count] = known_at, local
        self._known_at, self._local = at[:count], here[:count]

    def _best(self, merit: Floats) -> Floats:
        if not len(merit):
            return self._silent.copy()
        if len(self._holders) == 1:
            each: Any = np.maximum.reduce(merit)
        else:
            sorted_merit = merit if self._by_owner is None else merit.take(self._by_owner)
            each = np.maximum.reduceat(sorted_merit, self._starts)
            if len(each) == self.nodes:
                return np.asarray(each)
        best = self._silent.copy()
        best[self._holders] = each
        return best

    def _candidates(self, merit: Floats, best: Floats, request: Request) -> NDArray[np.int64]:
        """Rows that may be proposed: the best of each node, or all violators if they are drawn."""
        if not (merit.size and best.item(best.argmax()) > request.threshold):
            return np.zeros(0, dtype=np.int64)  # as in the last round: nothing violates anything
        count = None if request.random else max(request.count, request.candidates)
        if count == 1 and (request.known_too or not self._log):
            # Scores that tie with a node's best stay in, for the rule that the smallest id wins.
            floor = np.maximum(best - 2 * TIE * np.abs(best), nextafter(request.threshold, inf))
            alone = len(self._holders) == 1
            level = floor[self._holder] if alone else floor.take(self.owner)
            return (merit >= level).nonzero()[0]
        threshold, few = request.threshold, 0
        if count is not None and len(self._holders) == 1 and len(merit) > 4 * count:
            few = count
            threshold = max(threshold, _below_best(merit, float(best.max()), few + self._log))
        eligible = merit > threshold
        if not request.known_too:
            eligible &= ~self._known
        rows = eligible.nonzero()[0]
        if few and len(rows) > 4 * few:
            # Sorting all to keep a few would take longer than scoring them did.
            last = np.partition(merit[rows], -few)[-few]
            rows = rows[merit[rows] >= last - 2 * TIE * abs(last)]
        return rows

    def _partial_sums(self, replica: Replica, scores: Floats) -> Floats:
        """S_i of Algorithm 3: each node's own part of <alpha, grad f(alpha)>."""
        if not len(self._local):
            return self._nothing.copy()
        if len(self._holders) == 1:
            alone = self._nothing.copy()
            alone[self._holder] = self._partial_sum(replica, scores)
            return alone
        products = np.multiply(*self._parts_of_sum(replica, scores))
        sums: Floats = np.bincount(self.owner[self._local], products, minlength=self.nodes)  # type: ignore[assignment]
        return sums

    def _partial_sum(self, replica: Replica, scores: Floats) -> float:
        """The same of all atoms held here."""
        if not len(self._local):
            return 0.0
        weights, slopes = self._parts_of_sum(replica, scores)
        return float(weights.dot(slopes))  # `@` takes twice as long of a few

    def _parts_of_sum(self, replica: Replica, scores: Floats) -> tuple[Floats, Floats]:
        """The weights of known atoms held here, and the slopes along them."""
        at, active = self._known_at, replica.active
        slopes = scores.take(self._local) if self._slopes else active.scores().take(at)
        return active.weights.take(at), slopes


def _increase(numbers: NDArray[np.int64]) -> bool:
    """Whether each is larger than the one before: rows are then of one node after the other."""
    return 0 not in (numbers[1:] > numbers[:-1]).tobytes()  # half the time of `all`


def _below_best(merit: Floats, best: float, count: int) -> float:
    """A merit that at least so many atoms exceed, if a few looks can find one.

    Most atoms are far from the best: to leave them out takes less than to sort among them.
    """
    level = best
    for _ in range(LOOKS if best > 0.0 else 0):
        level *= 0.5
        if np.count_nonzero(merit > level) >= count:
            return level - 4 * TIE * level  # what ties with one of them stays in
    return -np.inf


class _Part:
    """The chosen part of a fleet, and the atoms broadcast so far: those it was made for."""

    def __init__(self, chosen: NDArray[np.int64], rows: NDArray[np.int64], fleet: Fleet) -> None:
        self.chosen, self.rows, self.fleet = chosen, rows, fleet
        self._seen = 0

    def has(self, chosen: NDArray[np.int64], known: NDArray[np.int64]) -> bool:
        """Whether it still is what was chosen, with everything that is known by now."""
        new = known[self._seen :]
        self._seen = len(known)
        same = chosen is self.chosen or np.array_equal(chosen, self.chosen)
        return bool(same and np.isin(new, self.rows, assume_unique=True).all())
