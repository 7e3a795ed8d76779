"""The files that a command names, read and checked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_folder

if TYPE_CHECKING:
    from atomcast.data.parts import Part
    from atomcast.data.shards import Shards


def read_features(
    paths: Sequence[Path],
    nodes: int | None,
    target: str,
    *,
    row_ids: str | None = None,
    n_features: int | None = None,
) -> Shards:
    """The data of a fit: a file for each node, or one file that is cut up among the nodes."""
    from atomcast.data import Shards, read_part

    if len(paths) == 1:
        part = read_part(paths[0], row_ids=row_ids, n_features=n_features)
        matrix, names = without_column(part, target_column(target, paths[0]))
        return Shards.split(matrix, 1 if nodes is None else nodes, names=names)
    if nodes not in (None, len(paths)):
        raise ValueError(
            f"--nodes {nodes} does not go with {len(paths)} files, each of which is a node: leave "
            "--nodes out, or give a single file, which is cut up"
        )
    for path in paths:
        column = target_column(target, path)
        if column is not None:
            raise ValueError(
                f"the target column {column!r} is in {path}, which is also a part of the data: "
                "write the target to a file of its own"
            )
    return Shards.files(paths, row_ids=row_ids, n_features=n_features)


def target_column(target: str, path: Path) -> str | None:
    """The column of `path` that the target "file:column" names, if it is that file."""
    file, colon, column = target.rpartition(":")
    if not colon or Path(target).exists() or not Path(file).exists():
        return None
    return column if Path(file).samefile(path) else None


def without_column(part: Part, column: str | None) -> tuple[Any, tuple[str, ...] | None]:
    """Matrix and names without a column: the target must not be a feature of its own model."""
    if column is None or part.names is None or column not in part.names:
        return part.matrix, part.names
    kept = [j for j, name in enumerate(part.names) if name != column]
    return part.matrix[:, kept], tuple(part.names[j] for j in kept)


def read_target(target: str, numeric: bool) -> NDArray[Any]:
    """The target vector; numbers that are not finite, or texts where numbers are due, are named."""
    from atomcast.data import read_vector

    y = read_vector(target)
    if y.dtype.kind in "US" and numeric:
        row = next(i for i, text in enumerate(y.tolist()) if not _is_number(text))
        raise ValueError(f"--target {target}: row {row} is {str(y[row])!r}, but numbers are needed")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"--target {target}: row {row} is {y[row]}; fill or drop such rows")
    return y


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_rows(shards: Shards, y: NDArray[Any], target: str, axis: int) -> None:
    """Refuse data and a target of different lengths."""
    shards.validate(axis)
    rows = shards.rows(axis) if axis == 1 else shards.count(axis)
    if len(y) != rows:
        raise ValueError(
            f"--target {target} has {len(y)} values, but the data has {rows} rows: both must "
            "describe the same rows, in the same order"
        )


def check_output(option: str, path: Path | None, suffixes: Sequence[str] = ()) -> None:
    """Refuse a place where nothing can be written, before the work is done."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder: give the name of a file")
    check_folder(f"{option} {path}", path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(
            f"{option} {path}: the suffix {path.suffix!r} is not known; use {' or '.join(suffixes)}"
        )


def features_for(estimator: Any, paths: Sequence[Path], row_ids: str | None) -> tuple[Any, Any]:
    """New data for a model, its columns in the model's order; and row ids, if there are any."""
    from atomcast.data import Shards, check_finite, read_part
    from atomcast.model_file import atoms_axis

    axis = atoms_axis(type(estimator).__name__)
    wanted = getattr(estimator, "feature_names_in_", None)
    expected = None if wanted is None else tuple(wanted)
    if len(paths) == 1:
        part = read_part(paths[0], row_ids=row_ids, n_features=estimator.n_features_in_)
        return _in_order(part, expected, paths[0]), part.row_ids
    columns = estimator.n_features_in_ if axis == 0 else None
    shards = Shards.files(paths, row_ids=row_ids, n_features=columns)
    shards.validate(axis)
    names = shards.column_names(axis)
    if expected is not None and names is not None and names != expected:
        raise ValueError(_difference(names, expected, "the files"))
    if not estimator.__sklearn_tags__().input_tags.allow_nan:
        for i in range(shards.nodes):
            check_finite(shards.shard(i, axis), axis)
    return shards, _row_ids(paths if axis == 0 else paths[:1], row_ids)


def _row_ids(paths: Sequence[Path], column: str | None) -> NDArray[Any] | None:
    """The row ids of files that follow each other, if all of them have some."""
    from atomcast.data.readers import read_row_ids

    ids = [read_row_ids(path, row_ids=column) for path in paths]
    known = [some for some in ids if some is not None]
    return np.concatenate(known) if len(known) == len(ids) else None


def _in_order(part: Part, expected: tuple[str, ...] | None, path: Path) -> Any:
    """The columns that the model wants, by name where both sides have names."""
    if expected is None or part.names is None or part.names == expected:
        return part.matrix
    place = {name: j for j, name in enumerate(part.names)}
    if not all(name in place for name in expected):
        raise ValueError(_difference(part.names, expected, str(path)))
    return part.matrix[:, [place[name] for name in expected]]


def _difference(names: Sequence[str], expected: Sequence[str], source: str) -> str:
    missing = [name for name in expected if name not in set(names)]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        listed = ", ".join(map(repr, missing[:3])) + more
        return f"the model needs the columns {listed}, which {source} does not have"
    return (
        f"the columns of {source} are not in the order of the model: give the parts in the order "
        "of the fit"
    )
