"""Which atoms must be read: those that may be proposed, or be the best, as far as bounds tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.explicit import gradient_of
from atomcast.atoms.held import BoundedAtoms, Bounds
from atomcast.cluster.last_scores import LastScores
from atomcast.loop.replica import Replica
from atomcast.messages.proposals import TIE, Request

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


class KnownHere(NamedTuple):
    """Which atoms were broadcast, of those held here.

    Parameters
    ----------
    mask : array of shape (n,)
        Whether each was.
    places : array of shape (k,)
        Where those stand among all that are held.
    log : array of shape (k,)
        Where they stand in the log of the active set.
    """

    mask: NDArray[np.bool_]
    places: Positions
    log: Positions


class Screen:
    """Scores that lead to the same proposals and the same gap as those of all atoms would.

    They are exact wherever an atom may be proposed or may be the best of its node. What stands for
    the others is so small that they are not, whatever their score is within its bounds.

    Parameters
    ----------
    atoms : BoundedAtoms
        Those of one or more nodes.
    best_of_node : function
        From a number for each atom to the largest that a node has, or, if there are more nodes, to
        an array with that of the node of each atom.
    single : bool
        Whether there is one node.
    """

    def __init__(
        self, atoms: BoundedAtoms, best_of_node: Callable[[Floats], Any], single: bool
    ) -> None:
        self.atoms, self._best_of_node, self._single = atoms, best_of_node, single
        self._last = LastScores(atoms)
        #: How many atoms were left unread, because bounds told enough of them.
        self.unread = 0

    def scores(self, replica: Replica, request: Request, known: KnownHere) -> Floats:
        """The scores, exact where it matters."""
        domain, self.unread = replica.domain, 0
        if request.random or not domain.steady or (gradient := gradient_of(replica)).ndim > 1:
            return self.atoms.scores(replica)
        rows = None
        bounds = self._last.bounds(gradient, domain, request.threshold)
        if bounds is not None:
            rows = self._open(bounds, self.atoms.pace, replica, request, known)
        if rows is None:
            bounds = self.atoms.bounds(replica)
            if bounds is not None:
                rows = self._open(bounds, 1.0, replica, request, known)
                if rows is None:
                    self.atoms.give_up()
                else:
                    self._last.keep(gradient, domain, bounds.scores, bounds.off)
        if bounds is None or rows is None:
            scores = self.atoms.scores(replica)
            self._last.keep(gradient, domain, scores, 0.0)
            return scores
        exact = self._read(replica, rows, known)
        bounds.scores[rows] = exact
        self._last.keep_some(gradient, domain, rows, exact)
        self.unread = len(bounds.scores) - len(rows) if bounds.unread else 0
        return bounds.scores

    def _open(
        self, bounds: Bounds, share: float, replica: Replica, request: Request, known: KnownHere
    ) -> Positions | None:
        """The atoms that must be read; None if that takes more than this share of a pass."""
        merit = replica.domain.merit(bounds.scores)
        most, least = merit + bounds.off, merit - bounds.off
        open_to = most >= _below(self._best_of_node(least))
        level = request.threshold
        if np.count_nonzero(most >= level) > max(request.count, request.candidates):
            if not request.known_too:
                least[known.places] = -np.inf
            level = np.maximum(level, self._wanted(least, request))
        open_to |= most >= level
        if request.partial_sums:
            open_to[known.places] = True
        rows: Positions = open_to.nonzero()[0]
        told = len(replica.active) if self._told(replica, known) else 0
        left = np.count_nonzero(~known.mask[rows]) if told else len(rows)
        return rows if left / self.atoms.vain + told <= share * len(merit) else None

    def _wanted(self, least: Floats, request: Request) -> Any:
        """A merit that as many atoms of a node reach as it may propose."""
        count = max(request.count, request.candidates)
        if count == 1:
            return _below(self._best_of_node(least))
        if not self._single or len(least) <= count:
            return -np.inf
        return _below(float(np.partition(least, -count)[-count]))

    def _told(self, replica: Replica, known: KnownHere) -> bool:
        """Whether half of all known atoms are held here: then all are scored, in one piece."""
        return 0 < len(replica.active) <= 2 * len(known.log)

    def _read(self, replica: Replica, rows: Positions, known: KnownHere) -> Floats:
        """The exact scores of some atoms."""
        if not self._told(replica, known):
            return self.atoms.read(replica, rows)
        scores, left = np.empty(len(known.mask)), rows[~known.mask[rows]]
        scores[known.places] = replica.active.scores()[known.log]
        scores[left] = self.atoms.read(replica, left)
        return scores[rows]


def _below(merit: Any) -> Any:
    """A merit that does not tie with this one."""
    return merit - 4 * TIE * np.abs(merit)
