"""Data frames as input: names are kept, non-numeric columns are named."""

import sys

import numpy as np
import pytest
from scipy import sparse

from atomcast.data import Shards, one_hot
from atomcast.data.tables import is_table, table_names, table_to_matrix
from atomcast.loop.trace import Trace
from atomcast.network.ledger import Ledger

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

COLUMNS = {"age": [30, 40, 50], "height": [1.5, 1.75, 2.0], "smokes": [True, False, True]}
MATRIX = np.array([[30, 1.5, 1], [40, 1.75, 0], [50, 2.0, 1]])


class PolarsLike:
    """A frame of a library we do not know: named columns that numpy can read."""

    def __init__(self, columns):
        self._columns = {name: np.array(values) for name, values in columns.items()}

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]

    def __len__(self):
        return len(next(iter(self._columns.values())))

    def to_numpy(self):
        raise AssertionError("would give objects if the columns differ in type")


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, PolarsLike])
def test_mixed_numeric_columns(make):
    table = make(COLUMNS)
    assert is_table(table)
    assert table_names(table) == ("age", "height", "smokes")
    matrix = table_to_matrix(table)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, MATRIX)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, PolarsLike])
@pytest.mark.parametrize("axis", [0, 1])
def test_shards_of_a_frame(make, axis):
    shards = Shards.split(make(COLUMNS), 2, by="contiguous")
    assert shards.names == ("age", "height", "smokes")
    part = shards.shard(1, axis)
    if axis == 1:
        assert part.names == ("smokes",)
        np.testing.assert_array_equal(part.matrix, MATRIX[:, 2:])
    else:
        assert part.names is None
        np.testing.assert_array_equal(part.matrix, MATRIX[2:])


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, PolarsLike])
def test_text_column_is_named(make):
    with pytest.raises(ValueError, match=r"column 'city' holds.*Paris.*encode it"):
        table_to_matrix(make({"age": [1, 2], "city": ["Paris", "Rome"]}))


def test_dates_are_not_numbers():
    table = pd.DataFrame({"age": [1.0], "born": pd.to_datetime(["2000-01-01"])})
    with pytest.raises(ValueError, match="column 'born'"):
        table_to_matrix(table)


def test_one_block_frame_is_not_copied():
    X = np.arange(6.0).reshape(2, 3)
    table = pd.DataFrame(X, copy=False)
    assert np.shares_memory(table_to_matrix(table), X)
    assert table_names(table) == ("0", "1", "2")


def test_single_precision_frame_stays_so():
    assert table_to_matrix(pd.DataFrame(np.ones((2, 2), np.float32))).dtype == np.float32


def test_missing_values_become_nan():
    number = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.5, 1.5]})
    truth = pd.DataFrame({"a": pd.array([True, None], dtype="boolean"), "b": [0.5, 1.5]})
    for table in (number, truth, pa.table({"a": [1, None], "b": [0.5, 1.5]})):
        matrix = table_to_matrix(table)
        assert np.isnan(matrix[1, 0])
        assert matrix[0, 0] == 1


def test_sparse_columns_stay_sparse():
    table = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(np.eye(4)))
    matrix = table_to_matrix(table)
    assert matrix.format == "csc"
    assert matrix.nnz == 4


def test_repeated_column_is_named():
    with pytest.raises(ValueError, match="column name 'a' occurs more than once"):
        table_to_matrix(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_arrays_are_no_tables():
    assert not is_table(np.zeros((2, 2)))
    assert not is_table([[1, 2]])


def test_frame_without_columns():
    assert table_to_matrix(pd.DataFrame(index=range(3))).shape == (3, 0)


@pytest.mark.parametrize(
    "use",
    [
        lambda: one_hot(None),
        lambda: Trace().to_pandas(),
        lambda: Ledger(2).to_pandas(),
    ],
    ids=["one_hot", "trace", "ledger"],
)
def test_whatever_needs_pandas_says_how_to_install_it(monkeypatch, use):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'needs pandas: pip install "atomcast\[data\]"'):
        use()
