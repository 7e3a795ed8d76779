"""Outputs that are labels: one for an input (multi-class), or one for each of its rows (chain).

A label scores by a linear function of its row, ``w[label] @ (x, 1)``; in a chain, so does every
pair of neighbouring labels, by a weight of its own. The loss is the number of wrong labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.structures.output_model import Floats, Rows

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class MultiClass:
    """One of several classes for each row, whatever its neighbours are.

    Parameters
    ----------
    classes, features : int
        How many there are. Outputs are arrays of numbers 0, ..., classes - 1, one for each row.
    """

    classes: int
    features: int

    @property
    def d(self) -> int:
        """Length of the weights."""
        return self._unary

    @property
    def _unary(self) -> int:
        return self.classes * (self.features + 1)

    def joint_feature(self, x: Rows, y: Any) -> Floats:
        """The sum of the rows of each label, and their number."""
        labels = np.arange(self.classes) == np.asarray(y)[:, None]
        joint = np.empty((self.classes, self.features + 1))
        joint[:, :-1] = labels.T.astype(np.float64) @ x
        joint[:, -1] = labels.sum(axis=0)
        return joint.ravel()

    def loss(self, y: Any, other: Any) -> float:
        """The number of wrong labels."""
        return float(np.count_nonzero(np.asarray(y) != np.asarray(other)))

    def decode(self, w: Floats, x: Rows, y: Any = None) -> Labels:
        """The best labels of one input."""
        starts = np.array([0, x.shape[0]])
        found: Labels = self._best(w, self._augmented(w, x, y), starts)
        return found

    def decode_all(
        self, w: Floats, rows: Rows, starts: NDArray[np.int64], y: Sequence[Labels] | None = None
    ) -> list[Labels]:
        """The best labels of all inputs."""
        scores = self._augmented(w, rows, None if y is None else _joined(y))
        return np.split(self._best(w, scores, starts), starts[1:-1])

    def corner_sum(
        self,
        rows: Rows,
        starts: NDArray[np.int64],
        y: Sequence[Labels],
        others: Sequence[Labels],
        weights: Floats | None = None,
    ) -> tuple[Floats, float]:
        """The sums of differences of joint features and of losses, weighted."""
        right, wrong = _joined(y), _joined(others)
        changed = np.flatnonzero(right != wrong)
        signs = np.zeros((len(changed), self.classes))
        signs[np.arange(len(changed)), right[changed]] = 1.0
        signs[np.arange(len(changed)), wrong[changed]] = -1.0
        counts = _by_row(weights, starts)[changed]
        signs *= counts[:, np.newaxis]
        total = np.empty((self.classes, self.features + 1))
        total[:, :-1] = (rows[changed].T @ signs).T
        total[:, -1] = signs.sum(axis=0)
        return total.ravel(), float(counts.sum())

    def unary(self, w: Floats, rows: Rows) -> Floats:
        """The score of every label for every row, shape (rows, classes)."""
        table = w[: self._unary].reshape(self.classes, self.features + 1)
        scores: Floats = np.asarray(rows @ table[:, :-1].T) + table[:, -1]
        return scores

    def _augmented(self, w: Floats, rows: Rows, y: Labels | None) -> Floats:
        """The scores, and the loss where a label is wrong."""
        scores = self.unary(w, rows)
        if y is not None:
            scores += 1.0
            scores[np.arange(len(scores)), y] -= 1.0
        return scores

    def _best(self, w: Floats, scores: Floats, starts: NDArray[np.int64]) -> Labels:
        """The labels with the best total, given the scores of single ones."""
        return scores.argmax(axis=1)


class Chain(MultiClass):
    """A label for each row of a sequence, where neighbouring labels depend on each other."""

    @property
    def d(self) -> int:
        """Length of the weights: those of rows, then one for each pair of neighbours."""
        return self._unary + self.classes**2

    def joint_feature(self, x: Rows, y: Any) -> Floats:
        """The sum of the rows of each label, their number, and that of each pair of neighbours."""
        pairs = self._pairs(np.asarray(y), np.array([0, len(y)]), np.ones(len(y)))
        return np.concatenate([super().joint_feature(x, y), pairs])

    def corner_sum(
        self,
        rows: Rows,
        starts: NDArray[np.int64],
        y: Sequence[Labels],
        others: Sequence[Labels],
        weights: Floats | None = None,
    ) -> tuple[Floats, float]:
        """The sums of differences of joint features and of losses, weighted."""
        unary, loss = super().corner_sum(rows, starts, y, others, weights)
        counts = _by_row(weights, starts)
        right, wrong = (self._pairs(_joined(labels), starts, counts) for labels in (y, others))
        return np.concatenate([unary, right - wrong]), loss

    def transitions(self, w: Floats) -> Floats:
        """The score of each pair of neighbours, shape (classes, classes)."""
        return w[self._unary :].reshape(self.classes, self.classes)

    def _best(self, w: Floats, scores: Floats, starts: NDArray[np.int64]) -> Labels:
        from atomcast.structures._viterbi import viterbi

        return viterbi(scores, np.ascontiguousarray(self.transitions(w)), starts)

    def _pairs(self, labels: Labels, starts: NDArray[np.int64], counts: Floats) -> Floats:
        """How often each label follows each other one within a sequence, as much as rows count."""
        within = np.ones(max(len(labels) - 1, 0), dtype=bool)
        within[starts[1:-1] - 1] = False
        pairs = (labels[:-1] * self.classes + labels[1:])[within]
        sums = np.bincount(pairs, counts[:-1][within], minlength=self.classes**2)
        return sums.astype(np.float64, copy=False)


def _by_row(weights: Floats | None, starts: NDArray[np.int64]) -> Floats:
    """How much each row counts, from how much each input does."""
    return np.ones(starts[-1]) if weights is None else np.repeat(weights, np.diff(starts))


def _joined(outputs: Sequence[Labels]) -> Labels:
    return np.concatenate(outputs) if len(outputs) else np.zeros(0, dtype=np.int64)
