"""The best labels of chains, by dynamic programming, compiled."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def viterbi(scores, transitions, starts):  # type: ignore[no-untyped-def]
    """The labels with the largest sum of scores, of rows and of neighbours, in each sequence.

    Of equal sums, the one whose last label is smallest wins, then the one before it, and so on.

    Parameters
    ----------
    scores : array of shape (rows, K)
    transitions : array of shape (K, K)
        The score of the second label after the first.
    starts : array of shape (sequences + 1,)
        Where each sequence begins; the last entry is the number of rows.

    Returns
    -------
    int64 array of shape (rows,)
    """
    rows, K = scores.shape
    labels = np.empty(rows, dtype=np.int64)
    came = np.empty((rows, K), dtype=np.int64)
    best, new = np.empty(K), np.empty(K)
    for i in range(len(starts) - 1):
        start, stop = starts[i], starts[i + 1]
        if start == stop:
            continue
        best[:] = scores[start]
        for t in range(start + 1, stop):
            for k in range(K):
                top, source = best[0] + transitions[0, k], 0
                for j in range(1, K):
                    total = best[j] + transitions[j, k]
                    if total > top:
                        top, source = total, j
                new[k] = top + scores[t, k]
                came[t, k] = source
            best[:] = new
        label = np.argmax(best)
        labels[stop - 1] = label
        for t in range(stop - 1, start, -1):
            label = came[t, label]
            labels[t - 1] = label
    return labels
