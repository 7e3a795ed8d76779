"""Dictionary elements as atoms, and what everybody knows of many signals that share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.data.shards import Shard
from atomcast.domains.ball_product import BallProduct
from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.columns import Columns, grown, with_appended
from atomcast.messages.atom import EPS, ROUNDINGS, Atom, check_form, check_scores, misfit_of
from atomcast.messages.proposals import Agreement

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: So many scores are looked at in one piece.
PIECE = 1 << 22


class SignalsActiveSet(ActiveSet):
    """Known atoms with a weight for each of B signals, and the sum of their squared errors.

    Each signal is a problem of its own, which it may be done with before the others.

    Parameters
    ----------
    signals : array of shape (B, d)

    Attributes
    ----------
    codes : array of shape (K, B)
        The weights.
    residual : array of shape (B, d)
        What they leave of the signals.
    open : array of B booleans
        Which signals are not done yet.
    levels : array of shape (B,)
        An atom is of use to a signal if its merit is above this.
    gaps : array of shape (B,)
        The certified gap of each signal, at the weights with the smallest sum of them.
    """

    quadratic = True
    lower_bound = 0.0
    image: Floats

    def __init__(self, signals: Floats) -> None:
        super().__init__()
        self.signals = signals
        self.columns: Columns | None = None
        self.squares = np.einsum("bd,bd->b", signals, signals)
        self.open = self.squares > 0.0
        self.levels = np.zeros(len(signals))
        self.gaps = np.full(len(signals), np.inf)
        self._codes = np.zeros((16, len(signals)))
        self._gram = np.zeros((0, 0))
        self._gap_now = np.zeros(len(signals))
        self._show(np.zeros_like(signals))

    def _show(self, image: Floats) -> None:
        """Take over an image D'W and what follows from it."""
        self.image, self.residual = image, self.signals - image
        self.errors = np.einsum("bd,bd->b", self.residual, self.residual)

    @property
    def codes(self) -> Floats:
        """The weights, shape (K, B)."""
        return self._codes[: len(self.ids)]

    @property
    def weights(self) -> Floats:
        """The weights atom by atom, and within an atom signal by signal."""
        return self.codes.reshape(-1)

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
        self._codes = grown(self._codes, len(self.ids) - len(atoms), len(self.ids))
        self._codes[len(self.ids) - len(atoms) : len(self.ids)] = 0.0

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
        if not len(choice.signal):
            return
        place = np.array([self.position[id] for id in choice.id.tolist()])
        chosen, residual = self.dictionary[place], self.residual[choice.signal]
        score = -2.0 * np.einsum("kd,kd->k", chosen, residual)
        length = np.linalg.norm(chosen, axis=1)
        size = 2.0 * length * np.linalg.norm(residual, axis=1)
        allowed = ROUNDINGS * (chosen.shape[1] + 8) * EPS * size
        owner = agreement.owner[np.searchsorted(agreement.id, choice.id)]
        said = Agreement(agreement.best, owner, choice.id, choice.score)
        misfit = misfit_of(choice.score - score, allowed, length)
        check_scores(misfit, choice.id.tolist(), said, atoms, scale)

    def gap(self, domain: Domain, agreement: Agreement) -> float:
        """The sum of the gaps of all signals.

        For a signal that no node has anything for, it follows from the level that was asked for.
        """
        if not isinstance(domain, BallProduct):
            return np.inf
        choice = agreement.choice
        assert choice is not None
        merit = self.levels.copy()
        merit[choice.signal] = domain.merit(choice.score)
        gaps = np.minimum(self.inners() + domain.radii * merit, self.errors)
        self._gap_now = np.where(self.open, np.maximum(gaps, 0.0), self._gap_now)
        if self._gap_now.sum() <= self.gaps.sum():
            self.gaps = self._gap_now.copy()
        return float(self._gap_now.sum())

    def inners(self) -> Floats:
        """The product <w, grad f(w)> of each signal, shape (B,)."""
        return -2.0 * np.einsum("bd,bd->b", self.image, self.residual)

    def update(self, signals: Ints, codes: Floats) -> None:
        """Replace the weights of some signals, shape (m, K)."""
        self._codes[: len(self.ids), signals] = codes.T
        image = self.image.copy()
        image[signals] = codes @ self.dictionary
        self._show(image)

    def content(self, ids: NDArray[np.int64]) -> Floats:
        """The certified gap of each signal."""
        return self.gaps

    def support(self, weights: Floats | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Numbers atom * B + signal and weights where a weight is not zero."""
        codes = self.codes if weights is None else weights.reshape(-1, len(self.signals))
        place, signal = np.nonzero(codes)
        ids = np.array(self.ids, dtype=np.int64)[place] * len(self.signals) + signal
        return ids, codes[place, signal]

    def total(self, n: int) -> int:
        """A weight for each atom and signal."""
        return n * len(self.signals)

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
        return float(self.inners().sum())

    def scores(self) -> Floats:
        """The gradient with respect to each weight."""
        return (-2.0 * self.dictionary @ self.residual.T).ravel()

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights."""
        self._codes[: len(self.ids)] = weights.reshape(-1, len(self.signals))
        self._show(self.codes.T @ self.dictionary)

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the image."""
        self._show(memory["image"])

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
        signals = np.flatnonzero(active.open)
        step = max(PIECE // max(self.n, 1), 1)
        for part in (signals[k : k + step] for k in range(0, len(signals), step)):
            yield part, -2.0 * self.elements.products(active.residual[part].T)

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
    largest = abs(matrix).max(axis=1)
    zero = np.flatnonzero((largest.toarray() if sparse.issparse(largest) else largest) == 0.0)
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
