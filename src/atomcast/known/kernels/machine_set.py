"""What everybody knows of several kernel machines that share their points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.known.kernels.exact import corrected
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import Codes, LabelCode, Machines
from atomcast.known.kernels.point_set import SCORE_ROUNDING, KernelActiveSet, SupportVectors
from atomcast.known.kernels.rows import Rows
from atomcast.known.kernels.storage import Storage
from atomcast.messages.atom import Misfit

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class MachinePart:
    """What takes part in one machine.

    Parameters
    ----------
    machine : int
    points : array of shape (k,)
        The positions of the points, increasing.
    at : array of shape (k,)
        Where their weights stand among all weights.
    side : array of shape (k,)
        On which side of the machine they are, 1 or -1.
    """

    machine: int
    points: Positions
    at: Positions
    side: Floats

    def products(self, rows: Rows, beta: Floats) -> Floats:
        """K~ times some weights, summed in double precision, shape (k,)."""
        return self.side * rows.combined(self.side * beta)


class MachineActiveSet(KernelActiveSet):
    """Points received, with a weight in every machine that their class takes part in.

    Machine m minimises f_m = beta' K~ beta / (1' beta)^2 over nonnegative weights beta, which is
    problem (4) of the paper at alpha = beta / sum(beta); weights are scaled to the margin one, so
    that K~ beta >= 1 at the optimum. The objective is the sum of all f_m. The score of a point is
    twice how much its worst margin exceeds that of its machine, relatively, times the objective:
    the best score then is a bound on the relative gap of every machine, and of their sum.

    Parameters
    ----------
    spec, code, storage : see `KernelActiveSet`
    machines : Machines
    """

    inner_kind = "machines"

    def __init__(
        self, spec: KernelSpec, code: LabelCode, storage: Storage, machines: Machines
    ) -> None:
        super().__init__(spec, code, storage)
        self.machines = machines
        self.width = machines.width
        self._sizes: Floats = np.zeros(machines.count)
        self._squares: Floats = np.zeros(machines.count)
        self._places, self._groups = machines.places, machines.groups
        self._kept: dict[bytes, tuple[NDArray[Any], int]] = {}
        self._budget = storage.cache_bytes
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock, of which a copy has one of its own."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def _width(self, d: int) -> int:
        return self.width

    def total(self, n: int) -> int:
        """As many weights for each example as it may have."""
        return n * self.width

    def support(self, weights: Floats | None = None) -> tuple[Positions, Floats]:
        """Numbers point * T + place and weights where a weight is not zero."""
        weights = self.weights if weights is None else weights
        used = np.flatnonzero(weights)
        points = np.array(self.ids[:: self.width], dtype=np.int64)
        return points[used // self.width] * self.width + used % self.width, weights[used]

    def content(self, ids: Positions) -> SupportVectors | None:
        """The points that some weights belong to, each once, and the kernel."""
        at = self._positions(np.unique(ids // self.width))
        return SupportVectors(self.points, at, self.labels[at], self.kernel) if len(at) else None

    def extras_of(self, ids: Positions) -> Floats:
        """The class of the point that each weight belongs to, shape (k, 1)."""
        return self.labels[self._positions(ids // self.width), None].astype(np.float64)

    def _by_point(self, flat: Floats) -> Floats:
        return flat.reshape(-1, self.width)

    @property
    def spread(self) -> Floats:
        """The signed weights of each machine, shape (points, machines)."""
        return self.machines.spread(self.labels, self._by_point(self.weights))

    @property
    def levels(self) -> Floats:
        """The mean margin of each machine, shape (machines,): one, up to rounding."""
        sizes = self._sizes
        return np.divide(self._squares, sizes, out=np.ones_like(sizes), where=sizes > 0)

    def _joining(self, start: int) -> Floats:
        """The margins of points from `start` on, which have no weight yet, in their machines."""
        return self._sums(np.arange(start, self.atoms), self.spread).ravel()

    def _sums(self, positions: Positions, spread: Floats) -> Floats:
        """The margins of some points, shape (m, T), without 1/C of their own."""
        rows, labels = self.gram.rows(positions) - 1.0, self.labels[positions]
        sums = np.zeros((len(positions), self.width))
        for code in np.unique(labels).tolist():
            own = labels == code
            sums[own] = self.machines.sums(code, rows[own][:, : len(spread)], spread)
        return sums

    def set_weights(self, weights: Floats) -> None:
        """Replace all weights; products are computed afresh, machine by machine."""
        products = np.zeros(len(self))
        for m in range(self.machines.count):
            part = self.part(m)
            if not len(part.at):  # as before the first round
                continue
            products[part.at] = part.products(self.rows(part), weights[part.at])
        self.install(weights, products)

    def part(self, m: int) -> MachinePart:
        """The points that take part in machine m."""
        places = self._places[m].take(self.labels)
        points = (places >= 0).nonzero()[0]
        places, codes = places.take(points), self.labels.take(points)
        at = points * self.width + places
        return MachinePart(m, points, at, self.machines.side[codes, places])

    def rows(self, part: MachinePart) -> Rows:
        """The augmented kernel between the points of a machine, without their sides."""
        if self.gram.kept:
            with self._lock:  # the first to ask may have to wait for all rows
                return self.gram.rows_at(part.points)
        return Rows(self._own_matrix(part), np.arange(len(part.points)))

    def _own_matrix(self, part: MachinePart) -> NDArray[Any]:
        """The same where there is no matrix of all points, and room.

        Matrices are kept and extended as long as they fit in the budget.
        """
        key, size = self._groups[part.machine], len(part.points)
        with self._lock:
            buffer, count = self._kept.pop(key, (np.empty((0, 0), self.storage.dtype), 0))
            self._budget += buffer.nbytes
            if size > len(buffer):
                larger = np.empty((max(size, 5 * len(buffer) // 4),) * 2, buffer.dtype)
                larger[:count, :count] = buffer[:count, :count]
                buffer = larger
            if count < size:
                self.gram.fill_square(part.points, count, buffer)
            if buffer.nbytes <= self._budget:
                self._kept[key] = buffer, size
                self._budget -= buffer.nbytes
        return buffer

    def gaps(self) -> Floats:
        """The relative duality gap of each machine within the known points, shape (machines,)."""
        if not self._sizes.any():
            return np.full(self.machines.count, np.inf)
        machine = self.machines.machine[self.labels].ravel()
        least = np.full(self.machines.count + 1, np.inf)
        np.minimum.at(least, machine, self.image_products)
        return np.where(self._sizes > 0, 2.0 * (1.0 - least[:-1] / self.levels), np.inf)

    def known_gap(self) -> float:
        """The largest of these."""
        return float(self.gaps().max())

    @property
    def precise(self) -> bool:
        """Whether kernel values between known points are in double precision."""
        return self.gram.precise if self.gram.kept else self.storage.dtype == np.float64

    def correct(self, enough: float = 0.0) -> bool:
        """Sum margins in double precision if rounding could show in the largest gap.

        Once the largest one is small enough, machines whose gaps are smaller, whatever rounding
        did to them, stay as they are.
        """
        if self.precise or not np.any(self.weights):
            return False
        found, best = False, np.inf
        for m in np.argsort(-self.gaps()).tolist():
            if self._sizes[m] > 0:
                worst = best if 2.0 * (1.0 - best) <= enough else np.inf
                replaced, least = self._correct_machine(self.part(m), worst)
                found, best = found or replaced, min(best, least)
        self.install(self.weights, self.image_products)
        return found

    def _correct_machine(self, part: MachinePart, worst: float) -> tuple[bool, float]:
        """The same for one machine; returns also its smallest margin, as a share of its level.

        Margins above the share `worst` do not matter.
        """
        beta, margins = self.weights[part.at], self.image_products[part.at]
        level, vector = float(self.levels[part.machine]), np.zeros(self.atoms)
        vector[part.points] = part.side * beta

        def exact(some: Positions) -> Floats:
            return part.side[some] * self.exact_products(vector, part.points[some])

        bound, first = self.gram.rounding_of(beta), self._summed.get(part.machine, 0)
        found = corrected(margins, level, exact, level * worst, bound, first=first)
        if found == len(margins):
            self._summed[part.machine] = found
        self.image_products[part.at] = margins
        return found > 0, float(margins.min() * beta.sum() / (beta @ margins))

    def sharpen(self) -> bool:
        """Have kernel values in double precision from now on; False if there is no room for it."""
        self._kept, self._budget = {}, self.storage.cache_bytes
        return super().sharpen()

    def install(self, weights: Floats, products: Floats) -> None:
        """Replace all weights, by someone who knows the products K~ beta too."""
        super().install(weights, products)
        machine, count = self.machines.machine[self.labels].ravel(), self.machines.count + 1
        self._sizes, self._squares = (
            np.bincount(machine + 1, sums, count)[1:].astype(np.float64)
            for sums in (weights, weights * products)
        )

    def value(self) -> float:
        """The sum of the objectives of all machines."""
        if self._value is None:
            used = self._sizes > 0
            self._value = float((self._squares[used] / self._sizes[used] ** 2).sum())
        return self._value

    def inner(self) -> float:
        """Zero: scores are measured from that of the weights."""
        return 0.0

    def scores(self) -> Floats:
        """The score of each known point, once for each of its weights."""
        worst = self.relative(self._by_point(self.image_products), self.labels)
        return np.repeat(worst, self.width)

    def relative(
        self, margins: Floats, labels: Codes, levels: Floats | None = None, value: float = 0.0
    ) -> Floats:
        """The scores of points from their margins, now or where levels and objective were these.

        Parameters
        ----------
        margins : array of shape (n, T)
        labels : int array of shape (n,)
        """
        if levels is None:
            levels, value = self.levels, self.value()
        # What belongs to no machine has a level of zero, and is no margin.
        inverses = np.full(len(levels) + 1, np.inf)
        np.divide(1.0, levels, out=inverses[:-1])
        by_class = inverses[self.machines.machine]
        with np.errstate(invalid="ignore"):
            worst = np.fmin.reduce(margins * by_class[labels], axis=1)
        return 2.0 * value * (worst - 1.0)

    def iterate(self) -> tuple[Floats, Floats, float]:
        """The signed weights of all machines, their levels, and the objective."""
        return self.spread, self.levels, self.value()

    def misfit(self, ids: Sequence[int], stated: Floats, iterate: Any = None) -> Misfit:
        """Compare stated scores with those of points that came one after the other."""
        start = self.position[ids[0]] // self.width
        part = np.arange(start, start + len(ids))
        spread, levels, value = self.iterate() if iterate is None else iterate
        margins = self._by_point(self.image_products)[part]
        if iterate is not None:
            margins = self._sums(part, spread)
        scores = self.relative(margins, self.labels[part], levels, value)
        length = np.sqrt(self.gram.diagonal)
        longest = float(np.max(length[: len(spread)] @ np.abs(spread) / levels))
        allowed = SCORE_ROUNDING * 2.0 * value * length[part] * longest
        return Misfit(stated - scores, allowed, length[part])

    def remember(self, memory: dict[str, NDArray[Any]]) -> None:
        """Take over the products, and what follows from them."""
        super().remember(memory)
        self.install(self.weights, self.image_products)
