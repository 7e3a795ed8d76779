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
from atomcast.estimators.sparse_coder import Coder, Encoded
from atomcast.network.joined_ledgers import joined, named
from atomcast.objectives.sample_weights import checked_sample_weight

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]


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
        counts = checked_sample_weight(sample_weight, len(X))
        some = distinct_signals(X, counts)
        count = X.shape[1] if self.n_components is None else self.n_components
        check_count("n_components", count, "elements of the dictionary")
        elements = starting_elements(X[some], count, check_random_state(self.random_state))
        errors: list[float] = []
        ledgers = []
        while True:
            encoded = self._encode(X, elements)
            squares = np.sum((X - encoded.codes @ elements) ** 2, axis=1)
            errors.append(float(counts @ squares))
            ledgers.append(encoded.result.ledger)
            logger.info("coding %d: squared error %.6g", len(errors), errors[-1])
            small = len(errors) > 1 and abs(errors[-2] - errors[-1]) <= self.tol * errors[-2]
            if small or len(errors) == self.max_iter or encoded.result.status == "interrupted":
                break
            best = improved(X, counts, encoded.codes, elements, of_length_one=self.beta is None)
            elements = replaced(best, X[some], encoded.codes[some])
        self.components_, self.error_, self.n_iter_ = elements, np.array(errors), len(errors)
        self.result_ = replace(encoded.result, ledger=joined(named("coding", ledgers)))
        return self

    def encode(self, X: Any) -> Encoded:
        """The codes of signals with their certificates, and the ledger of what was sent."""
        check_is_fitted(self)
        return self._encode(self._checked(X, reset=False), self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def distinct_signals(X: Floats, counts: Floats) -> NDArray[np.int64]:
    """The numbers of the signals that elements may start from: each that counts, once.

    They come in an order of their own, so that neither repetitions nor the order of rows matter.
    Signals of rounding errors alone do not count: a blank patch less its mean is no direction.
    """
    lengths = np.linalg.norm(X, axis=1)
    rounding = X.shape[1] * np.finfo(X.dtype).eps * lengths.max(initial=0.0)
    used = np.flatnonzero((lengths > rounding) & (counts > 0.0))
    _, first = np.unique(X[used], axis=0, return_index=True)
    return used[first]


def starting_elements(X: Floats, count: int, random: Any) -> Floats:
    """Some of the signals, of length one, and random directions if there are not enough."""
    some = random.permutation(len(X))[:count]
    elements = random.standard_normal((count, X.shape[1]))
    elements[: len(some)] = X[some]
    return elements / np.linalg.norm(elements, axis=1, keepdims=True)


def improved(
    X: Floats, counts: Floats, codes: sparse.csr_array, elements: Floats, of_length_one: bool
) -> Floats:
    """Each element in turn the best one for the codes, as far as its length allows."""
    elements = elements.copy()
    weighted = codes.T @ sparse.diags_array(counts)
    with_codes, with_signals = (weighted @ codes).toarray(), weighted @ X
    for k in np.flatnonzero(with_codes.diagonal() > 0.0):
        best = elements[k] + (with_signals[k] - with_codes[k] @ elements) / with_codes[k, k]
        length = float(np.linalg.norm(best))
        if length > 0.0:
            elements[k] = best / (length if of_length_one else max(length, 1.0))
    return elements


def replaced(elements: Floats, X: Floats, codes: sparse.csr_array) -> Floats:
    """Elements that no signal uses become the signals that are explained worst."""
    elements = elements.copy()
    unused = np.flatnonzero(abs(codes).sum(axis=0) == 0.0)
    error = np.linalg.norm(X - codes @ elements, axis=1)
    worst = np.argsort(-error, kind="stable")[: len(unused)]
    elements[unused[: len(worst)]] = X[worst] / np.linalg.norm(X[worst], axis=1, keepdims=True)
    return elements
