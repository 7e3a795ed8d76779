"""Views of the data and the kernels on each: what everybody knows of them before the first round.

A view is some columns that live on one node. Its kernels stand at its columns, in turn, so that
whoever holds a column is known to hold the kernels that stand there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_positive
from atomcast.known.kernels.functions import Kernel, KernelSpec
from atomcast.known.kernels.labels import Codes, LabelCode
from atomcast.known.kernels.points import Points, dense_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Kernel values that prediction computes at a time.
PIECE = 1 << 23


@dataclass(frozen=True)
class ViewKernel:
    """A kernel on a view: one by name, its gamma times a factor; or none, if the values are given.

    Parameters
    ----------
    spec : KernelSpec or None
        None: the columns of the view are the kernel's values with each of the examples.
    factor : float
        What a gamma that is estimated from the view is multiplied by.
    """

    spec: KernelSpec | None
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_positive("factor", self.factor, "what the gamma of a kernel is multiplied by")

    @property
    def trusted(self) -> bool:
        """Whether it is positive semidefinite by its nature."""
        return self.spec is not None and not callable(self.spec.kernel)

    def __str__(self) -> str:
        if self.spec is None:
            return "precomputed"
        if callable(self.spec.kernel):
            return getattr(self.spec.kernel, "__name__", "function")
        if self.spec.kernel == "linear":
            return "linear"
        gamma = self.spec.gamma if isinstance(self.spec.gamma, str) else f"{self.spec.gamma:.4g}"
        return f"{self.spec.kernel} {f'{self.factor:.4g} x ' if self.factor != 1.0 else ''}{gamma}"

    def gamma(self, points: Points, weights: Floats | None = None) -> float:
        """The gamma for a view, worked out by whoever holds it; NaN where there is none."""
        kernel = None if self.spec is None else self.spec.resolve(points, weights)
        return self.factor * float(getattr(kernel, "gamma", np.nan))

    def values(self, gamma: float, X: Points, points: Points) -> Floats:
        """The values between the rows of X and those of a view, shape (n, m)."""
        if self.spec is None:
            return dense_rows(X)
        given = self.spec if np.isnan(gamma) else replace(self.spec, gamma=gamma)
        kernel: Kernel = given.resolve(points)
        return kernel.block(X, points)


@dataclass(frozen=True, eq=False)
class KernelPlan:
    """All kernels, where they are, and how examples with different labels go together.

    Parameters
    ----------
    views : tuple of int arrays
        The columns of each view, increasing.
    kernels : tuple of tuples of ViewKernel
        The kernels of each view.
    names : tuple of str
        What messages call each view.
    codes, code : the class of each example, and how classes are compared; None in regression
    constant : float
        What is added to every value of every kernel, for functions that are constants.
    weights : array of shape (n,), optional
        How much each example counts.
    """

    views: tuple[Ints, ...]
    kernels: tuple[tuple[ViewKernel, ...], ...]
    names: tuple[str, ...]
    codes: Codes | None = None
    code: LabelCode | None = None
    constant: float = 0.0
    weights: Floats | None = None

    @property
    def per_column(self) -> int:
        """How many kernels may stand at a column."""
        pairs = zip(self.views, self.kernels, strict=True)
        return max(-(-len(kernels) // len(columns)) for columns, kernels in pairs)

    def number(self, view: int, kernel: int) -> int:
        """The number of a kernel, of which its column is the whole part of `per_column`."""
        turn, place = divmod(kernel, len(self.views[view]))
        return int(self.views[view][place]) * self.per_column + turn

    def numbers(self) -> Ints:
        """The numbers of all kernels, view by view."""
        listed = [
            self.number(view, kernel)
            for view, kernels in enumerate(self.kernels)
            for kernel in range(len(kernels))
        ]
        return np.array(listed, dtype=np.int64)

    def spread(self, v: Floats) -> Floats:
        """A vector in columns that a kernel matrix can be multiplied with, shape (n, T - 1)."""
        if self.code is None or self.codes is None:
            return v[:, None]
        return self.code.spread(self.codes, v)

    def combine(self, sums: Any) -> Floats:
        """The product that counts, of those with the columns of `spread`."""
        if self.code is None or self.codes is None:
            return np.ascontiguousarray(sums[:, 0])
        return self.code.combine(self.codes, sums)

    def outputs(self, dual: Floats) -> Floats:
        """The coefficients of examples for each function that a model is made of, shape (n, T)."""
        if self.code is None or self.codes is None:
            return dual[:, None]
        coded = dual[:, None] * self.code.table[self.codes]
        return coded if self.code.classes > 2 else coded[:, 1:]

    def products_with(self, examples: Ints) -> Floats | float:
        """What kernel columns of some examples are multiplied by for labels, shape (n, m)."""
        if self.code is None or self.codes is None:
            return 1.0
        return self.code.table[self.codes[:, None], self.codes[examples]]


@dataclass(frozen=True, eq=False)
class FittedKernel:
    """A kernel of a fitted model, and the function of its space that is part of the model.

    Parameters
    ----------
    columns : int array of shape (p,)
        The columns of its view.
    kernel : ViewKernel
    gamma, scale, constant : float
        Values are those of the kernel with this gamma, divided by the scale, plus the constant.
    dual : array of shape (n, T)
        The coefficient of each example, for each of T functions.
    points : array or CSR matrix of shape (n, p), optional
        The examples; None where their owner is to be asked for them.
    """

    columns: Ints
    kernel: ViewKernel
    gamma: float
    scale: float
    constant: float
    dual: Floats
    points: Any = None

    def part(self, X: Points, points: Points) -> Floats:
        """What it adds to the model at the rows of X, given the examples, shape (rows, T)."""
        result = np.empty((X.shape[0], self.dual.shape[1]))
        height = max(PIECE // max(len(self.dual), 1), 1)
        for start in range(0, len(result), height):
            rows = slice(start, start + height)
            values = self.kernel.values(self.gamma, X[rows], points)
            result[rows] = (values / self.scale + self.constant) @ self.dual
        return result
