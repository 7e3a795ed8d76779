"""Support vector classification with examples spread over a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
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
    multi_class : {"auto", "one-vs-one", "one-vs-rest", "direct"}, default="auto"
        With more than two classes: a machine for every two classes, which vote; a machine for
        each class; or one machine for all, in which labels are the corners of a regular simplex.
        "auto" is "one-vs-one" with the corrective step, and "direct" with others, which it needs.
    cluster : None, int or cluster, default=None
        Where the examples are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step, a str names another; to a relative gap of 1e-3.
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
    cache_bytes: int = 2**31

    usual_tol = 1e-3

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
        costs = self.C * class_weights(self.class_weight, self.classes_, y, shards)
        machines = self._machines(solver)
        problem = kernel_problem(
            spec,
            LabelCode(len(self.classes_), costs),
            labels,
            solver,
            self.cache_bytes,
            # With Shards.mine nobody knows how many examples there are in all.
            USUAL_N if shards.kind == "mine" else shards.count(axis=0),
            machines,
        )
        self._keep_machines(solver.solve(problem, shards, cluster), machines)
        warn_unless_converged(self.result_, solver)
        if self.probability:
            if self.result_.status == "interrupted":
                raise KeyboardInterrupt("interrupted before probabilities were calibrated")
            with all_or_nothing():
                self.calibration_, ledgers = fitted_sigmoids(self, X, y, solver)
            self.result_ = with_ledgers(self.result_, ledgers)
        return self

    def _machines(self, solver: Solver) -> Machines | None:
        """The machines that share the examples; None if there is a single one."""
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        corrective, classes = solver.step == "corrective", len(self.classes_)
        usual = "one-vs-one" if corrective else "direct"
        how = usual if self.multi_class == "auto" else self.multi_class
        if classes == 2 or how == "direct":
            return None
        if not corrective:
            raise ValueError(
                f"multi_class={how!r} needs the corrective step, which re-optimises all machines "
                f'at once, got step={solver.step!r}: use Solver("corrective") or '
                'multi_class="direct"'
            )
        return one_vs_one(classes) if how == "one-vs-one" else one_vs_rest(classes)

    def _keep_machines(self, result: Result, machines: Machines | None) -> None:
        """Take the fitted attributes from the result of one machine, or of several."""
        self._keep(result, None)
        content: SupportVectors = result.content
        classes, labels, self._kernel = len(self.classes_), content.labels, content.kernel
        self.n_support_ = np.bincount(labels, minlength=classes)
        if machines is None:
            order = np.argsort(result.atom_ids)
            self.support_, self.support_vectors_ = result.atom_ids[order], content.points[order]
            # Divided by the objective, weights on the simplex become those of the unit margin.
            own = labels[order] == np.arange(classes)[:, None]
            sides = np.where(own, 1.0, -1.0 / (classes - 1))
            dual_coef = sides * (result.atom_weights[order] / result.objective)
            self.dual_coef_ = dual_coef[1:] if classes == 2 else dual_coef
            self.intercept_ = self.dual_coef_.sum(axis=1)
            return
        self.support_ = np.unique(result.atom_ids // machines.width)
        order, self.dual_coef_, self.intercept_ = machine_coefficients(result, machines)
        self.support_, self.support_vectors_ = self.support_[order], content.points[order]

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
        array of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes
        """
        check_is_fitted(self)
        if isinstance(X, Shards):
            values = np.zeros(
                (X.count(axis=0), 1 if len(self.classes_) == 2 else len(self.classes_))
            )
            for i in range(X.nodes):
                shard = X.shard(i, axis=0)
                values[shard.ids] = self._decision(shard.matrix)
        else:
            values = self._decision(validated(self, X, reset=False, **ROW_FORMATS))
        return values if len(self.classes_) > 2 else values[:, 0]

    def _decision(self, X: Any) -> Floats:
        points, intercept = self.support_vectors_, self.intercept_
        if sparse.issparse(points) and not sparse.issparse(X):
            X = sparse.csr_array(X)
        values = np.empty((X.shape[0], len(intercept)))
        pairs = 1 < len(self.dual_coef_) < len(self.classes_)
        height = max(PIECE // max(points.shape[0], 1), 1)
        for start in range(0, X.shape[0], height):
            rows = slice(start, start + height)
            block = kernel_block(self._kernel, X[rows], points, np.float64)
            values[rows] = intercept + (
                pair_values(block, self.dual_coef_, self.n_support_)
                if pairs
                else block @ self.dual_coef_.T
            )
        return votes(values, len(self.classes_)) if pairs else values

    @available_if(_calibrated)
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n_samples, n_classes)."""
        decisions = self.decision_function(X)
        return probabilities(decisions.reshape(len(decisions), -1), self.calibration_)
