"""What everybody knows of a kernel problem: points, labels, weights, and the objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import LARGEST, SMALLEST, check_in_scale
from atomcast.data.matrices import cut
from atomcast.domains.balls import Domain
from atomcast.known.active_set import ActiveSet
from atomcast.known.columns import grown
from atomcast.known.kernels.exact import SAMPLE as SAMPLE_SUMS
from atomcast.known.kernels.exact import corrected
from atomcast.known.kernels.functions import (
    SAMPLE,
    Custom,
    Kernel,
    KernelSpec,
    Precomputed,
    Sigmoid,
    square_lengths,
)
from atomcast.known.kernels.kernel_matrix import AugmentedKernel, not_positive
from atomcast.known.kernels.labels import Codes, LabelCode
from atomcast.known.kernels.points import PointLog, Points, moved_to_front
from atomcast.known.kernels.storage import Storage
from atomcast.known.kernels.sums import COLUMNS, KernelSums, kernel_sums
from atomcast.messages.atom import Atom, AtomBatch, Misfit

#: By this share of what they could be at most, scores of a point may differ between two nodes: one
#: of them sums kernel values that may be in single precision, from round to round.
SCORE_ROUNDING = 1e-5
#: By this share, a weight may be off that was scaled.
ROUNDING = 8 * float(np.finfo(float).eps)

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class SupportVectors:
    """The points of a solution, their classes as codes, and the kernel they were fitted with.

    Parameters
    ----------
    points : all points that were received
    positions : array of shape (m,)
        Where among them those of the solution are.
    labels : array of shape (m,)
    kernel : Kernel
    """

    points: Points
    positions: Positions
    labels: Codes
    kernel: Kernel

    def taken(self, order: Positions) -> Points:
        """The points of the solution, in an order; whoever takes them is the last to look."""
        return moved_to_front(self.points, self.positions[order])


class Rescaling(NamedTuple):
    """A change of all weights by one factor, to which an amount is added at one position."""

    factor: float
    position: int
    amount: float


class KernelActiveSet(ActiveSet):
    """Points received, and the objective alpha' K~ alpha of their weights (problem (4)).

    Parameters
    ----------
    spec : KernelSpec
        Where gamma is to be estimated, that is done from the first points received, which are the
        same on every node.
    code : LabelCode
    storage : Storage
        The memory that the kernel matrix of the known points may take, and its precision.
    """

    quadratic = True
    rounding = 1e-6  # of a matrix that may be in single precision

    inner_kind = "points"
    #: How many weights a point has.
    width = 1

    def __init__(
        self,
        spec: KernelSpec,
        code: LabelCode,
        storage: Storage,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.code = code
        #: How long points are, once somebody has told who holds some.
        self.d: int | None = None
        #: How many points came with each broadcast; what is computed from them is cut up likewise.
        self.arrivals: list[int] = []
        self.storage = storage
        self._log = PointLog()
        self._labels = code.codes(np.zeros(16).tolist())
        self._told: Floats = np.zeros((16, 1 + code.weighted))
        self._products: Floats = np.zeros(16)
        self._gram: AugmentedKernel | None = None
        self._value: float | None = None
        #: By machine, how many of its first products were all summed in double precision once.
        self._summed: dict[int, int] = {}
        #: How often the weights have changed, and how they did so last, if that is simple.
        self.changes = 0
        self.last_change: Rescaling | None = None

    @property
    def points(self) -> Points:
        """The points received, shape (count, d)."""
        return self._log.points

    @property
    def labels(self) -> Codes:
        """The class of each, shape (count,)."""
        return self._labels[: self.atoms]

    @property
    def gram(self) -> AugmentedKernel:
        """The augmented kernel between the known points."""
        assert self._gram is not None, "no point has been received yet"
        return self._gram

    @property
    def kernel(self) -> Kernel:
        """The kernel, its parameters fixed."""
        return self.gram.kernel

    @property
    def image_products(self) -> Floats:
        """K~ alpha at the known points: half the gradient, shape (count,)."""
        return self._products[: len(self)]

    def _augmented(self, kernel: Kernel) -> AugmentedKernel:
        budget, dtype = self.storage.cache_bytes, self.storage.dtype
        return AugmentedKernel(kernel, self.code, budget, dtype, shared=self.width > 1)

    def _store(self, atoms: Sequence[Atom]) -> None:
        old, new = self.atoms - len(atoms), self.atoms
        if self._gram is not None:
            self._gram.forget_points()  # so that they can grow where they are
        self._log.append(atoms)
        points = self.points
        squares = square_lengths(cut(points, old, new, 0))
        if not (squares.min() >= SMALLEST**2 and squares.max() <= LARGEST**2):
            for k in np.flatnonzero(~((squares >= SMALLEST**2) & (squares <= LARGEST**2))).tolist():
                # Also points at zero, which are fine.
                check_in_scale("X", atoms[k].values, f"the point {atoms[k].id}")
        self.arrivals.append(len(atoms))
        told = _told_by(atoms)
        self._told, self._labels = grown(self._told, old, new), grown(self._labels, old, new)
        self._told[old:new], self._labels[old:new] = told, self.code.codes(told[:, 0])
        weights = told[:, 1] if self.code.weighted else None
        if self._gram is None:
            counts = None if weights is None else weights[:SAMPLE]
            self._gram = self._augmented(self.spec.resolve(points[:SAMPLE], counts))
        self._gram.extend(points, self.labels, weights)
        if old == 0:
            self._check_kernel()
        before = self.width * old
        self._products = grown(self._products, before, len(self))
        self._products[before : len(self)] = self._joining(old) if self.changes else 0.0

    def _joining(self, start: int) -> Floats:
        """The products of points from `start` on, which have no weight yet, shape (m,)."""
        return self.gram.row_products(start, self.weights)

    def doubt(self, atom: Atom) -> str | None:
        """Whether it is no point of this space, or its class is none."""
        d = self.points.shape[1] if len(self) else self.d
        if d is not None and atom.d != d:
            return f"it has {atom.d} values instead of {d}"
        values = atom.values
        if not (math.isfinite(values @ values) or np.all(np.isfinite(values))):
            return "it has NaN or infinity among its values"
        return self.code.doubt(atom.extras.tolist())

    def beyond_doubt(self, atoms: Sequence[Atom]) -> bool:
        """Whether all are points of this space, of classes that there are."""
        d = self.points.shape[1] if len(self) else self.d
        parts = [atoms] if type(atoms) is AtomBatch else atoms
        if any(part.d != (parts[0].d if d is None else d) for part in parts):
            return False
        if parts is atoms and len({len(atom.extras) for atom in atoms}) > 1:
            return False
        finite = all(np.isfinite(part.values).all() for part in parts)
        return finite and self.code.beyond_doubt(_told_by(atoms))

    def longest(self) -> float:
        """The largest value of the augmented kernel: products are at most that large."""
        return float(self.gram.diagonal.max()) if len(self) else 0.0

    def iterate(self) -> Any:
        """The weights."""
        return self.weights.copy()

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Any = None) -> Misfit:
        """Compare stated scores with the gradient at points that came one after the other."""
        start = self.position[ids[0]]
        part = slice(start, start + len(ids))
        weights, scores = self.weights, 2.0 * self._products[part]
        if iterate is not None:
            weights = np.zeros(len(self))
            weights[: len(iterate)] = iterate
            scores = 2.0 * self.gram.rows(np.arange(part.start, part.stop)) @ weights
        length = np.sqrt(self.gram.diagonal)
        rounding = SCORE_ROUNDING * 2.0 * float(np.abs(weights) @ length)
        own = length[part]
        return Misfit(stated - scores, rounding * own, own)

    def _check_kernel(self) -> None:
        """Look at the first points closely if the kernel may be none."""
        if not isinstance(self.kernel, Custom | Precomputed | Sigmoid):
            return
        first = np.arange(min(self.atoms, 256))
        matrix = self.gram.rows(first)[:, first]
        size = float(np.abs(matrix).max())
        if np.abs(matrix - matrix.T).max() > 1e-8 * size:
            raise not_positive("k(x, z) differs from k(z, x)")
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < -1e-8 * size * len(first):
            raise not_positive(f"its matrix, augmented by 1/C, has the eigenvalue {smallest:.3g}")

    def recall(self, atoms: Sequence[Atom], memory: dict[str, NDArray[Any]]) -> None:
        """Receive the points in the batches in which they came.

        Gamma is estimated from the first batch, and rounding depends on what is computed at once.
        """
        arrivals = memory["kernel.arrivals"].tolist()
        if min(arrivals, default=1) < 1 or sum(arrivals) != len(atoms):
            raise ValueError(f"the checkpoint has {len(atoms)} points in batches of {arrivals}")
        for stop, count in zip(np.cumsum(arrivals).tolist(), arrivals, strict=True):
            self.append(atoms[stop - count : stop])

    def memory(self) -> dict[str, NDArray[Any]]:
        """The batches in which points came, and the products with the rounding that they have."""
        return {
            "kernel.arrivals": np.array(self.arrivals, dtype=np.int64),
            "kernel.products": self.image_products.copy(),
            "kernel.precision": np.array(np.dtype(self.storage.dtype).itemsize),
            "kernel.summed": np.array(sorted(self._summed.items()), dtype=np.int64).reshape(-1, 2),
        }

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the products, unless the matrix has another precision here."""
        if memory["kernel.precision"] > np.dtype(self.storage.dtype).itemsize:
            self.sharpen()  # as that run had to
        self._summed = dict(memory.get("kernel.summed", np.zeros((0, 2), np.int64)).tolist())
        if memory["kernel.precision"] == np.dtype(self.storage.dtype).itemsize:
            self._products[: len(self)] = memory["kernel.products"]
            self._changed()

    def value(self) -> float:
        """The objective alpha' K~ alpha."""
        if self._value is None:  # asked for several times a round
            self._value = float(self.weights @ self.image_products)
            if self._value < 0:
                raise not_positive(f"alpha' K~ alpha is {self._value:.3g}")
        return self._value

    def inner(self) -> float:
        """The product <alpha, grad f(alpha)>, twice the objective."""
        return 2.0 * self.value()

    def scores(self) -> Floats:
        """The gradient 2 K~ alpha at each known point."""
        return 2.0 * self.image_products

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights; products are computed afresh."""
        self.install(weights, self._image(weights))

    def install(self, weights: Floats, products: Floats) -> None:
        """Replace all weights, by someone who knows the products K~ alpha too."""
        self._weights[: len(self)] = weights
        self._products[: len(self)] = products
        self._changed()

    def clear(self, position: int) -> None:
        """Set a weight that is zero up to rounding to exactly zero."""
        super().clear(position)
        self._changed()

    def move(self, change: Floats, step: float) -> None:
        """Add `step` times a change to the weights."""
        self._shift(change, self._image(change), step)

    def search(self, change: Floats, max_step: float) -> float:
        """Move along a change by the best step in [0, max_step]; returns that step."""
        image = self._image(change)
        slope, bend = float(change @ self.image_products), float(change @ image)
        step = _best_step(slope, bend, float(np.abs(change) @ np.abs(image)), max_step)
        self._shift(change, image, step)
        return step

    def toward(self, domain: Domain, id: int, score: float, step: float | None = None) -> None:
        """Move toward an agreed point, by this step or the best: products follow from its row."""
        if self.width > 1:
            super().toward(domain, id, score, step)
            return
        at, weights, products = self.position[id], self.weights, self.image_products
        vertex = domain.scale * domain.sign(score)
        if step is None:
            across, own = vertex * float(products[at]), vertex**2 * float(self.gram.diagonal[at])
            value = self.value()
            size = value + 2.0 * abs(across) + own
            step = _best_step(across - value, value - 2.0 * across + own, size, 1.0)
        weights *= 1.0 - step
        weights[at] += step * vertex
        products *= 1.0 - step
        products += (step * vertex) * self.gram.row(at)
        self._changed(Rescaling(1.0 - step, at, step * vertex))

    def _shift(self, change: Floats, image: Floats, step: float) -> None:
        self._weights[: len(self)] += step * change
        self._products[: len(self)] += step * image
        self._changed()

    def _changed(self, how: Rescaling | None = None) -> None:
        """Note that the weights are others, and how they came about if that is simple."""
        self._value = None
        self.changes += 1
        self.last_change = how

    def _image(self, vector: Floats) -> Floats:
        """K~ times a vector; a multiple of the weights plus a few entries costs little."""
        if not len(vector):
            return np.zeros(0)
        scale, rest = rescaling(self.weights, vector)
        image = self.gram.times(rest)
        if scale:
            image += scale * self.image_products
        return image

    def exact_products(self, vector: Floats, at: Positions) -> Floats:
        """K~ times a vector at some points, in double precision, from the points themselves."""
        used, total = np.flatnonzero(vector), np.zeros(self.atoms)
        # A look at all points, for what suits them, takes longer than a few sums.
        make = kernel_sums if len(at) > 4 * SAMPLE_SUMS else KernelSums
        sums = make(self.points, self.kernel, self.code, self.labels)
        for start in range(0, len(used), COLUMNS):
            some = used[start : start + COLUMNS]
            sums.add_to(at, total, self.points[some], self.labels[some], vector[some])
        return total[at] + self.gram.ridge[at] * vector[at]

    @property
    def precise(self) -> bool:
        """Whether kernel values between known points are in double precision."""
        return self.gram.precise

    def correct(self, enough: float = 0.0) -> bool:
        """Sum products in double precision if rounding could show in the gap; whether it could.

        Where there are several gaps, only the largest matters if it is small `enough`.
        """
        if self.precise or not np.any(self.weights):
            return False
        exact, bound = (
            partial(self.exact_products, self.weights),
            self.gram.rounding_of(self.weights),
        )
        products, value, first = self.image_products, self.value(), self._summed.get(0, 0)
        found = corrected(products, value, exact, bound=bound, first=first)
        if found == len(products):
            self._summed[0] = found
        self._value = None
        return found > 0

    def known_gap(self) -> float:
        """The gap within the known points, as a share of the objective."""
        return 2.0 * (1.0 - float(self.image_products.min()) / self.value())

    def sharpen(self) -> bool:
        """Have kernel values in double precision from now on; False if there is no room for it.

        Products stay as they are, until weights are installed.
        """
        if self._gram is None or not self._gram.sharpen():
            return False
        self.storage = replace(self.storage, dtype=np.float64)
        return True

    def products(self, start: int, stop: int) -> Floats:
        """Columns start to stop of the Hessian 2 K~."""
        rows = self.gram.rows(np.arange(start, stop))
        return 2.0 * rows.T

    def products_with(self, atoms: Sequence[Atom]) -> Floats | None:
        """The last m columns that the Hessian would have with m more points, shape (k + m, m)."""
        if self.inner_kind != "points":
            return None
        new = PointLog()
        new.append(atoms)
        told = _told_by(atoms)
        weights = told[:, 1] if self.code.weighted else None
        return 2.0 * self.gram.rows_with(new.points, self.code.codes(told[:, 0]), weights).T

    def extras_of(self, ids: NDArray[np.int64]) -> Floats:
        """What some points have told of themselves, shape (k, 1), or (k, 2) with their weights."""
        return self._told[self._positions(ids)]

    def content(self, ids: NDArray[np.int64]) -> SupportVectors | None:
        """The points with these global ids, and the kernel."""
        if not len(self):
            return None
        at = self._positions(ids)
        return SupportVectors(self.points, at, self.labels[at], self.kernel)

    def _positions(self, points: Positions) -> Positions:
        """Where some points, by their ids, stand among those that are known."""
        starts = map(self.position.__getitem__, points.tolist())
        return np.fromiter(starts, np.int64, len(points)) // self.width


def _told_by(atoms: Sequence[Atom]) -> Floats:
    """What points tell of themselves: class or target, and their weight if there are weights."""
    if type(atoms) is AtomBatch and atoms.extras is not None:
        return atoms.extras
    return np.array([atom.extras for atom in atoms])


def _best_step(slope: float, bend: float, size: float, max_step: float) -> float:
    """Where along a line an objective of this slope and bend is least; `size` is what adds up."""
    if bend < -1e-9 * size:
        raise not_positive(f"the objective bends downwards, by {bend:.3g}")
    if slope >= 0:
        return 0.0
    return max_step if -slope >= max_step * bend else -slope / bend


def rescaling(old: Floats, new: Floats) -> tuple[float, Floats]:
    """Write `new` as a multiple of `old` plus a rest with as few entries as possible.

    Frank-Wolfe steps scale all weights by one factor and change one or two more; up to rounding,
    the factor is then the median of the ratios. Mostly it is the first ratio, which is quicker to
    try than to sort them all.
    """
    used = np.flatnonzero(old)
    if not len(used) or not len(new):
        return 0.0, new.copy()
    scale = float(new[used[0]] / old[used[0]])
    rest = _rest(old, new, scale)
    if abs(scale) > 1 or np.count_nonzero(rest) > 1:
        scale = float(np.median(new[used] / old[used]))
        rest = _rest(old, new, scale)
    if np.count_nonzero(rest) > np.count_nonzero(new):
        return 0.0, new.copy()
    return scale, rest


def _rest(old: Floats, new: Floats, scale: float) -> Floats:
    """What a multiple leaves of the new weights, but for rounding."""
    scaled = scale * old
    rest = new - scaled
    rest[np.abs(rest) <= ROUNDING * np.maximum(np.abs(new), np.abs(scaled))] = 0.0
    return rest
