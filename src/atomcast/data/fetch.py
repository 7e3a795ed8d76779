"""Finding the files of a data set on this machine, checking them, downloading them if asked to."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from pathlib import Path

from atomcast.data.catalog import FILES, DataFile
from atomcast.data.promises import check_gzip

_GZIP_MAGIC = b"\x1f\x8b"


def data_home() -> Path:
    """Return the folder that holds the data sets, one sub-folder each.

    The environment variable ATOMCAST_DATA, else the folder `atomcast` in the user's cache
    (XDG_CACHE_HOME, else ~/.cache).
    """
    if chosen := os.environ.get("ATOMCAST_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "atomcast"


def read_files(data_set: str, *, download: bool) -> list[bytes]:
    """Return the checked, unpacked content of every file of a data set.

    Parameters
    ----------
    data_set : str
        A key of `catalog.FILES`.
    download : bool
        Whether to download the files that are missing.

    Raises
    ------
    FileNotFoundError
        If files are missing and `download` is False; says which to put where.
    ValueError
        If the content of a file is not what it should be.
    """
    folder = data_home() / data_set
    files = FILES[data_set]
    missing = [file for file in files if _find(folder, file) is None]
    if missing and not download:
        raise FileNotFoundError(_missing_message(data_set, folder, missing))
    for file in missing:
        _download(data_set, folder, file)
    return [_read(_find(folder, file) or folder / file.name, file) for file in files]


def _find(folder: Path, file: DataFile) -> Path | None:
    for name in (file.name, file.name.removesuffix(".gz")):
        if (folder / name).is_file():
            return folder / name
    return None


def _read(path: Path, file: DataFile) -> bytes:
    content = path.read_bytes()
    try:
        if content.startswith(_GZIP_MAGIC):
            check_gzip(path)
            content = gzip.decompress(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error}): delete it and get it again") from error
    # Copies in circulation differ in whether their last line ends.
    content = content.rstrip(b"\r\n") + b"\n"
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{path} is damaged or another version: its unpacked content has sha256 {found}, but "
            f"{file.sha256} is expected; delete it and get it again, from {file.url}"
        )
    return content


def _download(data_set: str, folder: Path, file: DataFile) -> None:
    try:
        import pooch
    except ImportError:
        raise ImportError('download=True needs pooch: pip install "atomcast[data]"') from None

    mirror = os.environ.get("ATOMCAST_DATA_URL")
    url = f"{mirror.rstrip('/')}/{data_set}/{file.name}" if mirror else file.url
    folder.mkdir(parents=True, exist_ok=True)
    # In a folder of its own, so that nothing that was there before is taken for the download.
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as place:
        # The check-sum is of the unpacked content, so it is compared by _read and not by pooch.
        path = Path(pooch.retrieve(url, known_hash=None, fname=file.name, path=place))
        try:
            _read(path, file)
        except ValueError as error:
            raise ValueError(f"the download from {url} was not kept: {error}") from error
        packed = path.read_bytes()[:2] == _GZIP_MAGIC
        path.replace(folder / (file.name if packed else file.name.removesuffix(".gz")))


def _missing_message(data_set: str, folder: Path, missing: list[DataFile]) -> str:
    lines = [f"  {folder / file.name}   (published as {file.url})" for file in missing]
    return "\n".join(
        [
            f"the data set {data_set!r} is not complete on this machine; missing:",
            *lines,
            "Put these files there (packed or unpacked), or set the environment variable "
            f"ATOMCAST_DATA to a folder that has {data_set}/, or pass download=True.",
        ]
    )
