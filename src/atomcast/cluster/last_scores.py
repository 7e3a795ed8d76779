"""The scores of atoms when they were read last, and how far they may be from that by now.

A score is a product a . g with the gradient, so that it changes by at most |a| times the distance
between the gradient of then and that of now. Near the optimum that is little, and an atom that was
far from the best stays so without a look at it. Safe rules that leave atoms out for good say no
more: they bound how far the gradient can still go, and every gap must count those atoms, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.held import BoundedAtoms, Bounds
from atomcast.domains.balls import Domain

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

#: So many gradients are remembered, or as many as take this share of the memory of the atoms.
GRADIENTS, SHARE = 64, 1 / 32
#: So many atoms tell whether it is worth while to bound the scores of all.
SAMPLE = 32
#: Norms are found once so many passes could have been spared: they take about as long.
MISSED = 2


class LastScores:
    """What is remembered of the scores of some atoms."""

    def __init__(self, atoms: BoundedAtoms) -> None:
        self._atoms = atoms
        self._sample = np.unique(np.linspace(0, atoms.n - 1, SAMPLE).astype(np.int64))
        self._sample_lengths: Floats | None = None
        self._lengths: Floats | None = None
        self._missed = 0
        # Of each gradient, its norm, and how many atoms were last read with it; of each atom, the
        # score, how far that may be off, and the gradient that it is about.
        self._gradients = np.empty((max(min(GRADIENTS, int(SHARE * atoms.n)), 1), atoms.d))
        self._sizes = np.zeros(len(self._gradients))
        self._readers = np.zeros(len(self._gradients), dtype=np.int64)
        self._scores: Floats | None = None
        self._off = np.zeros(atoms.n)
        self._about = np.zeros(atoms.n, dtype=np.intp)
        self._top = 0  # the best atom that was read last

    def bounds(self, gradient: Floats, domain: Domain, threshold: float) -> Bounds | None:
        """Scores and how far each may be off; None where that would leave too much open."""
        moved = None if self._scores is None else self._moved(gradient)
        if moved is None or not self._worth_while(moved, domain, threshold):
            return None
        if self._lengths is None:
            self._missed += 1
            if self._missed <= MISSED:
                return None
            self._lengths = self._atoms.lengths()
        assert self._scores is not None
        return Bounds(self._scores, self._off + self._lengths * moved[self._about])

    def keep(self, gradient: Floats, domain: Domain, scores: Floats, off: Floats | float) -> None:
        """Remember what the scores of all atoms are at a gradient, and how far they may be off."""
        size = float(np.linalg.norm(gradient))
        if not (1e-150 < size < 1e150 and np.isfinite(scores @ scores)):  # squares would be lost
            self._scores = None
            return
        self._gradients[0], self._sizes[0] = gradient, size
        self._scores, self._off[:], self._about[:] = scores, off, 0
        self._readers[:], self._readers[0] = 0, len(scores)
        self._top = int(domain.merit(scores).argmax())

    def keep_some(self, gradient: Floats, domain: Domain, rows: Positions, scores: Floats) -> None:
        """The same of some atoms, among them the best, whose scores are exact.

        If there was no room for a gradient, all that `bounds` could not tell are among them.
        """
        if self._scores is None:
            return
        self._scores[rows], self._off[rows] = scores, 0.0
        self._top = int(rows[domain.merit(scores).argmax()])
        self._readers -= np.bincount(self._about[rows], minlength=len(self._readers))
        place = int(self._readers.argmin())
        self._gradients[place], self._sizes[place] = gradient, np.linalg.norm(gradient)
        self._about[rows], self._readers[place] = place, len(rows)

    def _moved(self, gradient: Floats) -> Floats | None:
        """How far each gradient is from the one of now; None if squares would be lost."""
        size = float(np.linalg.norm(gradient))
        if not 1e-150 < size < 1e150:
            return None
        moved, used = np.full(len(self._readers), np.inf), self._readers.nonzero()[0]
        if len(used) == len(moved):  # whoever reads next needs the place of one
            used = np.delete(used, self._readers.argmin())
        # And what rounding may do to the products of both.
        rounding = (len(gradient) + 4) * float(np.finfo(np.float64).eps)
        for k in used.tolist():
            moved[k] = np.linalg.norm(gradient - self._gradients[k])
            moved[k] += rounding * (size + self._sizes[k])
        return moved

    def _worth_while(self, moved: Floats, domain: Domain, threshold: float) -> bool:
        """Whether bounds would leave few atoms of a sample open, as far as one can tell."""
        assert self._scores is not None
        rows, top = self._sample, self._top
        if self._lengths is not None:
            lengths, own = self._lengths[rows], self._lengths[top]
        else:
            if self._sample_lengths is None:
                self._sample_lengths = self._atoms.lengths(rows)
            lengths = self._sample_lengths
            own = lengths.max()
        best = domain.merit(self._scores[[top]])[0] - own * moved[self._about[top]]
        level = min(best, threshold) if threshold > -np.inf else best
        most = domain.merit(self._scores[rows]) + lengths * moved[self._about[rows]]
        return bool(
            np.count_nonzero(most >= level) <= self._atoms.vain * self._atoms.pace * len(most)
        )
