"""Models for other programs: linear models and stumps as ONNX, made of its basic operators.

Only features that the model uses are read from the input, so that a sparse model of very many
features is a small file.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast import __version__
from atomcast._replacing import replacing

#: Operators of this version are known to every runtime of the last years.
OPSET, IR_VERSION = 17, 8


def save_onnx(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model for programs that read ONNX. Needs the package onnx.

    The input `X` has the features of the model in its order, in double precision, shape (rows,
    n_features); where parties prepared their tables, these are the prepared features. Regressors
    have the output `prediction`, classifiers `label`, `score` and, if they have any,
    `probabilities`.

    Parameters
    ----------
    estimator : fitted estimator
        A linear model (`Lasso`, `SparseLogisticRegression`, their CV versions, those with groups,
        `MatchingPursuit`, `SparseModel`), or `L1AdaBoost` over stumps or over a matrix.
    path : path
        Replaced if it exists; ".onnx" is the usual suffix.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "n_features_in_")
    onnx = _load_onnx()
    graph = _Graph(onnx)
    outputs = _outputs(graph, estimator)
    kinds = onnx.TensorProto
    X = onnx.helper.make_tensor_value_info("X", kinds.DOUBLE, ["rows", estimator.n_features_in_])
    whole = onnx.helper.make_graph(graph.nodes, "atomcast", [X], outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(
        whole,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="atomcast",
        producer_version=__version__,
    )
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    about = {"estimator": type(estimator).__name__, "feature_names": json.dumps(names)}
    onnx.helper.set_model_props(model, about)
    onnx.checker.check_model(model, full_check=True)
    with replacing(path) as file:
        file.write(model.SerializeToString())


def _load_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError(
            'writing .onnx files needs onnx: pip install "atomcast[export]"'
        ) from None
    return onnx


class _Graph:
    """The nodes and constants of a graph as they come; values go by their names."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """A value that is part of the model."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def __call__(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """What an operator makes of values."""
        name = name or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def output(self, name: str, kind: Any, *shape: Any) -> Any:
        """A value that is told, with a row for each row of the input."""
        kinds = self.onnx.TensorProto
        numbers = {"f": kinds.DOUBLE, "i": kinds.INT64, "O": kinds.STRING}
        return self.onnx.helper.make_tensor_value_info(name, numbers[kind], ["rows", *shape])


def _outputs(graph: _Graph, estimator: Any) -> list[Any]:
    """Put what an estimator does into a graph; returns what it tells."""
    if hasattr(estimator, "stumps_"):
        scores, odds = _stump_votes(graph, estimator), 2.0 / estimator.temperature
    elif hasattr(estimator, "coef_"):
        coef = np.atleast_2d(estimator.coef_)
        scores, odds = _linear(graph, coef, np.atleast_1d(estimator.intercept_)), 1.0
        if not hasattr(estimator, "classes_"):
            return _predictions(graph, scores, np.shape(estimator.coef_)[:-1])
    elif hasattr(estimator, "estimator_ids_") and isinstance(estimator.base, str):
        coef = np.zeros((1, estimator.n_features_in_))
        coef[0, estimator.estimator_ids_] = estimator.estimator_weights_
        scores, odds = _linear(graph, coef, np.zeros(1)), 2.0 / estimator.temperature
    else:
        raise ValueError(
            f"a model of {type(estimator).__name__} has no form in ONNX here: linear models and "
            "L1AdaBoost over stumps or a matrix have one; save_model keeps all kinds"
        )
    return _decisions(graph, scores, estimator, odds)


def _linear(graph: _Graph, coef: NDArray[Any], intercept: NDArray[Any]) -> str:
    """Scores of shape (rows, len(coef)) from the features that have a coefficient."""
    used = np.flatnonzero(coef.any(axis=0))
    features = graph("Gather", "X", graph.constant(used), axis=1)
    product = graph("MatMul", features, graph.constant(coef[:, used].T.astype(np.float64)))
    return graph("Add", product, graph.constant(intercept.astype(np.float64)))


def _stump_votes(graph: _Graph, estimator: Any) -> str:
    """The weighted vote of stumps, shape (rows, 1)."""
    feature, threshold, above, missing = np.reshape(estimator.stumps_, (-1, 4)).T
    values = graph("Gather", "X", graph.constant(feature.astype(np.int64)), axis=1)
    larger = graph("Greater", values, graph.constant(threshold))
    said = graph("Where", larger, graph.constant(above), graph.constant(-above))
    said = graph("Where", graph("IsNaN", values), graph.constant(missing), said)
    return graph("MatMul", said, graph.constant(estimator.estimator_weights_[:, None]))


def _predictions(graph: _Graph, scores: str, targets: tuple[int, ...]) -> list[Any]:
    if targets:
        graph("Identity", scores, name="prediction")
    else:
        graph("Squeeze", scores, graph.constant([1]), name="prediction")
    return [graph.output("prediction", "f", *targets)]


def _decisions(graph: _Graph, scores: str, estimator: Any, odds: float) -> list[Any]:
    """The label, the score or scores and, where there are any, the probabilities of classes."""
    classes = np.asarray(estimator.classes_)
    two = len(classes) == 2
    if two:
        score = graph("Squeeze", scores, graph.constant([1]), name="score")
        positive = graph("Greater", score, graph.constant(0.0))
        number = graph("Cast", positive, to=graph.onnx.TensorProto.INT64)
    else:
        graph("Identity", scores, name="score")
        number = graph("ArgMax", scores, axis=1, keepdims=0)
    kind = {"b": "i", "u": "i", "U": "O"}.get(classes.dtype.kind, classes.dtype.kind)
    labels = classes.astype({"i": np.int64, "f": np.float64, "O": object}[kind])
    graph("Gather", graph.constant(labels), number, name="label")
    told = [graph.output("label", kind)]
    told += [graph.output("score", "f") if two else graph.output("score", "f", len(classes))]
    if not hasattr(estimator, "predict_proba"):
        return told
    if two:
        second = graph("Sigmoid", graph("Mul", scores, graph.constant(odds)))
        first = graph("Sub", graph.constant(1.0), second)
        graph("Concat", first, second, axis=1, name="probabilities")
    else:
        graph("Softmax", scores, axis=1, name="probabilities")
    return [*told, graph.output("probabilities", "f", len(classes))]
