"""Support vector classification with examples spread over a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
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
    validated,
)
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.estimators.solving import warn_unless_converged
from atomcast.known.kernels.functions import Gamma, KernelSpec
from atomcast.known.kernels.kernel_matrix import kernel_block
from atomcast.known.kernels.labels import LabelCode, one_against_rest
from atomcast.known.kernels.point_set import SupportVectors
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.examples import USUAL_N, kernel_problem
from atomcast.storage.checkpoint import Checkpoint

Floats = NDArray[np.float64]

#: Kernel values that prediction computes at a time.
PIECE = 1 << 23


def _calibrated(estimator: KernelSVC) -> bool:
    if not estimator.probability:
        raise AttributeError("probabilities need KernelSVC(probability=True)")
    return True


def _refuse_checkpoints(solver: Solver) -> None:
    """Machines that are fitted one after the other would need a checkpoint each."""
    if solver.resume is not None or any(isinstance(w, Checkpoint) for w in solver.callbacks):
        raise ValueError(
            'multi_class="one-vs-rest" can neither write nor resume checkpoints, because it fits '
            'one machine after the other: use multi_class="direct", or leave them out'
        )


@dataclass(eq=False, repr=False)
class KernelSVC(ScoreClassifier):
    """Kernel support vector machine for examples that are spread over a network.

    Solves the dual of the L2-loss SVM, min alpha' K~ alpha over the simplex, by distributed
    Frank-Wolfe: every node keeps its own examples, and only those that the model needs are
    broadcast, with their labels. In the primal, it minimises ``||w||^2 / 2 + b^2 / 2 + C / 2 *
    sum(max(0, 1 - y f(x))^2)`` with ``f(x) = <w, phi(x)> + b``. With T > 2 classes it is the
    direct multi-class L2-SVM, in which labels are the corners of a regular simplex.

    Parameters
    ----------
    C : float, default=1.0
        What margin errors cost.
    kernel : {"rbf", "linear", "poly", "laplacian"} or callable, default="rbf"
        A callable takes arrays of shape (n, d) and (m, d) and returns one of shape (n, m).
    gamma : {"mean-distance", "scale"} or float, default="mean-distance"
        "mean-distance" is 1 / the mean squared distance between examples, "scale" is
        1 / (d * variance); both are estimated from the first 128 examples broadcast, drawn at
        random, so that every node has the same.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        The constant in the polynomial kernel.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for each class.
    probability : bool, default=False
        Whether to calibrate probabilities, by five-fold cross-validation.
    multi_class : {"direct", "one-vs-rest"}, default="direct"
        With more than two classes: one machine for all, or one machine a class, which share the
        examples that were broadcast: more rounds and more support vectors, but often a better
        accuracy.
    cluster : None, int or cluster, default=None
        Where the examples are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step, a str names another; to a relative gap of 1e-3.
    cache_bytes : int, default=2**31
        The memory that kernel values may take in each process: once for the points that were
        broadcast, once for columns of its own examples. What does not fit is computed anew.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    support_ : array of shape (n_SV,)
        Global ids of the support vectors.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
    n_support_ : array of shape (n_classes,)
    dual_coef_ : array of shape (1, n_SV), or (n_classes, n_SV) if there are more than two classes
    intercept_ : array of shape (1,) or (n_classes,)
    result_ : Result
        Objective, certified gap, trace, and the ledger of all that was sent; otherwise of the
        last machine, if there is one for each class.
    results_ : tuple of Result
        The results of all machines; more than one if there is one for each class.
    calibration_ : array of shape (1 or n_classes, 2)
        With probability=True: a and b of each probability 1 / (1 + exp(a * decision + b)).
    dual_gap_ : float
        A bound on how far the objective of `result_` is from its optimum.
    n_iter_ : int
        Rounds taken, by all machines.

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
    multi_class: str = "direct"
    cache_bytes: int = 2**31

    usual_tol = 1e-3
    results_: tuple[Result, ...] = field(init=False)  # no parameter, but set by fit

    def fit(self, X: Any, y: Any, *, classes: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The labels; those of this process's own examples if X is `Shards.mine`.
        classes : array, optional
            All labels that occur anywhere; needed if X is `Shards.mine`, because no process sees
            the labels of the others.
        """
        check_positive("C", self.C, "what margin errors cost")
        check_count("cache_bytes", self.cache_bytes, "memory for kernel values", minimum=0)
        spec = KernelSpec(self.kernel, self.gamma, self.degree, self.coef0)
        solver = self._solver()
        shards, y, cluster = examples_and_labels(self, X, y, self.cluster)
        codes = class_codes(self, y, classes, shards)
        labels = OwnLabels(codes) if shards.kind == "mine" else LocalLabels(codes)
        code = LabelCode(
            len(self.classes_), self.C * class_weights(self.class_weight, self.classes_, y, shards)
        )
        make = partial(
            kernel_problem,
            spec=spec,
            labels=labels,
            solver=solver,
            cache_bytes=self.cache_bytes,
            # With Shards.mine nobody knows how many examples there are in all.
            n=USUAL_N if shards.kind == "mine" else shards.count(axis=0),
        )
        check_choice("multi_class", self.multi_class, ("direct", "one-vs-rest"))
        if self.multi_class == "one-vs-rest" and code.classes > 2:
            _refuse_checkpoints(solver)
            rivals = [one_against_rest(code, c) for c in range(code.classes)]
            problems = [make(code=rival, one_class=c) for c, rival in enumerate(rivals)]
            names = [f"class {label}" for label in self.classes_]
            results = solver.solve_path(problems, shards, cluster, names)
            self._keep_machines(list(results), one_vs_rest=True)
        else:
            self._keep_machines([solver.solve(make(code=code), shards, cluster)], one_vs_rest=False)
        for result in self.results_:
            warn_unless_converged(result, solver)
        if self.probability:
            if self.result_.status == "interrupted":
                raise KeyboardInterrupt("interrupted before probabilities were calibrated")
            with all_or_nothing():
                self.calibration_, ledgers = fitted_sigmoids(self, X, y, solver)
            self.results_ = with_ledgers(self.results_, ledgers)
            self.result_ = self.results_[-1]
        return self

    def _keep_machines(self, results: list[Result], one_vs_rest: bool) -> None:
        """Take the fitted attributes from the results of one machine, or of one per class."""
        self._keep(results[-1], None)
        self.results_ = tuple(results)
        self.n_iter_ = sum(result.rounds for result in results)
        ids = np.concatenate([result.atom_ids for result in results])
        self.support_, first = np.unique(ids, return_index=True)
        contents: list[SupportVectors] = [result.content for result in results]
        points = [content.points for content in contents]
        together = (
            sparse.vstack(points).tocsr() if sparse.issparse(points[0]) else np.vstack(points)
        )
        self.support_vectors_ = together[first]
        labels = np.concatenate([content.labels for content in contents])[first]
        classes = len(self.classes_)
        self.n_support_ = np.bincount(labels, minlength=classes)
        rival = -1.0 if one_vs_rest else -1.0 / (classes - 1)
        self.dual_coef_ = np.where(labels == np.arange(classes)[:, None], 1.0, rival)
        for c in range(classes):
            result = results[c] if one_vs_rest else results[0]
            # Divided by the objective, weights on the simplex become those of the unit margin.
            weights = np.zeros(len(labels))
            at = np.searchsorted(self.support_, result.atom_ids)
            weights[at] = result.atom_weights / result.objective
            self.dual_coef_[c] *= weights
        if classes == 2:
            self.dual_coef_ = self.dual_coef_[1:]
        self.intercept_ = self.dual_coef_.sum(axis=1)
        self._kernel = contents[0].kernel

    @property
    def gamma_(self) -> float:
        """The gamma that was used."""
        check_is_fitted(self)
        return float(getattr(self._kernel, "gamma", np.nan))

    def decision_function(self, X: Any) -> Floats:
        """How far examples are on a class's side, in units of the margin.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes
        """
        check_is_fitted(self)
        if isinstance(X, Shards):
            values = np.zeros((X.count(axis=0), len(self.dual_coef_)))
            for i in range(X.nodes):
                shard = X.shard(i, axis=0)
                values[shard.ids] = self._decision(shard.matrix)
        else:
            values = self._decision(validated(self, X, reset=False, **ROW_FORMATS))
        return values if len(self.classes_) > 2 else values[:, 0]

    def _decision(self, X: Any) -> Floats:
        values = np.empty((X.shape[0], len(self.dual_coef_)))
        points = self.support_vectors_
        if sparse.issparse(points) and not sparse.issparse(X):
            X = sparse.csr_array(X)
        height = max(PIECE // max(points.shape[0], 1), 1)
        for start in range(0, X.shape[0], height):
            rows = slice(start, start + height)
            block = kernel_block(self._kernel, X[rows], points, np.float64)
            values[rows] = block @ self.dual_coef_.T + self.intercept_
        return values

    @available_if(_calibrated)
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n_samples, n_classes)."""
        decisions = self.decision_function(X).reshape(-1, len(self.dual_coef_))
        return probabilities(decisions, self.calibration_)
