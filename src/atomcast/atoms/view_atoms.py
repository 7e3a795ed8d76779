"""Kernels as atoms: scored by what their function spaces promise, sent a direction at a time.

Against the gradient g, a space promises the norm of its steepest function, sqrt(g'Kg). What is sent
of a kernel that wins is the image of that function, Kg divided by the norm: as many values as there
are examples, and nothing else of the view. Or, the other way, kernel columns in the order of a
pivoted Cholesky factorisation, from which everybody has the same factor in portions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.explicit import gradient_of
from atomcast.data.shards import Shard
from atomcast.domains.group_ball import PER_KERNEL
from atomcast.known.kernels.directions import DirectionSet
from atomcast.known.kernels.view_kernels import KernelPlan, ViewKernel
from atomcast.messages.atom import Atom

if TYPE_CHECKING:
    from atomcast.loop.replica import Replica

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many kernel columns are sent at a time, where it is these that are sent.
PORTION = 16
#: Kernels given as values may be off by this share of their largest value.
OFF = 1e-8
#: So many kernel values that are not kept are computed at a time.
PIECE = 1 << 20


class HeldKernel:
    """A kernel on a node's own view.

    Parameters
    ----------
    kernel : ViewKernel
    view : callable
        Returns the points, an array or CSR matrix of shape (n, p): nobody keeps a copy of them.
    constant : float
        What is added to its values once they are 1 on average on the diagonal.
    weights : array of shape (n,), optional
        How much each example counts in that average.
    """

    def __init__(
        self,
        kernel: ViewKernel,
        view: Callable[[], Any],
        constant: float,
        weights: Floats | None = None,
    ) -> None:
        self.kernel, self.view, self.constant = kernel, view, constant
        self.weights = weights
        points = view()
        self.n, self.gamma = points.shape[0], kernel.gamma(points, weights)
        self.scale: float | None = None
        self._order: Ints | None = None

    def matrix(self) -> Floats:
        """All its values between the examples, shape (n, n)."""
        matrix = np.empty((self.n, self.n))
        for rows, values in self._parts():
            matrix[rows] = values
        matrix /= self._scale(matrix.diagonal())
        matrix += self.constant
        return matrix

    def product(self, v: Floats) -> Floats:
        """The product with an array of shape (n, m), from a few rows of values at a time."""
        product, diagonal = np.empty_like(v), np.empty(self.n)
        for rows, values in self._parts():
            product[rows], diagonal[rows] = values @ v, values[:, rows].diagonal()
        product /= self._scale(diagonal)
        product += self.constant * v.sum(axis=0)
        return product

    def _scale(self, diagonal: Floats) -> float:
        if self.scale is None:
            self.scale = float(np.average(diagonal, weights=self.weights)) or 1.0
        return self.scale

    def _parts(self) -> Iterator[tuple[slice, Floats]]:
        """Values as they come, a few rows at a time."""
        points, height = self.view(), max(PIECE // max(self.n, 1), 1)
        for rows in (slice(k, k + height) for k in range(0, self.n, height)):
            yield rows, self.kernel.values(self.gamma, points[rows], points)

    def order(self, matrix: Floats) -> Ints:
        """The examples in the order of pivots, as far as there is anything left to explain."""
        if self._order is None:
            from scipy.linalg.lapack import dpstrf

            _, pivots, rank, _ = dpstrf(matrix, lower=1)
            self._order = np.asarray(pivots[:rank], dtype=np.int64) - 1
        return self._order


class ViewAtoms:
    """The kernels of one node's views.

    A column puts forward the best of the kernels that stand there, as a family does.

    Parameters
    ----------
    shard : Shard
    plan : KernelPlan
    width : int
        How many directions an atom is made of: one, or a portion of kernel columns.
    cache_bytes : int
        The memory that kernel matrices may take; those that do not fit are computed anew.
    """

    def __init__(self, shard: Shard, plan: KernelPlan, width: int, cache_bytes: int) -> None:
        self.d, self.n = shard.matrix.shape
        self.stride = plan.per_column * PER_KERNEL
        self._plan, self._width, self._budget = plan, width, cache_bytes
        self._kept: dict[int, Floats] = {}
        self._held: dict[int, HeldKernel] = {}
        self._names: dict[int, str] = {}
        for view in held_views(shard, plan):
            points = partial(view_points, shard, plan.views[view])
            for k, kernel in enumerate(plan.kernels[view]):
                number = plan.number(view, k)
                self._held[number] = HeldKernel(kernel, points, plan.constant, plan.weights)
                self._names[number] = f"{plan.names[view]}: {kernel}"
        places = np.array([number // plan.per_column for number in self._held], dtype=np.int64)
        self._places = np.searchsorted(shard.ids, places)
        #: The number of the first kernel that may stand at each column.
        self._numbers = (shard.ids * plan.per_column).tolist()
        #: The gradient of each round in which kernels were scored: directions go against these.
        self._gradients: dict[int, Floats] = {}
        self._members: Ints = np.zeros(self.n, dtype=np.int64)

    def _matrix(self, number: int) -> Floats | None:
        """The values of a kernel, kept while there is room; None where there is none."""
        if number not in self._kept and 8 * (len(self._kept) + 1) * self.d**2 <= self._budget:
            self._kept[number] = self._held[number].matrix()
        return self._kept.get(number)

    def _product(self, number: int, v: Floats) -> Floats:
        matrix, spread = self._matrix(number), self._plan.spread(v)
        product = self._held[number].product(spread) if matrix is None else matrix @ spread
        return self._plan.combine(product)

    def scores(self, replica: Replica) -> Floats:
        """What the best kernel at each column promises, shape (n,); -inf where there is none."""
        active, gradient = replica.active, gradient_of(replica)
        assert isinstance(active, DirectionSet)
        self._gradients[replica.ledger_round] = gradient
        best = np.full(self.n, -np.inf)
        for number, place in zip(self._held, self._places.tolist(), strict=True):
            square = float(gradient @ self._product(number, gradient))
            score = float(np.sqrt(max(square, 0.0)))
            if score > best[place]:
                sent = active.sent_of(number) if self._width > 1 else replica.ledger_round
                turn = number % self._plan.per_column
                best[place], self._members[place] = score, turn * PER_KERNEL + sent
        return best

    def members(self) -> Ints:
        """Which of its kernels each column put forward last, and which of its atoms is next."""
        return self._members

    def atom(self, j: int, id: int) -> Atom:
        """The direction of a kernel in the round that the id names, or a portion of its columns."""
        which = id % PER_KERNEL
        number = self._numbers[j] + id // PER_KERNEL % self._plan.per_column
        held, name = self._held[number], self._names[number]
        if self._width > 1:
            images, examples = self._portion(number, which)
        elif which in self._gradients:
            images, examples = self._direction(number, self._gradients[which]), np.zeros(0)
        else:
            raise ValueError(
                f"the direction of {name} in round {which} cannot be worked out again by a node "
                'that has not been there, as in a run that is resumed: use send="columns"'
            )
        about = [np.nan_to_num(held.gamma), held.scale or 1.0]
        extras = np.concatenate([about, examples]).astype(np.float64)
        return Atom(id, self.d * self._width, images, extras=extras, name=name)

    def _direction(self, number: int, gradient: Floats) -> Floats:
        image = self._product(number, gradient)
        square = float(gradient @ image)
        return image / np.sqrt(square) if square > 0.0 else np.zeros_like(image)

    def _portion(self, number: int, which: int) -> tuple[Floats, Floats]:
        """Kernel columns and the numbers of their examples; -1 where there are no more."""
        matrix = self._matrix(number)
        matrix = self._held[number].matrix() if matrix is None else matrix
        order = self._held[number].order(matrix)
        part = order[which * self._width : (which + 1) * self._width]
        columns, examples = np.zeros((self._width, self.d)), np.full(self._width, -1.0)
        columns[: len(part)] = (matrix[:, part] * self._plan.products_with(part)).T
        examples[: len(part)] = part
        return columns.ravel(), examples


def held_views(shard: Shard, plan: KernelPlan) -> list[int]:
    """The views whose columns a shard has."""
    return [k for k, columns in enumerate(plan.views) if np.isin(columns[0], shard.ids)]


def view_points(shard: Shard, columns: Ints) -> Any:
    """The columns of a view as points, dense or CSR, shape (n, p); uncopied where they can be."""
    places = np.searchsorted(shard.ids, columns)
    first, last = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
    together = last - first == len(places)  # they increase
    points = shard.matrix[:, slice(first, last) if together else places]
    return points.tocsr() if sparse.issparse(points) else points


def check_kernels(plan: KernelPlan, shard: Shard) -> None:
    """Raise ValueError if a kernel that the user brings is not positive semidefinite."""
    for view in held_views(shard, plan):
        points = view_points(shard, plan.views[view])
        for kernel in plan.kernels[view]:
            if not kernel.trusted:
                values = kernel.values(np.nan, points, points)
                check_semidefinite(values, f"{shard.source}, {plan.names[view]}: {kernel}")


def check_semidefinite(values: Floats, name: str) -> None:
    """Raise ValueError unless a matrix is symmetric and positive semidefinite, but for rounding."""
    if values.shape[0] != values.shape[1]:
        raise ValueError(
            f"the kernel of {name} has the shape {values.shape}: it must have a row and a column "
            "for each of the examples that the model is fitted to"
        )
    size = float(np.max(np.abs(values), initial=0.0))
    off = float(np.max(np.abs(values - values.T), initial=0.0))
    if off > OFF * size:
        raise ValueError(
            f"the kernel of {name} is not symmetric: two values that should be equal differ by "
            f"{off:.3g}; give a symmetric one, such as (K + K.T) / 2"
        )
    least = float(np.linalg.eigvalsh(values)[0]) if len(values) else 0.0
    if least < -OFF * size * len(values):
        raise ValueError(
            f"the kernel of {name} is not positive semidefinite: its least eigenvalue is "
            f"{least:.3g}; add {-least:.3g} to its diagonal, or use another kernel"
        )
