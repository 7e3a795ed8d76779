"""The choices of a balanced selection: slow nodes look at fewer of their atoms (section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.selection.centers import GreedyCenters
from atomcast.selection.choosers import Floats, Rows, amounts


class BalancedSubset:
    """In every round the next atoms of a random order, so that all are looked at in turn."""

    def __init__(self, seed: int, owner: Rows, sizes: Rows) -> None:
        self.radius: dict[int, float] = {}
        self.speeds: Floats | None = None
        self._sizes = sizes
        self._orders = {
            int(node): np.random.default_rng((seed, int(node))).permutation(
                np.flatnonzero(owner == node)
            )
            for node in np.unique(owner)
        }

    def rows(self, round: int) -> Rows:
        """The chosen atoms, sorted."""
        counts = amounts_for(self.speeds, self._sizes)
        parts = [
            np.take(order, np.arange(round * counts[node], (round + 1) * counts[node]), mode="wrap")
            for node, order in self._orders.items()
        ]
        return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


class BalancedCenters:
    """The first greedy centers of each slow node, and all atoms of the others."""

    def __init__(self, atoms: Any, owner: Rows, sizes: Rows) -> None:
        self.radius: dict[int, float] = {}
        self.speeds: Floats | None = None
        self._sizes = sizes
        space = atoms.space()
        self._nodes = {
            int(node): GreedyCenters(space, np.flatnonzero(owner == node))
            for node in np.unique(owner)
        }

    def rows(self, round: int) -> Rows:
        """The chosen atoms, sorted."""
        counts = amounts_for(self.speeds, self._sizes)
        chosen = []
        for node, centers in self._nodes.items():
            count = int(counts[node])
            if count >= len(centers.members):
                chosen.append(centers.members)  # there is nothing to choose
                continue
            centers.grow(count)
            chosen.append(np.array(centers.centers[:count], dtype=np.int64))
        return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def amounts_for(speeds: Floats | None, sizes: Rows) -> Rows:
    """How many atoms each node scores while the first to be done scores all of its own.

    All of them as long as nobody knows how fast nodes are.
    """
    return sizes if speeds is None else amounts("equal-work", speeds.tolist(), sizes, 0)
