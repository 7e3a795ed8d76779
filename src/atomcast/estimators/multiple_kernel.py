"""Multiple kernel learning: a sum of functions, one for each of many kernels, few of them used."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_choice, check_count, check_positive
from atomcast.atoms.views import view_points
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shard, Shards
from atomcast.domains.group_ball import PER_KERNEL
from atomcast.estimators.inputs import (
    FORMATS,
    features_and_classes,
    features_and_target,
    validated,
)
from atomcast.estimators.penalised import RadiusSearch, slopes
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.estimators.solving import SolvedEstimator, warn_unless_converged
from atomcast.estimators.view_inputs import in_kernels, in_views, stacked
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.views import FittedKernel, KernelPlan
from atomcast.loop.result import Result
from atomcast.loop.session import Cluster
from atomcast.loop.solver import Solver
from atomcast.objectives import Objective, SquaredError, SquaredHingeLoss
from atomcast.problems.views import view_problem
from atomcast.storage.checkpoint import Checkpoint

Floats = NDArray[np.float64]


class MultipleKernelModel(SolvedEstimator):
    """What classifiers and regressors of many kernels have in common."""

    C: float
    beta: float | None
    kernels: Any
    views: Any
    send: str
    cache_bytes: int
    cluster: Any
    result_: Result
    n_features_in_: int

    def _checked_solver(self) -> Solver:
        """The solver to fit with, if the parameters make sense."""
        if self.beta is None:
            check_positive("C", self.C, "what losses cost")
        else:
            check_positive("beta", self.beta, "the radius of the ball of functions, or None")
        check_choice("send", self.send, ("directions", "columns"))
        check_count("cache_bytes", self.cache_bytes, "memory for kernel matrices", minimum=0)
        solver = self._solver()
        stored = solver.resume is not None or any(
            isinstance(callback, Checkpoint) for callback in solver.callbacks
        )
        if stored and (self.beta is None or self.send == "directions"):
            raise ValueError(
                "checkpoints are neither written nor resumed where a radius is looked for, or "
                'directions are sent that only their round knows: give beta=... and send="columns"'
            )
        return solver

    def _plan(self, shards: Shards, given: bool, **coding: Any) -> tuple[Shards, KernelPlan]:
        """Shards with each view on one node, and the kernels."""
        shards, columns, names = in_views(self.views, self.kernels, shards, given)
        return shards, KernelPlan(columns, in_kernels(self.kernels, names), names, **coding)

    def _fit(
        self,
        solver: Solver,
        objective: Objective,
        plan: KernelPlan,
        shards: Shards,
        cluster: Cluster,
    ) -> Result:
        """Solve, and keep what the fitted model consists of; returns the result for the ball."""
        make = partial(view_problem, objective, plan, self.send, self.cache_bytes)
        if self.beta is None:
            search = RadiusSearch(make, _norm, objective, float(self.C), solver.tol)
            tried = search.solve(solver, shards, cluster)
            last, ball = tried[-1], tried[-1].result
            status = "stopped" if ball.status == "optimal" else ball.status
            self.beta_, self.C_ = last.norm, float(self.C)
            self.result_ = replace(
                ball,
                objective=last.objective,
                gap=last.gap,
                relative_gap=last.relative_gap,
                rounds=sum(each.result.rounds for each in tried),
                status="optimal" if last.relative_gap <= solver.tol else status,
            )
        else:
            self.result_ = ball = solver.solve(make(float(self.beta)), shards, cluster)
            slope = slopes(ball, float(self.beta), objective)[0]
            self.beta_, self.C_ = _norm(ball), float(self.beta) / slope if slope else np.inf
        self.dual_gap_, self.n_iter_ = self.result_.gap, self.result_.rounds
        self._keep(ball, plan, shards)
        warn_unless_converged(self.result_, solver, stacklevel=4)
        return ball

    def _keep(self, ball: Result, plan: KernelPlan, shards: Shards) -> None:
        """Take kernel weights and functions from the result."""
        numbers, kernel = plan.numbers(), ball.atom_ids // PER_KERNEL
        norms = np.array([np.linalg.norm(ball.atom_weights[kernel == k]) for k in numbers])
        self.kernel_weights_ = norms / norms.sum() if norms.any() else norms
        pairs = [(v, k) for v, kernels in enumerate(plan.kernels) for k in range(len(kernels))]
        self.kernel_names_ = [f"{plan.names[v]}: {plan.kernels[v][k]}" for v, k in pairs]
        self.views_ = list(plan.views)
        # What is all here goes into the model; else each party keeps its own examples.
        here = shards.matrix is not None
        self._training, holders = None if here else shards, Holders(shards)
        self.functions_ = []
        for (view, k), number in zip(pairs, numbers.tolist(), strict=True):
            mine = np.flatnonzero(kernel == number)
            if not np.any(ball.atom_weights[mine]):
                continue
            gamma, scale = ball.atom_extras[mine[0], :2].tolist()
            dual = ball.atom_weights[mine] @ ball.content[mine]
            self.functions_.append(
                FittedKernel(
                    plan.views[view],
                    plan.kernels[view][k],
                    gamma or np.nan,
                    scale,
                    plan.constant,
                    self._outputs(plan, dual),
                    holders.points(plan.views[view]) if here else None,
                )
            )

    def _outputs(self, plan: KernelPlan, dual: Floats) -> Floats:
        """The coefficients of the examples for each function that is wanted, shape (n, T)."""
        if plan.code is None or plan.codes is None:
            return dual[:, None]
        coded = dual[:, None] * plan.code.table[plan.codes]
        return coded if plan.code.classes > 2 else coded[:, 1:]

    def _values(self, X: Any, outputs: int) -> Floats:
        """The sum of all functions at new data, each party's part worked out from its own."""
        check_is_fitted(self)
        X = stacked(self.kernels, X)
        if not isinstance(X, Shards):
            X = validated(self, X, reset=False, **FORMATS)
            X = SplitShards(X, 1)
        cluster = self.cluster
        placed = cluster.place(X) if isinstance(cluster, Cluster) and X.kind != "split" else X
        if placed.count() != self.n_features_in_:
            raise ValueError(
                f"X has {placed.count()} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        total, own = np.zeros((placed.rows(), outputs)), getattr(placed, "rank", None)
        new, old = Holders(placed), Holders(self._training)
        for f in self.functions_:
            if own is None or placed.assignment()[f.columns[0]] == own:
                total += f.part(new.points(f.columns), old.examples(f))
        return total if own is None else cluster.total(total)


class MultipleKernelClassifier(ScoreClassifier, MultipleKernelModel):
    """Support vector machine over many kernels, on views of the data spread over a network.

    Minimises ``(sum_k ||f_k||)^2 / 2 + C * sum(max(0, 1 - y f(x))^2)``, where ``f = sum_k f_k`` has
    a function for each kernel: few of them are not zero. Every node keeps its own view of the
    examples; of a kernel that is needed, n values a round are broadcast. Kernels are taken with
    values that are 1 on average at equal examples, and plus 1, so that functions have a constant.
    With T > 2 classes, labels are the corners of a regular simplex, as in `KernelSVC`.

    Parameters
    ----------
    C : float, default=1.0
        What losses cost.
    beta : float, optional
        Instead of C: the bound on ``sum_k ||f_k||``, within which the losses are minimised.
    kernels : None, "precomputed", str, callable, dict, or list of these, default=None
        The kernels on each view: names ("rbf", "linear", "poly", "laplacian"), functions of two
        sets of points, or dicts of ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``factor``,
        which multiplies a gamma that is estimated from the view ("mean-distance", "scale"). A dict
        from views, by number or party name, gives each its own. None: three widths of "rbf", and
        "linear". "precomputed": a view holds the values with each of the training examples.
    views : None, "sources" or list of lists of int or str, default=None
        The columns of each view, by number or by name. None: what each node holds, if X is
        `Shards`, and else all columns together.
    send : {"directions", "columns"}, default="directions"
        What is broadcast of a kernel that is needed: its steepest function against the gradient,
        or portions of kernel columns, which show more of a view and can be resumed.
    cache_bytes : int, default=2**31
        The memory that kernel matrices may take in each process, 8 n^2 bytes each. What does not
        fit is computed anew in each round.
    cluster : None, int or cluster, default=None
        Where the views are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step to a relative gap of 1e-4, a str names a step.
        "away", "pairwise" and "blended-pairwise" do not apply.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    kernel_weights_ : array of shape (n_kernels,)
        The share of each kernel in ``sum_k ||f_k||``, view by view; they sum to one.
    kernel_names_ : list of str
    views_ : list of int arrays
        The columns of each view.
    beta_, C_ : float
        The norm of the solution, and the C that it goes with.
    functions_ : list of FittedKernel
        The functions that are not zero.
    result_ : Result
        Objective and certified gap, of the form with C or with beta as it was asked for, and the
        ledger of all that was sent.
    dual_gap_ : float
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from atomcast import MultipleKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultipleKernelClassifier(C=10.0, views=[[0, 1], [2, 3]], cluster=2).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        beta: float | None = None,
        kernels: Any = None,
        views: Any = None,
        send: str = "directions",
        cache_bytes: int = 2**31,
        cluster: Any = None,
        solver: str | Solver | None = None,
    ) -> None:
        self.C = C
        self.beta = beta
        self.kernels = kernels
        self.views = views
        self.send = send
        self.cache_bytes = cache_bytes
        self.cluster = cluster
        self.solver = solver

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
            With kernels="precomputed" also a list of matrices of shape (n_samples, n_samples).
        y : array of shape (n_samples,)
            The labels, known to every node.
        """
        solver = self._checked_solver()
        X = stacked(self.kernels, X)
        shards, codes, cluster = features_and_classes(self, X, y, self.cluster)
        code = LabelCode(len(self.classes_), np.ones(len(self.classes_)))
        shards, plan = self._plan(
            shards, isinstance(X, Shards), codes=codes, code=code, constant=1.0
        )
        objective = SquaredHingeLoss(fit_intercept=False).bind(np.ones(len(codes)))
        self._fit(solver, objective, plan, shards, cluster)
        return self

    def decision_function(self, X: Any) -> Floats:
        """How far examples are on a class's side, in units of the margin.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_samples, n_features)
            With kernels="precomputed": the values with each of the training examples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes
        """
        check_is_fitted(self)
        binary = len(self.classes_) == 2
        values = self._values(X, 1 if binary else len(self.classes_))
        return values[:, 0] if binary else values


class MultipleKernelRegressor(RegressorMixin, MultipleKernelModel):  # type: ignore[misc]
    """Regression over many kernels, on views of the data spread over a network.

    Minimises ``(sum_k ||f_k||)^2 / 2 + C * sum((y - f(x) - b)^2)``, where ``f = sum_k f_k`` has a
    function for each kernel: few of them are not zero. The constant b costs nothing. Kernels are
    taken with values that are 1 on average at equal examples.

    Parameters
    ----------
    C, beta, kernels, views, send, cache_bytes, cluster, solver
        As for `MultipleKernelClassifier`.
    fit_intercept : bool, default=True
        Whether there is a constant b.

    Attributes
    ----------
    intercept_ : float
    kernel_weights_, kernel_names_, views_, beta_, C_, functions_, result_, dual_gap_, n_iter_
        As for `MultipleKernelClassifier`.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        beta: float | None = None,
        kernels: Any = None,
        views: Any = None,
        fit_intercept: bool = True,
        send: str = "directions",
        cache_bytes: int = 2**31,
        cluster: Any = None,
        solver: str | Solver | None = None,
    ) -> None:
        self.C = C
        self.beta = beta
        self.kernels = kernels
        self.views = views
        self.fit_intercept = fit_intercept
        self.send = send
        self.cache_bytes = cache_bytes
        self.cluster = cluster
        self.solver = solver

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model; parameters as for `MultipleKernelClassifier.fit`, with a target."""
        solver = self._checked_solver()
        X = stacked(self.kernels, X)
        shards, y, cluster = features_and_target(self, X, y, self.cluster)
        shards, plan = self._plan(shards, isinstance(X, Shards))
        objective = SquaredError(y, self.fit_intercept)
        ball = self._fit(solver, objective, plan, shards, cluster)
        assert ball.image is not None
        self.intercept_ = objective.intercept(ball.image)
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the target; X as for `MultipleKernelClassifier.decision_function`."""
        return self._values(X, 1)[:, 0] + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _norm(result: Result) -> float:
    """The sum of the norms of all functions."""
    kernel = result.atom_ids // PER_KERNEL
    squares = np.bincount(np.unique(kernel, return_inverse=True)[1], result.atom_weights**2)
    return float(np.sqrt(squares).sum())


class Holders:
    """The nodes of shards, each of which reads its own part once."""

    def __init__(self, shards: Shards | None) -> None:
        self.shards = shards
        self._read: dict[int, Shard] = {}

    def points(self, columns: NDArray[np.int64]) -> Any:
        """The columns of a view, from the node that holds them all."""
        assert self.shards is not None
        owners = self.shards.assignment()[columns]
        if np.any(owners != owners[0]):
            raise ValueError(
                f"a view is split: columns {columns[0]} ... {columns[-1]} are on the nodes "
                f"{np.unique(owners)}; a whole view must live on one node"
            )
        owner = int(owners[0])
        if owner not in self._read:
            self._read[owner] = self.shards.shard(owner)
        return view_points(self._read[owner], columns)

    def examples(self, function: FittedKernel) -> Any:
        """The examples that a function is made of; none where kernel values are given."""
        if function.points is not None or function.kernel.spec is None:
            return function.points
        return self.points(function.columns)
