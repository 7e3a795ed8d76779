"""Dictionary elements as atoms, and what everybody knows of many signals that share them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.data.shards import Shard
from atomcast.domains.ball_product import BallProduct
from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.columns import Columns, with_appended
from atomcast.known.kernels.points import dense_rows
from atomcast.known.rows_in_order import RowsInOrder
from atomcast.messages.atom import EPS, ROUNDINGS, Atom, Misfit, check_form, check_scores
from atomcast.messages.proposals import Agreement

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: So many numbers are looked at in one piece, which fits into a cache.
PIECE = 1 << 16


class SignalsActiveSet(ActiveSet):
    """Known atoms with a weight for each of B signals, and the sum of their squared errors.

    Each signal is a problem of its own, which it may be done with before the others.

    Of what follows from the weights, only a few numbers are kept for each signal: what is left of
    them is worked out where it is needed, for a piece of them at a time, which takes less than to
    score them does, and no memory.

    Parameters
    ----------
    signals : array or sparse array of shape (B, d)
        In single or double precision.
    balls : bool, default=True
        Whether each has a ball. In a span, where there is no gap, nobody asks for `inners`.

    Attributes
    ----------
    codes : sparse array of shape (B, K)
        The weights, without zeros; never changed in place.
    errors, inners : arrays of shape (B,)
        The squared error of each signal, and its product <w, grad f(w)>, which is zero at the best
        weights of a span.
    open : array of B booleans
        Which signals are not done yet.
    levels : array of shape (B,)
        An atom is of use to a signal if its merit is above this; from a request to the gap.
    gaps : array of shape (B,)
        The certified gap of each signal, at the weights with the smallest sum of them.
    """

    quadratic = True
    lower_bound = 0.0

    def __init__(self, signals: Any, balls: bool = True) -> None:
        super().__init__()
        self.signals, self._balls = signals, balls
        count = signals.shape[0]
        self.columns: Columns | None = None
        self.codes = sparse.csr_array((count, 0))
        # These take no memory where there is nothing to say of each signal.
        self._nothing = self.levels = self._gap_now = np.broadcast_to(0.0, count)
        self.gaps = np.broadcast_to(np.inf, count)
        self.errors = np.zeros(count)
        self.inners = np.zeros(count) if balls else self._nothing
        self._measure(np.arange(count))
        self.squares = self.errors.copy()
        self.open = self.squares > 0.0
        self._gram = np.zeros((0, 0))

    def rows(self, some: Ints) -> Floats:
        """Some of the signals, shape (m, d)."""
        return dense_rows(self.signals[some])

    def residual(self, some: Ints) -> Floats:
        """What the weights leave of some signals, shape (m, d)."""
        return self.rows(some) - self.codes[some] @ self.dictionary

    def pieces(self, signals: Ints, width: int = 1) -> Iterator[Ints]:
        """Signals, so many at a time that neither they nor `width` numbers for each are many."""
        step = self.height(width)
        return (signals[k : k + step] for k in range(0, len(signals), step))

    def height(self, width: int) -> int:
        """How many signals a piece has where each comes with so many numbers."""
        return max(PIECE // max(width, self.signals.shape[1]), 1)

    def _measure(self, signals: Ints) -> None:
        """Find the errors of signals with new weights, and the products of these with slopes."""
        for part in self.pieces(signals):
            image = self.codes[part] @ self.dictionary
            residual = self.rows(part) - image
            self.errors[part] = np.einsum("bd,bd->b", residual, residual)
            if self._balls:
                self.inners[part] = -2.0 * np.einsum("bd,bd->b", image, residual)

    @property
    def weights(self) -> Floats:
        """The weights atom by atom, and within an atom signal by signal."""
        return self.flat(self.codes)

    def kept(self) -> sparse.csr_array:
        """The weights of now, without zeros."""
        return self.codes

    def flat(self, kept: sparse.csr_array) -> Floats:
        """Such weights atom by atom, and within an atom signal by signal."""
        return kept.toarray().T.ravel()

    def weight_bytes(self) -> bytes:
        """What tells weights from others."""
        codes = self.codes
        return b"".join(part.tobytes() for part in (codes.indptr, codes.indices, codes.data))

    @property
    def dictionary(self) -> Floats:
        """The known atoms, shape (K, d)."""
        if self.columns is None:
            return np.zeros((0, self.signals.shape[1]))
        return self.columns.block(0, self.columns.count).T

    @property
    def gram(self) -> Floats:
        """The products of the known atoms with each other, shape (K, K)."""
        known, atoms = len(self._gram), self.dictionary
        if known < len(atoms):
            larger = np.empty((len(atoms),) * 2)
            larger[:known, :known] = self._gram
            larger[known:] = atoms[known:] @ atoms.T
            larger[:known, known:] = larger[known:, :known].T
            self._gram = larger
        return self._gram

    def _store(self, atoms: Sequence[Atom]) -> None:
        self.columns = with_appended(self.columns, self.signals.shape[1], atoms)
        self._code(self.codes.data, self.codes.indices, self.codes.indptr)

    def _code(self, *parts: NDArray[Any]) -> None:
        """Take over weights of all known atoms, in the three arrays of a sparse matrix."""
        self.codes = sparse.csr_array(parts, shape=(self.signals.shape[0], len(self.ids)))

    def doubt(self, atom: Atom) -> str | None:
        """Whether it has another length than signals have."""
        d = self.signals.shape[1]
        return f"it has {atom.d} values instead of {d}" if atom.d != d else super().doubt(atom)

    def receive(
        self,
        atoms: Sequence[Atom],
        agreement: Agreement,
        iterates: Mapping[int | None, Any],
        scale: float,
    ) -> None:
        """Add new atoms, if their products with the residuals are what was agreed on."""
        check_form(self, atoms, agreement.new_to(self))
        self.append(atoms)
        choice = agreement.choice
        assert choice is not None
        dictionary, lengths = self.dictionary, np.linalg.norm(self.dictionary, axis=1)
        roundings = ROUNDINGS * (self.signals.shape[1] + 8) * EPS
        for part in self.pieces(np.arange(len(choice.signal))):
            id, stated = choice.id[part], choice.score[part]
            place, residual = self.places(id), self.residual(choice.signal[part])
            score = -2.0 * np.einsum("kd,kd->k", dictionary[place], residual)
            allowed = 2.0 * roundings * lengths[place] * np.linalg.norm(residual, axis=1)
            owner = agreement.owner[np.searchsorted(agreement.id, id)]
            said = Agreement(agreement.best, owner, id, stated)
            misfit = Misfit(stated - score, allowed, lengths[place])
            check_scores(misfit, id.tolist(), said, atoms, scale)

    def gap(self, domain: Domain, agreement: Agreement) -> float:
        """The sum of the gaps of all signals.

        For a signal that no node has anything for, it follows from the level that was asked for.
        """
        gaps, self.levels = self.levels, self._nothing
        if not isinstance(domain, BallProduct):
            return np.inf
        choice = agreement.choice
        assert choice is not None
        gaps[choice.signal] = domain.merit(choice.score)
        gaps *= domain.radii
        gaps += self.inners
        np.clip(gaps, 0.0, self.errors, out=gaps)
        np.copyto(gaps, self._gap_now, where=~self.open)
        self._gap_now = gaps
        if gaps.sum() <= self.gaps.sum():
            self.gaps = gaps
        return float(gaps.sum())

    def update(self, signals: Ints, parts: Iterable[sparse.csr_array]) -> None:
        """Replace the weights of some signals, in increasing order; shape (m, K), in parts.

        Parts are asked for one by one: what there is of all weights is the old ones and the new.
        """
        rows = RowsInOrder(self.codes, more=len(signals))  # as most choose an atom that is new
        done = 0
        for part in parts:
            rows.replace(signals[done : done + part.shape[0]], part)
            done += part.shape[0]
        self._code(*rows.finished())
        self._measure(signals)

    def places(self, ids: Ints) -> Ints:
        """The positions of known atoms, shape (k,)."""
        known = np.array(self.ids, dtype=np.int64)
        order = np.argsort(known)
        return np.asarray(order[np.searchsorted(known, ids, sorter=order)])

    def content(self, ids: NDArray[np.int64]) -> Floats:
        """The certified gap of each signal."""
        return self.gaps

    def support(self, weights: Any = None) -> tuple[NDArray[np.int64], Floats]:
        """Numbers atom * B + signal and weights where a weight is not zero.

        They go by signal, and within a signal by atom. Codes may take more memory than signals do:
        what stands for them is put in that order, and not copied.
        """
        codes = self.codes if weights is None else weights
        known, count = np.array(self.ids, dtype=np.int64), self.signals.shape[0]
        ids = np.empty(codes.nnz, dtype=np.int64)
        step = self.height(len(known))
        for start in range(0, count, step):
            starts = codes.indptr[start : start + step + 1]
            some = slice(int(starts[0]), int(starts[-1]))
            place = codes.indices[some]
            signal = np.repeat(np.arange(start, start + len(starts) - 1), np.diff(starts))
            order = np.lexsort((known[place], signal))
            codes.indices[some], codes.data[some] = place[order], codes.data[some][order]
            ids[some] = known[codes.indices[some]] * count + signal
        return ids, codes.data

    def total(self, n: int) -> int:
        """A weight for each atom and signal."""
        return n * self.signals.shape[0]

    def extras_of(self, ids: NDArray[np.int64]) -> Floats:
        """Atoms carry no extras."""
        return np.zeros((len(ids), 0))

    def longest(self) -> float:
        """The largest norm of a known atom."""
        return float(np.linalg.norm(self.dictionary, axis=1).max(initial=0.0))

    def value(self) -> float:
        """The sum of squared errors."""
        return float(self.errors.sum())

    def inner(self) -> float:
        """The product <W, grad f(W)>."""
        return float(self.inners.sum())

    def scores(self) -> Floats:
        """The gradient with respect to each weight."""
        everyone = np.arange(self.signals.shape[0])
        return (-2.0 * self.dictionary @ self.residual(everyone).T).ravel()

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights."""
        codes = sparse.csr_array(weights.reshape(-1, self.signals.shape[0]).T)
        self._code(codes.data, codes.indices, codes.indptr)
        self._measure(np.arange(self.signals.shape[0]))

    def move(self, change: Floats, step: float) -> None:
        """Add `step` times a change to the weights."""
        self.set_weights(self.weights + step * change)

    def search(self, change: Floats, max_step: float) -> float:
        """Signals have step sizes of their own."""
        raise TypeError("many signals have no step size in common")

    def products(self, start: int, stop: int) -> Floats:
        """Signals share the products of atoms alone."""
        raise TypeError("many signals have no Hessian in common but `gram`")


class DictionaryAtoms:
    """A node's dictionary elements, scored for all signals that are not done, in pieces."""

    def __init__(self, elements: DenseAtoms | SparseAtoms) -> None:
        self.elements = elements
        self.d, self.n = elements.d, elements.n

    def pieces(self, replica: Replica) -> Iterator[tuple[Ints, Floats]]:
        """Signals, and the scores of all elements for each of them, shape (m, n)."""
        active = replica.active
        assert isinstance(active, SignalsActiveSet)
        for part in active.pieces(np.flatnonzero(active.open), self.n):
            yield part, -2.0 * self.elements.products(active.residual(part).T)

    def scores(self, replica: Replica) -> Floats:
        """The largest score of each element by absolute value, shape (n,)."""
        best = np.zeros(self.n)
        for _, scores in self.pieces(replica):
            best = np.maximum(best, np.abs(scores).max(axis=0))
        return best

    def atom(self, j: int, id: int) -> Atom:
        """The j-th element."""
        return self.elements.atom(j, id)


def check_elements(matrix: Any, ids: Ints, source: str) -> None:
    """Refuse a dictionary with a row of zeros, which explains nothing."""
    ends = [(matrix.max(axis=1), matrix.min(axis=1))] if matrix.shape[0] else []
    ends = [end.toarray() if sparse.issparse(end) else end for pair in ends for end in pair]
    zero = np.flatnonzero(~np.any(ends, axis=0))
    if len(zero):
        raise ValueError(
            f"{source}: atom {int(ids[zero[0]])} is zero in all places (and {len(zero) - 1} more): "
            "every row of a dictionary must have a value that is not zero; drop such rows"
        )


def dictionary_atoms(shard: Shard) -> DictionaryAtoms:
    """The rows of a node's shard as atoms."""
    check_elements(shard.matrix, shard.ids, shard.source)
    columns = shard.matrix.T
    if sparse.issparse(columns):
        return DictionaryAtoms(SparseAtoms(columns.tocsc()))
    return DictionaryAtoms(DenseAtoms(columns))
