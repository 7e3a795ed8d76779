"""read_part and peek: each format there and back, and what bad files say."""

import gzip
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from atomcast.data import peek, read_part, read_vector
from atomcast.data.readers import describe, read_row_ids

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

X = np.array([[1.5, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 5.0, 0.0], [0.0, 6.25, 0.0]])
NAMES = ("a", "b", "c")


def frame(**first):
    return pd.DataFrame({**first, **dict(zip(NAMES, X.T, strict=True))})


def write(path, row_ids=None):
    """Write X in the format of the suffix."""
    ids = {} if row_ids is None else {"row_id": row_ids}
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X)
    elif path.suffix == ".parquet":
        frame(**ids).to_parquet(path)
    elif ".csv" in path.name:
        frame(**ids).to_csv(path, index=False)
    else:
        plain = path.with_name("plain.svm")
        dump_svmlight_file(X, np.array([1, -1, 1, -1]), str(plain), zero_based=False)
        content = plain.read_bytes()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


DENSE = ["p.npy", "p.npz", "p.parquet", "p.csv", "p.csv.gz", "P.0.CSV"]
SVMLIGHT = ["p.svm", "p.svmlight", "p.libsvm", "p.txt", "p.svm.gz", "p.txt.gz"]


@pytest.mark.parametrize("name", DENSE + SVMLIGHT)
def test_there_and_back(tmp_path, name):
    path = write(tmp_path / name.replace("CSV", "csv"))
    part = read_part(path)
    matrix = part.matrix.toarray() if sparse.issparse(part.matrix) else part.matrix
    np.testing.assert_array_equal(matrix, X)
    assert part.matrix.dtype == np.float64
    assert part.names == (NAMES if "csv" in path.name or "parquet" in name else None)
    assert part.row_ids is None
    assert read_row_ids(path) is None
    assert peek(path) == (4, 3)
    assert describe(path).names == part.names
    assert read_part(str(path)).matrix.shape == (4, 3)


def test_npy_is_memory_mapped_and_read_only(tmp_path):
    matrix = read_part(write(tmp_path / "p.npy")).matrix
    assert isinstance(matrix, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 1.0


@pytest.mark.parametrize("name", ["p.npy", "p.npz"])
def test_empty_and_column_major_arrays(tmp_path, name):
    for array in (np.zeros((5, 0)), np.zeros((0, 5)), np.asfortranarray(X)):
        (np.save if name == "p.npy" else np.savez)(tmp_path / name, array)
        assert peek(tmp_path / name) == array.shape
        np.testing.assert_array_equal(read_part(tmp_path / name).matrix, array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_with_names_and_row_ids(tmp_path, save):
    path = tmp_path / "p.npz"
    save(path, X=X, names=np.array(NAMES), row_ids=np.array(["p", "q", "r", "s"]), extra=np.ones(3))
    part = read_part(path)
    assert part.names == NAMES == describe(path).names
    assert part.row_ids.tolist() == ["p", "q", "r", "s"] == read_row_ids(path).tolist()
    np.testing.assert_array_equal(part.matrix, X)
    assert peek(path) == (4, 3)


def test_npz_with_row_ids_of_another_name(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, values=X, patient=np.arange(4))
    part = read_part(path, row_ids="patient")
    np.testing.assert_array_equal(part.matrix, X)
    np.testing.assert_array_equal(part.row_ids, np.arange(4))
    assert peek(path, row_ids="patient") == (4, 3)
    with pytest.raises(ValueError, match=r"row_ids='visit'.*patient"):
        read_row_ids(path, row_ids="visit")


@pytest.mark.parametrize("layout", ["csc", "csr", "coo"])
def test_sparse_npz(tmp_path, layout):
    path = tmp_path / "p.npz"
    sparse.save_npz(path, sparse.csr_array(X).asformat(layout))
    matrix = read_part(path).matrix
    assert matrix.format == layout
    np.testing.assert_array_equal(matrix.toarray(), X)
    assert peek(path) == (4, 3)


def test_peek_of_npz_does_not_need_the_values(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, X=np.random.default_rng(0).random((1000, 50)))
    content = bytearray(path.read_bytes())
    content[200_000:200_100] = bytes(100)  # damage among the values
    path.write_bytes(content)
    assert peek(path) == (1000, 50)
    with pytest.raises(ValueError, match=r"p\.npz cannot be read"):
        read_part(path)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("ids", [[4, 2, 9, 7], ["u1", "u2", "u3", "u4"]])
def test_row_id_column_is_no_feature(tmp_path, suffix, ids):
    path = write(tmp_path / f"p.{suffix}", row_ids=ids)
    part = read_part(path)
    assert part.names == NAMES
    assert part.row_ids.tolist() == ids == read_row_ids(path).tolist()
    assert peek(path) == (4, 3)
    np.testing.assert_array_equal(part.matrix, X)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_row_id_column_of_another_name(tmp_path, suffix):
    path = tmp_path / f"p.{suffix}"
    table = frame(patient=[1, 2, 3, 4])
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    assert peek(path) == (4, 4)
    assert peek(path, row_ids="patient") == (4, 3)
    assert read_part(path, row_ids="patient").row_ids.tolist() == [1, 2, 3, 4]
    with pytest.raises(
        ValueError, match=r"row_ids='visit' is none of its columns \('patient', 'a'"
    ):
        peek(path, row_ids="visit")


def test_index_stored_in_parquet_is_no_feature(tmp_path):
    path = tmp_path / "p.parquet"
    frame().iloc[[3, 1]].to_parquet(path)
    assert peek(path) == (2, 3)
    assert read_part(path).names == NAMES


@pytest.mark.parametrize("ids", [[4, 3, 2, 1], [4, 9, 2, 1], ["u", "v", "w", "x"]])
@pytest.mark.parametrize("name", ["row_id", "patient"])
def test_index_stored_in_parquet_can_be_row_ids(tmp_path, ids, name):
    path = tmp_path / "p.parquet"
    frame(**{name: ids}).set_index(name).to_parquet(path)
    options = {} if name == "row_id" else {"row_ids": name}
    assert peek(path, **options) == peek(path) == (4, 3)
    assert read_part(path, **options).names == NAMES
    assert read_part(path, **options).row_ids.tolist() == ids
    assert read_row_ids(path, **options).tolist() == ids


def test_csv_with_quoted_line_breaks_and_blank_lines(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('row_id,a\n"x\ny",1\n\nz,2\n')
    assert peek(path) == (2, 1)
    assert read_part(path).matrix.shape == (2, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,a\n1,2,3\n", "column name 'a' occurs more than once"),
        (",a\n0,1.5\n1,2.5\n", "column 0 has no name.*index=False"),
        ("1.5,2.5\n3.5,4.5\n", "holds only numbers.*header"),
        ("a,b\n1,x\n2,y\n", "column 'b' holds.*'x'"),
        ("", "p.csv cannot be read"),
        ("a,b\n1,2\n1,2,3\n", r"line 3 is a ragged row: it has 3 column\(s\), .*header has 2"),
        ("a,b\n1,2,3\n4,5,6\n", r"line 2 is a ragged row: it has 3"),
        ("a,b\n1,2,\n4,5,\n", r"line 2 is a ragged row: it has 3"),
        ("a,b\n1,2\n\n3\n4,5\n", r"line 4 is a ragged row: it has 1"),
        ('a,b\n"1\n",2\n3\n', r"line 4 is a ragged row: it has 1"),
        ("a;b\n1;2\n3;4;5\n", r"line 3 is a ragged row.*quote texts that contain ';'"),
        ("a;b\n1,5;2\n", r"column 'a' holds.*'1,5' in row 0 \(numbers need a decimal point"),
        ("a,b\n1,2\n3,x\n", r"column 'b' holds.*'x' in row 1"),
        ("patient_id,b\n1,2\n2,3\n", r"'patient_id' is named like an id.*--row-ids patient_id"),
    ],
)
def test_bad_csv(tmp_path, content, message):
    path = tmp_path / "p.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_part(path)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
def test_other_separators_are_recognised(tmp_path, mark, name):
    path = tmp_path / name
    pd.DataFrame({"row_id": [7, 8], "a": [0.5, 1.5], "b": [2.0, 3.0]}).to_csv(
        path, sep=mark, index=False
    )
    part = read_part(path)
    assert part.names == ("a", "b")
    assert peek(path) == (2, 2)
    np.testing.assert_array_equal(part.matrix, [[0.5, 2.0], [1.5, 3.0]])
    np.testing.assert_array_equal(part.row_ids, [7, 8])
    np.testing.assert_array_equal(read_vector(f"{path}:b"), [2.0, 3.0])


def test_missing_values_are_no_ragged_rows(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('a,b\n1,\n\n"2",3\n')
    np.testing.assert_array_equal(read_part(path).matrix, [[1.0, np.nan], [2.0, 3.0]])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_usual_ids_are_no_feature_beside_others(tmp_path, suffix):
    path = tmp_path / f"p.{suffix}"
    table = pd.DataFrame({"row_id": [0, 1], "patient": [8, 9], "a": [0.5, 1.5]})
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    part = read_part(path, row_ids="patient")
    assert part.names == ("a",)
    assert peek(path, row_ids="patient") == (2, 1)
    np.testing.assert_array_equal(part.row_ids, [8, 9])


def test_numbered_columns_are_a_header(tmp_path):
    path = tmp_path / "p.csv"
    pd.DataFrame(X).to_csv(path, index=False)
    assert read_part(path).names == ("0", "1", "2")
    np.testing.assert_array_equal(read_part(path).matrix, X)


def test_svmlight_indices_are_narrow_and_columns_can_be_given(tmp_path):
    path = write(tmp_path / "p.svm")
    part = read_part(path, n_features=10)
    assert part.matrix.shape == (4, 10) == peek(path, n_features=10)
    assert part.matrix.indices.dtype == part.matrix.indptr.dtype == np.int32


DAMAGED = [
    (name, damage)
    for name in DENSE[:5] + SVMLIGHT
    for damage in ("cut", "noise", "empty")
    # Half a text is a shorter text, and an empty one is a svmlight file without rows.
    if (name, damage) != ("p.csv", "cut") and (name not in SVMLIGHT or damage == "noise")
]


@pytest.mark.parametrize(("name", "damage"), [*DAMAGED, ("p.svm.gz", "cut")])
def test_damaged_file_is_named(tmp_path, name, damage):
    path = write(tmp_path / name)
    content = path.read_bytes()
    half = content[: len(content) // 2]
    path.write_bytes({"cut": half, "noise": b"\x00\xff\xfe" * 50, "empty": b""}[damage])
    with pytest.raises(ValueError, match=rf"{name} cannot be read as a .* file: "):
        read_part(path)


def test_pickles_are_never_loaded(tmp_path):
    for name, save in (("p.npy", np.save), ("p.npz", np.savez)):
        save(tmp_path / name, np.array([[{}]], dtype=object), allow_pickle=True)
        with pytest.raises(ValueError, match=r"Python objects|allow_pickle=False"):
            read_part(tmp_path / name)


@pytest.mark.parametrize("name", ["p.npy", "p.npz"])
def test_vectors_are_no_matrix(tmp_path, name):
    (np.save if name == "p.npy" else np.savez)(tmp_path / name, np.ones(4))
    with pytest.raises(ValueError, match=r"shape \(4,\).*reshape"):
        peek(tmp_path / name)
    with pytest.raises(ValueError, match=r"shape \(4,\).*reshape"):
        read_part(tmp_path / name)


def test_npz_with_several_arrays_lists_them(tmp_path):
    np.savez(tmp_path / "p.npz", left=X, right=X)
    with pytest.raises(ValueError, match=r"\['left', 'right'\].*one called 'X'"):
        read_part(tmp_path / "p.npz")


@pytest.mark.parametrize("name", ["p.npy", "p.svm"])
def test_row_ids_need_named_columns(tmp_path, name):
    with pytest.raises(ValueError, match=r"row_ids='id' was given, but.*no named columns"):
        read_part(write(tmp_path / name), row_ids="id")


def test_unknown_suffix_lists_the_known_ones(tmp_path):
    (tmp_path / "p.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'\.xlsx' is not known.*\.npy.*\.parquet.*\.svm"):
        read_part(tmp_path / "p.xlsx")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.npy"):
        peek(tmp_path / "nothing.npy")


@pytest.mark.parametrize(
    ("name", "module"),
    [("p.csv", "pandas"), ("p.parquet", "pandas"), ("p.parquet", "pyarrow.parquet")],
)
def test_missing_package_says_how_to_install(tmp_path, monkeypatch, name, module):
    path = write(tmp_path / name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "atomcast\[data\]"'):
        read_part(path)
