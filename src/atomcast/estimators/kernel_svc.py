"""Support vector classification with examples spread over a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_choice, check_count, check_positive
from atomcast.atoms.kernel import LocalLabels, OwnLabels
from atomcast.data.shards import Shards
from atomcast.estimators.calibration import fitted_sigmoids, probabilities, with_ledgers
from atomcast.estimators.class_weights import class_weights
from atomcast.estimators.inputs import (
    ROW_FORMATS,
    class_codes,
    examples_and_labels,
    rows_that_count,
    validated,
)
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.estimators.solving import warn_unless_converged
from atomcast.estimators.voting import machine_coefficients, pair_values, votes
from atomcast.known.kernels.functions import Gamma, KernelSpec
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.known.kernels.labels import LabelCode, Machines, one_vs_one, one_vs_rest
from atomcast.known.kernels.point_set import SupportVectors
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.examples import USUAL_N, kernel_problem

Floats = NDArray[np.float64]

MULTI_CLASS = ("auto", "one-vs-one", "one-vs-rest", "direct")
#: Kernel values that prediction computes at a time.
PIECE = 1 << 23


def _calibrated(estimator: KernelSVC) -> bool:
    if not estimator.probability:
        raise AttributeError("probabilities need KernelSVC(probability=True)")
    return True


@dataclass(eq=False, repr=False)
class KernelSVC(ScoreClassifier):
    """Kernel support vector machine for examples that are spread over a network.

    Solves the dual of the L2-loss SVM, min alpha' K~ alpha over the simplex, by distributed
    Frank-Wolfe: every node keeps its own examples, and only those that the model needs are
    broadcast, with their labels. In the primal, it minimises ``||w||^2 / 2 + b^2 / 2 + C / 2 *
    sum(max(0, 1 - y f(x))^2)`` with ``f(x) = <w, phi(x)> + b``. With T > 2 classes there is such
    a machine for every two of them; all share the examples that were broadcast.

    Parameters
    ----------
    C : float, default=1.0
        What margin errors cost.
    kernel : str or callable, default="rbf"
        "rbf", "linear", "poly", "laplacian", "sigmoid", or "precomputed": X then holds the kernel
        between examples, shape (n_samples, n_samples), a row for each, and its rows are what is
        broadcast. A callable takes arrays of shape (n, d) and (m, d) and returns one of shape
        (n, m). Kernels that turn out not to be positive semidefinite are refused.
    gamma : {"mean-distance", "scale", "auto"} or float, default="mean-distance"
        "mean-distance" is 1 / the mean squared distance between examples, "scale" is
        1 / (d * variance); both are estimated from the first 128 examples broadcast, drawn at
        random, so that every node has the same. "auto" is 1 / d.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        The constant in the polynomial kernel and in that of the sigmoid.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    probability : bool, default=False
        Whether to calibrate probabilities, by five-fold cross-validation.
    multi_class : {"auto", "one-vs-one", "one-vs-rest", "direct"}, default="auto"
        With more than two classes: a machine for every two classes, which vote; a machine for
        each class; or one machine for all, in which labels are the corners of a regular simplex.
        "auto" is "one-vs-one" with the corrective step, and "direct" with others, which it needs.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether `decision_function` has a column for each class, or for every two of them where
        these have a machine, as in scikit-learn; `predict` is the same.
    random_state : int or RandomState, optional
        How examples are shuffled into the folds that calibrate probabilities; default: not at all.
    cluster : None, int or cluster, default=None
        Where the examples are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step, a str names another; to a relative gap of 1e-3.
    tol, max_rounds : optional
        Of the solver, as for `Lasso`.
    cache_bytes : int, default=2**31
        The memory that kernel values may take in each process: once for the points that were
        broadcast, once for columns of its own examples, and once for the matrices of several
        machines. What does not fit is computed anew.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    support_ : array of shape (n_SV,)
        Global ids of the support vectors; class by class if there is a machine for every two.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Of a precomputed kernel, only their numbers, shape (n_SV, 1).
    n_support_ : array of shape (n_classes,)
    dual_coef_ : array of shape (1, n_SV), (n_classes, n_SV) or (n_classes - 1, n_SV)
        With two classes; with more; with a machine for every two, as in scikit-learn's SVC.
    intercept_ : array of shape (1,), (n_classes,) or (n_classes * (n_classes - 1) / 2,)
    result_ : Result
        Objective, certified gap, trace, and the ledger of all that was sent. Of several machines,
        the objective is the sum, and none has a larger relative gap than the one stated.
    calibration_ : array of shape (1 or n_classes, 2)
        With probability=True: a and b of each probability 1 / (1 + exp(a * decision + b)).
    dual_gap_ : float
        A bound on how far the objective of `result_` is from its optimum.
    n_iter_ : int
        Rounds taken.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from atomcast import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelSVC(cluster=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    C: float = 1.0
    _: KW_ONLY
    kernel: str | Callable[[Any, Any], Any] = "rbf"
    gamma: Gamma = "mean-distance"
    degree: int = 3
    coef0: float = 0.0
    class_weight: Any = None
    probability: bool = False
    multi_class: str = "auto"
    decision_function_shape: str = "ovr"
    random_state: Any = None
    cache_bytes: int = 2**31

    usual_tol = 1e-3

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The labels; those of this process's own examples if X is `Shards.mine`.
        sample_weight : array of shape (n_samples,), optional
            Multiplies C for each example, and is broadcast with it; default: one. Examples of
            weight zero are left out. Where X is `Shards.mine`, all processes give weights, or none.
        classes : array, optional
            All labels that occur anywhere; needed if X is `Shards.mine`, because no process sees
            the labels of the others.
        """
        check_positive("C", self.C, "what margin errors cost")
        check_count("cache_bytes", self.cache_bytes, "memory for kernel values", minimum=0)
        spec = KernelSpec(self.kernel, self.gamma, self.degree, self.coef0)
        _check_seed(self.random_state)
        solver = self._solver()
        shards, y, cluster = examples_and_labels(self, X, y, self.cluster)
        if self.kernel == "precomputed":
            self._check_square(shards, sample_weight)
        shards, used, weights, kept = rows_that_count(shards, y, sample_weight, axis=0)
        codes = class_codes(self, used, classes, shards)
        labels = (OwnLabels if shards.kind == "mine" else LocalLabels)(codes, weights)
        costs = self.C * class_weights(self.class_weight, self.classes_, used, shards, weights)
        machines = self._machines(solver)
        problem = kernel_problem(
            spec,
            LabelCode(len(self.classes_), costs, weights is not None),
            labels,
            solver,
            self.cache_bytes,
            # With Shards.mine nobody knows how many examples there are in all.
            USUAL_N if shards.kind == "mine" else shards.count(axis=0),
            machines,
        )
        self._keep_machines(solver.solve(problem, shards, cluster), machines, kept)
        warn_unless_converged(self.result_, solver)
        if self.probability:
            if self.result_.status == "interrupted":
                raise KeyboardInterrupt("interrupted before probabilities were calibrated")
            with all_or_nothing():
                self.calibration_, ledgers = fitted_sigmoids(self, X, y, sample_weight, solver)
            self.result_ = with_ledgers(self.result_, ledgers)
        return self

    def _machines(self, solver: Solver) -> Machines | None:
        """The machines that share the examples; None if there is a single one."""
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        corrective, classes = solver.step == "corrective", len(self.classes_)
        usual = "one-vs-one" if corrective else "direct"
        how = usual if self.multi_class == "auto" else self.multi_class
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        if classes > 2 and self.decision_function_shape == "ovo" and how != "one-vs-one":
            raise ValueError(
                f'decision_function_shape="ovo" needs a machine for every two classes, but '
                f'multi_class={self.multi_class!r} has others: use "one-vs-one", or "ovr"'
            )
        if classes == 2 or how == "direct":
            return None
        if not corrective:
            raise ValueError(
                f"multi_class={how!r} needs the corrective step, which re-optimises all machines "
                f'at once, got step={solver.step!r}: use Solver("corrective") or '
                'multi_class="direct"'
            )
        return one_vs_one(classes) if how == "one-vs-one" else one_vs_rest(classes)

    def _keep_machines(self, result: Result, machines: Machines | None, kept: Any) -> None:
        """Take the fitted attributes from the result of one machine, or of several.

        Where some examples were left out, `kept` are the numbers of the others.
        """
        self._keep(result, None)
        content: SupportVectors = result.content
        classes, labels, self._kernel = len(self.classes_), content.labels, content.kernel
        points = content.points[:, -1:] if self.kernel == "precomputed" else content.points
        self.n_support_ = np.bincount(labels, minlength=classes)
        if machines is None:
            order = np.argsort(result.atom_ids)
            ids = result.atom_ids
            # Divided by the objective, weights on the simplex become those of the unit margin.
            own = labels[order] == np.arange(classes)[:, None]
            sides = np.where(own, 1.0, -1.0 / (classes - 1))
            dual_coef = sides * (result.atom_weights[order] / result.objective)
            self.dual_coef_ = dual_coef[1:] if classes == 2 else dual_coef
            self.intercept_ = self.dual_coef_.sum(axis=1)
        else:
            order, self.dual_coef_, self.intercept_ = machine_coefficients(result, machines)
            ids = np.unique(result.atom_ids // machines.width)
        self.support_ = (ids if kept is None else kept[ids])[order]
        self.support_vectors_ = points[order]

    @property
    def gamma_(self) -> float:
        """The gamma that was used."""
        check_is_fitted(self)
        return float(getattr(self._kernel, "gamma", np.nan))

    def decision_function(self, X: Any) -> Floats:
        """How far examples are on a class's side, in units of the margin, or of votes.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes,
        or with a column for every two of them
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return self._by_class(values) if self.decision_function_shape == "ovr" else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of examples; X as for `decision_function`, shape (n_samples,)."""
        values = self._values(X)
        two = len(self.classes_) == 2
        number = values[:, 0] > 0 if two else self._by_class(values).argmax(axis=1)
        return np.asarray(self.classes_[number.astype(int)])

    def _values(self, X: Any) -> Floats:
        """What each machine says of new examples, shape (n_samples, n_machines)."""
        check_is_fitted(self)
        if not isinstance(X, Shards):
            return self._decision(validated(self, X, reset=False, **ROW_FORMATS))
        values = np.zeros((X.count(axis=0), len(self.intercept_)))
        for i in range(X.nodes):
            shard = X.shard(i, axis=0)
            values[shard.ids] = self._decision(shard.matrix)
        return values

    def _by_class(self, values: Floats) -> Floats:
        """How much machines are for each class, shape (n_samples, n_classes)."""
        return votes(values, len(self.classes_)) if self._pairs else values

    @property
    def _pairs(self) -> bool:
        """Whether there is a machine for every two of more than two classes."""
        return 1 < len(self.dual_coef_) < len(self.classes_)

    def _decision(self, X: Any) -> Floats:
        points, intercept = self.support_vectors_, self.intercept_
        if sparse.issparse(points) and not sparse.issparse(X):
            X = sparse.csr_array(X)
        values = np.empty((X.shape[0], len(intercept)))
        height = max(PIECE // max(points.shape[0], 1), 1)
        for start in range(0, X.shape[0], height):
            rows = slice(start, start + height)
            block = kernel_block(self._kernel, X[rows], points, np.float64)
            values[rows] = intercept + (
                pair_values(block, self.dual_coef_, self.n_support_)
                if self._pairs
                else block @ self.dual_coef_.T
            )
        return values

    @available_if(_calibrated)
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n_samples, n_classes)."""
        return probabilities(self._by_class(self._values(X)), self.calibration_)

    @available_if(_calibrated)
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _check_square(self, shards: Shards, sample_weight: Any) -> None:
        n, columns = shards.count(axis=0), shards.rows(axis=0)
        if sparse.issparse(shards.matrix) or (n != columns and shards.kind != "mine"):
            raise ValueError(
                'X must be a square matrix with kernel="precomputed", dense, with a row and a '
                f"column for each example, got {n} rows and {columns} columns"
            )
        if sample_weight is not None and not np.all(sample_weight):
            raise ValueError(
                'sample_weight has zeros, but rows of a kernel="precomputed" belong to its '
                "columns: leave these examples out of both"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _check_seed(random_state: Any) -> None:
    try:
        check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be a whole number, None or a RandomState, got {random_state!r}"
        ) from error
