"""Reading .npy (memory-mapped) and .npz (dense or scipy sparse) files. Never unpickles."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from atomcast.data.matrices import as_matrix
from atomcast.data.parts import Format, Part, PartInfo, ReadOptions
from atomcast.data.promises import check_promise, check_shape
from atomcast.data.sparse_format import check_sparse

_NAMES = "names"
_ROW_IDS = "row_ids"


def load_npy(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file as a read-only memory-map."""
    with path.open("rb") as file:
        _checked_header(file, path.stat().st_size)  # what numpy computes of it may overflow
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def load_npz_array(path: Path, key: str, row_ids: str | None = None) -> NDArray[Any]:
    """Return the array called `key`, or the only array beside row ids, of a .npz file."""
    with _arrays(path) as file:
        array: NDArray[Any] = file[_main_key(file.files, key, row_ids)]
    return array


def npz_row_ids(path: Path, row_ids: str | None = None) -> NDArray[Any] | None:
    """Return the array of row ids of a .npz file, if it has one."""
    with _arrays(path) as file:
        key = row_ids or _ROW_IDS
        return file[key] if key in file.files else None


def _read_npy(path: Path, options: ReadOptions) -> Part:
    matrix = as_matrix(load_npy(path), parameter="the array")
    check_shape(matrix.shape, path)
    return Part(matrix)


def _read_npz(path: Path, options: ReadOptions) -> Part:
    with _arrays(path) as file:
        if _is_sparse(file.files):
            _two(tuple(file["shape"].tolist()), path)
            matrix = sparse.load_npz(path)
            check_sparse(matrix, parameter="it")
        else:
            matrix = file[_main_key(file.files, "X", options.row_ids)]
            check_shape(matrix.shape, path)
        names = _npz_names(file)
        row_ids = _npz_row_ids(file, options)
    return Part(as_matrix(matrix, parameter="the array"), names, row_ids)


def _describe_npz(path: Path, options: ReadOptions) -> PartInfo:
    with _arrays(path) as file:
        names = _npz_names(file)
        if _is_sparse(file.files):
            rows, columns = _two(tuple(file["shape"].tolist()), path)
            return PartInfo(rows, columns, names)
        key = _main_key(file.files, "X", options.row_ids)
    # Only the header of the array, which a compressed file gives without the rest.
    with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as member:
        rows, columns = _two(_header(member)[0], path)
    return PartInfo(rows, columns, names)


def _row_ids_npz(path: Path, options: ReadOptions) -> NDArray[Any] | None:
    with _arrays(path) as file:
        return _npz_row_ids(file, options)


@contextmanager
def _arrays(path: Path) -> Iterator[Any]:
    """The arrays of a .npz file, after a look at how large they say they are.

    An array is made before its values are unpacked, in the size that its header asks for.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_promise(sum(member.file_size for member in members), path, "unpacked, it")
        for info in members:
            if info.filename.endswith(".npy"):
                with archive.open(info) as member:
                    _checked_header(member, info.file_size)
    with np.load(path, allow_pickle=False) as file:
        yield file


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


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type that a .npy file begins with."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _checked_header(file: IO[bytes], size: int) -> tuple[int, ...]:
    """The shape of the array in a .npy file of this size, if its values are there."""
    shape, dtype = _header(file)
    needed, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or needed > held:
        raise ValueError(
            f"an array of shape {shape} and type {dtype} takes {needed:,} bytes, but {held:,} "
            "follow: the file is damaged or was not written to its end"
        )
    return shape


def _two(shape: tuple[int, ...], path: Path) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(
            f"its array has shape {shape}, but a matrix (rows, columns) is needed: "
            "save a single column as array.reshape(-1, 1)"
        )
    check_shape(shape, path)
    return int(shape[0]), int(shape[1])


NPY = Format(".npy", _read_npy)
NPZ = Format(".npz", _read_npz, _row_ids_npz, _describe_npz)
