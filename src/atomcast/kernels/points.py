"""Points: rows of a dense array or of a CSR matrix, and the log of those that were broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.atoms.atom import Atom
from atomcast.columns import grown

#: Points as rows: a dense array or a CSR matrix of shape (n, d).
Points: TypeAlias = Any


def rows_of(points: Points, rows: Any) -> Points:
    """Some rows of a set of points, of the same kind."""
    return points[rows]


def dense_rows(points: Points) -> NDArray[np.float64]:
    """The points as a dense array in double precision."""
    if sparse.issparse(points):
        points = points.toarray()
    return np.asarray(points, dtype=np.float64)


def is_binary(points: Points) -> bool:
    """Whether every value is zero or one."""
    values = points.data if sparse.issparse(points) else points
    flat = values.reshape(-1) if values.ndim > 1 and values.flags.c_contiguous else values
    if flat.ndim == 1 and not _all_bits(flat[:4096]):  # mostly settled by the first few
        return False
    return _all_bits(flat)


def _all_bits(values: NDArray[Any]) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


class PointLog:
    """The points received so far, in order of arrival; dense unless all of them came sparse."""

    def __init__(self) -> None:
        self.count = 0
        self._dense: NDArray[Any] | None = None
        self._sparse: list[sparse.csr_array] = []

    def append(self, atoms: Sequence[Atom]) -> None:
        """Add the points of newly received atoms."""
        if self._dense is None and all(atom.is_sparse for atom in atoms):
            self._sparse.append(_csr(atoms))
        else:
            self._append_dense(np.stack([_values(atom) for atom in atoms]))
        self.count += len(atoms)

    def _append_dense(self, rows: NDArray[Any]) -> None:
        if self._dense is None:
            self._dense = np.empty((64, rows.shape[1]), dtype=rows.dtype)
            if self._sparse:
                known = dense_rows(self._joined())
                self._dense = grown(known, self.count, self.count)
                self._sparse = []
        self._dense = grown(self._dense, self.count, self.count + len(rows))
        self._dense[self.count : self.count + len(rows)] = rows

    def _joined(self) -> sparse.csr_array:
        if len(self._sparse) > 1:
            self._sparse = [sparse.csr_array(sparse.vstack(self._sparse, format="csr"))]
        return self._sparse[0]

    @property
    def points(self) -> Points:
        """All points received, shape (count, d)."""
        return self._joined() if self._dense is None else self._dense[: self.count]


def _values(atom: Atom) -> NDArray[Any]:
    return atom.dense() if atom.is_sparse else atom.values


def _csr(atoms: Sequence[Atom]) -> sparse.csr_array:
    starts = np.concatenate(([0], np.cumsum([atom.values.size for atom in atoms])))
    data = np.concatenate([atom.values for atom in atoms]).astype(np.float64, copy=False)
    indices = np.concatenate([np.asarray(atom.indices) for atom in atoms])
    return sparse.csr_array((data, indices, starts), shape=(len(atoms), atoms[0].d))
