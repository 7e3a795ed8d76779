"""Multiple kernel learning: a sum of functions, one for each of many kernels, few of them used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_choice, check_count, check_positive
from atomcast.data._split import SplitShards
from atomcast.data.shards import Shards
from atomcast.domains.group_ball import PER_KERNEL
from atomcast.estimators.inputs import (
    FORMATS,
    as_in_fit,
    check_features,
    features_and_classes,
    features_and_target,
    validated,
)
from atomcast.estimators.penalised import RadiusSearch, refuse_checkpoints, slopes
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.estimators.solving import SolvedEstimator, warn_unless_converged
from atomcast.estimators.view_inputs import Holders, in_kernels, in_views, stacked
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.view_kernels import FittedKernel, KernelPlan
from atomcast.loop.result import Result
from atomcast.loop.session import Cluster
from atomcast.loop.solver import Solver
from atomcast.network.joined_ledgers import joined, named
from atomcast.objectives import Objective, SquaredError, SquaredHingeLoss
from atomcast.objectives.sample_weights import checked_sample_weight
from atomcast.problems.views import view_problem

Floats = NDArray[np.float64]
#: The labels of one class and of all others.
ONE_CLASS = LabelCode(2, np.ones(2))


@dataclass(frozen=True)
class Machine:
    """One model: its result, as it was asked for, and that of its ball, with norm and C."""

    plan: KernelPlan
    result: Result
    ball: Result
    norm: float
    C: float

    def norms(self) -> Floats:
        """The norm of the function of each kernel."""
        kernel, weights = self.ball.atom_ids // PER_KERNEL, self.ball.atom_weights
        return np.array([np.linalg.norm(weights[kernel == k]) for k in self.plan.numbers()])

    def function(self, k: int) -> tuple[tuple[float, float] | None, Floats]:
        """Gamma and scale of a kernel, if it is in use, and the coefficients of all examples."""
        ball = self.ball
        mine = np.flatnonzero(ball.atom_ids // PER_KERNEL == self.plan.numbers()[k])
        if not len(mine):
            assert self.plan.codes is not None  # a single model has no kernel without a function
            return None, self.plan.outputs(np.zeros(len(self.plan.codes)))
        gamma, scale = ball.atom_extras[mine[0], :2].tolist()
        return (gamma, scale), self.plan.outputs(ball.atom_weights[mine] @ ball.content[mine])


@dataclass(eq=False, repr=False)
class MultipleKernelModel(SolvedEstimator):
    """What classifiers and regressors of many kernels have in common."""

    C: float = 1.0
    _: KW_ONLY
    beta: float | None = None
    kernels: Any = None
    views: Any = None
    send: str = "directions"
    cache_bytes: int = 2**31

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; parameters as for `Lasso.fit`.

        With kernels="precomputed", X may be a list of matrices of shape (n_samples, n_samples).
        """
        solver = self._solver()
        self._check_parameters(solver)
        X = stacked(self.kernels, X)
        objective, codings, shards, cluster = self._target(X, y, sample_weight)
        if len(codings) > 1:
            refuse_checkpoints(solver, "there is a model for each class", 'multi_class="direct"')
        shards, columns, names = in_views(self.views, self.kernels, shards, isinstance(X, Shards))
        kernels = in_kernels(self.kernels, names)
        weights = None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, objective.d)
        machines = []
        for coding in codings:
            plan = KernelPlan(columns, kernels, names, **coding, weights=weights)
            machines.append(self._machine(objective, plan, solver, shards, cluster))
            if machines[-1].result.status == "interrupted" and len(machines) < len(codings):
                raise KeyboardInterrupt("there is no model before every class has its machine")
        self.result_ = together([machine.result for machine in machines])
        self.beta_ = float(np.mean([machine.norm for machine in machines]))
        self.C_ = float(np.mean([machine.C for machine in machines]))
        self._keep_functions(machines, shards)
        self._keep(self.result_, objective)
        warn_unless_converged(self.result_, solver)
        return self

    def _machine(
        self, objective: Objective, plan: KernelPlan, solver: Solver, shards: Shards, cluster: Any
    ) -> Machine:
        """One model, in the form with C or with beta."""
        make = partial(view_problem, objective, plan, self.send, self.cache_bytes)
        if self.beta is None:
            search = RadiusSearch(make, _norm, objective, float(self.C), solver.tol)
            found, result = search.solve(solver, shards, cluster)
            return Machine(plan, result, found.result, found.norm, float(self.C))
        ball = solver.solve(make(float(self.beta)), shards, cluster)
        slope = slopes(ball, float(self.beta), objective)[0]
        C = float(self.beta) / slope if slope else np.inf
        return Machine(plan, ball, ball, _norm(ball), C)

    def _target(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Objective, list[dict[str, Any]], Shards, Any]:
        """The objective, how labels are compared in each machine, the data, the cluster."""
        raise NotImplementedError

    def _check_parameters(self, solver: Solver) -> None:
        if self.beta is None:
            check_positive("C", self.C, "what losses cost")
        else:
            check_positive("beta", self.beta, "the bound on the sum of norms, or None")
        check_choice("send", self.send, ("directions", "columns"))
        check_count("cache_bytes", self.cache_bytes, "memory for kernel matrices", minimum=0)
        if self.beta is None and solver.tol_kind == "absolute":
            raise ValueError(
                'solver has tol_kind="absolute", but the radius that goes with C is found to a '
                "relative gap: leave tol_kind out, or give beta=..."
            )
        if self.beta is None or self.send == "directions":
            refuse_checkpoints(
                solver,
                "a radius is looked for, or directions are sent that only their round knows",
                'beta=... and send="columns"',
            )

    def _keep_functions(self, machines: Sequence[Machine], shards: Shards) -> None:
        """Take kernel weights and functions from the results of balls."""
        plan = machines[0].plan
        norms = np.sum([machine.norms() for machine in machines], axis=0)
        self.kernel_weights_ = norms / norms.sum() if norms.any() else norms
        pairs = [(v, own) for v, kernels in enumerate(plan.kernels) for own in kernels]
        self.kernel_names_ = [f"{plan.names[view]}: {own}" for view, own in pairs]
        self.views_ = list(plan.views)
        # What is all here goes into the model; else each party keeps its own examples.
        here = shards.matrix is not None
        self._training, holders = None if here else shards, Holders(shards)
        self.functions_ = []
        examples: dict[int, Any] = {}  # those of a view, for all its kernels
        for k in np.flatnonzero(norms).tolist():
            view, own = pairs[k]
            columns, found = plan.views[view], [machine.function(k) for machine in machines]
            gamma, scale = next(about for about, _ in found if about is not None)
            if here and own.spec is not None and view not in examples:
                examples[view] = holders.points(columns).copy()  # the data may change, a model not
            outputs = np.hstack([dual for _, dual in found])
            about = gamma or np.nan, scale, plan.constant
            points = None if own.spec is None else examples.get(view)
            self.functions_.append(FittedKernel(columns, own, *about, outputs, points))

    def _values(self, X: Any, outputs: int) -> Floats:
        """The sum of all functions at new data, each party's part worked out from its own."""
        check_is_fitted(self)
        X, cluster = stacked(self.kernels, X), self.cluster
        if not isinstance(X, Shards):
            X = SplitShards(validated(self, X, reset=False, **FORMATS), 1)
        else:
            X = as_in_fit(self, X)
            X = cluster.place(X) if isinstance(cluster, Cluster) else X
        check_features(self, X)
        total, rank = np.zeros((X.rows(), outputs)), getattr(X, "rank", None)
        new, old = Holders(X), Holders(self._training)
        for f in self.functions_:
            if rank is None or X.assignment()[f.columns[0]] == rank:
                total += f.part(new.points(f.columns), old.examples(f))
        return total if rank is None else cluster.total(total)


@dataclass(eq=False, repr=False)
class MultipleKernelClassifier(ScoreClassifier, MultipleKernelModel):
    """Support vector machine over many kernels, on views of the data spread over a network.

    Minimises ``(sum_k ||f_k||)^2 / 2 + C * sum(max(0, 1 - y f(x))^2)``, where ``f = sum_k f_k`` has
    a function for each kernel: few of them are not zero. Every node keeps its own view of the
    examples; of a kernel that is needed, n values a round are broadcast. Kernels are taken with
    values that are 1 on average at equal examples, and plus 1, so that functions have a constant.
    With T > 2 classes there is such a model for each class, against all others.

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
    multi_class : {"one-vs-rest", "direct"}, default="one-vs-rest"
        With more than two classes: a model for each of them, one after the other, or a single one
        in which labels are the corners of a regular simplex, which sends less and is less accurate.
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
        The norm of the solution, and the C that it goes with; of several models, means.
    functions_ : list of FittedKernel
        The functions that are not zero.
    result_ : Result
        Objective and certified gap, of the form with C or with beta as it was asked for, and the
        ledger of all that was sent. Of several models, objectives, gaps and rounds are sums.
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

    _: KW_ONLY
    multi_class: str = "one-vs-rest"

    def _target(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Objective, list[dict[str, Any]], Shards, Any]:
        check_choice("multi_class", self.multi_class, ("one-vs-rest", "direct"))
        shards, codes, cluster = features_and_classes(self, X, y, self.cluster)
        classes = range(len(self.classes_))
        # A margin is the product of an example's label with what the functions say of it.
        loss = SquaredHingeLoss(fit_intercept=False)
        objective = loss.bind(np.ones(len(codes)), sample_weight)
        labels = [codes]
        if len(classes) > 2 and self.multi_class == "one-vs-rest":
            labels = [(codes == k).astype(codes.dtype) for k in classes]
        code = LabelCode(len(classes), np.ones(len(classes))) if len(labels) == 1 else ONE_CLASS
        codings = [{"codes": own, "code": code, "constant": 1.0} for own in labels]
        return objective, codings, shards, cluster

    def decision_function(self, X: Any) -> Floats:
        """How far examples are on a class's side, in units of the margin.

        Of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes; X as
        for `fit`, with kernels="precomputed" the values with each of the training examples.
        """
        check_is_fitted(self)
        binary = len(self.classes_) == 2
        values = self._values(X, 1 if binary else len(self.classes_))
        return values[:, 0] if binary else values


@dataclass(eq=False, repr=False)
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

    _: KW_ONLY
    fit_intercept: bool = True

    def _target(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Objective, list[dict[str, Any]], Shards, Any]:
        shards, y, cluster = features_and_target(self, X, y, self.cluster)
        return SquaredError(y, self.fit_intercept, sample_weight), [{}], shards, cluster

    def _keep(self, result: Result, objective: Objective) -> None:
        super()._keep(result, objective)
        assert result.image is not None
        self.intercept_ = objective.intercept(result.image)

    def predict(self, X: Any) -> Floats:
        """Predict the target; X as for `MultipleKernelClassifier.decision_function`."""
        return self._values(X, 1)[:, 0] + self.intercept_


def together(results: Sequence[Result]) -> Result:
    """One result of several runs, one for each class: sums, and an account of all of them."""
    if len(results) == 1:
        return results[0]
    objective, gap = sum(one.objective for one in results), sum(one.gap for one in results)
    worst = next((one.status for one in results if one.status != "optimal"), results[0].status)
    return replace(
        results[-1],
        objective=objective,
        gap=gap,
        relative_gap=gap / max(objective, 1e-300),
        rounds=sum(one.rounds for one in results),
        status=worst,
        ledger=joined(named("class", [one.ledger for one in results])),
    )


def _norm(result: Result) -> float:
    """The sum of the norms of all functions."""
    kernel = result.atom_ids // PER_KERNEL
    squares = np.bincount(np.unique(kernel, return_inverse=True)[1], result.atom_weights**2)
    return float(np.sqrt(squares).sum())
