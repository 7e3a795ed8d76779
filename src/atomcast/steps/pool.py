"""What a root makes of the candidates that it was shown: the best weights over all of them.

A candidate that has no weight beside all others is sent in vain, however steep it is; and the more
weight it has, the likelier it keeps some once better ones turn up. So the root solves the problem
over everything it has seen, and passes on what matters most there.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ActiveSet
from atomcast.messages.atom import Atom
from atomcast.steps.inner.newton import Inner

Ids = NDArray[np.int64]

#: Of candidates, so many more than twice as many as may join are looked at,
CANDIDATES_MORE = 80
#: and one joins that has at least this share of the largest weight among them.
WEIGHTY = 0.25


class Pool:
    """All atoms that a root has seen, with the best weights over them.

    Parameters
    ----------
    known : ActiveSet
        What everybody knows; it is copied.
    inner : Inner
        Finds the best weights.
    """

    def __init__(self, known: ActiveSet, inner: Inner) -> None:
        self._seen, self._inner = copy.deepcopy(known), inner

    def holds(self, known: ActiveSet) -> bool:
        """Whether everything that everybody knows was seen here."""
        return known.position.keys() <= self._seen.position.keys()

    def pick(self, atoms: Sequence[Atom], tolerance: float, share: float, most: int) -> Ids:
        """The candidates to pass on, the weightiest first.

        Parameters
        ----------
        atoms : sequence of Atom, length m
            Candidates, seen before or not.
        tolerance : float
            The gap over all that was seen to which weights are found.
        share : float
            Those with a smaller share of the largest weight wait.
        most : int
        """
        seen = self._seen
        seen.append([atom for atom in atoms if atom.id not in seen])
        self._inner.minimise(seen, tolerance)
        weight = np.add.reduceat(np.abs(seen.weights), list(seen.position.values()))
        weight_of = dict(zip(seen.position, weight.tolist(), strict=True))
        own = np.array([weight_of[atom.id] for atom in atoms])
        heaviest = np.argsort(-own, kind="stable")[:most]
        # Where none has any, the weight is on others that are no candidates today: the best is one.
        return heaviest[own[heaviest] >= share * own[heaviest[0]]] if own.any() else heaviest[:1]
