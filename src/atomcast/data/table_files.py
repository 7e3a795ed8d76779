"""Reading .csv, .csv.gz and .parquet files by pandas, which is imported only when needed."""

from __future__ import annotations

import csv
import gzip
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import check_unique
from atomcast.data.parts import DEFAULT_ROW_IDS, Format, Part, PartInfo, ReadOptions
from atomcast.data.promises import check_promise
from atomcast.data.tables import is_number, table_to_matrix


def load_pandas(what: str = "reading .csv and .parquet files") -> Any:
    """Return the pandas module, or say what needs it and how to install it."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f'{what} needs pandas: pip install "atomcast[data]"') from None
    return pandas


def load_pyarrow_parquet() -> Any:
    """Return the module pyarrow.parquet, or say how to install it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            'reading .parquet files needs pyarrow: pip install "atomcast[data]"'
        ) from None
    return pyarrow.parquet


def csv_header(path: Path) -> list[str]:
    """Return the first line of a CSV file, split into its columns."""
    return _first_line(path, csv_separator(path))


def csv_separator(path: Path) -> str:
    """Return what stands between the columns: a comma or, in a first line without, another."""
    first = _first_line(path, ",")
    if len(first) > 1:
        return ","
    return next((mark for mark in (";", "\t", "|") if mark in first[0]), ",")


def _first_line(path: Path, separator: str) -> list[str]:
    first = load_pandas().read_csv(
        path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False
    )
    return [str(name) for name in first.iloc[0]]


def read_csv(path: Path, **options: Any) -> Any:
    """Return a CSV file as a DataFrame, refusing lines with more or fewer columns than others."""
    pandas = load_pandas()
    separator = csv_separator(path)
    try:
        frame = pandas.read_csv(path, sep=separator, **options)
    except pandas.errors.ParserError:
        _refuse_ragged(path, separator)
        raise
    # pandas fills short lines up with NaN, and makes an index of the first column of long ones.
    whole = isinstance(frame.index, pandas.RangeIndex) and frame.index.step == 1
    if not whole or frame.index.start or (len(frame.columns) and frame.iloc[:, -1].hasnans):
        _refuse_ragged(path, separator)
    return frame


def _refuse_ragged(path: Path, separator: str) -> None:
    """Raise ValueError, naming the line, if lines of a CSV file differ in their columns."""
    reading = gzip.open if path.suffix.lower() == ".gz" else open
    expected: int | None = None
    line = 1
    with (
        suppress(csv.Error),  # then what pandas says of the file is said
        reading(path, "rt", newline="", encoding="utf-8", errors="replace") as text,
    ):
        lines = csv.reader(text, delimiter=separator)
        for fields in lines:
            blank = not fields or (len(fields) == 1 and not fields[0].strip())
            expected = len(fields) if expected is None and not blank else expected
            if len(fields) != expected and not blank:
                raise ValueError(
                    f"line {line} is a ragged row: it has {len(fields)} column(s), but the header "
                    f"has {expected}; correct it, or quote texts that contain {separator!r}"
                )
            line = lines.line_num + 1


def _csv_names(path: Path) -> list[str]:
    """Return the header of a CSV file, refusing one that cannot be a header."""
    names = csv_header(path)
    check_unique(names, what="the column name")
    if "" in names:
        raise ValueError(
            f"column {names.index('')} has no name; if it is the index that pandas wrote, write "
            "the file with to_csv(index=False), or with index_label='row_id' to keep it as row ids"
        )
    # pandas numbers unnamed columns 0, 1, 2, ..., which is a header; other numbers are values.
    if all(map(is_number, names)) and names != [str(j) for j in range(len(names))]:
        raise ValueError(
            f"its first line, {names[:3]}..., holds only numbers, but column names are needed: "
            "add a header line"
        )
    return names


def _read_csv(path: Path, options: ReadOptions) -> Part:
    ids = _ids_column(_csv_names(path), options)
    return _part(read_csv(path), ids, options.raw)


def _describe_csv(path: Path, options: ReadOptions) -> PartInfo:
    names = _csv_names(path)
    ids = _ids_column(names, options)
    # One column, because counting lines would be wrong for quoted line breaks and blank lines.
    rows = len(read_csv(path, usecols=[names[0]], skip_blank_lines=True))
    return _info(rows, names, ids)


def _row_ids_csv(path: Path, options: ReadOptions) -> NDArray[Any] | None:
    ids = _ids_column(_csv_names(path), options)
    if ids is None:
        return None
    return np.asarray(read_csv(path, usecols=[ids])[ids])


def _read_parquet(path: Path, options: ReadOptions) -> Part:
    check_parquet(path)
    frame = load_pandas().read_parquet(path)
    wanted = options.row_ids or DEFAULT_ROW_IDS
    if wanted in frame.index.names:
        frame = frame.reset_index(level=wanted)
    ids = _ids_column([str(name) for name in frame.columns], options)
    return _part(frame, ids, options.raw)


def _describe_parquet(path: Path, options: ReadOptions) -> PartInfo:
    parquet = load_pyarrow_parquet()
    check_parquet(path)
    names = _parquet_names(parquet.read_schema(path), options)
    return _info(parquet.read_metadata(path).num_rows, names, _ids_column(names, options))


def _row_ids_parquet(path: Path, options: ReadOptions) -> NDArray[Any] | None:
    check_parquet(path)
    schema = load_pyarrow_parquet().read_schema(path)
    ids = _ids_column(_parquet_names(schema, options), options)
    if ids is None:
        return None
    frame = load_pandas().read_parquet(path, columns=[ids] if ids in schema.names else [])
    if ids in frame.index.names:
        return np.asarray(frame.index.get_level_values(ids))
    return np.asarray(frame[ids])


def check_parquet(path: Path) -> None:
    """Refuse a table whose values, eight bytes each, are not to be believed."""
    about = load_pyarrow_parquet().read_metadata(path)
    check_promise(8 * about.num_rows * max(about.num_columns, 1), path, "as numbers, it")


def _parquet_names(schema: Any, options: ReadOptions) -> list[str]:
    """Return the names of the columns; an index that pandas stored counts only as row ids."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    # pandas stores the index as a column, or describes it if it is a range.
    index = [entry if isinstance(entry, str) else entry["name"] for entry in stored]
    wanted = options.row_ids or DEFAULT_ROW_IDS
    columns = [name for name in schema.names if name not in index]
    return [wanted, *columns] if wanted in index else columns


def _ids_column(names: list[str], options: ReadOptions) -> str | None:
    if options.row_ids is None:
        return DEFAULT_ROW_IDS if DEFAULT_ROW_IDS in names else None
    if options.row_ids not in names:
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        raise ValueError(
            f"row_ids={options.row_ids!r} is none of its columns ({shown}): "
            "name the column that holds the row ids, or leave row_ids out"
        )
    return options.row_ids


def _part(frame: Any, ids: str | None, raw: bool) -> Part:
    row_ids = None if ids is None else np.asarray(frame[ids])
    features = frame.drop(columns=[name for name in _id_names(ids) if name in frame.columns])
    names = tuple(str(name) for name in features.columns)
    matrix = features if raw else table_to_matrix(features, source="the table")
    return Part(matrix, names, row_ids)


def _info(rows: int, names: list[str], ids: str | None) -> PartInfo:
    features = tuple(name for name in names if name not in _id_names(ids))
    return PartInfo(rows, len(features), features)


def _id_names(ids: str | None) -> set[str]:
    """Columns that are no features: the one that was named, and the one that always holds ids."""
    return {DEFAULT_ROW_IDS} if ids is None else {DEFAULT_ROW_IDS, ids}


CSV = Format("CSV", _read_csv, _row_ids_csv, _describe_csv)
PARQUET = Format("Parquet", _read_parquet, _row_ids_parquet, _describe_parquet)
