"""Sparse coding of signals over a dictionary that is spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from atomcast._checks import check_count, check_in_scale
from atomcast.atoms.signals import PIECE, check_elements
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.data.sparse_format import check_sparse
from atomcast.estimators.solving import SolvedEstimator, warn_unless_converged
from atomcast.loop.result import Result
from atomcast.loop.session import Cluster
from atomcast.loop.solver import Solver
from atomcast.problems.coding_problem import coding_problem
from atomcast.simulation.local import LocalCluster, as_cluster
from atomcast.steps.coding_step import BallCoding, PursuitCoding

Floats = NDArray[np.float64]

#: What signals and dictionaries may be: data in single precision stays so, and takes no copy.
NUMBERS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


@dataclass(frozen=True)
class Encoded:
    """Codes of signals, and how they were found.

    Parameters
    ----------
    codes : sparse array of shape (n_signals, n_atoms)
    gaps : array of shape (n_signals,) or None
        A bound on how far the squared error of each signal is from its optimum within the ball;
        None for pursuits.
    result : Result
        The account of the whole batch: its objective is the sum of the squared errors.
    """

    codes: sparse.csr_array
    gaps: Floats | None
    result: Result


class Coder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SolvedEstimator):  # type: ignore[misc]
    """What sparse coders have in common: signals within a ball each, or with few atoms each."""

    usual_tol = 1e-9
    beta: Any
    n_nonzero: int | None
    n_features_in_: int

    def transform(self, X: Any) -> sparse.csr_array:
        """The codes of signals.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n_signals, n_features)

        Returns
        -------
        sparse array of shape (n_signals, n_atoms)
        """
        return self.encode(X).codes

    def encode(self, X: Any) -> Encoded:
        """The codes of signals with their certificates, and the ledger of what was sent."""
        raise NotImplementedError

    def _encode(self, signals: Any, dictionary: Any) -> Encoded:
        """The codes of signals over a dictionary, an array or shards of its rows."""
        shards, cluster = self._spread(dictionary)
        n = shards.count(0)
        count = signals.shape[0]
        radii = None if self.beta is None else _radii(self.beta, count)
        solver = self._coding(n, signals.shape[1])
        result = solver.solve(coding_problem(signals, radii), shards, cluster)
        warn_unless_converged(result, solver, stacklevel=4)
        codes = codes_of(result, (count, n))
        return Encoded(codes, result.content if radii is not None else None, result)

    def _spread(self, dictionary: Any) -> tuple[Shards, Any]:
        if not isinstance(dictionary, Shards):
            cluster = as_cluster(self.cluster)
            return SplitShards(dictionary, cluster.nodes), cluster
        if isinstance(self.cluster, Cluster):
            dictionary = self.cluster.place(dictionary)
        alone = self.cluster is None
        return dictionary, LocalCluster(dictionary.nodes) if alone else as_cluster(self.cluster)

    def _coding(self, n: int, d: int) -> Solver:
        """The solver with the step of these codes."""
        solver = self._solver()
        for name in ("step", "selection"):
            if getattr(solver, name) != getattr(Solver, name):
                raise ValueError(
                    f"{name}={getattr(solver, name)!r} is not for sparse coding, where every signal"
                    " chooses among all atoms, with a step of its own: leave it out"
                )
        if self.beta is not None:
            if self.n_nonzero is not None:
                raise ValueError(
                    f"beta={self.beta!r} and n_nonzero={self.n_nonzero} exclude each other: give "
                    "the radius of the balls, or the number of atoms"
                )
            return replace(solver, step=BallCoding())
        count = min(max(d // 10, 1), n) if self.n_nonzero is None else self.n_nonzero
        if check_count("n_nonzero", count, "atoms of each signal") > n:
            raise ValueError(f"n_nonzero={count} is more than the {n} atoms: use at most {n}")
        return replace(solver, step=PursuitCoding(count))

    def _checked(self, X: Any, reset: bool) -> Any:
        """Signals as rows of an array, or of a sparse one."""
        if isinstance(X, Shards):
            raise TypeError(
                "X is Shards, but every node has to know all signals, for which it looks among its "
                "atoms: give an array, and what is spread over nodes as the dictionary"
            )
        check_sparse(X)
        X = validate_data(self, X, reset=reset, **NUMBERS)
        X = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X)
        check_in_scale("X", X.data if sparse.issparse(X) else X)
        return X


@dataclass(eq=False, repr=False)
class SparseCoder(Coder):
    """Codes of signals by few atoms of a dictionary that is spread over a network.

    For each signal x, a row of X, it minimises ``||x - D'w||^2``: subject to ``||w||_1 <= beta``,
    to a certified gap for every signal, or greedily with `n_nonzero` atoms (orthogonal matching
    pursuit). All signals share rounds and messages: in a round, each that is not done yet chooses
    an atom, and an atom that several choose is broadcast once. Signals can be transformed without
    a fit before, if there is a dictionary.

    Parameters
    ----------
    dictionary : array, scipy sparse matrix or Shards of shape (n_atoms, n_features), optional
        The atoms are its rows, as in scikit-learn. None: the rows given to `fit`, scaled to length
        one.
    beta : float or array of shape (n_signals,), optional
        Radius of the l1 ball: one for all signals, or one for each.
    n_nonzero : int, optional
        How many atoms each signal has. If neither is given, a tenth of n_features.
    cluster : None, int or cluster, default=None
        Where the atoms are: None is one node, an int so many nodes simulated in this process.
    solver : None or Solver, default=None
        Of a solver count `tol` (the relative gap of each signal; 1e-9 if None is given),
        `max_rounds` and callbacks.

    Attributes
    ----------
    components_ : array of shape (n_atoms, n_features)
        The dictionary, unless it is in shards.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from atomcast import SparseCoder
    >>> dictionary = np.eye(4)
    >>> SparseCoder(dictionary, n_nonzero=1, cluster=2).transform([[0.0, 3.0, 1.0, 0.0]]).toarray()
    array([[0., 3., 0., 0.]])
    """

    dictionary: Any = None
    _: KW_ONLY
    beta: float | ArrayLike | None = None
    n_nonzero: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Check the dictionary, and that signals go with it; there is nothing to fit.

        So there is no `sample_weight`: signals have their codes each by itself.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n_signals, n_features)
        y : ignored
        """
        X = self._checked(X, reset=True)
        if self.dictionary is None:
            X = X.toarray() if sparse.issparse(X) else X
            length = np.linalg.norm(X, axis=1)
            used = length > 0.0
            self.components_ = checked_dictionary(X[used] / length[used, np.newaxis])
        elif not isinstance(self.dictionary, Shards):
            self.components_ = checked_dictionary(self.dictionary)
        dictionary = self._dictionary(X.shape[1])
        shards = isinstance(dictionary, Shards)
        self._coding(dictionary.count(0) if shards else dictionary.shape[0], X.shape[1])
        return self

    def encode(self, X: Any) -> Encoded:
        """The codes of signals with their certificates, and the ledger of what was sent.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n_signals, n_features)
        """
        if self.dictionary is None:
            check_is_fitted(self)
        X = self._checked(X, reset=False)
        return self._encode(X, self._dictionary(X.shape[1]))

    def _dictionary(self, length: int) -> Any:
        """The dictionary, if its atoms are as long as signals of this length."""
        dictionary = self.components_ if self.dictionary is None else self.dictionary
        if not isinstance(dictionary, Shards):
            dictionary = checked_dictionary(dictionary)
        d = dictionary.rows(0) if isinstance(dictionary, Shards) else dictionary.shape[1]
        if d != length:
            raise ValueError(
                f"X has {length} features, but the atoms of the dictionary have {d}: signals are "
                "rows as long as the rows of the dictionary"
            )
        return dictionary

    @property
    def _n_features_out(self) -> int:
        if isinstance(self.dictionary, Shards):
            return self.dictionary.count(0)
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.dictionary is None
        return tags


def codes_of(result: Result, shape: tuple[int, int]) -> sparse.csr_array:
    """The weights of a result, which go by signal and atom: they need not be sorted, nor copied."""
    count, ids = shape[0], result.atom_ids
    whole: Any = np.int32 if max(*shape, len(ids)) < 1 << 31 else np.int64
    atoms, starts = np.empty(len(ids), whole), np.zeros(count + 1, whole)
    for some in (slice(k, k + PIECE) for k in range(0, len(ids), PIECE)):
        atoms[some], signal = np.divmod(ids[some], count)
        starts[signal[0] + 1 : signal[-1] + 2] += np.bincount(signal - signal[0])
    np.cumsum(starts, out=starts)
    return sparse.csr_array((result.atom_weights, atoms, starts), shape=shape)


def checked_dictionary(dictionary: Any) -> Any:
    """A dictionary with numbers in its rows, none of which is zero."""
    try:
        check_sparse(dictionary, parameter="dictionary")
        atoms = check_array(dictionary, **NUMBERS, input_name="dictionary")
    except (TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(
            f"dictionary must be a matrix with an atom in each row, got {dictionary!r:.80}: {why}"
        ) from None
    check_elements(atoms, np.arange(atoms.shape[0]), "dictionary")
    return atoms


def _radii(beta: Any, count: int) -> Floats:
    """A radius for each signal."""
    try:
        radii = np.asarray(beta, dtype=np.float64)
    except (TypeError, ValueError):
        radii = np.zeros(0)
    if radii.shape not in ((), (count,)) or not np.all((radii > 0.0) & np.isfinite(radii)):
        raise ValueError(
            "beta must be a finite number > 0 (the radius of the l1 balls), or one for each of the "
            f"{count} signals, got {beta!r}"
        )
    check_in_scale("beta", radii)
    return np.broadcast_to(radii, count)
