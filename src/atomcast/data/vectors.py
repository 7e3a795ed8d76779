"""Reading a target vector: numbers for regression, numbers or texts for classification."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import is_missing
from atomcast.data.array_files import load_npy, load_npz_array, npz_row_ids
from atomcast.data.parts import DEFAULT_ROW_IDS
from atomcast.data.promises import text_vector
from atomcast.data.readers import known_suffix, readable
from atomcast.data.svmlight_files import load_svmlight
from atomcast.data.table_files import (
    check_parquet,
    csv_header,
    load_pandas,
    load_pyarrow_parquet,
    read_csv,
)
from atomcast.data.tables import is_number

_TABLES = (".csv", ".csv.gz", ".parquet")
_TEXTS = (".txt", ".txt.gz", ".labels", ".labels.gz")
_SVMLIGHT = (".svm", ".svm.gz", ".svmlight", ".svmlight.gz", ".libsvm", ".libsvm.gz")
_ACCEPTED = (".npy", ".npz", *_TABLES, *_TEXTS, *_SVMLIGHT)


class Vector(NamedTuple):
    """A target, with the ids of its rows where they are known.

    Attributes
    ----------
    values : array of shape (rows,)
    row_ids : array of shape (rows,) or None
    """

    values: NDArray[Any]
    row_ids: NDArray[Any] | None = None


def read_vector(path: str | os.PathLike[str], *, row_ids: str | None = None) -> NDArray[Any]:
    """Read a target vector from a file.

    Parameters
    ----------
    path : path or "path:column"
        - .npy, or .npz with one array or one called "y": shape (rows,) or (rows, 1);
        - .csv, .csv.gz or .parquet: the only column beside row ids, or "file.csv:column"; a
          CSV file has a header line, unless its first line is a number;
        - .txt or .labels (also .gz): one value per line, no header;
        - svmlight files: their labels.
    row_ids : str, optional
        Column of a table that holds row ids; default: "row_id" where it exists.

    Returns
    -------
    array of shape (rows,)
        int64, float64 or bool; texts (dtype str) if the values are not all numbers.
    """
    return read_vector_with_ids(path, row_ids=row_ids).values


def read_vector_with_ids(path: str | os.PathLike[str], *, row_ids: str | None = None) -> Vector:
    """Read a target and the ids of its rows, if the file has them; see `read_vector`."""
    file, column = _split_column(os.fspath(path))
    suffix = known_suffix(file)
    if suffix not in _ACCEPTED:
        raise ValueError(
            f"{file}: the suffix {suffix!r} is not known for a vector; it must be one of "
            f"{', '.join(_ACCEPTED)} (write file.csv:column for a column of a table)"
        )
    with readable(file, suffix):
        values, ids = _load(file, suffix, column, row_ids)
        return Vector(_plain(values), ids)


def _split_column(path: str) -> tuple[Path, str | None]:
    """Take "file.csv:column" apart, leaving alone colons that are part of a path."""
    file, colon, column = path.rpartition(":")
    if colon and known_suffix(Path(file)) in _TABLES:
        return Path(file), column
    return Path(path), None


def _load(file: Path, suffix: str, column: str | None, row_ids: str | None) -> tuple[Any, Any]:
    """Values as they are in the file, and row ids or None."""
    if suffix == ".npy":
        return load_npy(file), None
    if suffix == ".npz":
        return load_npz_array(file, "y", row_ids), npz_row_ids(file, row_ids)
    if suffix in _TABLES:
        return _table_column(file, suffix, column, row_ids)
    if suffix in _TEXTS:
        return _text_lines(file), None
    return load_svmlight(file)[1], None


def _table_column(
    file: Path, suffix: str, column: str | None, row_ids: str | None
) -> tuple[Any, Any]:
    names = _table_names(file, suffix)
    if names is None:
        return read_csv(file, header=None)[0], None
    if column is None:
        others = [name for name in names if name not in (DEFAULT_ROW_IDS, row_ids)]
        if len(others) != 1:
            raise ValueError(
                f"it has {len(others)} columns ({', '.join(others[:10])}), but a vector is one: "
                f"name it, as in {file.name}:{others[0] if others else 'column'}"
            )
        column = others[0]
    if column not in names:
        raise ValueError(f"it has no column {column!r}, only {', '.join(names[:10])}")
    wanted = row_ids or DEFAULT_ROW_IDS
    columns = [column, wanted] if wanted in names and wanted != column else [column]
    frame = _table(file, suffix, columns)
    return frame[column], np.asarray(frame[wanted]) if len(columns) == 2 else None


def _table(file: Path, suffix: str, columns: list[str]) -> Any:
    """Some columns of a table; one that pandas stored as the index is a column too."""
    if suffix == ".parquet":
        frame = load_pandas().read_parquet(file, columns=columns)
        stored = [name for name in columns if name in frame.index.names]
        return frame.reset_index(level=stored) if stored else frame
    return read_csv(file, usecols=columns)


def _table_names(file: Path, suffix: str) -> list[str] | None:
    """Return the names of the columns, or None for a single column of numbers without header."""
    if suffix == ".parquet":
        check_parquet(file)
        return list(load_pyarrow_parquet().read_schema(file).names)
    names = csv_header(file)
    return None if len(names) == 1 and is_number(names[0]) else names


def _text_lines(file: Path) -> Any:
    content = file.read_bytes()
    if file.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    lines = [line.strip() for line in content.decode().splitlines()]
    lines = [line for line in lines if line]
    words = [line.split() for line in lines]
    if words and len(words[0]) > 1 and ":" in words[0][1]:
        return load_svmlight(file)[1]
    return text_vector(lines)


def _plain(values: Any) -> NDArray[Any]:
    """Return values as int64, float64, bool or str, refusing gaps among texts."""
    array: NDArray[Any] = np.array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"it has shape {array.shape}, but a vector (rows,) is needed")
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    missing = [row for row, value in enumerate(array.tolist()) if is_missing(value)]
    if missing:
        raise ValueError(
            f"row {missing[0]} has no value ({len(missing)} row(s) in all): fill or drop them"
        )
    if array.dtype == object:
        array = text_vector([str(value) for value in array.tolist()])
    texts = array.astype(np.str_)
    for dtype in (np.int64, np.float64):
        try:
            return texts.astype(dtype)
        except ValueError:
            continue
    return texts
