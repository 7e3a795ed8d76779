"""Reading one part of the data from a file, whatever its format; the suffix decides.

| suffix | content |
|---|---|
| .npy | a matrix; stays on disk as a memory-map |
| .npz | one matrix (or one called "X", with optional "names" and "row_ids"), or scipy sparse |
| .parquet, .csv, .csv.gz | a table with column names; a column "row_id" holds row ids |
| .svm, .svmlight, .libsvm, .txt, each also with .gz | svmlight / LIBSVM text |
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from atomcast.data.array_files import NPY, NPZ
from atomcast.data.parts import Format, Part, PartInfo, ReadOptions
from atomcast.data.promises import check_gzip
from atomcast.data.svmlight_files import SVMLIGHT
from atomcast.data.table_files import CSV, PARQUET

_TEXTS = dict.fromkeys((".svm", ".svmlight", ".libsvm", ".txt"), SVMLIGHT)
_TEXTS[".csv"] = CSV

FORMATS: dict[str, Format] = {
    ".npy": NPY,
    ".npz": NPZ,
    ".parquet": PARQUET,
    **_TEXTS,
    **{f"{suffix}.gz": kind for suffix, kind in _TEXTS.items()},
}


def read_part(
    path: str | os.PathLike[str],
    *,
    row_ids: str | None = None,
    n_features: int | None = None,
    raw: bool = False,
) -> Part:
    """Read the matrix of one file, with column names and row ids where the file has them.

    Parameters
    ----------
    path : path
        The suffix tells the format; see the top of this module.
    row_ids : str, optional
        Column that holds row ids and is no feature; default: "row_id" where it exists.
    n_features : int, optional
        Number of columns of a svmlight file, which does not say it itself.
    raw : bool, default=False
        Leave the table of a .csv or .parquet file as it is, whatever its columns hold.

    Returns
    -------
    Part
        With `matrix` of shape (rows, columns), `names` and `row_ids`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is unknown or the file is damaged or not of that format.
    ImportError
        If the format needs a package that is not installed.
    """
    path, options = Path(path), ReadOptions(row_ids, n_features, raw)
    with _format(path, options) as kind:
        return kind.read(path, options)


def describe(
    path: str | os.PathLike[str], *, row_ids: str | None = None, n_features: int | None = None
) -> PartInfo:
    """Return rows, columns and column names of a file without loading its values.

    Cheap for .npy, .npz and .parquet, which have headers; a .csv file is read through for its
    number of rows, and a svmlight file has to be read whole. Parameters as in `read_part`.
    """
    path, options = Path(path), ReadOptions(row_ids, n_features)
    with _format(path, options) as kind:
        if kind.describe is not None:
            return kind.describe(path, options)
        part = kind.read(path, options)
        rows, columns = part.matrix.shape
        return PartInfo(int(rows), int(columns), part.names)


def peek(
    path: str | os.PathLike[str], *, row_ids: str | None = None, n_features: int | None = None
) -> tuple[int, int]:
    """Return (rows, columns) of a file; as cheap as `describe`, of which it is a part."""
    info = describe(path, row_ids=row_ids, n_features=n_features)
    return info.rows, info.columns


def read_row_ids(
    path: str | os.PathLike[str], *, row_ids: str | None = None
) -> NDArray[Any] | None:
    """Return only the row ids of a file, shape (rows,), or None if it has none."""
    path, options = Path(path), ReadOptions(row_ids)
    with _format(path, options) as kind:
        return None if kind.row_ids is None else kind.row_ids(path, options)


def known_suffix(path: Path) -> str:
    """Return the suffix that tells the format, in lower case: ".csv.gz" of "Part.0.CSV.gz"."""
    name = path.name.lower()
    last = Path(name).suffix
    return Path(name.removesuffix(".gz")).suffix + last if last == ".gz" else last


@contextmanager
def readable(path: Path, title: str) -> Iterator[None]:
    """Turn whatever a library raises about a bad file into one ValueError that names the file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check its name and folder")
    try:
        if path.suffix.lower() == ".gz":
            check_gzip(path)
        yield
    except (PermissionError, ImportError):
        raise
    except Exception as error:  # readers raise all kinds, from IndexError to RecursionError
        raise ValueError(f"{path} cannot be read as a {title} file: {error}") from error


@contextmanager
def _format(path: Path, options: ReadOptions) -> Iterator[Format]:
    """The format of a file that is read here, if it can do what the options ask for."""
    suffix = known_suffix(path)
    if suffix not in FORMATS:
        raise ValueError(
            f"{path}: the suffix {suffix!r} is not known; it tells the format and must be one of "
            f"{', '.join(FORMATS)}: rename or convert the file"
        )
    kind = FORMATS[suffix]
    with readable(path, kind.title):
        if kind.row_ids is None and options.row_ids is not None:
            raise ValueError(
                f"row_ids={options.row_ids!r} was given, but {kind.title} files have no named "
                "columns: leave row_ids out, or use .parquet, .csv or .npz files"
            )
        yield kind
