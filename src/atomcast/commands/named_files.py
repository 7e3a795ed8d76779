"""The files that a command names, read and checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_folder

if TYPE_CHECKING:
    from atomcast.data.parts import Part
    from atomcast.data.preparing import Preparation
    from atomcast.data.shards import Shards


class Reading(NamedTuple):
    """How the options say that files are to be read; as in `Shards.files`."""

    row_ids: str | None = None
    n_features: int | None = None
    align: str | None = None
    prefix: bool = False
    prepare: Mapping[str, Preparation] | None = None


def read_data(
    paths: Sequence[Path], nodes: int | None, target: str, reading: Reading, axis: int
) -> tuple[Shards, NDArray[Any]]:
    """The data of a fit, a file for each node or one that is cut up among nodes; and the target."""
    from atomcast.data import Shards, read_vector

    if len(paths) == 1:
        return _read_one(paths[0], 1 if nodes is None else nodes, target, reading)
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
    shards = Shards.files(paths, **reading._asdict())
    if reading.align is None and not shards.within_reach():  # each node checks its own file
        return shards, read_vector(target, row_ids=reading.row_ids)
    shards = Shards.files(paths, target=target, **reading._asdict())
    shards.validate(axis)
    assert shards.target is not None
    return shards, shards.target


def _read_one(path: Path, nodes: int, target: str, reading: Reading) -> tuple[Shards, NDArray[Any]]:
    """A single file cut up among nodes; a target in another file goes by its row ids, if any."""
    from atomcast.data import Shards, read_part, read_vector
    from atomcast.data.file_rows import FileRows

    if reading.prefix:
        raise ValueError(f"--prefix is for several files, a party each, but there is only {path}")
    prepare = None if reading.prepare is None else next(iter(reading.prepare.values()))
    raw = prepare is not None
    part = read_part(path, row_ids=reading.row_ids, n_features=reading.n_features, raw=raw)
    column = target_column(target, path)
    if column is not None:
        matrix, names = without_column(part, column)
        y = read_vector(target, row_ids=reading.row_ids)
        return Shards.split(matrix, nodes, names=names, prepare=prepare), y
    rows = FileRows([path], [str(path)], reading.row_ids, reading.align, target)
    assert rows.target is not None
    matrix = rows.in_order(0, part)[0]
    return Shards.split(matrix, nodes, names=part.names, prepare=prepare), rows.target


def target_column(target: str, path: Path) -> str | None:
    """The column of `path` that the target "file:column" names, if it is that file."""
    file, colon, column = target.rpartition(":")
    if not colon or Path(target).exists() or not Path(file).exists():
        return None
    return column if Path(file).samefile(path) else None


def without_column(part: Part, column: str | None) -> tuple[Any, tuple[str, ...] | None]:
    """Matrix and names without a column: the target must not be a feature of its own model."""
    from atomcast.data.tables import is_table

    if column is None or part.names is None or column not in part.names:
        return part.matrix, part.names
    kept = [j for j, name in enumerate(part.names) if name != column]
    columns = part.matrix.iloc if is_table(part.matrix) else part.matrix
    return columns[:, kept], tuple(part.names[j] for j in kept)


def check_target(y: NDArray[Any], target: str, numeric: bool) -> None:
    """Name numbers that are not finite, or texts where numbers are due."""
    from atomcast.data.tables import is_number

    if y.dtype.kind in "US" and numeric:
        row = next(i for i, text in enumerate(y.tolist()) if not is_number(text))
        raise ValueError(f"--target {target}: row {row} is {str(y[row])!r}, but numbers are needed")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"--target {target}: row {row} is {y[row]}; fill or drop such rows")


def check_rows(shards: Shards, y: NDArray[Any], target: str, axis: int) -> None:
    """Refuse data and a target of different lengths."""
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


def features_for(estimator: Any, paths: Sequence[Path], reading: Reading) -> tuple[Any, Any]:
    """New data for a model, its columns in the model's order; and row ids, if there are any."""
    from atomcast.data import Shards, check_finite, read_part
    from atomcast.data.parts import DEFAULT_ROW_IDS
    from atomcast.saving.model_file import atoms_axis

    axis = atoms_axis(type(estimator).__name__)
    wanted = getattr(estimator, "feature_names_in_", None)
    expected = None if wanted is None else tuple(wanted)
    known = getattr(estimator, "preparation_", None)
    if len(paths) == 1:
        how = {"row_ids": reading.row_ids, "n_features": estimator.n_features_in_}
        part = read_part(paths[0], **how, raw=known is not None)
        return _in_order(part, None if known else expected, paths[0]), part.row_ids
    if axis == 0:
        reading = reading._replace(n_features=estimator.n_features_in_)
    as_in_fit: list[str] | None = None
    if axis == 1 and expected is not None and known is None:
        infos = Shards.files(paths, **reading._replace(align=None)._asdict()).infos
        as_in_fit = _prefixes_of([info.names for info in infos], expected)
    how = {**reading._asdict(), "prefix": as_in_fit or False, "prepare": known}
    shards = Shards.files(paths, **how)
    shards.validate(axis)
    names = shards.column_names(axis)
    if expected is not None and names is not None and names != expected:
        raise ValueError(_difference(names, expected, "the files"))
    if not estimator.__sklearn_tags__().input_tags.allow_nan:
        for i in range(shards.nodes):
            check_finite(shards.shard(i, axis), axis)
    return shards, shards.row_labels(reading.row_ids or DEFAULT_ROW_IDS, axis)


def _prefixes_of(
    parts: Sequence[tuple[str, ...] | None], expected: Sequence[str]
) -> list[str] | None:
    """The parties' names that the model has before those of the columns, one for each part.

    None if it has none. New files may be called otherwise than those of the fit.
    """
    prefixes, start = [], 0
    for names in parts:
        if not names:
            return None
        own = expected[start : start + len(names)]
        prefix = own[0].removesuffix(names[0]) if own else ""
        if not prefix.endswith(".") or tuple(own) != tuple(prefix + name for name in names):
            return None
        prefixes.append(prefix[:-1])
        start += len(names)
    return prefixes


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
