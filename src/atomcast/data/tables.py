"""Turning data frames (pandas, polars, pyarrow, ...) into a numeric matrix with column names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.alignment import check_unique
from atomcast.data.matrices import Matrix


def is_table(X: Any) -> bool:
    """Tell whether `X` looks like a data frame: columns that have names."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return False
    return hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "to_numpy"))


def table_names(table: Any) -> tuple[str, ...]:
    """Return the column names of a data frame, as strings."""
    return tuple(str(label) for label in _labels(table))


def table_to_matrix(table: Any, *, source: str = "X") -> Matrix:
    """Return the values of a data frame as a numeric matrix.

    Parameters
    ----------
    table : DataFrame of shape (rows, columns)
        pandas, polars, pyarrow, or anything with columns that numpy can read.
    source : str
        How messages call the table.

    Returns
    -------
    Matrix of shape (rows, columns)
        A view if the frame holds one block of one numeric type, CSC if all its columns are
        pandas sparse columns, else a copy; missing values become NaN.

    Raises
    ------
    ValueError
        If a column is not numeric, or two columns have the same name.
    """
    check_unique(table_names(table), what=f"{source}: the column name")
    if not _labels(table):
        return np.empty((len(table), 0))
    if hasattr(table, "sparse"):  # pandas offers it only if every column is sparse
        return table.sparse.to_coo().tocsc()
    block = _single_block(table)
    if block is not None:
        return block
    columns = [_numeric_column(table[label], str(label), source) for label in _labels(table)]
    out = np.empty((len(table), len(columns)), np.result_type(*columns), order="F")
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _labels(table: Any) -> list[Any]:
    # pyarrow's `columns` are the values; its names are `column_names`.
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def _single_block(table: Any) -> NDArray[Any] | None:
    """Return the frame's own array if all columns have the same plain numeric type."""
    dtypes = getattr(table, "dtypes", None)
    if dtypes is None or not all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return None
    if len(set(dtypes)) != 1 or next(iter(dtypes)).kind not in "biuf":
        return None
    block: NDArray[Any] = table.to_numpy()
    return block


def _numeric_column(column: Any, name: str, source: str) -> NDArray[Any]:
    values: NDArray[Any] = np.asarray(column)
    if values.dtype == object and getattr(getattr(column, "dtype", None), "kind", "O") in "biuf":
        # pandas' nullable numbers: a missing value becomes NaN, which check_finite reports.
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if values.dtype.kind not in "biuf":
        example = f", for example {values[0]!r}" if len(values) else ""
        raise ValueError(
            f"{source}: column {name!r} holds {values.dtype} values{example}, but numbers are "
            "needed: encode it (e.g. with sklearn.preprocessing.OneHotEncoder) or drop it"
        )
    return values
