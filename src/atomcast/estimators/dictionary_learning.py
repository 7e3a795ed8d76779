"""Dictionary learning: elements that live on the nodes of a network, learned by alternation."""

from __future__ import annotations

import logging
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_count, check_positive
from atomcast.atoms.signals import PIECE
from atomcast.estimators.sparse_coder import Coder, Encoded
from atomcast.known.kernels.points import dense_rows
from atomcast.network.joined_ledgers import joined, named
from atomcast.objectives.sample_weights import checked_sample_weight

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]

#: Signals are compared by so many of their values at a time, or, if they are few, by so many.
AT_A_TIME, MOST = 4, 64
#: So many signals are multiplied with their codes at a time.
SIGNALS = 1 << 14


@dataclass(eq=False, repr=False)
class DictionaryLearning(Coder):
    """A dictionary in which all signals have sparse codes; its elements live on the nodes.

    Minimises ``||X - W D||^2`` over codes W, within an l1 ball or with few atoms each, and over
    elements D of length one at most, by turns: the nodes code all signals as `SparseCoder` does,
    and then every owner improves its elements, for which it needs nothing but the codes and the
    elements that were sent for them. The problem is not convex: the gaps of `result_` are those of
    the last codes, given the dictionary.

    Parameters
    ----------
    n_components : int, optional
        How many elements; by default as many as features.
    beta, n_nonzero, cluster, solver
        As for `SparseCoder`.
    max_iter : int, default=30
        How many times to code all signals.
    tol : float, default=1e-4
        Stop once the error changes by less than this share of it.
    random_state : int, RandomState or None, default=0
        For the signals that the elements start from.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    error_ : array of shape (n_alternations,)
        The squared error after each coding, weighted.
    n_iter_ : int
    result_ : Result
        Of the last coding, with the ledger of all.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from atomcast import DictionaryLearning
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = DictionaryLearning(20, n_nonzero=3, max_iter=5, cluster=4).fit(X[:200])
    >>> model.transform(X[200:300]).shape
    (100, 20)
    """

    n_components: int | None = None
    _: KW_ONLY
    beta: float | ArrayLike | None = None
    n_nonzero: int | None = None
    max_iter: int = 30
    tol: float = 1e-4
    random_state: Any = 0

    own_tol = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the dictionary.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n_signals, n_features)
            The signals, known to every node.
        y : ignored
        sample_weight : array of shape (n_signals,), optional
            How much the squared error of each signal counts; default: one.
        """
        check_count("max_iter", self.max_iter, "how many times to code all signals")
        check_positive("tol", self.tol, "the share of the error at which to stop")
        X = self._checked(X, reset=True)
        # There may be as many as the data has values: what says nothing takes no memory.
        alike = np.broadcast_to(1.0, X.shape[0])
        counts = (
            alike if sample_weight is None else checked_sample_weight(sample_weight, len(alike))
        )
        some = distinct_signals(X, counts)
        count = X.shape[1] if self.n_components is None else self.n_components
        check_count("n_components", count, "elements of the dictionary")
        elements = starting_elements(X, some, count, check_random_state(self.random_state))
        errors: list[float] = []
        ledgers = []
        while True:
            encoded = self._encode(X, elements)
            codes, result = encoded.codes, encoded.result
            errors.append(float(counts @ squared_errors(X, codes, elements)))
            ledgers.append(result.ledger)
            logger.info("coding %d: squared error %.6g", len(errors), errors[-1])
            small = len(errors) > 1 and abs(errors[-2] - errors[-1]) <= self.tol * errors[-2]
            if small or len(errors) == self.max_iter or result.status == "interrupted":
                break
            del encoded, result  # what is not needed any more, before there is another
            elements = improved(X, counts, codes, elements, of_length_one=self.beta is None)
            elements = replaced(elements, X, some, codes)
            del codes
        self.components_, self.error_, self.n_iter_ = elements, np.array(errors), len(errors)
        self.result_ = replace(result, ledger=joined(named("coding", ledgers)))
        return self

    def encode(self, X: Any) -> Encoded:
        """The codes of signals with their certificates, and the ledger of what was sent."""
        check_is_fitted(self)
        return self._encode(self._checked(X, reset=False), self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def rows_of(X: Any, some: Any) -> Floats:
    """Some of the signals, as rows of a dense array in double precision."""
    return dense_rows(X[some])


def squared_errors(X: Any, codes: sparse.csr_array, elements: Floats) -> Floats:
    """The squared error of each signal, a piece of them at a time."""
    squares, step = np.empty(X.shape[0]), max(PIECE // X.shape[1], 1)
    for some in (slice(k, k + step) for k in range(0, len(squares), step)):
        residual = rows_of(X, some) - codes[some] @ elements
        squares[some] = np.einsum("bd,bd->b", residual, residual)
    return squares


def distinct_signals(X: Any, counts: Floats) -> Ints:
    """The numbers of the signals that elements may start from: each that counts, once.

    They come in an order of their own, so that neither repetitions nor the order of rows matter.
    Signals of rounding errors alone do not count: a blank patch less its mean is no direction.
    """
    nothing = sparse.csr_array((X.shape[0], 1))
    lengths = np.sqrt(squared_errors(X, nothing, np.zeros((1, X.shape[1]))))
    rounding = X.shape[1] * np.finfo(np.float64).eps * lengths.max(initial=0.0)
    rows = np.flatnonzero((lengths > rounding) & (counts > 0.0))
    # Most numbers are small enough for four bytes.
    return distinct_rows(X, rows.astype(np.int32) if X.shape[0] < 1 << 31 else rows)


def distinct_rows(X: Any, rows: Ints) -> Ints:
    """The first of those of the given rows that are equal, in the order of their values.

    That is `np.unique(X[rows], axis=0, return_index=True)` without copies of the matrix: rows are
    ordered by some columns, and those that tie by the next ones.
    """
    # Rows that tie have the same number, which is the place of the first of them in the order.
    place = np.zeros_like(rows)
    tied = np.arange(len(rows), dtype=rows.dtype)
    start = 0
    while start < X.shape[1] and len(tied):
        width = min(AT_A_TIME * len(rows) // len(tied), MOST)  # the fewer they are, the more values
        values = rows_of(X[:, start : start + width], rows[tied]).T
        start += width
        order = np.lexsort((*values[::-1], place[tied]))
        tied = tied[order]
        new = place[tied][1:] != place[tied][:-1]
        for column in values:
            column = column[order]
            new |= column[1:] != column[:-1]
        del values
        group = np.concatenate(([0], np.cumsum(new)))
        size = np.bincount(group)
        first = np.cumsum(size) - size
        # The rows that tied began at their place: what comes before each stays before it.
        begin = np.concatenate(([True], place[tied][1:] != place[tied][:-1]))
        offset = np.maximum.accumulate(np.where(begin, np.arange(len(tied)), 0))
        place[tied] += first[group] - offset
        tied = tied[size[group] > 1]
    order = np.argsort(place, kind="stable")
    once = np.concatenate(([True], np.diff(place[order]) != 0))[: len(order)]
    return rows[order[once]]


def starting_elements(X: Any, some: Ints, count: int, random: Any) -> Floats:
    """Some of these signals, of length one, and random directions if there are not enough."""
    chosen = some[random.permutation(len(some))[:count]]
    elements = random.standard_normal((count, X.shape[1]))
    elements[: len(chosen)] = rows_of(X, chosen)
    return elements / np.linalg.norm(elements, axis=1, keepdims=True)


def improved(
    X: Any, counts: Floats, codes: sparse.csr_array, elements: Floats, of_length_one: bool
) -> Floats:
    """Each element in turn the best one for the codes, as far as its length allows."""
    elements = elements.copy()
    with_codes, with_signals = np.zeros((len(elements),) * 2), np.zeros_like(elements)
    for start in range(0, X.shape[0], SIGNALS):  # SciPy turns sparse signals before a product
        some = slice(start, start + SIGNALS)
        weighted = codes[some].T @ sparse.diags_array(counts[some])
        for products, factor in ((with_codes, codes[some]), (with_signals, X[some])):
            found = weighted @ factor
            products += found.toarray() if sparse.issparse(found) else found
    for k in np.flatnonzero(with_codes.diagonal() > 0.0):
        best = elements[k] + (with_signals[k] - with_codes[k] @ elements) / with_codes[k, k]
        length = float(np.linalg.norm(best))
        if length > 0.0:
            elements[k] = best / (length if of_length_one else max(length, 1.0))
    return elements


def replaced(elements: Floats, X: Any, some: Ints, codes: sparse.csr_array) -> Floats:
    """Elements that none of some signals uses become those of them that are explained worst."""
    elements = elements.copy()
    used = np.zeros(len(elements), dtype=bool)
    for start in range(0, len(some), SIGNALS):
        used[codes[some[start : start + SIGNALS]].indices] = True
    unused = np.flatnonzero(~used)
    error = np.sqrt(squared_errors(X, codes, elements)[some])
    worst = some[np.argsort(-error, kind="stable")[: len(unused)]]
    new = rows_of(X, worst)
    elements[unused[: len(worst)]] = new / np.linalg.norm(new, axis=1, keepdims=True)
    return elements
