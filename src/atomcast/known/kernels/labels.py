"""Labels as vectors (equal ones have product 1, others -1/(T-1)), or as sides of machines.

Also what points tell of themselves when they are broadcast: a class or a target, and a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import LARGEST, SMALLEST

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class LabelCode:
    """T classes as the corners of a regular simplex; T = 2 is the usual +1 and -1.

    Parameters
    ----------
    classes : int
        T, two or more.
    costs : array of shape (T,)
        The parameter C of each class: what a margin error costs there.
    weighted : bool
        Whether points have weights, which multiply that.
    """

    classes: int
    costs: Floats
    weighted: bool = False

    #: What points tell of themselves, beside their weight.
    told: ClassVar[str] = "class"

    def codes(self, told: Sequence[float] | Floats) -> Codes:
        """The classes of points, from what they tell of themselves."""
        return np.array(told, dtype=np.uint8 if self.classes <= 256 else np.int32)

    def doubt(self, told: list[float]) -> str | None:
        """Why a point cannot tell these numbers of itself, if it cannot."""
        if len(told) != 1 + self.weighted:
            return f"its {self.told} and weight are {told}"
        if not self._possible(told[0]):
            return f"its {self.told} is {told[0]}"
        if not all(SMALLEST <= weight <= LARGEST for weight in told[1:]):
            return f"its weight is {told[1]}"
        return None

    def beyond_doubt(self, told: Floats) -> bool:
        """Whether all points, a row each, can tell these numbers of themselves."""
        if told.shape[1] != 1 + self.weighted:
            return False
        fine = np.all(self._possible(told[:, 0]))
        return bool(fine and np.all((told[:, 1:] >= SMALLEST) & (told[:, 1:] <= LARGEST)))

    def _possible(self, told: Any) -> Any:
        return (told >= 0) & (told < self.classes) & (told % 1 == 0)

    @property
    def other(self) -> float:
        """The product of two labels that differ."""
        return -1.0 / (self.classes - 1)

    @property
    def table(self) -> Floats:
        """The product of every two labels, shape (T, T)."""
        return _table(self.classes, self.other)

    def ridge(self, codes: Codes, weights: Floats | None = None) -> Floats:
        """What the diagonal of the augmented kernel gains: 1/C of each point."""
        ridge: Floats = 1.0 / self.costs[codes]
        return ridge if weights is None else ridge / weights

    @property
    def corners(self) -> Floats:
        """The labels as vectors, whose products are the table, shape (T, T - 1)."""
        return _corners(self.classes)

    def combine(self, codes: Codes, sums: Floats) -> Floats:
        """The product of the label of each row with a sum of labels, shape (n,).

        Parameters
        ----------
        codes : int array of shape (n,)
        sums : array of shape (n, T - 1)
        """
        return np.einsum("ij,ij->i", self.corners[codes], sums)

    def spread(self, codes: Codes, weights: Floats) -> Floats:
        """The label of each point times its weight, shape (m, T - 1)."""
        return self.corners[codes] * weights[:, None]


@cache
def _table(classes: int, other: float) -> Floats:
    table = np.full((classes, classes), other)
    np.fill_diagonal(table, 1.0)
    table.flags.writeable = False  # everybody has the same one
    return table


@cache
def _corners(classes: int) -> Floats:
    corners = np.zeros((classes, classes - 1))
    for k in range(classes - 1):
        # The first k corners have no part in direction k, and those after the next share one.
        corners[k, k] = np.sqrt(1.0 - corners[k] @ corners[k])
        corners[k + 1 :, k] = (-1.0 / (classes - 1) - corners[k + 1] @ corners[k]) / corners[k, k]
    corners.flags.writeable = False  # everybody has the same ones
    return corners


class Unsigned(LabelCode):
    """Labels that only say what errors cost: their signs differ from machine to machine."""

    @property
    def other(self) -> float:
        """One, as of equal labels."""
        return 1.0

    @property
    def corners(self) -> Floats:
        """The number one, as every label, shape (T, 1)."""
        return np.ones((self.classes, 1))


class Targets(Unsigned):
    """Points of a single class, which tell a number of themselves: the target of a regression."""

    told: ClassVar[str] = "target"

    def codes(self, told: Sequence[float] | Floats) -> Codes:
        """All of the same class."""
        return np.zeros(len(told), dtype=np.uint8)

    def _possible(self, told: Any) -> Any:
        return abs(told) <= LARGEST


@dataclass(frozen=True)
class Machines:
    """Several machines over the same points, each of which tells some classes from others.

    A point has T weights, one for each machine that its class takes part in; where there are
    fewer such machines, some weights belong to none and stay zero.

    Parameters
    ----------
    machine : int array of shape (T, T)
        The machine that each weight of a point of some class belongs to; -1 if there is none.
    side : array of shape (T, T)
        On which side of it the class is: 1 or -1, or 0 if there is no machine.
    """

    machine: NDArray[np.int64]
    side: Floats

    @cached_property
    def count(self) -> int:
        """How many machines there are."""
        return int(self.machine.max()) + 1

    @property
    def width(self) -> int:
        """How many weights a point has."""
        return self.machine.shape[1]

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Which weight of a point of each class belongs to each machine, shape (count, T).

        It is -1 where the class does not take part.
        """
        places = np.full((self.count, len(self.machine)), -1)
        code, place = np.nonzero(self.machine >= 0)
        places[self.machine[code, place], code] = place
        return places

    @cached_property
    def groups(self) -> list[bytes]:
        """By machine, what tells its classes from others: some machines share all their points."""
        return [row.tobytes() for row in self.places >= 0]

    def spread(self, codes: Codes, weights: Floats) -> Floats:
        """The weights, signed, in the column of the machine that each belongs to.

        Parameters
        ----------
        codes : int array of shape (m,)
        weights : array of shape (m, T)

        Returns
        -------
        array of shape (m, count)
        """
        # What belongs to no machine ends in a further column.
        columns = np.zeros((len(codes), self.count + 1))
        columns[np.arange(len(codes))[:, None], self.machine[codes]] = weights * self.side[codes]
        return columns[:, :-1]

    def sums(self, code: int, kernel: NDArray[Any], spread: Floats) -> Floats:
        """The margins of points of one class, as far as other points contribute to them.

        Parameters
        ----------
        code : int
        kernel : array of shape (n, m)
            The kernel between the points and the others.
        spread : array of shape (m, count)

        Returns
        -------
        array of shape (n, T)
        """
        factors = spread[:, self.machine[code]] * self.side[code]
        return kernel @ factors.astype(kernel.dtype) + factors.sum(axis=0)


@cache
def one_vs_one(classes: int) -> Machines:
    """A machine for every two classes, in order; the first of them is on the side of one."""
    machine = np.full((classes, classes), -1)
    first, second = np.triu_indices(classes, 1)
    machine[first, second] = machine[second, first] = np.arange(len(first))
    return Machines(machine, np.sign(np.arange(classes) - np.arange(classes)[:, None]) * 1.0)


@cache
def one_vs_rest(classes: int) -> Machines:
    """A machine for each class, which is on the side of one, and all others opposite."""
    return Machines(np.tile(np.arange(classes), (classes, 1)), 2.0 * np.eye(classes) - 1.0)
