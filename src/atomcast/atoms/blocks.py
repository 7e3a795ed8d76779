"""The weights that a node keeps to itself: one simplex for each of its examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.known.active_set import ActiveSet
from atomcast.structures.output_model import same_output

Floats = NDArray[np.float64]

#: Moves of weight between the known outputs of an example, at a visit.
MOVES = 10
#: They end where they promise less than this share of what the first one did.
FLAT = 0.1


class Blocks:
    """For each example the outputs that were found for it, and their weights, which sum to one.

    Every sum that was agreed on belongs to weights of the blocks, to which the steps of this node
    had led. Everybody knows how the iterate is made of the sums, so that the node knows its weights
    at the iterate: they are made of those in the same way. It needs O(n) memory for each sum.

    Parameters
    ----------
    right : sequence of n outputs
        With which the blocks begin.
    """

    def __init__(self, right: Sequence[Any]) -> None:
        self.outputs: list[list[Any]] = [[output] for output in right]
        #: The weights of the outputs of each example, as far as this node is ahead of the others.
        self.ahead: list[Floats] = [np.ones(1) for _ in right]
        self._at_sum: dict[int, tuple[Floats, NDArray[np.int64]]] = {}

    def depart(self, active: ActiveSet) -> None:
        """Begin at the iterate."""
        sizes = np.array([len(known) for known in self.outputs], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
        weights = np.zeros(int(sizes.sum()))
        weights[starts] = max(1.0 - float(active.weights.sum()), 0.0)  # at the origin all is right
        for position, share in enumerate(active.weights.tolist()):
            if share:
                part, lengths = self._at_sum[active.ids[position]]
                before = np.cumsum(lengths) - lengths
                weights[np.repeat(starts - before, lengths) + np.arange(len(part))] += share * part
        self.ahead = np.split(weights, starts[1:])

    def arrive(self, id: int) -> None:
        """Remember where steps have led: that is this node's part of the sum with this id."""
        lengths = np.array([len(weights) for weights in self.ahead], dtype=np.int64)
        self._at_sum[id] = np.concatenate([np.zeros(0), *self.ahead]), lengths

    def jump(self, outputs: Sequence[Any]) -> None:
        """Put all weight on one output of each example."""
        for i, output in enumerate(outputs):
            place = self.place(i, output)
            self.ahead[i] = np.eye(1, len(self.outputs[i]), place)[0]

    def place(self, i: int, output: Any) -> int:
        """The place of an output among those of an example; it is added if it is not known."""
        for place, known in enumerate(self.outputs[i]):
            if same_output(output, known):
                return place
        self.outputs[i].append(output)
        self.ahead[i] = np.append(self.ahead[i], 0.0)
        return len(self.outputs[i]) - 1


def balanced(weights: Floats, merits: Floats, corners: Floats) -> Floats:
    """Move weight from the worst to the best outputs of an example, by exact line searches.

    Parameters
    ----------
    weights : array of shape (k,)
    merits : array of shape (k,)
        What each output promises.
    corners : array of shape (k, d)
        By how much each changes the weights of the model, and so what the others promise.

    Returns
    -------
    array of shape (k,)
        The new weights.
    """
    weights, bends, first = weights.copy(), corners @ corners.T, 0.0
    for _ in range(MOVES):
        best = int(merits.argmax())
        worst = int(np.where(weights > 0.0, merits, np.inf).argmin())
        gain = float(merits[best] - merits[worst])
        if gain <= FLAT * first:
            break
        first = first or gain
        bend = float(bends[best, best] - 2.0 * bends[best, worst] + bends[worst, worst])
        most = float(weights[worst])
        step = most if gain >= most * bend else gain / bend
        weights[best] += step
        weights[worst] = most - step  # exactly zero after a full step
        merits = merits - step * (bends[best] - bends[worst])
    return weights
