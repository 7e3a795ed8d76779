"""What a node believes of what it is sent: nothing that it can find out for itself.

Everybody knows the id and the score of a winner before its atom is sent, and the gradient that the
score is about. So an inner product with the atom tells whether it is the one that was agreed on,
and an atom is used only after that. What cannot be found out is what a node keeps to itself: one
that says that its best score is smaller than it is makes the gap of everybody too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import LARGEST, SMALLEST
from atomcast.atoms.atom import Atom
from atomcast.errors import FalseMessageError

if TYPE_CHECKING:
    from atomcast.active_set import ActiveSet
    from atomcast.protocol import Agreement

Floats = NDArray[np.float64]
#: By how many roundings of every product two sums of the same products may differ: sums may be
#: taken in any order, and those of stumps from sums of which they are differences.
ROUNDINGS = 4.0
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class Misfit(NamedTuple):
    """How scores that were stated compare with those of the atoms received, one entry an atom.

    Parameters
    ----------
    difference : array of shape (k,)
    allowed : array of shape (k,)
        What rounding may make of it, whatever the order of summation.
    length : array of shape (k,)
        The Euclidean norm of each atom.
    """

    difference: Floats
    allowed: Floats
    length: Floats


def rounding(length: Floats, gradient: Floats) -> Floats:
    """How far the product of a gradient with atoms of these lengths may be off by rounding."""
    size = float(np.sqrt(gradient @ gradient))
    return ROUNDINGS * (len(gradient) + 8) * (EPS * size * length + TINY)


def receive(
    active: ActiveSet,
    atoms: Sequence[Atom],
    agreement: Agreement,
    iterates: Mapping[int | None, Any],
    scale: float,
) -> None:
    """Add the atoms of an agreement to what is known, if they are those that were agreed on.

    Parameters
    ----------
    active : ActiveSet
    atoms : sequence of Atom
        Those of the winners that are not known yet, as they were received.
    agreement : Agreement
    iterates : mapping
        By round, earlier iterates that scores may be about.
    scale : float
        How many times an atom a vertex of the domain is.

    Raises
    ------
    FalseMessageError
        If an atom is not the one agreed on; the message names its owner.
    ValueError
        If an atom is too long or too short to compute with.
    """
    known = [id in active for id in agreement.id.tolist()]
    check_form(active, atoms, agreement)
    active.append(atoms)
    for rows in _together(known, agreement):
        ids, stated = agreement.id[rows].tolist(), agreement.score[rows]
        version = None if agreement.version is None else int(agreement.version[rows][0])
        misfit = active.misfit(ids, stated, iterates.get(version))
        if version is not None and version not in iterates:
            misfit = misfit._replace(difference=np.zeros(len(ids)))  # it cannot be known
        _check(misfit, ids, agreement.owner[rows], stated, atoms, scale)


def _together(known: Sequence[bool], agreement: Agreement) -> list[slice | NDArray[np.int64]]:
    """The winners in groups that can be compared at once: atoms that came one after the other."""
    rows = np.arange(len(known))
    if agreement.version is not None or len(known) < 2:
        return list(rows[:, None])
    old = np.array(known, dtype=bool)
    return [*([rows[~old]] if not old.all() else []), *rows[old, None]]


def check_form(active: ActiveSet, atoms: Sequence[Atom], agreement: Agreement) -> None:
    """Raise FalseMessageError unless these are the atoms asked for, by their ids and lengths."""
    pairs = zip(agreement.owner.tolist(), agreement.id.tolist(), strict=True)
    wanted = [(owner, id) for owner, id in pairs if id not in active]
    for (owner, id), atom in zip(wanted, atoms, strict=True):
        if atom.id != id:
            raise FalseMessageError(f"node {owner} sent atom {atom.id} when asked for atom {id}")
        doubt = active.doubt(atom)
        if doubt is not None:
            raise FalseMessageError(f"node {owner} sent an atom {id} that cannot be: {doubt}")


def _check(
    misfit: Misfit,
    ids: Sequence[int],
    owners: NDArray[np.int64],
    stated: Floats,
    atoms: Sequence[Atom],
    scale: float,
) -> None:
    """Raise an error for the first atom that is not what its score says, or beyond all scales."""
    length = misfit.length
    vertex = scale * length
    usable = (length == 0.0) | ((length >= SMALLEST) & (length <= LARGEST) & (vertex <= LARGEST))
    true = usable & (np.abs(misfit.difference) <= misfit.allowed)
    if true.all():
        return
    k = int(np.argmin(true))
    content = {atom.id: atom.values for atom in atoms}.get(ids[k], np.ones(1))
    if not np.all(np.isfinite(content)):
        raise FalseMessageError(f"node {owners[k]} sent an atom {ids[k]} with NaN or infinity")
    largest = float(np.max(np.abs(content), initial=0.0))
    if not usable[k] or 0.0 < largest < SMALLEST:
        raise ValueError(
            f"atom {ids[k]} of node {owners[k]}, whose largest value is {largest:.3g}, is out of "
            f"scale: squares of its values or of {scale:.3g} times them, as they occur in the "
            f"objective, need values from {SMALLEST:g} to {LARGEST:g}; rescale the data"
        )
    raise FalseMessageError(
        f"node {owners[k]} said that atom {ids[k]} has the score {stated[k]:.17g}, but what it "
        f"sent has {stated[k] - misfit.difference[k]:.17g}: the node is broken, or does not tell "
        "the truth"
    )
