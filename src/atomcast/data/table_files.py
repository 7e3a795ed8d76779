"""Reading .csv, .csv.gz and .parquet files by pandas, which is imported only when needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.data.alignment import check_unique
from atomcast.data.parts import DEFAULT_ROW_IDS, Format, Part, PartInfo, ReadOptions
from atomcast.data.promises import check_promise
from atomcast.data.tables import table_to_matrix


def load_pandas() -> Any:
    """Return the pandas module, or say how to install it."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            'reading .csv and .parquet files needs pandas: pip install "atomcast[data]"'
        ) from None
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
    first = load_pandas().read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    return [str(name) for name in first.iloc[0]]


def is_number(text: str) -> bool:
    """Tell whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


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
    names = _csv_names(path)
    ids = _ids_column(names, options)
    frame = load_pandas().read_csv(path)
    return _part(frame, ids)


def _describe_csv(path: Path, options: ReadOptions) -> PartInfo:
    names = _csv_names(path)
    ids = _ids_column(names, options)
    # One column, because counting lines would be wrong for quoted line breaks and blank lines.
    rows = len(load_pandas().read_csv(path, usecols=[0], skip_blank_lines=True))
    return _info(rows, names, ids)


def _row_ids_csv(path: Path, options: ReadOptions) -> NDArray[Any] | None:
    ids = _ids_column(_csv_names(path), options)
    if ids is None:
        return None
    return np.asarray(load_pandas().read_csv(path, usecols=[ids])[ids])


def _read_parquet(path: Path, options: ReadOptions) -> Part:
    check_parquet(path)
    frame = load_pandas().read_parquet(path)
    wanted = options.row_ids or DEFAULT_ROW_IDS
    if wanted in frame.index.names:
        frame = frame.reset_index(level=wanted)
    return _part(frame, _ids_column([str(name) for name in frame.columns], options))


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


def _part(frame: Any, ids: str | None) -> Part:
    row_ids = None if ids is None else np.asarray(frame[ids])
    features = frame if ids is None else frame.drop(columns=[ids])
    names = tuple(str(name) for name in features.columns)
    return Part(table_to_matrix(features, source="the table"), names, row_ids)


def _info(rows: int, names: list[str], ids: str | None) -> PartInfo:
    features = tuple(name for name in names if name != ids)
    return PartInfo(rows, len(features), features)


CSV = Format("CSV", _read_csv, _describe_csv, _row_ids_csv)
PARQUET = Format("Parquet", _read_parquet, _describe_parquet, _row_ids_parquet)
