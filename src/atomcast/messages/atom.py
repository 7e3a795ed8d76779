"""One atom as it travels from its owner to everybody else, and what these believe of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomcast._checks import LARGEST, SMALLEST
from atomcast.errors import FalseMessageError

if TYPE_CHECKING:
    from atomcast.known.active_set import ActiveSet
    from atomcast.messages.proposals import Agreement

MAX_LENGTH = 2**62  # leaves int64 arithmetic on indices a bit to notice overflow by
MAX_EXTRAS = 1024  # what an atom may carry beside its vector

NO_EXTRAS: NDArray[np.float64] = np.empty(0, dtype=np.float64)
NO_EXTRAS.setflags(write=False)  # shared by every atom that has none


@dataclass(slots=True, eq=False)  # not frozen: that costs a microsecond per atom
class Atom:
    """A vector of length d, dense or sparse, with its global id.

    The constructor checks nothing, because it runs once per atom received; data that comes
    from a user goes through `Atom.checked`. Compare two atoms with `same`.

    Parameters
    ----------
    id : int
        Global id, the same on every node; not negative.
    d : int
        Length of the vector.
    values : ndarray of float32 or float64, shape (d,) or (nnz,)
        All values (dense), or the values at `indices` (sparse). Finite, C-contiguous.
    indices : ndarray of int32 or int64, shape (nnz,), optional
        Row numbers of `values`, strictly increasing. None means that the atom is dense.
    extras : ndarray of float64, shape (n_extras,), optional
        A few further numbers that belong to the atom: a label, a stump's threshold.
    name : str, optional
        Name of the feature, where there is one.
    """

    id: int
    d: int
    values: NDArray[np.floating[Any]]
    indices: NDArray[np.signedinteger[Any]] | None = None
    extras: NDArray[np.float64] = field(default_factory=lambda: NO_EXTRAS)
    name: str = ""

    @classmethod
    def checked(
        cls,
        id: int,
        d: int,
        values: ArrayLike,
        indices: ArrayLike | None = None,
        extras: Iterable[float] | ArrayLike = (),
        name: str = "",
    ) -> Atom:
        """Make an atom of data that may be wrong: convert what is harmless, refuse the rest.

        Values of a type other than float32 or float64 become float64, indices of a type
        other than int32 or int64 become int64. Parameters as for `Atom`.

        Raises
        ------
        ValueError
            If shapes do not agree, a number is not finite, or indices do not increase.
        """
        if not 0 <= id < 2**63:
            raise ValueError(f"id={id}: expected an integer from 0 to 2**63 - 1.")
        if not 0 <= d <= MAX_LENGTH:
            raise ValueError(f"d={d}: expected a length from 0 to 2**62.")
        checked_values = _finite_vector("values", values, keep=(np.float32, np.float64))
        checked_indices = None if indices is None else _checked_indices(indices, d)
        expected = d if checked_indices is None else checked_indices.size
        if checked_values.size != expected:
            kind = "a dense atom of length d" if checked_indices is None else "as many indices"
            raise ValueError(
                f"values has {checked_values.size} entries, but {kind} needs {expected}. "
                "Pass all d values, or the nonzero values together with their indices."
            )
        checked_extras = _finite_vector("extras", np.asarray(extras), keep=(np.float64,))
        return cls(int(id), int(d), checked_values, checked_indices, checked_extras, str(name))

    @property
    def is_sparse(self) -> bool:
        """Whether only the values at `indices` are stored."""
        return self.indices is not None

    @property
    def count(self) -> int:
        """How many real values it takes to send this atom: the paper's measure of cost."""
        return self.values.size + self.extras.size

    def dense(self) -> NDArray[np.float64]:
        """All d values, in an array of its own.

        Returns
        -------
        ndarray of float64, shape (d,)
        """
        if self.indices is None:
            return self.values.astype(np.float64)
        full = np.zeros(self.d)
        full[self.indices] = self.values
        return full

    def dot(self, vector: NDArray[np.floating[Any]]) -> float:
        """Inner product with a dense vector, summed in float64.

        Parameters
        ----------
        vector : ndarray, shape (d,)
        """
        known = vector if self.indices is None else vector[self.indices]
        return float(np.dot(self.values.astype(np.float64, copy=False), known))

    def __repr__(self) -> str:
        kind = "dense" if self.indices is None else f"{self.values.size} nonzeros"
        name = f", name={self.name!r}" if self.name else ""
        extras = f", extras={self.extras.tolist()}" if self.extras.size else ""
        return f"Atom(id={self.id}, d={self.d}, {kind}, {self.values.dtype}{extras}{name})"


class AtomBatch(Sequence[Atom]):
    """Atoms of one length, all dense or all sparse: no object for each of them.

    Who knows of batches takes the arrays; to all others it is a list of atoms. There are no kinds
    of them: to ask whether `type(atoms) is AtomBatch` is quicker than to ask an abstract class.

    Parameters
    ----------
    ids : list of k ints
    d : int
    values : ndarray of float32 or float64, shape (k, d) or (nnz,)
        An atom a row, or those of sparse ones one after the other; finite, C-contiguous. Dense
        atoms of 1 and -1 may come as int8; each of them by itself is float64.
    indices : ndarray of int32 or int64, shape (nnz,), optional
        Row numbers of the values of sparse atoms.
    starts : ndarray of int64, shape (k + 1,), optional
        Where the values of each sparse atom begin, and where the last ones end.
    names : sequence of k str, optional
    extras : ndarray of float64, shape (k, n_extras), optional
    """

    def __init__(
        self,
        ids: list[int],
        d: int,
        values: NDArray[Any],
        indices: NDArray[np.signedinteger[Any]] | None = None,
        starts: NDArray[np.int64] | None = None,
        names: Sequence[str] | None = None,
        extras: NDArray[np.float64] | None = None,
    ) -> None:
        self.ids, self.d, self.values, self.names = ids, d, values, names
        self.indices, self.starts, self.extras = indices, starts, extras

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[row] for row in range(len(self))[k]]
        name = "" if self.names is None else self.names[k]
        extras = NO_EXTRAS if self.extras is None else self.extras[k]
        if self.indices is None or self.starts is None:
            values = self.values[k]
            values = values.astype(np.float64) if values.dtype == np.int8 else values
            return Atom(self.ids[k], self.d, values, extras=extras, name=name)
        part = slice(*self.starts[range(len(self))[k] :][:2])
        return Atom(self.ids[k], self.d, self.values[part], self.indices[part], extras, name)

    def first(self, count: int) -> AtomBatch:
        """So many of them."""
        names = None if self.names is None else self.names[:count]
        extras = None if self.extras is None else self.extras[:count]
        if self.indices is None or self.starts is None:
            return AtomBatch(
                self.ids[:count], self.d, self.values[:count], names=names, extras=extras
            )
        part, starts = slice(self.starts[count]), self.starts[: count + 1]
        arrays = self.values[part], self.indices[part], starts
        return AtomBatch(self.ids[:count], self.d, *arrays, names, extras)


def same(a: Atom, b: Atom) -> bool:
    """Whether two atoms are the same bit for bit, types and representation included.

    Stricter than equality of numbers: -0.0 differs from 0.0, float32 from float64, and a
    dense atom from a sparse one, because nodes that hold such atoms may round differently.
    """
    if (a.id, a.d, a.name, a.is_sparse) != (b.id, b.d, b.name, b.is_sparse):
        return False
    if not (_same_bits(a.values, b.values) and _same_bits(a.extras, b.extras)):
        return False
    return a.indices is None or b.indices is None or _same_bits(a.indices, b.indices)


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _finite_vector(name: str, given: ArrayLike, keep: tuple[type, ...]) -> NDArray[Any]:
    """Return a 1-D contiguous array; float64 unless its type is one to keep."""
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: expected one dimension.")
    if array.dtype.type not in keep or not array.dtype.isnative:
        if array.size and array.dtype.kind not in "fiub":
            raise ValueError(f"{name} has dtype {array.dtype}: expected real numbers.")
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity: impute or drop them before fitting.")
    return np.ascontiguousarray(array)


def _checked_indices(given: ArrayLike, d: int) -> NDArray[Any]:
    """Return 1-D contiguous indices, int64 unless they are int32; increasing, within d."""
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"indices has shape {array.shape}: expected one dimension.")
    if array.dtype.type not in (np.int32, np.int64) or not array.dtype.isnative:
        if array.size and array.dtype.kind not in "iu":
            raise ValueError(f"indices has dtype {array.dtype}: expected integers.")
        array = array.astype(np.int64)
    if array.size and not (array[0] >= 0 and array[-1] < d and (array[1:] > array[:-1]).all()):
        raise ValueError(
            f"indices must increase strictly from at least 0 to at most d - 1 = {d - 1}: "
            "sort them and sum duplicates (scipy: matrix.sum_duplicates())."
        )
    return np.ascontiguousarray(array)


# --- what a node believes of an atom that it is sent --------------------------------------------
#
# Nothing that it can find out for itself. Everybody knows the id and the score of a winner before
# its atom is sent, and the gradient that the score is about. So an inner product with the atom
# tells whether it is the one that was agreed on, and an atom is used only after that. What cannot
# be found out is what a node keeps to itself: one that says that its best score is smaller than
# it is makes the gap of everybody too small.

Floats = NDArray[np.float64]
#: One number, or one for each of some atoms.
Size = TypeVar("Size", float, Floats)
#: By how many roundings of every product two sums of the same products may differ: sums may be
#: taken in any order, and those of stumps from sums of which they are differences.
ROUNDINGS = 4.0
#: Up to so many atoms, a loop over plain numbers is faster than calls on arrays.
FEW = 12
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class Misfit(NamedTuple):
    """How scores that were stated compare with those of the atoms received, one entry an atom.

    Parameters
    ----------
    difference : k floats
    allowed : k floats
        What rounding may make of it, whatever the order of summation.
    length : k floats
        The Euclidean norm of each atom.
    """

    difference: Sequence[float] | Floats
    allowed: Sequence[float] | Floats
    length: Sequence[float] | Floats


def rounding(length: Size, gradient: Floats) -> Size:
    """How far the product of a gradient with atoms of these lengths may be off by rounding."""
    size = math.sqrt(gradient.dot(gradient))  # in half the time of `@`, if it is short
    count = ROUNDINGS * (len(gradient) + 8)
    return (count * EPS * size) * length + count * TINY


def least_rounding(product: float, d: int) -> float:
    """The same at least, from the product itself: no product is larger than those of lengths."""
    return ROUNDINGS * (d + 8) * EPS * abs(product)


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
    ids, new = agreement.id.tolist(), agreement.new_to(active.position)
    if atoms or new:
        check_form(active, atoms, new)
        active.append(atoms)
    if agreement.version is None and ids and (len(ids) == 1 or len(new) == len(ids)):
        # The usual case, which must be quick: all at once.
        check_scores(active.misfit(ids, agreement.score), ids, agreement, atoms, scale)
        return
    fresh = {id for _, id in new}
    known = [id not in fresh for id in ids]
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


def check_form(active: ActiveSet, atoms: Sequence[Atom], wanted: Sequence[tuple[int, int]]) -> None:
    """Raise FalseMessageError unless these are the atoms asked for, by their ids and lengths.

    What is wanted are pairs of an owner and an id.
    """
    if len(atoms) == len(wanted) == 1:  # as in most short rounds
        check_one(active, atoms[0], *wanted[0])
        return
    if len(atoms) > 1:
        asked = [id for _, id in wanted]
        ids = atoms.ids if type(atoms) is AtomBatch else [atom.id for atom in atoms]
        if type(atoms) is AtomBatch and ids == asked and atoms.extras is None:
            atoms, wanted = atoms[:1], wanted[:1]  # they are all of one form
        elif ids == asked and active.beyond_doubt(atoms):
            return
    for (owner, id), atom in zip(wanted, atoms, strict=True):
        check_one(active, atom, owner, id)


def check_one(active: ActiveSet, atom: Atom, owner: int, id: int) -> None:
    """Raise FalseMessageError unless this is the atom that its owner was asked for."""
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
    if len(ids) > FEW and _all_right(misfit, scale):
        return
    k = 0
    for difference, allowed, length in zip(*misfit, strict=True):
        usable = length == 0.0 or (SMALLEST <= length <= LARGEST and scale * length <= LARGEST)
        if not (usable and abs(difference) <= allowed):
            break
        k += 1
    else:
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


def _all_right(misfit: Misfit, scale: float) -> bool:
    """Whether a look at all of many atoms at once finds nothing wrong with any."""
    difference, allowed, length = map(np.asarray, misfit)
    longest = min(LARGEST, LARGEST / scale)
    usable = (length >= SMALLEST) & (length <= longest) | (length == 0.0)
    return bool((usable & (np.abs(difference) <= allowed)).all())
