"""One wave of flooding over all links at once, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True)
def _size(word: Any) -> Any:
    """How many of the 64 bits are set (LLVM makes one instruction of it)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True)
def wave(
    source: NDArray[np.int64],
    reverse: NDArray[np.int64],
    start: NDArray[np.int64],
    fresh: NDArray[np.uint64],
    came: NDArray[np.uint64],
    known: NDArray[np.uint64],
    heard: NDArray[np.uint64],
    brought: NDArray[np.uint64],
    digits: NDArray[np.uint64],
    sizes: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Send what is fresh over all links, and deliver it.

    Parameters
    ----------
    source, reverse, start : arrays
        As in `Links`: links are ordered by target, and then by source.
    fresh : array of shape (V, words)
        What each vertex learned in the wave before.
    came : array of shape (2M, words)
        What each link brought its target first, in the wave before: it is not sent back.
    known : array of shape (V, words)
        Changed: what each vertex knows.
    heard, brought : arrays like fresh and came
        Written: the same for this wave.
    digits : array of shape (p, words)
    sizes : array of shape (2M, p)
        Written: the size of each message's intersection with each digit.

    Returns
    -------
    array of shape (2M,)
        Which links carried a message.
    """
    words = np.uint64(fresh.shape[1])
    planes = np.uint64(len(digits))
    full = np.zeros(len(source), dtype=np.bool_)
    for v in range(len(known)):
        heard[v] = np.uint64(0)
        for link in range(start[v], start[v + 1]):
            sender, back = source[link], reverse[link]
            for w in range(words):
                word = np.uint64(w)
                sent = fresh[sender, word] & ~came[back, word]
                new = sent & ~known[v, word]
                brought[link, word] = new
                if sent:
                    full[link] = True
                    for p in range(planes):
                        plane = np.uint64(p)
                        sizes[link, plane] += np.int64(_size(sent & digits[plane, word]))
                    known[v, word] |= new
                    heard[v, word] |= new
    return full
