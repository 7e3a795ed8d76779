"""Reading .npy (memory-mapped) and .npz (dense or scipy sparse) files. Never unpickles."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.matrices import as_matrix
from atomcast.data.parts import Format, Part, PartInfo, ReadOptions, refuse_row_ids

_NAMES = "names"
_ROW_IDS = "row_ids"


def load_npy(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file as a read-only memory-map."""
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def load_npz_array(path: Path, key: str, row_ids: str | None = None) -> NDArray[Any]:
    """Return the array called `key`, or the only array beside row ids, of a .npz file."""
    with np.load(path, allow_pickle=False) as file:
        array: NDArray[Any] = file[_main_key(file.files, key, row_ids)]
    return array


def npz_row_ids(path: Path, row_ids: str | None = None) -> NDArray[Any] | None:
    """Return the array of row ids of a .npz file, if it has one."""
    with np.load(path, allow_pickle=False) as file:
        key = row_ids or _ROW_IDS
        return file[key] if key in file.files else None


def _read_npy(path: Path, options: ReadOptions) -> Part:
    refuse_row_ids(options, ".npy")
    return Part(as_matrix(load_npy(path), parameter="the array"))


def _describe_npy(path: Path, options: ReadOptions) -> PartInfo:
    refuse_row_ids(options, ".npy")
    with path.open("rb") as file:
        rows, columns = _two(_header_shape(file))
    return PartInfo(rows, columns)


def _no_row_ids(path: Path, options: ReadOptions) -> None:
    refuse_row_ids(options, ".npy")


def _read_npz(path: Path, options: ReadOptions) -> Part:
    with np.load(path, allow_pickle=False) as file:
        matrix = sparse.load_npz(path) if _is_sparse(file.files) else None
        if matrix is None:
            matrix = file[_main_key(file.files, "X", options.row_ids)]
        names = _npz_names(file)
        row_ids = _npz_row_ids(file, options)
    return Part(as_matrix(matrix, parameter="the array"), names, row_ids)


def _describe_npz(path: Path, options: ReadOptions) -> PartInfo:
    with np.load(path, allow_pickle=False) as file:
        names = _npz_names(file)
        if _is_sparse(file.files):
            rows, columns = _two(tuple(file["shape"]))
            return PartInfo(rows, columns, names)
        key = _main_key(file.files, "X", options.row_ids)
    # Only the header of the array, which a compressed file gives without the rest.
    with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as member:
        rows, columns = _two(_header_shape(member))
    return PartInfo(rows, columns, names)


def _row_ids_npz(path: Path, options: ReadOptions) -> NDArray[Any] | None:
    with np.load(path, allow_pickle=False) as file:
        return _npz_row_ids(file, options)


def _is_sparse(keys: list[str]) -> bool:
    return {"format", "shape", "data"} <= set(keys)


def _main_key(keys: list[str], preferred: str, row_ids: str | None = None) -> str:
    if preferred in keys:
        return preferred
    candidates = [key for key in keys if key not in (_NAMES, _ROW_IDS, row_ids)]
    if len(candidates) == 1:
        return candidates[0]
    raise ValueError(
        f"it holds the arrays {candidates}, but one array, or one called {preferred!r}, is "
        f"needed: write it with numpy.savez(path, {preferred}=array) or scipy.sparse.save_npz"
    )


def _npz_names(file: Any) -> tuple[str, ...] | None:
    return tuple(str(name) for name in file[_NAMES]) if _NAMES in file.files else None


def _npz_row_ids(file: Any, options: ReadOptions) -> NDArray[Any] | None:
    key = options.row_ids or _ROW_IDS
    if key in file.files:
        row_ids: NDArray[Any] = file[key]
        return row_ids
    if options.row_ids is not None:
        raise ValueError(
            f"row_ids={key!r} was given, but its arrays are {file.files}: "
            f"write the ids with numpy.savez(path, X=array, {key}=ids)"
        )
    return None


def _header_shape(file: IO[bytes]) -> tuple[int, ...]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape: tuple[int, ...] = read(file)[0]
    return shape


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(
            f"its array has shape {shape}, but a matrix (rows, columns) is needed: "
            "save a single column as array.reshape(-1, 1)"
        )
    return int(shape[0]), int(shape[1])


NPY = Format(".npy", _read_npy, _describe_npy, _no_row_ids)
NPZ = Format(".npz", _read_npz, _describe_npz, _row_ids_npz)
