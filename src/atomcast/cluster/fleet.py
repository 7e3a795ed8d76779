"""Nodes that live in one process: each scores its own atoms, all of them in one pass.

Simulated nodes often hold parts of one matrix. Scoring the matrix once and then looking at each
node's own columns gives exactly what the nodes would compute one by one, at the cost of one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.atom import Atom
from atomcast.atoms.base import AtomFamilies, Atoms
from atomcast.protocol import TIE, Ids, Proposals, Request, leaders
from atomcast.replica import Replica

Floats = NDArray[np.float64]


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
    """

    def __init__(self, atoms: Atoms, ids: Ids, owner: NDArray[np.int64], nodes: int) -> None:
        self.atoms = atoms
        self.ids = ids
        self.owner = owner
        self.nodes = nodes
        self._holders, counts = np.unique(owner, return_counts=True)
        self._starts = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
        in_order = bool(np.all(owner[1:] >= owner[:-1]))
        self._by_owner = None if in_order else np.argsort(owner, kind="stable")
        # A column may stand for a family of so many atoms, of which it puts forward the best.
        self._stride = atoms.stride if isinstance(atoms, AtomFamilies) else 1
        self._known = np.zeros(len(ids), dtype=bool)
        self._log = 0
        self._known_at: list[int] = []
        self._local: list[int] = []

    def propose(self, replica: Replica, request: Request) -> Proposals:
        """The proposals of every node of the fleet, each from its own atoms alone."""
        self._catch_up(replica)
        scores = self.atoms.scores(replica)
        merit = replica.domain.merit(scores)
        best = self._best(merit)
        ids = self._ids_put_forward(replica)
        rows = self._candidates(merit, best, request)
        rows = rows[leaders(merit[rows], ids[rows], self.owner[rows], request.count)]
        return Proposals(
            node=self.owner[rows],
            id=ids[rows],
            score=scores[rows],
            merit=merit[rows],
            best=best,
            partial=self._partial_sums(replica) if request.partial_sums else None,
        )

    def atom(self, id: int) -> Atom:
        """The atom with this global id, as its owner would send it."""
        return self.atoms.atom(self._column(id), id)

    def holds(self, id: int) -> bool:
        """Whether a node of this fleet holds the atom with this global id."""
        return bool(self._held(np.array([id]))[0])

    def owners(self, ids: Ids) -> Ids:
        """The node of this fleet that holds each of these atoms, shape (k,); -1 where none does."""
        owners = np.full(len(ids), -1, dtype=np.int64)
        held = self._held(ids)
        owners[held] = self.owner[np.searchsorted(self.ids, ids[held] // self._stride)]
        return owners

    def _held(self, ids: Ids) -> NDArray[np.bool_]:
        columns = ids // self._stride
        places = np.minimum(np.searchsorted(self.ids, columns), len(self.ids) - 1)
        return self.ids[places] == columns if len(self.ids) else np.zeros(len(ids), dtype=bool)

    def _column(self, id: int) -> int:
        return int(np.searchsorted(self.ids, id // self._stride))

    def _ids_put_forward(self, replica: Replica) -> Ids:
        """The atom that each column stands for in this round."""
        if not isinstance(self.atoms, AtomFamilies):
            return self.ids
        ids = self.ids * self._stride + self.atoms.members()
        self._known = np.isin(ids, replica.active.ids)
        return ids

    def _catch_up(self, replica: Replica) -> None:
        """Mark the atoms that were broadcast since the last round as known."""
        new = np.array(replica.active.ids[self._log :], dtype=np.int64)
        held = np.flatnonzero(self._held(new))
        local = np.searchsorted(self.ids, new[held] // self._stride)
        self._known[local] = True
        self._local.extend(local.tolist())
        self._known_at.extend((self._log + held).tolist())
        self._log = len(replica.active)

    def _best(self, merit: Floats) -> Floats:
        best = np.full(self.nodes, -np.inf)
        if len(merit):
            if len(self._holders) == 1:
                best[self._holders[0]] = merit.max()
            else:
                sorted_merit = merit if self._by_owner is None else merit.take(self._by_owner)
                best[self._holders] = np.maximum.reduceat(sorted_merit, self._starts)
        return best

    def _candidates(self, merit: Floats, best: Floats, request: Request) -> NDArray[np.int64]:
        """Rows that may be proposed: the best of each node, or all violators."""
        if request.count == 1 and (request.known_too or not self._log):
            # Scores that tie with a node's best stay in, for the rule that the smallest id wins.
            floor = best - 2 * TIE * np.abs(best)
            level: Floats | float = (
                float(floor[self._holders[0]]) if len(self._holders) == 1 else floor[self.owner]
            )
            return np.flatnonzero((merit >= level) & (merit > request.threshold))
        eligible = merit > request.threshold
        if not request.known_too:
            eligible &= ~self._known
        rows = np.flatnonzero(eligible)
        if len(self._holders) == 1 and len(rows) > 4 * request.count:
            # Sorting all to keep a few would take longer than scoring them did.
            last = np.partition(merit[rows], -request.count)[-request.count]
            rows = rows[merit[rows] >= last - 2 * TIE * abs(last)]
        return rows

    def _partial_sums(self, replica: Replica) -> Floats:
        """S_i of Algorithm 3: each node's own part of <alpha, grad f(alpha)>."""
        products = (replica.active.weights * replica.active.scores())[self._known_at]
        return np.bincount(
            self.owner[self._local], products.astype(np.float64), minlength=self.nodes
        ).astype(np.float64)
