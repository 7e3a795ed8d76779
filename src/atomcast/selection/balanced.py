"""The choices of a balanced selection: slow nodes look at fewer of their atoms (section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomcast.selection.choosers import (
    CenterChooser,
    Floats,
    PartChooser,
    Rows,
    SubsetChooser,
    amounts,
)


class Paced(PartChooser):
    """As many atoms of each node as it scores while the first to be done scores all of its own.

    All of them as long as nobody knows how fast nodes are.
    """

    def __init__(self, sizes: Rows, *parts: Any) -> None:
        super().__init__(self._at_their_pace, *parts)
        self.speeds: Floats | None = None
        self._sizes = sizes

    def _at_their_pace(self, round: int) -> Rows:
        if self.speeds is None:
            return self._sizes
        return amounts("equal-work", self.speeds.tolist(), self._sizes, round)


class BalancedSubset(Paced, SubsetChooser):
    """In every round the next atoms of a random order, so that all are looked at in turn."""

    def rows(self, round: int) -> Rows:
        """The chosen atoms, sorted."""
        counts = self._counts(round)
        parts = [
            np.take(order, np.arange(round * counts[node], (round + 1) * counts[node]), mode="wrap")
            for node, order in self._orders.items()
        ]
        return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


class BalancedCenters(Paced, CenterChooser):
    """The first greedy centers of each slow node, and all atoms of the others."""

    def _chosen(self, counts: Rows) -> list[Rows]:
        chosen = []
        for node, centers in self._nodes.items():
            count = int(counts[node])
            if count >= len(centers.members):
                chosen.append(centers.members)  # there is nothing to choose
                continue
            centers.grow(count)
            chosen.append(np.array(centers.centers[:count], dtype=np.int64))
        return chosen
