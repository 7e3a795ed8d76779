"""No atom in vain: which candidates are of use once better ones have joined, and batches by cost.

Most atoms that are sent in vain are so because a similar one was sent with them. Who knows the
candidates can see that coming: over the known vertices and one more, the corrective step ends where
a step along the part of the new vertex that the known ones cannot make up would end, and the slopes
of all others change by what they have in common with that part. So candidates are taken one after
the other, as in orthogonal matching pursuit, for as long as one is steep enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.messages.atom import Atom

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

#: A candidate joins that would still violate this share of what the best of them does.
STEEP = 0.4
#: The share of atoms in vain, even if all have weights now, and the batch that it is typical of.
LEAST_IN_VAIN, USUAL_BATCH = 0.05, 10.0
#: The share in use, as long as nobody knows.
USUALLY_USED = 2 / 3
#: A candidate that keeps less of its squared length than this is made up of others: it is taken,
#: but tells nothing of the slopes after it.
MADE_UP = 1e-9
#: What keeps vertices that depend on each other from having no factor.
RIDGE, TINY = 1e-10, 1e-200
#: Weights that add up to less than this share of the radius leave some to the origin.
INSIDE = 1.0 - 1e-9


def cheapest_batch(round_in_atoms: float, used: float, most: float) -> int:
    """The batch that costs least in all where the share of atoms in vain grows as batches do.

    That is where the rounds, of which there are the fewer the larger batches are, cost as much as
    the atoms in vain.

    Parameters
    ----------
    round_in_atoms : float
        How many atoms more cost as much as a round more.
    used : float
        The share of the known atoms that are in use.
    most : float
    """
    in_vain = max(1.0 / (used or USUALLY_USED) - 1.0, LEAST_IN_VAIN) / USUAL_BATCH
    return int(np.clip(np.sqrt(round_in_atoms / in_vain), 1, most))


def dearness(round_in_atoms: float) -> float:
    """How much dearer a round is than usual: one, or more where it takes as long as many atoms."""
    return float(np.sqrt(max(round_in_atoms / USUAL_BATCH, 1.0)))


class Thinning:
    """The weights of a round, and which candidates are of use beside each other there.

    Parameters
    ----------
    active : ActiveSet
        At its best weights, or close to them.
    domain : Domain
    """

    def __init__(self, active: ActiveSet, domain: Domain) -> None:
        self.active, self.domain = active, domain
        self._used = np.flatnonzero(active.weights)
        self._signs = np.sign(active.weights[self._used])
        self._factor: Floats | None = None

    def of_use(self, atoms: Sequence[Atom], scores: Floats, dear: float, most: int) -> Ids:
        """The candidates to send, in the order in which they would join.

        Parameters
        ----------
        atoms : sequence of Atom, length m
            Candidates that violate optimality, none of which is known.
        scores : array of shape (m,)
        dear : float
            See `dearness`: the dearer rounds are, the more are sent.
        most : int
            How many to send where nothing is known of what they have in common.
        """
        products = self.active.products_with(atoms) if len(atoms) > 1 else None
        if products is None:
            return np.arange(min(len(atoms), most))
        violation = self.domain.merit(scores) + self.active.inner() / self.domain.scale
        return _best_first(violation, self._unexplained(products, scores), STEEP / dear)

    def _unexplained(self, products: Floats, scores: Floats) -> Floats:
        """The products of candidates' vertices without what the vertices in use make up, (m, m).

        Vertices are mixed with shares that add up to one, unless the origin is among those in use.
        """
        signs = self.domain.signs(scores)
        own = products[len(self.active) :] * np.outer(signs, signs)
        if not len(self._used):
            return own
        across = products[self._used] * np.outer(self._signs, signs)
        mix, even = self._mixed(across), self._mixed(np.ones((len(self._used), 1)))
        own -= across.T @ mix
        total = np.abs(self.active.weights).sum()
        if not self.domain.has_origin or total > INSIDE * self.domain.scale:
            missing = mix.sum(axis=0) - 1.0
            own += np.outer(missing, missing) / even.sum()
        return own

    def _mixed(self, across: Floats) -> Floats:
        """How the vertices in use make up as much as they can, given their products with it."""
        if self._factor is None:
            gram = self.active.hessian(self._used) * np.outer(self._signs, self._signs)
            gram[np.diag_indices_from(gram)] += RIDGE * gram.diagonal().max() + TINY
            self._factor = np.linalg.cholesky(gram)
        solved: Floats = dpotrs(self._factor, across, lower=True)[0]
        return solved


def _best_first(violation: Floats, products: Floats, kept: float) -> Ids:
    """Take what lowers the objective most, look at the others as if it had joined, and so on."""
    least, enough, taken = MADE_UP * products.diagonal(), kept * violation.max(), list[int]()
    left = np.ones(len(violation), dtype=bool)
    while np.any(useful := left & (violation >= enough)):
        lengths = np.maximum(products.diagonal(), least)
        best = int(np.argmax(np.where(useful, violation**2 / lengths, -1.0)))
        taken.append(best)
        left[best] = False
        if products[best, best] > least[best]:
            part = products[best] / products[best, best]
            violation = violation - violation[best] * part
            products = products - np.outer(products[best], part)
    return np.array(taken, dtype=np.int64)
