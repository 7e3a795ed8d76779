"""read_vector: targets from every kind of file."""

import gzip

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from atomcast.data import read_vector

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

Y = np.array([0.5, -1.0, 2.25])


def same(found, expected):
    expected = np.asarray(expected)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind
    assert found.ndim == 1


def test_arrays(tmp_path):
    np.save(tmp_path / "y.npy", Y)
    same(read_vector(tmp_path / "y.npy"), Y)
    np.save(tmp_path / "y.npy", Y.reshape(-1, 1))
    same(read_vector(tmp_path / "y.npy"), Y)
    np.savez(tmp_path / "y.npz", target=Y)
    same(read_vector(tmp_path / "y.npz"), Y)
    np.savez(tmp_path / "y.npz", y=Y, X=np.eye(3))
    same(read_vector(tmp_path / "y.npz"), Y)
    np.save(tmp_path / "y.npy", np.array(["no", "yes"]))
    same(read_vector(tmp_path / "y.npy"), ["no", "yes"])


def test_result_is_writable_and_not_tied_to_the_file(tmp_path):
    np.save(tmp_path / "y.npy", Y)
    found = read_vector(tmp_path / "y.npy")
    found[0] = 7.0
    same(read_vector(tmp_path / "y.npy"), Y)
    assert type(found) is np.ndarray


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, -1.0], [0.5, -1.0]),
        ([1, -1], [1, -1]),
        (["yes", "no"], ["yes", "no"]),
        ([True, False], [True, False]),
        (["1", "b"], ["1", "b"]),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_tables(tmp_path, suffix, values, expected):
    path = tmp_path / f"y.{suffix}"
    table = pd.DataFrame({"row_id": [5, 6], "target": values})
    table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
    same(read_vector(path), expected)
    same(read_vector(f"{path}:target"), expected)
    same(read_vector(f"{path}:row_id"), [5, 6])
    with pytest.raises(ValueError, match="no column 'y', only row_id, target"):
        read_vector(f"{path}:y")


def test_csv_of_numbers_without_header(tmp_path):
    (tmp_path / "y.csv").write_text("1.5\n2.5\n")
    same(read_vector(tmp_path / "y.csv"), [1.5, 2.5])


def test_table_with_several_columns_asks_which(tmp_path):
    pd.DataFrame({"a": [1], "b": [2]}).to_csv(tmp_path / "y.csv", index=False)
    with pytest.raises(ValueError, match=r"2 columns \(a, b\).*y\.csv:a"):
        read_vector(tmp_path / "y.csv")


def test_missing_class_is_named(tmp_path):
    pd.DataFrame({"y": ["a", None, "b"]}).to_parquet(tmp_path / "y.parquet")
    with pytest.raises(ValueError, match="row 1 has no value"):
        read_vector(tmp_path / "y.parquet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n-1\n+1\n", [1, -1, 1]),
        ("0.5\n1e3\n\n", [0.5, 1000.0]),
        ("cat\ndog one\n", ["cat", "dog one"]),
    ],
)
def test_text(tmp_path, text, expected):
    (tmp_path / "y.txt").write_text(text)
    (tmp_path / "y.labels.gz").write_bytes(gzip.compress(text.encode()))
    same(read_vector(tmp_path / "y.txt"), expected)
    same(read_vector(tmp_path / "y.labels.gz"), expected)


@pytest.mark.parametrize("name", ["p.svm", "p.libsvm", "p.txt"])
def test_labels_of_svmlight_files(tmp_path, name):
    dump_svmlight_file(np.eye(3), Y, str(tmp_path / name))
    same(read_vector(tmp_path / name), Y)


def test_colons_in_folders_are_left_alone(tmp_path):
    folder = tmp_path / "a:b"
    folder.mkdir()
    np.save(folder / "y.npy", Y)
    same(read_vector(folder / "y.npy"), Y)
    pd.DataFrame({"y": Y}).to_csv(folder / "y.csv", index=False)
    same(read_vector(f"{folder}/y.csv:y"), Y)


def test_bad_vectors(tmp_path):
    np.save(tmp_path / "y.npy", np.eye(3))
    with pytest.raises(ValueError, match=r"y\.npy.*shape \(3, 3\), but a vector"):
        read_vector(tmp_path / "y.npy")
    with pytest.raises(ValueError, match=r"'\.xls' is not known for a vector"):
        read_vector(tmp_path / "y.xls")
    with pytest.raises(FileNotFoundError, match=r"no file .*other\.npy"):
        read_vector(tmp_path / "other.npy")
    (tmp_path / "y.npz").write_bytes(b"PK no zip")
    with pytest.raises(ValueError, match=r"y\.npz cannot be read"):
        read_vector(tmp_path / "y.npz")
