"""Files that promise more than they hold, and damaged ones: a ValueError, or what is in them."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from atomcast.data import Shards, peek, promises, read_part, read_vector
from damage import damaged, outcome

READERS = (read_part, peek, read_vector)


@pytest.fixture
def little_memory():
    """The most that was taken while a test ran must be little."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


def npy_bytes(shape, descr="<f8", values=b""):
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + values


def write_npz(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


# -- promises --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_a_sparse_file_of_a_kilobyte_asks_for_gigabytes(tmp_path, form, little_memory):
    shape = (10**9, 3) if form == "csc" else (3, 10**9)
    path = tmp_path / "part.npz"
    sparse.save_npz(path, getattr(sparse, f"{form}_array")(([1.0], ([0], [0])), shape=shape))
    assert path.stat().st_size < 1500
    for read in (read_part, peek):
        with pytest.raises(ValueError, match=r"part\.npz.*would take 59\.6 GiB, but the file has"):
            read(path)
    with pytest.raises(ValueError, match="would take"):
        Shards.files([path]).count()


def test_a_sparse_file_with_many_empty_columns_is_read(tmp_path):
    sparse.save_npz(tmp_path / "p.npz", sparse.coo_array(([1.0], ([0], [0])), shape=(3, 2**22)))
    assert read_part(tmp_path / "p.npz").matrix.shape == peek(tmp_path / "p.npz") == (3, 2**22)


def test_a_header_that_promises_more_than_its_member_holds(tmp_path, little_memory):
    path = write_npz(tmp_path / "part.npz", X=npy_bytes((2**20, 2**10), values=bytes(800)))
    for read in READERS:
        with pytest.raises(ValueError, match=r"takes 8,589,934,592 bytes, but 800 follow"):
            read(path)
    path = write_npz(tmp_path / "more.npz", X=npy_bytes((1, 1), values=bytes(8)), names=b"junk")
    with pytest.raises(ValueError, match=r"more\.npz cannot be read"):
        read_part(path)


def test_an_archive_that_claims_to_be_huge(tmp_path, little_memory):
    path = write_npz(tmp_path / "part.npz", X=npy_bytes((10, 10), values=bytes(800)))
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(content)
    for read in READERS:
        with pytest.raises(ValueError, match=r"unpacked, it would take 4\.0 GiB"):
            read(path)


def test_a_zip_bomb(tmp_path, monkeypatch, little_memory):
    monkeypatch.setattr(promises, "ALWAYS", 2**20)
    path = write_npz(tmp_path / "part.npz", X=npy_bytes((500, 500), values=bytes(8 * 500 * 500)))
    for read in READERS:
        with pytest.raises(ValueError, match="unpacked, it would take"):
            read(path)


@pytest.mark.parametrize(
    "shape", [(2**20, 2**10), (0, 2**40), (-4, -4), (2**70, 2**70), (2**32, 2**32), (1, -1)]
)
def test_a_npy_header_without_its_values(tmp_path, shape, little_memory):
    (tmp_path / "part.npy").write_bytes(npy_bytes(shape, values=bytes(64)))
    for read in READERS:
        with pytest.raises(ValueError, match=r"part\.npy"):
            read(tmp_path / "part.npy")


def test_a_svmlight_file_with_one_large_index(tmp_path, little_memory):
    (tmp_path / "part.svm").write_text("1 1:1 2000000000:1\n")
    for read in (read_part, peek):
        with pytest.raises(ValueError, match=r"shape \(1, 2000000000\) would take 119\.2 GiB"):
            read(tmp_path / "part.svm")
    assert peek(tmp_path / "part.svm", n_features=2_000_000_001) == (1, 2_000_000_001)


@pytest.mark.parametrize("suffix", ["csv.gz", "svm.gz", "txt.gz"])
def test_a_gzip_bomb(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(promises, "ALWAYS", 2**16)
    (tmp_path / f"part.{suffix}").write_bytes(gzip.compress(b"a\n" + b"0\n" * 10**6))
    for read in READERS if suffix != "svm.gz" else (read_part, peek):
        with pytest.raises(ValueError, match="unpacked, it would take"):
            read(tmp_path / f"part.{suffix}")


def test_a_parquet_file_of_few_bytes_and_many_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(promises, "ALWAYS", 2**16)
    pd.DataFrame({"a": np.zeros(10**6, dtype=np.int8)}).to_parquet(tmp_path / "part.parquet")
    for read in READERS:
        with pytest.raises(ValueError, match="as numbers, it would take"):
            read(tmp_path / "part.parquet")


# -- damage ----------------------------------------------------------------------------------


def written(folder, kind):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((9, 4)), 2)
    path = folder / f"part.{kind.split(' ')[-1]}"
    table = pd.DataFrame(X, columns=list("abcd"))
    if kind == "npy":
        np.save(path, X)
    elif kind == "stored npz":
        np.savez(path, X=X, names=np.array(list("abcd")), row_ids=np.arange(9))
    elif kind == "packed npz":
        np.savez_compressed(path, X=X)
    elif kind.endswith("npz"):
        sparse.save_npz(path, sparse.coo_array(X).asformat(kind.split()[0]), compressed=False)
    elif kind.endswith(("csv", "csv.gz")):
        table.to_csv(path, index=False)
    elif kind == "parquet":
        table.to_parquet(path)
    else:
        dump_svmlight_file(X, np.arange(9), str(path.with_suffix("")))
        text = path.with_suffix("").read_bytes()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    return path


KINDS = [
    *("npy", "stored npz", "packed npz", "csr npz", "csc npz", "coo npz", "bsr npz", "dia npz"),
    *("csv", "csv.gz", "svm", "svm.gz", "parquet"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(tmp_path, kind):
    path = written(tmp_path, kind)
    assert read_part(path).matrix.shape == peek(path) == (9, 4)
    refused = 0
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        found = [outcome(read, path) for read in (read_part, peek)]
        refused += isinstance(found[0], ValueError)
        if not isinstance(found[0], ValueError):
            assert max(found[0].matrix.shape) < 2**24
    assert refused > 10


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    st.sampled_from(["<f8", "<i4", "|b1", "|O", "<U9999999", "<M8[s]", "<f99", "", "(2,)f4"]),
    st.lists(st.integers(-3, 2**70) | st.integers(0, 6), max_size=4).map(tuple)
    | st.sampled_from(["(", "None", "-" * 5000 + "1", "[" * 150 + "]" * 150, "{1: 2}"]),
    st.binary(max_size=200),
)
def test_any_header_of_a_npy_file(tmp_path_factory, descr, shape, values):
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values
    folder = tmp_path_factory.mktemp("headers")
    (folder / "part.npy").write_bytes(array)
    write_npz(folder / "part.npz", X=array)
    for path in (folder / "part.npy", folder / "part.npz"):
        for read in READERS:
            outcome(read, path)
