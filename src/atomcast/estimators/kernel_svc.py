"""Support vector classification with examples spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from atomcast._checks import check_choice
from atomcast.atoms.kernel import LocalLabels, OwnLabels
from atomcast.estimators.calibration import fitted_sigmoids, probabilities, with_ledgers
from atomcast.estimators.class_weights import class_weights
from atomcast.estimators.inputs import class_codes, examples_and_labels, rows_that_count
from atomcast.estimators.kernel_machine import KernelMachine
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.estimators.solving import warn_unless_converged
from atomcast.estimators.voting import machine_coefficients, pair_values, votes
from atomcast.known.kernels.labels import LabelCode, Machines, one_vs_one, one_vs_rest
from atomcast.known.kernels.point_set import SupportVectors
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.examples import USUAL_N, kernel_problem

Floats = NDArray[np.float64]

MULTI_CLASS = ("auto", "one-vs-one", "one-vs-rest", "direct")


def _calibrated(estimator: KernelSVC) -> bool:
    if not estimator.probability:
        raise AttributeError("probabilities need KernelSVC(probability=True)")
    return True


@dataclass(eq=False, repr=False)
class KernelSVC(ScoreClassifier, KernelMachine):
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

    _: KW_ONLY
    class_weight: Any = None
    probability: bool = False
    multi_class: str = "auto"
    decision_function_shape: str = "ovr"
    random_state: Any = None

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
        spec = self._kernel_spec("what margin errors cost")
        _check_seed(self.random_state)
        solver = self._solver()
        shards, y, cluster = examples_and_labels(self, X, y, self.cluster)
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
        self._keep(replace(result, content=None), None)
        content: SupportVectors = result.content
        classes, labels = len(self.classes_), content.labels
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
            found = machine_coefficients(result, machines)
            ids, order, self.dual_coef_, self.intercept_ = found
        self.support_ = (ids if kept is None else kept[ids])[order]
        self._keep_vectors(content, order)

    def decision_function(self, X: Any) -> Floats:
        """How far examples are on a class's side, in units of the margin, or of votes.

        Of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes, or with
        a column for every two of them; X as for `fit`.
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return self._by_class(values) if self.decision_function_shape == "ovr" else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of examples, shape (n_samples,); X as for `fit`."""
        values = self._values(X)
        two = len(self.classes_) == 2
        number = values[:, 0] > 0 if two else self._by_class(values).argmax(axis=1)
        return np.asarray(self.classes_[number.astype(int)])

    def _by_class(self, values: Floats) -> Floats:
        """How much machines are for each class, shape (n_samples, n_classes)."""
        return votes(values, len(self.classes_)) if self._pairs else values

    @property
    def _pairs(self) -> bool:
        """Whether there is a machine for every two of more than two classes."""
        return 1 < len(self.dual_coef_) < len(self.classes_)

    def _combined(self, block: Floats) -> Floats:
        if self._pairs:
            return pair_values(block, self.dual_coef_, self.n_support_)
        return super()._combined(block)

    @available_if(_calibrated)
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (n_samples, n_classes)."""
        return probabilities(self._by_class(self._values(X)), self.calibration_)

    @available_if(_calibrated)
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def _check_seed(random_state: Any) -> None:
    try:
        check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be a whole number, None or a RandomState, got {random_state!r}"
        ) from error
