"""Structured support vector machines with examples spread over a network."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from atomcast._checks import check_positive
from atomcast.data.shards import Shards
from atomcast.estimators.inputs import ROW_FORMATS, validated
from atomcast.estimators.score_classifier import ScoreClassifier
from atomcast.estimators.solving import warn_unless_converged
from atomcast.estimators.structured_inputs import (
    Given,
    checked_lengths,
    checked_model,
    flattened,
    given,
    is_listed,
    joined,
)
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.objectives import StructuredDual
from atomcast.problems.structured import structured_problem
from atomcast.storage.checkpoint import Checkpoint
from atomcast.structures.output_model import OutputModel
from atomcast.structures.structured_examples import Examples, Outputs

Floats = NDArray[np.float64]


def _multi_class(estimator: StructuredSVM) -> bool:
    if estimator.model != "multiclass":
        raise AttributeError('scores of single classes need StructuredSVM(model="multiclass")')
    return True


def _refuse_checkpoints(solver: Solver) -> None:
    """Sums have no owner who could be asked for them again."""
    if solver.resume is not None or any(isinstance(w, Checkpoint) for w in solver.callbacks):
        raise ValueError(
            "StructuredSVM can neither write nor resume checkpoints, because nobody owns the sums "
            "that its weights are made of: leave Checkpoint and resume out"
        )


@dataclass(eq=False, repr=False)
class StructuredSVM(ScoreClassifier):
    """Support vector machine for outputs with a structure, such as the labels of a sequence.

    Minimises ``||w||^2 / 2 + C * sum over examples of max over outputs of (loss + w @ joint
    features of that output - w @ joint features of the right one)``. Examples stay on their nodes;
    what leaves a node in a round is a single vector, the sum over its examples.

    Parameters
    ----------
    model : {"multiclass", "chain"} or OutputModel, default="multiclass"
        What an output is: a class for each row of X; a label for each row of a sequence, where
        neighbouring labels depend on each other; or whatever a model of your own says, by its
        `joint_feature`, `loss` and `decode`.
    C : float, default=1.0
        What margin errors cost.
    cache : bool, default=True
        Whether block steps may use outputs that were found earlier, where these are good enough, in
        the place of decoding.
    cluster : None, int or cluster, default=None
        Where the examples are: None is one node, an int so many nodes simulated in this process.
    solver : None, str or Solver, default=None
        How to fit: None is the corrective step, to a relative gap of 1e-3, a str names another. All
        steps decode all examples from the same weights in every round, but "block-coordinate",
        which needs the fewest passes over the examples where decoding takes long.

    Attributes
    ----------
    coef_ : array of shape (d,)
        The weights w, as the joint features of `model_` have them.
    model_ : OutputModel
        The model of outputs.
    classes_ : array of shape (n_classes,)
        The labels, unless the model is your own.
    result_ : Result
        Minus the dual objective, the certified gap, trace, and the ledger of all that was sent.
    dual_gap_ : float
        A bound on how far the objective is from its optimum.
    n_iter_ : int
        Rounds taken.
    passes_ : float
        How often each example was decoded, on average.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from atomcast import StructuredSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = StructuredSVM(cluster=5).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    model: str | OutputModel = "multiclass"
    _: KW_ONLY
    C: float = 1.0
    cache: bool = True

    usual_tol = 1e-3

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
        classes: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_rows, n_features)
            Or a list of arrays of such a shape, one for each example.
        y : array of shape (n_rows,), or list
            The right label of each row, or, where X is a list, a list of those of each example;
            for a model of your own, a list of outputs. Those of this process's own examples if X is
            `Shards.mine`.
        sample_weight : array of shape (n_examples,), optional
            By what `C` is multiplied for each example, a row or a sequence; default: one. Those of
            this process's own examples if X is `Shards.mine`.
        lengths : array of shape (n_examples,), optional
            How many rows each example has, where these follow each other in X; needed for chains,
            unless X is a list.
        classes : array, optional
            All labels that occur anywhere; needed if X is `Shards.mine`.
        """
        check_positive("C", self.C, "what margin errors cost")
        solver = self._solver()
        _refuse_checkpoints(solver)
        checked_model(self.model)
        data = given(self, X, y, sample_weight, lengths, classes)
        self.model_ = data.model
        problem = structured_problem(data.model, self.C, data.outputs, bool(self.cache))
        result = solver.solve(problem, data.shards, data.cluster)
        self._keep(result, StructuredDual(data.model.d, self.C))
        self.passes_ = self._passes(result, data)
        warn_unless_converged(result, solver)
        return self

    def _keep(self, result: Result, objective: Any) -> None:
        super()._keep(result, objective)
        self.coef_ = objective.weights(result.image)

    def _passes(self, result: Result, data: Given) -> float:
        """How often an example was decoded: in rounds of all examples, and one by one."""
        together, single = result.content
        n = np.array([float(len(data.outputs.lengths))])
        if data.shards.kind == "mine":
            n = data.cluster.total(n)
        return float(together + single / n[0])

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Predict the outputs of examples.

        Parameters
        ----------
        X : array, scipy sparse matrix, DataFrame or Shards of shape (n_rows, n_features), or list
        lengths : array of shape (n_examples,), optional
            As in `fit`.

        Returns
        -------
        array of shape (n_rows,), or list
            The label of each row; a list of arrays of them if X is one; a list of outputs for a
            model of your own.
        """
        check_is_fitted(self)
        rows, sizes, listed = self._new_rows(X, lengths)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        found: list[Any] = [None] * len(sizes)
        for part in rows:
            for number, output in zip(
                part.numbers.tolist(), part.decoded(self.model_, self.coef_, False), strict=True
            ):
                found[number] = output
        if not isinstance(self.model, str):
            return found
        labels = self.classes_[np.concatenate([np.zeros(0, dtype=np.int64), *found])]
        return np.split(labels, starts[1:-1]) if listed else labels

    def _new_rows(self, X: Any, lengths: Any) -> tuple[list[Examples], NDArray[np.int64], bool]:
        """New examples as nodes hold them, how many rows each has, and whether X was a list."""
        listed = is_listed(X)
        if listed:
            X, lengths = flattened(X)
        if isinstance(X, Shards):
            sizes = checked_lengths(self.model, lengths, X.count(axis=0))
            shards = [X.shard(i, axis=0) for i in range(X.nodes)]
            return [Outputs(sizes, range(len(sizes))).of(one) for one in shards], sizes, False
        X = validated(self, X, reset=False, **ROW_FORMATS)
        sizes = checked_lengths(self.model, lengths, X.shape[0])
        numbers = np.arange(len(sizes))
        return [Examples(X, sizes, range(len(sizes)), numbers, "X")], sizes, listed

    @available_if(_multi_class)
    def decision_function(self, X: Any) -> Floats:
        """The score of each class; X as for `fit`.

        Of shape (n_samples,), or (n_samples, n_classes) if there are more than two classes.
        """
        check_is_fitted(self)
        parts, sizes, _ = self._new_rows(X, None)
        scores = np.empty((len(sizes), len(self.classes_)))
        for part in parts:
            scores[part.numbers] = self.model_.unary(self.coef_, part.rows)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None) -> float:
        """The share of labels that are right; for a model of your own, minus the mean loss."""
        found = self.predict(X, lengths=lengths)
        if not isinstance(self.model, str):
            losses = [self.model_.loss(right, other) for right, other in zip(y, found, strict=True)]
            return -float(np.average(losses, weights=sample_weight))
        if isinstance(found, list):
            sizes = np.array([len(one) for one in found])
            y, found = joined(y, sizes), np.concatenate(found)
        return float(accuracy_score(y, found, sample_weight=sample_weight))
