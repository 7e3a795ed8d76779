"""What a node believes of what it is sent: nothing that it can find out for itself.

Everybody knows the id and the score of a winner before its atom is sent, and the gradient that the
score is about. So an inner product with the atom tells whether it is the one that was agreed on,
and an atom is used only after that. What cannot be found out is what a node keeps to itself: one
that says that its best score is smaller than it is makes the gap of everybody too small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import LARGEST, SMALLEST
from atomcast.errors import FalseMessageError
from atomcast.messages.atom import Atom

if TYPE_CHECKING:
    from atomcast.known.active_set import ActiveSet
    from atomcast.messages.proposals import Agreement

Floats = NDArray[np.float64]
#: One number, or one for each of some atoms.
Size = TypeVar("Size", float, Floats)
#: By how many roundings of every product two sums of the same products may differ: sums may be
#: taken in any order, and those of stumps from sums of which they are differences.
ROUNDINGS = 4.0
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class Misfit(NamedTuple):
    """How scores that were stated compare with those of the atoms received, one entry an atom.

    Parameters
    ----------
    difference : list of k floats
    allowed : list of k floats
        What rounding may make of it, whatever the order of summation.
    length : list of k floats
        The Euclidean norm of each atom.
    """

    difference: list[float]
    allowed: list[float]
    length: list[float]


def misfit_of(difference: Floats, allowed: Floats, length: Floats) -> Misfit:
    """The same of arrays."""
    return Misfit(difference.tolist(), allowed.tolist(), length.tolist())


def rounding(length: Size, gradient: Floats) -> Size:
    """How far the product of a gradient with atoms of these lengths may be off by rounding."""
    size = math.sqrt(gradient @ gradient)
    count = ROUNDINGS * (len(gradient) + 8)
    return (count * EPS * size) * length + count * TINY


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
    ids = agreement.id.tolist()
    known = [id in active for id in ids]
    if atoms or not all(known):
        check_form(active, atoms, agreement)
        active.append(atoms)
    if agreement.version is None and ids and (len(ids) == 1 or not any(known)):
        # The usual case, which must be quick: all at once.
        check_scores(active.misfit(ids, agreement.score), ids, agreement, atoms, scale)
        return
    for part in _comparable(known, agreement):
        ids = part.id.tolist()
        version = None if part.version is None else int(part.version[0])
        misfit = active.misfit(ids, part.score, iterates.get(version))
        if version is not None and version not in iterates:
            misfit = misfit._replace(difference=[0.0])  # nobody here can know it
        check_scores(misfit, ids, part, atoms, scale)


def _comparable(known: Sequence[bool], agreement: Agreement) -> Iterator[Agreement]:
    """The winners in parts that are about one iterate, of atoms that came one after the other."""
    rows, alone = np.arange(len(known)), np.array(known, dtype=bool)
    if agreement.version is not None:
        alone[:] = True
    if not alone.all():
        yield agreement.of(rows[~alone])
    for row in rows[alone]:
        yield agreement.of(slice(row, row + 1))


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


def check_scores(
    misfit: Misfit,
    ids: Sequence[int],
    winners: Agreement,
    atoms: Sequence[Atom],
    scale: float,
) -> None:
    """Raise an error for the first atom that is not what its score says, or beyond all scales."""
    k = 0
    for difference, allowed, length in zip(*misfit, strict=True):
        usable = length == 0.0 or (SMALLEST <= length <= LARGEST and scale * length <= LARGEST)
        if not (usable and abs(difference) <= allowed):
            break
        k += 1
    if k == len(ids):
        return
    owner, stated = winners.owner[k], winners.score[k]
    content = {atom.id: atom.values for atom in atoms}.get(ids[k], np.ones(1))
    if not np.all(np.isfinite(content)):
        raise FalseMessageError(f"node {owner} sent an atom {ids[k]} with NaN or infinity")
    largest = float(np.max(np.abs(content), initial=0.0))
    if not usable or 0.0 < largest < SMALLEST:
        raise ValueError(
            f"atom {ids[k]} of node {owner}, whose largest value is {largest:.3g}, is out of "
            f"scale: squares of its values or of {scale:.3g} times them, as they occur in the "
            f"objective, need values from {SMALLEST:g} to {LARGEST:g}; rescale the data"
        )
    raise FalseMessageError(
        f"node {owner} said that atom {ids[k]} has the score {stated:.17g}, but what it "
        f"sent has {stated - difference:.17g}: the node is broken, or does not tell "
        "the truth"
    )
