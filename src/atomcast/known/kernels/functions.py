"""Kernel functions: how alike two points are.

A `KernelSpec` is what a user asks for; its gamma may still have to be estimated. `resolve` turns
it into a `Kernel`, whose `block` gives all values between two sets of points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count, check_numbers, check_positive
from atomcast._threads import run_all
from atomcast.data.matrices import cut
from atomcast.data.sparse_format import is_sparse
from atomcast.known.columns import grown
from atomcast.known.kernels.points import Points, dense_rows

Floats = NDArray[np.float64]
Gamma = str | float

NAMES = ("rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed")
#: Kernels whose gamma may have to be estimated.
SCALED = ("rbf", "poly", "laplacian", "sigmoid")
GAMMAS = ("mean-distance", "scale", "auto")
#: Points from which gamma is estimated, and with which the corrective step starts.
SAMPLE = 128
#: Rows of a block are handled in pieces of about this many values, which stay in cache.
PIECE = 1 << 18
#: So many values of points, scaled, are multiplied with others at a time.
FACTOR = 1 << 21
#: Of a sample of points, features of so many values at a time.
SAMPLED = 1 << 20
#: Squared lengths up to this, after scaling by gamma, leave single precision enough digits.
BENIGN = 64.0
#: The same where differences are squared: coordinates are exact to 4e-6, values to 7e-6.
BENIGN_UNITS = 4096.0
#: A block with so many times more columns than rows is computed the other way round.
FEW_ROWS = 8
#: Sparse points with at most so many features are multiplied as if they were dense.
DENSE_WIDTH = 4096


class Kernel(Protocol):
    """A positive semidefinite function of two points, ready to be evaluated."""

    def block(self, X: Points, Z: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The values between all rows of X and all rows of Z, shape (n, m)."""
        ...

    def diagonal(self, X: Points) -> Floats:
        """The value of each row with itself, exactly, shape (n,)."""
        ...


@dataclass(frozen=True)
class KernelSpec:
    """A kernel as users name it.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"} or callable
        A callable takes two sets of points, (n, d) and (m, d), and returns an (n, m) array.
    gamma : {"mean-distance", "scale", "auto"} or float
        "mean-distance" is 1 / the mean squared distance between two points, "scale" is
        1 / (d * variance of all values), both estimated from a sample; "auto" is 1 / d.
    degree, coef0 : of the polynomial kernel (gamma <x, z> + coef0) ** degree, and of
        tanh(gamma <x, z> + coef0).
    """

    kernel: str | Callable[[Any, Any], Any] = "rbf"
    gamma: Gamma = "mean-distance"
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, NAMES)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, GAMMAS)
        else:
            check_positive("gamma", self.gamma, 'or "mean-distance", "scale" or "auto"')
        check_count("degree", self.degree, "of the polynomial kernel")
        check_numbers("coef0", self.coef0, "the constant in the polynomial kernel")
        if self.kernel == "poly" and not self.coef0 >= 0:
            raise ValueError(
                f"coef0 must be >= 0, got {self.coef0!r}: below zero the polynomial kernel is not "
                "positive semidefinite"
            )

    @property
    def needs_sample(self) -> bool:
        """Whether gamma is to be estimated from points that everybody knows."""
        return isinstance(self.gamma, str) and self.kernel in SCALED

    def resolve(self, sample: Points, weights: Floats | None = None) -> Kernel:
        """The kernel with every parameter fixed, by the same rule on every node."""
        if callable(self.kernel):
            return Custom(self.kernel)
        if self.kernel == "linear":
            return Dot()
        if self.kernel == "precomputed":
            return Precomputed()
        gamma = estimated_gamma(self.gamma, sample, weights)
        if self.kernel == "poly":
            return Dot(gamma, float(self.coef0), int(self.degree))
        if self.kernel == "sigmoid":
            return Sigmoid(gamma, float(self.coef0))
        if self.kernel == "laplacian":
            return Laplacian(gamma)
        dense = not is_sparse(sample)
        return RBF(gamma, dense_rows(sample).mean(axis=0) if dense else None)


def estimated_gamma(gamma: Gamma, sample: Points, weights: Floats | None = None) -> float:
    """Gamma as a number, from a sample of points, and their weights, if it is asked for by name."""
    if not isinstance(gamma, str):
        return float(gamma)
    n, d = sample.shape
    if gamma == "auto":
        return 1.0 / d
    counts = np.ones(n) if weights is None else weights
    total, width = float(counts.sum()), max(SAMPLED // max(n, 1), 1)

    def summed(part: Callable[[Floats], Floats]) -> float:
        """The sum of what is found of each feature; few at a time are made dense."""
        starts = range(0, d, width)
        return float(sum(part(dense_rows(sample[:, k : k + width])).sum() for k in starts))

    if gamma == "scale":
        mean = summed(lambda rows: counts @ rows) / (total * d)
        variance = summed(lambda rows: counts @ (rows - mean) ** 2) / (total * d)
        return 1.0 / (d * variance) if variance > 0 else 1.0
    # The mean squared distance over pairs of different rows is twice the summed variance.
    squares = summed(lambda rows: counts @ (rows - counts @ rows / total) ** 2)
    mean_square = 2.0 * squares / max(total - 1.0, 1.0)
    return 1.0 / mean_square if mean_square > 0 else 1.0


@dataclass(frozen=True)
class RBF:
    """exp(-gamma ||x - z||^2), from norms and products after centring and scaling.

    The centre only serves precision: distances do not depend on it. Sparse points have none.
    """

    gamma: float
    centre: Floats | None = None

    def diagonal(self, X: Points) -> Floats:
        """One."""
        return np.ones(X.shape[0])

    def block(self, X: Points, Z: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The values between all rows of X and all rows of Z, shape (n, m)."""
        if is_sparse(X) or is_sparse(Z):
            return self._sparse_block(X, Z, dtype)
        out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        self.fill(X, Z, out)
        return out

    def fill(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Put the values between dense points into an array."""
        n, d = Z.shape
        if X is Z and out.size + n * d <= PIECE and out.dtype == np.float64:
            scaled, norms = self.scaled(X)
            left = _left(scaled, norms, np.float64)
            right = 2.0 * left
            right[:, -2], right[:, -1] = -norms, 1.0
            _exponentials(left, right.T, out)
            return
        for some in pieces(n, d, FACTOR // 2):  # a copy of all might take much memory
            right = self._right_factor(Z[some], out.dtype)
            parts = pieces(len(out), max(right.shape))  # the scaled points stay in cache
            run_all([partial(self._fill_rows, X[rows], right, out[rows, some]) for rows in parts])
            del right  # before there is another

    def _fill_rows(self, X: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
        """Put the values between some points and others, which are a factor by now, into `out`."""
        x, x_norms = self.scaled(X)
        single = right.dtype == np.float32 and x_norms.max(initial=0.0) <= BENIGN
        left = _left(x, x_norms, np.float32 if single else np.float64)
        del x
        if single or out.dtype == np.float64:
            _exponentials(left, right, out)
        else:
            values = left @ right
            out[:] = np.exp(np.minimum(values, 0.0, out=values), out=values)

    def exponents(self, X: NDArray[Any]) -> NDArray[np.float32] | None:
        """The right one of the factors whose product is the exponents between dense points.

        It is in single precision, of shape (d + 2, n); None where that would not be exact enough,
        or take much memory. `left_factor` has the other.
        """
        if X.size > FACTOR:
            return None
        right = self._right_factor(X, np.float32)
        return right if right.dtype == np.float32 else None

    def units(self, X: NDArray[Any], most: int = FACTOR) -> NDArray[np.float32] | None:
        """Dense points in units of the kernel, shape (d, n), in single precision if that will do.

        Differences of coordinates lose less than products do. None if it will not, or if there are
        more than so many values.
        """
        if X.size > most:
            return None
        units = np.empty(X.shape[::-1], dtype=np.float32)
        for rows in pieces(*X.shape):
            scaled, squares = self.scaled(X[rows])
            if not squares.max(initial=0.0) <= BENIGN_UNITS:
                return None
            units[:, rows] = scaled.T
        return units

    def left_factor(self, X: NDArray[Any]) -> Floats:
        """Dense points as `_right_factor` needs them, shape (n, d + 2)."""
        return _left(*self.scaled(X), np.float64)

    def values(self, left: Floats, Z: NDArray[Any]) -> Floats:
        """The values between points, as a left factor, and all rows of Z, shape (n, m)."""
        values = left @ self._right_factor(Z, np.float64)
        return np.exp(np.minimum(values, 0.0, out=values), out=values)

    def _right_factor(self, Z: NDArray[Any], dtype: Any) -> NDArray[Any]:
        """What the product of points, their ones and norms with is minus a squared distance."""
        right = np.ones((Z.shape[0], Z.shape[1] + 2), dtype=dtype)
        for rows in pieces(*Z.shape):
            z, z_norms = self.scaled(Z[rows])
            right[rows, :-2], right[rows, -2] = 2.0 * z, -z_norms
        if dtype == np.float32 and not right[:, -2].min(initial=0.0) >= -BENIGN:
            del right  # before there is another
            return self._right_factor(Z, np.float64)
        return right.T

    def scaled(self, X: NDArray[Any]) -> tuple[Floats, Floats]:
        """Points around the centre, in units of the kernel, and their squared lengths."""
        centre = 0.0 if self.centre is None else self.centre
        scaled = np.asarray(X, dtype=np.float64) - centre
        scaled *= math.sqrt(self.gamma)
        return scaled, square_lengths(scaled)

    def largest_exponent(self, X: Points) -> float:
        """The largest squared length of points around the centre, in units of the kernel.

        Exponents are sums of such numbers.
        """
        if is_sparse(X):  # in double precision always
            return 0.0
        largest = (self.scaled(X[rows])[1].max(initial=0.0) for rows in pieces(*X.shape))
        return float(max(largest, default=0.0))

    def _sparse_block(self, X: Points, Z: Points, dtype: Any) -> NDArray[Any]:
        if FEW_ROWS * X.shape[0] < Z.shape[0]:  # it is the right factor that is made dense
            return np.ascontiguousarray(self._sparse_block(Z, X, dtype).T)
        out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        norms = self.gamma * square_lengths(X)[:, None]
        z_norms = self.gamma * square_lengths(Z)
        for rows, some, part in _products(X, Z):
            part *= 2.0 * self.gamma
            part -= norms[rows] + z_norms[some]
            np.minimum(part, 0.0, out=part)
            out[rows, some] = np.exp(part, out=part)
        return out


def _left(scaled: NDArray[Any], norms: Floats, dtype: Any) -> NDArray[Any]:
    """What `RBF._right_factor` is multiplied with: scaled points, ones, and minus their norms."""
    left = np.empty((len(scaled), scaled.shape[1] + 2), dtype)
    left[:, :-2], left[:, -2], left[:, -1] = scaled, 1.0, -norms
    return left


def _exponentials(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
    """Put the exponentials of the product of two factors, which is below zero, into an array."""
    np.matmul(left, right, out=out)
    np.exp(np.minimum(out, 0.0, out=out), out=out)


def left_factor(right: NDArray[np.float32], some: slice) -> NDArray[np.float32]:
    """The left one of the factors for some of the points of the right one, shape (m, d + 2)."""
    left = right.T[some] * np.float32(0.5)
    left[:, -2], left[:, -1] = 1.0, right[-2, some]
    return left


class LastRow:
    """The RBF kernel between the last of many points and all of them, as each of them comes.

    Those that came before are kept as the kernel's products need them, in double precision.
    """

    def __init__(self, kernel: RBF) -> None:
        self._kernel = kernel
        self._count = 0
        self._factors: Floats = np.empty((0, 0))

    def of(self, points: NDArray[Any]) -> Floats:
        """The values for these points, shape (count,); the first ones are those seen before."""
        old, self._count = self._count, len(points)
        z, squares = self._kernel.scaled(points[old:])
        if not old:
            self._factors = np.empty((max(16, len(z)), z.shape[1] + 2))
        self._factors = grown(self._factors, old, self._count)
        new = self._factors[old : self._count]
        new[:, :-2], new[:, -2], new[:, -1] = z, -0.5 * squares, 1.0
        # Twice a product is minus a squared distance.
        last = 2.0 * new[-1]
        last[-2], last[-1] = 2.0, last[-2]
        values = self._factors[: self._count] @ last
        np.minimum(values, 0.0, out=values)
        return np.exp(values, out=values)


@dataclass(frozen=True)
class Dot:
    """(gamma <x, z> + coef0) ** degree; the linear kernel as it stands."""

    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1

    def _of_products(self, products: Any) -> Any:
        values = (
            self.gamma * products + self.coef0 if (self.gamma, self.coef0) != (1, 0) else (products)
        )
        return values if self.degree == 1 else values**self.degree

    def diagonal(self, X: Points) -> Floats:
        """The value of each row with itself."""
        return self._of_products(square_lengths(X))

    def block(self, X: Points, Z: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The values between all rows of X and all rows of Z, shape (n, m)."""
        out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        for rows, some, products in _products(X, Z):
            out[rows, some] = self._of_products(products)
        return out


@dataclass(frozen=True)
class Sigmoid(Dot):
    """tanh(gamma <x, z> + coef0): positive semidefinite for some points, and not for others."""

    def _of_products(self, products: Any) -> Any:
        return np.tanh(self.gamma * products + self.coef0)


@dataclass(frozen=True)
class Precomputed:
    """Values that are known beforehand: a point is a row of them, and its number comes last."""

    def diagonal(self, X: Points) -> Floats:
        """The value of each row with itself."""
        own: Floats = X[np.arange(X.shape[0]), _numbers(X)].astype(np.float64)
        return own

    def block(self, X: Points, Z: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The values of all rows of X with the points that all rows of Z are, shape (n, m)."""
        return np.asarray(X[:, _numbers(Z)], dtype=dtype)


def _numbers(points: Points) -> NDArray[np.int64]:
    """Which points these are, in which column of each row."""
    return np.asarray(points[:, -1]).astype(np.int64)


@dataclass(frozen=True)
class Laplacian:
    """exp(-gamma ||x - z||_1)."""

    gamma: float

    def diagonal(self, X: Points) -> Floats:
        """One."""
        return np.ones(X.shape[0])

    def block(self, X: Points, Z: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The values between all rows of X and all rows of Z, shape (n, m)."""
        from scipy.spatial.distance import cdist

        out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        z = dense_rows(Z)
        for rows in pieces(*out.shape):
            out[rows] = np.exp(-self.gamma * cdist(dense_rows(X[rows]), z, "cityblock"))
        return out


@dataclass(frozen=True)
class Custom:
    """A kernel function that the user brings."""

    function: Callable[[Any, Any], Any]

    def diagonal(self, X: Points) -> Floats:
        """The value of each row with itself."""
        each = [self.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])]
        return np.array(each, dtype=np.float64)

    def block(self, X: Points, Z: Points, dtype: Any = np.float64) -> NDArray[Any]:
        """The values between all rows of X and all rows of Z, shape (n, m)."""
        if 0 in (X.shape[0], Z.shape[0]):  # which many a function would refuse
            return np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        if is_sparse(X) or is_sparse(Z):
            values = self._called_with_sparse(X, Z)
        else:
            values = self.function(X, Z)
        values = values.toarray() if is_sparse(values) else np.asarray(values)
        if values.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel={self.function!r} returned an array of shape {values.shape} for "
                f"{X.shape[0]} and {Z.shape[0]} points: it must be {(X.shape[0], Z.shape[0])}"
            )
        if not np.all(np.isfinite(values)):
            raise ValueError(f"kernel={self.function!r} returned values that are not finite")
        return values.astype(dtype, copy=False)

    def _called_with_sparse(self, X: Points, Z: Points) -> Any:
        try:
            return self.function(X, Z)
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"kernel={self.function!r} does not take sparse points ({error}): pass dense data "
                '(X.toarray()), or a kernel that does, such as kernel="rbf"'
            ) from error


def pieces(n: int, m: int, values: int = PIECE) -> list[slice]:
    """Row ranges of an (n, m) block of about so many values: by default few that stay in cache."""
    height = max(values // max(m, 1), 16)
    return [slice(start, min(start + height, n)) for start in range(0, n, height)]


def square_lengths(X: Points) -> Floats:
    """The squared length of each point, shape (n,)."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.vecdot(X, X, dtype=np.float64))
    lengths = np.empty(X.shape[0])
    for rows in pieces(*X.shape):  # squares of all values would take as much memory as the points
        part = _rows(X, rows)
        lengths[rows] = np.asarray(part.multiply(part).sum(axis=1)).ravel()
    return lengths


def _products(X: Points, Z: Points) -> Iterator[tuple[slice, slice, Floats]]:
    """The products of the rows of X with those of Z, some with some at a time."""
    thin = is_sparse(Z) and Z.shape[1] > DENSE_WIDTH
    width = Z.shape[1] if not thin else 2 * Z.nnz // max(Z.shape[0], 1)
    for some in pieces(Z.shape[0], width, FACTOR // 2):  # a copy of all might take much memory
        right = _rows(Z, some).T.tocsr() if thin else np.ascontiguousarray(dense_rows(Z[some]).T)
        for rows in pieces(X.shape[0], some.stop - some.start):
            yield rows, some, _product(_rows(X, rows), right)
        del right  # before there is another


def _rows(X: Points, rows: slice) -> Points:
    """Some rows, uncopied."""
    return cut(X, rows.start, rows.stop, 0)


def _product(X: Points, right: Any) -> Floats:
    product = X @ right if is_sparse(X) else np.asarray(X, dtype=np.float64) @ right
    return product.toarray() if is_sparse(product) else np.asarray(product)
