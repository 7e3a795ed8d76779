"""Which of several candidates are still of use once better ones have joined.

Most atoms that are sent in vain are so because a similar one was sent with them. Who knows the
candidates can see that coming: over the known vertices and one more, the corrective step ends where
a step along the part of the new vertex that the known ones cannot make up would end, and the slopes
of all others change by what they have in common with that part. So candidates are taken as in
orthogonal matching pursuit, the steepest first, for as long as one is steep enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.gram import solved
from atomcast.messages.atom import Atom

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

#: A candidate that keeps less of its squared length than this is made up of others: it is taken,
#: but tells nothing of the slopes after it.
MADE_UP = 1e-9
#: Weights that add up to less than this share of the radius leave some to the origin.
INSIDE = 1.0 - 1e-9


def superfluous_left_out(
    active: ActiveSet, domain: Domain, atoms: Sequence[Atom], scores: Floats, kept: float
) -> Ids:
    """The candidates to send, in the order in which they would join; the best is always one.

    Parameters
    ----------
    active : ActiveSet
        At its best weights, or close to them.
    domain : Domain
    atoms : sequence of Atom, length m
        Candidates, none of which is known.
    scores : array of shape (m,)
    kept : float
        A candidate joins while it violates at least this share of what the best one did.
    """
    products = active.products_with(atoms) if len(atoms) > 1 else None
    if products is None:
        return np.arange(len(atoms))
    violation = domain.merit(scores) + active.inner() / domain.scale
    return _steepest_first(violation, _unexplained(active, domain, products, scores), kept)


def _unexplained(active: ActiveSet, domain: Domain, products: Floats, scores: Floats) -> Floats:
    """The products of the candidates' vertices without what the vertices in use make up, (m, m).

    Vertices are mixed with shares that add up to one, unless the origin is among those in use.
    """
    signs, used = domain.signs(scores), np.flatnonzero(active.weights)
    own = products[len(active) :] * np.outer(signs, signs)
    if not len(used):
        return own
    known_signs = np.sign(active.weights[used])
    gram = active.hessian(used) * np.outer(known_signs, known_signs)
    across = products[used] * np.outer(known_signs, signs)
    solution = solved(gram, np.column_stack([across, np.ones(len(used))]))
    mix, even = solution[:, :-1], solution[:, -1]
    own -= across.T @ mix
    if not domain.has_origin or np.abs(active.weights).sum() > INSIDE * domain.scale:
        missing = mix.sum(axis=0) - 1.0
        own += np.outer(missing, missing) / even.sum()
    return own


def _steepest_first(violation: Floats, products: Floats, kept: float) -> Ids:
    """Take the steepest, update the others as if it had joined, and so on."""
    lengths, enough, taken = products.diagonal().copy(), kept * violation.max(), list[int]()
    waiting = violation
    while len(taken) < len(violation):
        best = int(np.argmax(waiting))
        if taken and waiting[best] < enough:
            break
        taken.append(best)
        part = products[best]
        if part[best] > MADE_UP * lengths[best]:
            waiting = waiting - waiting[best] / part[best] * part
            products = products - np.outer(part, part / part[best])
        waiting[best] = -np.inf
    return np.array(taken, dtype=np.int64)
