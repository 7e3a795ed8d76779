"""The contract of a model of structured outputs: joint features, a loss, and decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Rows of the data: a NumPy array, or a CSR matrix where a model takes it.
Rows = Any


@runtime_checkable
class OutputModel(Protocol):
    """What a structured SVM must know of its outputs.

    An input is an array of shape (rows, features); an output is whatever `decode` returns, as long
    as outputs can be compared by ``==``, or are arrays.
    """

    #: Length of the joint features, and so of the weights.
    d: int

    def joint_feature(self, x: Rows, y: Any) -> Floats:
        """The features of an input and an output together, shape (d,)."""
        ...

    def loss(self, y: Any, other: Any) -> float:
        """What it costs to answer `other` where `y` is right: not negative, 0 for `y` itself."""
        ...

    def decode(self, w: Floats, x: Rows, y: Any = None) -> Any:
        """The output with the largest ``w @ joint_feature(x, .)``.

        Where `y` is given, the loss is added: the largest of that plus ``loss(y, .)``. It must be
        the largest indeed, for the certificate rests on it.
        """
        ...


@runtime_checkable
class DecodesAll(Protocol):
    """What a model may be able to do beside: look at all examples of a node in one pass."""

    def decode_all(self, w: Floats, rows: Rows, starts: NDArray[np.int64], y: Any = None) -> Any:
        """The outputs of all inputs, as a sequence; the i-th begins at row starts[i]."""
        ...

    def corner_sum(
        self,
        rows: Rows,
        starts: NDArray[np.int64],
        y: Sequence[Any],
        others: Sequence[Any],
        weights: Floats | None = None,
    ) -> tuple[Floats, float]:
        """The sums of ``joint_feature(x, y) - joint_feature(x, other)`` and of the losses.

        Where `weights` are given, each input counts as much as its own says.
        """
        ...


def same_output(y: Any, other: Any) -> bool:
    """Whether two outputs are the same."""
    return bool(np.array_equal(y, other))
