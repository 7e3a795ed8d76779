"""Turning data frames (pandas, polars, pyarrow, ...) into a numeric matrix with column names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.alignment import check_unique, is_missing
from atomcast.data.matrices import Matrix

#: Names that say that a column holds ids: id, patient_id, "row id", subject.ID, patientId.
_ID_NAME = re.compile(r"(?:.*[_\-. ])?(?:id|ID|Id)|.*[a-z]I[dD]")


#: What to do about values that are none.
MUST_BE_FINITE = (
    "all values must be finite: fill missing values (where nodes hold features, "
    'prepare=Preparation(impute="median") or --prepare does; else sklearn.impute.SimpleImputer) or '
    "drop the columns or rows that have them"
)


def is_table(X: Any) -> bool:
    """Tell whether `X` looks like a data frame: columns that have names."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return False
    if hasattr(X, "collect_schema") and not hasattr(X, "to_numpy"):
        raise ValueError(f"X is a {type(X).__name__}, which holds no values yet: give X.collect()")
    return hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "to_numpy"))


def table_names(table: Any) -> tuple[str, ...]:
    """Return the column names of a data frame, as strings."""
    return tuple(str(label) for label in _labels(table))


def table_labels(table: Any) -> dict[str, Any]:
    """Return what a data frame itself calls its columns, by their names as strings."""
    return {str(label): label for label in _labels(table)}


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
        If a column is not numeric, or holds ids, or two columns have the same name.
    """
    check_unique(table_names(table), what=f"{source}: the column name")
    if not _labels(table):
        return np.empty((len(table), 0))
    refuse_ids(table, source=source)
    if hasattr(table, "sparse"):  # pandas offers it only if every column is sparse
        return table.sparse.to_coo().tocsc()
    block = _single_block(table)
    if block is not None:
        return block
    columns = [numeric_column(table[label], str(label), source) for label in _labels(table)]
    out = np.empty((len(table), len(columns)), np.result_type(*columns), order="F")
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def refuse_ids(table: Any, *, source: str = "X", ignored: Sequence[str] = ()) -> None:
    """Raise ValueError, naming it, if a column holds ids of the rows, which are no feature.

    That is a column named like an id that has another whole number in every row.
    """
    for label in _labels(table):
        if str(label) in ignored or not _ID_NAME.fullmatch(str(label)) or len(table) < 2:
            continue
        values: NDArray[Any] = np.asarray(table[label])
        if values.dtype.kind in "iu" and len(np.unique(values)) == len(values):
            raise ValueError(
                f"{source}: column {str(label)!r} is named like an id and has another whole number "
                "in every row, so that it is no feature: name it as row ids if it is in a file "
                f"(row_ids={str(label)!r} or --row-ids {label}), make it the index of a "
                "DataFrame, or rename it if it is a measurement"
            )


def refuse_bad_columns(table: Any, *, source: str = "X", missing: bool = False) -> None:
    """Raise ValueError, naming it, if a column holds texts, infinity or (unless allowed) NaN."""
    for label in _labels(table):
        values = numeric_column(table[label], str(label), source)
        finite = np.isfinite(values) | (np.isnan(values) if missing else False)
        if not finite.all():
            row = int(np.flatnonzero(~finite)[0])
            what = "NaN" if np.isnan(values[row]) else "infinity"
            raise ValueError(
                f"{source}: column {str(label)!r} contains {what}, first in row {row}; "
                f"{MUST_BE_FINITE}"
            )


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


def numeric_column(column: Any, name: str, source: str) -> NDArray[Any]:
    """Return the numbers of a column, NaN where one is missing, or raise ValueError."""
    values: NDArray[Any] = np.asarray(column)
    if values.dtype == object and getattr(getattr(column, "dtype", None), "kind", "O") in "biuf":
        # pandas' nullable numbers: a missing value becomes NaN, which check_finite reports.
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{source}: column {name!r} holds {values.dtype} values{_example(values)}, but numbers "
            "are needed: let its party encode it (prepare=Preparation(), --prepare), "
            "drop it, or name it as row_ids if it tells the rows"
        )
    return values


def _example(values: NDArray[Any]) -> str:
    """The first value that is no number, with a hint where it is one with a decimal comma."""
    for row, value in enumerate(values.tolist()):
        if not is_missing(value) and not is_number(value):
            comma = isinstance(value, str) and is_number(value.replace(",", ".", 1))
            hint = " (numbers need a decimal point, not a comma)" if comma else ""
            return f", for example {value!r} in row {row}{hint}"
    return ""


def is_number(value: Any) -> bool:
    """Tell whether a value, which may be a text, can be read as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
