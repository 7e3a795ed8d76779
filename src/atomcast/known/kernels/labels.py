"""Labels as vectors: equal ones have product 1, different ones -1/(T-1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]


@dataclass(frozen=True)
class LabelCode:
    """T classes as the corners of a regular simplex; T = 2 is the usual +1 and -1.

    Parameters
    ----------
    classes : int
        T, two or more.
    costs : array of shape (T,)
        The parameter C of each class: what a margin error costs there.
    """

    classes: int
    costs: Floats

    @property
    def table(self) -> Floats:
        """The product of every two labels, shape (T, T)."""
        table = np.full((self.classes, self.classes), -1.0 / (self.classes - 1))
        np.fill_diagonal(table, 1.0)
        return table

    def ridge(self, codes: Codes) -> Floats:
        """What the diagonal of the augmented kernel gains: 1/C of each point's class."""
        return 1.0 / self.costs[codes]

    def combine(self, codes: Codes, sums: Floats) -> Floats:
        """Sum over classes c of <label, label of c> sums[:, c], for the label of each row.

        Parameters
        ----------
        codes : int array of shape (n,)
        sums : array of shape (n, T)
        """
        other = -1.0 / (self.classes - 1)
        own = sums[np.arange(len(codes)), codes]
        return (1.0 - other) * own + other * sums.sum(axis=1)

    def spread(self, codes: Codes, weights: Floats) -> Floats:
        """The weights in the column of each point's class, shape (m, T)."""
        columns = np.zeros((len(codes), self.classes))
        columns[np.arange(len(codes)), codes] = weights
        return columns


def one_against_rest(code: LabelCode, one_class: int) -> LabelCode:
    """The code of the rest and one class; the rest costs what its classes cost on average."""
    rest = np.delete(code.costs, one_class).mean()
    return LabelCode(2, np.array([rest, code.costs[one_class]]))
