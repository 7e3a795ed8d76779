"""The real data sets, where the machine has them; finding, checking and downloading everywhere."""

import dataclasses
import functools
import gzip
import hashlib
import http.server
import re
import threading

import numpy as np
import pytest

import realdata
from atomcast.data import data_home, load_adult, load_dorothea, load_letter, load_usps
from atomcast.data.catalog import FILES, DataFile
from atomcast.data.fetch import read_files

CONTENT = b"1 2\n3\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ATOMCAST_DATA", str(tmp_path / "home"))
    folder = tmp_path / "home" / "toy"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    file = DataFile("toy.data.gz", hashlib.sha256(CONTENT).hexdigest(), "https://example.org/toy")
    monkeypatch.setitem(FILES, "toy", (file,))


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Serve a folder over HTTP on this machine and name it as the mirror."""
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ATOMCAST_DATA_URL", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield folder / "toy"
        server.shutdown()


def test_adult(monkeypatch):
    realdata.use("a9a", monkeypatch)
    data = load_adult()
    assert data.X.shape == (32_561, 123)
    assert data.X_test.shape == (16_281, 123)
    assert (data.X.nnz, data.X_test.nnz) == (451_592, 225_731)
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert np.all(data.X.data == 1)
    assert (np.sum(data.y == 1), np.sum(data.y == -1)) == (7_841, 24_720)
    assert (np.sum(data.y_test == 1), np.sum(data.y_test == -1)) == (3_846, 12_435)


def test_dorothea(monkeypatch):
    realdata.use("dorothea", monkeypatch)
    data = load_dorothea()
    assert data.X.format == "csc"
    assert data.X.shape == (1_150, 100_000)
    assert data.X.dtype == np.float64
    assert data.X.nnz == data.X.sum() == 1_045_512
    assert data.X.has_canonical_format
    assert np.sum(np.diff(data.X.indptr) > 0) == 91_598
    assert (data.y.shape, np.sum(data.y == 1), np.sum(data.y == -1)) == ((1_150,), 112, 1_038)


def test_dorothea_against_a_plain_parser(monkeypatch):
    realdata.use("dorothea", monkeypatch)
    path = realdata.folder("dorothea") / "dorothea_valid.data.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    data = load_dorothea(part="valid")
    assert data.X.shape == (len(lines), 100_000)
    assert data.X.nnz == 317_752
    X = data.X.tocsr()
    for row in (0, 1, 17, 349):
        expected = sorted(int(word) - 1 for word in lines[row].split())
        np.testing.assert_array_equal(np.sort(X[[row]].indices), expected)


def test_dorothea_parts_are_stacked(monkeypatch):
    realdata.use("dorothea", monkeypatch)
    whole, train, valid = (load_dorothea(part=part) for part in ("all", "train", "valid"))
    assert train.X.shape == (800, 100_000)
    assert (train.X.nnz, np.sum(train.y == 1)) == (727_760, 78)
    assert (whole.X.tocsr()[:800] != train.X.tocsr()).nnz == 0
    assert (whole.X.tocsr()[800:] != valid.X.tocsr()).nnz == 0
    np.testing.assert_array_equal(whole.y, np.concatenate([train.y, valid.y]))
    with pytest.raises(ValueError, match="part='test'"):
        load_dorothea(part="test")


def test_usps(monkeypatch):
    realdata.use("usps", monkeypatch)
    data = load_usps()
    assert (data.X.shape, data.X_test.shape) == ((7_291, 256), (2_007, 256))
    assert data.X.min() == -1
    assert data.X.max() == 1
    counts = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(data.y).tolist() == counts
    assert np.bincount(data.y_test).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]


def test_letter(monkeypatch):
    realdata.use("letter", monkeypatch)
    data = load_letter()
    assert (data.X.shape, data.X_test.shape) == ((16_000, 16), (4_000, 16))
    assert (data.X.min(), data.X.max()) == (0, 1)
    assert len(data.names) == 16
    assert "".join(np.unique(data.y)) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    counts = np.unique(np.concatenate([data.y, data.y_test]), return_counts=True)[1]
    assert (counts.min(), counts.max()) == (734, 813)


def test_data_sets_are_frozen(monkeypatch):
    realdata.use("letter", monkeypatch)
    with pytest.raises(dataclasses.FrozenInstanceError):
        load_letter().X = None


def test_catalogue_agrees_with_the_notes_beside_the_data():
    """Every check-sum of the notes' "unzipped" lines, and of unpacked files, is in our table."""
    compared = 0
    for name in ("a9a", "dorothea", "letter", "usps"):
        notes = (realdata.folder(name) / "SOURCE.md").read_text()
        for file in FILES[name]:
            words = r"[^\n]*\n\s*\(unzipped sha256 " if file.name.endswith(".gz") else r".*?sha256 "
            found = re.search(rf"`{re.escape(file.name)}`{words}([0-9a-f]{{64}})", notes)
            assert found, file.name
            assert found[1] == file.sha256, file.name
            compared += 1
    assert compared == 9


def test_data_home_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ATOMCAST_DATA", str(tmp_path / "here"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_home() == tmp_path / "here"
    monkeypatch.delenv("ATOMCAST_DATA")
    assert data_home() == tmp_path / "cache" / "atomcast"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home() == tmp_path / ".cache" / "atomcast"


@pytest.mark.parametrize("load", [load_adult, load_dorothea, load_letter, load_usps])
def test_missing_files_are_listed_with_their_places(monkeypatch, tmp_path, load):
    monkeypatch.setenv("ATOMCAST_DATA", str(tmp_path))
    name = {"adult": "a9a"}.get(load.__name__[5:], load.__name__[5:])
    with pytest.raises(FileNotFoundError) as error:
        load()
    for file in FILES[name]:
        assert str(tmp_path / name / file.name) in str(error.value)
        assert file.url in str(error.value)
    assert "download=True" in str(error.value)
    assert "ATOMCAST_DATA" in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("toy.data.gz", gzip.compress(CONTENT, mtime=0)),
        ("toy.data.gz", gzip.compress(CONTENT, compresslevel=1, mtime=5)),
        ("toy.data", CONTENT),
        ("toy.data", CONTENT.rstrip()),
    ],
)
def test_packing_and_final_line_break_do_not_matter(home, name, content):
    (home / name).write_bytes(content)
    assert read_files("toy", download=False) == [CONTENT]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("toy.data", b"1 2\n4\n", r"another version.*sha256.*example\.org"),
        ("toy.data.gz", gzip.compress(CONTENT, mtime=0)[:-9], "toy.data.gz is damaged"),
        ("toy.data.gz", gzip.compress(b"1 2\n4\n", mtime=0), "another version"),
    ],
)
def test_wrong_content_is_refused(home, name, content, message):
    (home / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_files("toy", download=False)


@pytest.mark.parametrize("packed", [True, False])
def test_download_is_checked_and_kept(home, mirror, packed):
    pytest.importorskip("pooch")
    served = gzip.compress(CONTENT, mtime=0) if packed else CONTENT
    (mirror / "toy.data.gz").write_bytes(served)
    assert read_files("toy", download=True) == [CONTENT]
    assert [path.name for path in home.iterdir()] == ["toy.data.gz" if packed else "toy.data"]
    (mirror / "toy.data.gz").unlink()
    assert read_files("toy", download=True) == [CONTENT]


def test_wrong_download_is_not_kept(home, mirror):
    pytest.importorskip("pooch")
    (mirror / "toy.data.gz").write_bytes(b"<html>moved</html>")
    with pytest.raises(ValueError, match=r"download from http.*toy\.data\.gz was not kept"):
        read_files("toy", download=True)
    assert list(home.iterdir()) == []


def test_download_without_pooch_says_how_to_install(home, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'pip install "atomcast\[data\]"'):
        read_files("toy", download=True)
