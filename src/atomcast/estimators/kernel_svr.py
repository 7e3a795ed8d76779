"""Support vector regression with examples spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from atomcast._checks import check_not_negative
from atomcast.atoms.kernel import LocalLabels, OwnLabels
from atomcast.estimators.inputs import examples_and_targets, rows_that_count
from atomcast.estimators.kernel_machine import KernelMachine
from atomcast.estimators.solving import warn_unless_converged
from atomcast.known.kernels.labels import Targets
from atomcast.known.kernels.target_set import SupportTargets, level_of
from atomcast.loop.result import Result
from atomcast.problems.examples import target_problem

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class KernelSVR(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Kernel support vector regression for examples that are spread over a network.

    Every node keeps its own examples, and only those that the model needs are broadcast, with
    their targets. Minimises ``||w||^2 / 2 + C / 2 * sum(max(0, |y - f(x)| - epsilon)^2)`` with
    ``f(x) = <w, phi(x)> + b``; with epsilon=0 that is kernel ridge regression with an intercept.

    Parameters
    ----------
    C : float, default=1.0
        What errors cost.
    epsilon : float, default=0.1
        How far a prediction may be off at no cost, in units of y. Examples within that distance
        need not be sent: the larger it is, the fewer are.
    kernel, gamma, degree, coef0, cache_bytes : optional
        As for `KernelSVC`.
    cluster : None, int or cluster, default=None
        Where the examples are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step, the only one that applies, to a relative gap of
        1e-3.
    tol, max_rounds : optional
        Of the solver, as for `Lasso`.

    Attributes
    ----------
    support_ : array of shape (n_SV,)
        Global ids of the support vectors, which are the examples outside the tube.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Of a precomputed kernel, only their numbers, shape (n_SV, 1).
    n_support_ : array of shape (1,)
    dual_coef_ : array of shape (1, n_SV)
    intercept_ : array of shape (1,)
    result_ : Result
        Objective (minus that of the primal, at the optimum), certified gap, trace, and the ledger
        of all that was sent.
    dual_gap_ : float
        A bound on how far the objective of `result_` is from its optimum.
    n_iter_ : int
        Rounds taken.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomcast import KernelSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelSVR(C=10.0, epsilon=30.0, cluster=5).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    _: KW_ONLY
    epsilon: float = 0.1

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The targets; those of this process's own examples if X is `Shards.mine`.
        sample_weight : array of shape (n_samples,), optional
            Multiplies C for each example, and is broadcast with it; default: one. Examples of
            weight zero are left out. Where X is `Shards.mine`, all processes give weights, or none.
        """
        spec = self._kernel_spec("what errors cost")
        epsilon = check_not_negative("epsilon", self.epsilon, "errors at no cost")
        solver = self._solver()
        if solver.step != "corrective":
            raise ValueError(
                f"KernelSVR needs the corrective step, as its weights have no bound, got "
                f'step={solver.step!r}: leave solver out, or use Solver("corrective")'
            )
        shards, y, cluster = examples_and_targets(self, X, y, self.cluster)
        self._check_square(shards, sample_weight)
        shards, used, weights, kept = rows_that_count(shards, y, sample_weight, axis=0)
        mine, count = shards.kind == "mine", np.array([float(len(used))])
        n = int((cluster.total(count) if mine else count)[0])
        problem = target_problem(
            spec,
            Targets(1, np.array([float(self.C)]), weights is not None),
            epsilon,
            (OwnLabels if mine else LocalLabels)(used, weights),
            n,
            self.cache_bytes,
            solver.tol,
        )
        result = solver.solve(problem, shards, cluster)
        self._keep_machine(result, kept)
        warn_unless_converged(result, solver)
        return self

    def _keep_machine(self, result: Result, kept: Any) -> None:
        """Take the fitted attributes; where examples were left out, `kept` numbers the others."""
        self._keep(replace(result, content=None), None)
        content: SupportTargets = result.content
        order = np.argsort(result.atom_ids)
        ids, beta = result.atom_ids[order], result.atom_weights[order]
        self.support_ = ids if kept is None else kept[ids]
        points = self._keep_vectors(content, order)
        self.n_support_ = np.array([len(ids)])
        self.dual_coef_, self.intercept_ = beta[None], np.zeros(1)
        known = content.level is not None and np.array_equal(content.weights, result.atom_weights)
        if known:
            level = content.level
        elif len(ids):
            told = result.atom_extras[order]
            costs = self.C * np.prod(told[:, 1:], axis=1)
            products = self._decision(points)[:, 0] + beta / costs
            level = level_of(beta, products, told[:, 0], costs, float(self.epsilon))
        else:
            level = content.middle
        self.intercept_ = np.array([level])

    def predict(self, X: Any) -> Floats:
        """Predict the target of examples, shape (n_samples,); X as for `fit`."""
        return self._values(X)[:, 0]
