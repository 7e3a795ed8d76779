"""check_finite: the message says where, whatever the layout."""

import numpy as np
import pytest
from scipy import sparse

from atomcast.data import Shard, Shards, check_finite, finite


def one_bad(value, shape=(40, 30), where=(25, 17), dtype=np.float64):
    X = np.ones(shape, dtype)
    X[where] = value
    return X


@pytest.fixture(params=[1 << 20, 64, 1])
def block_size(request, monkeypatch):
    monkeypatch.setattr(finite, "_BLOCK_VALUES", request.param)


LAYOUTS = [np.ascontiguousarray, np.asfortranarray, sparse.csc_array]


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_column_is_named(layout, value, word):
    shards = Shards.split(layout(one_bad(value)), 3, names=[f"x{j}" for j in range(30)])
    bad = int(shards.assignment()[17])
    message = rf"^shard {bad}: column 17 \('x17'\) contains {word}.*, first in row 25; .*fill"
    with pytest.raises(ValueError, match=message):
        check_finite(shards.shard(bad))
    for other in {0, 1, 2} - {bad}:
        check_finite(shards.shard(other))


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
def test_row_is_named_when_rows_are_atoms(layout):
    shards = Shards.split(layout(one_bad(np.nan)), 4, by="contiguous")
    with pytest.raises(ValueError, match=r"^shard 2: row 25 contains NaN, first in column 17"):
        check_finite(shards.shard(2, axis=0), axis=0)
    check_finite(shards.shard(1, axis=0), axis=0)


@pytest.mark.parametrize("row", [0, 20, 39])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_first_and_last_value_of_a_column(layout, row):
    shards = Shards.split(layout(one_bad(np.nan, where=(row, 17))), 1)
    with pytest.raises(ValueError, match=rf"column 17 contains NaN, first in row {row};"):
        check_finite(shards.shard(0))


def test_positions_count_within_a_file():
    part = Shard(one_bad(np.nan), np.arange(1000, 1030), None, "shard 3 (part-03.npz)", None, 1000)
    with pytest.raises(ValueError, match=r"shard 3 \(part-03.npz\): column 17 contains NaN"):
        check_finite(part)


def test_large_finite_values_are_no_infinity():
    single, double = (np.full((10, 10), np.finfo(t).max) for t in (np.float32, np.float64))
    for matrix in (single, double, sparse.csc_array(double)):
        check_finite(Shard(matrix, np.arange(10), None, "shard 0"))


def test_empty_shards_are_finite():
    for X in (np.zeros((3, 0)), np.zeros((0, 3)), sparse.csc_array((3, 2))):
        check_finite(Shard(X, np.arange(X.shape[1]), None, "shard 0"))


def test_no_temporary_of_the_size_of_the_matrix():
    import tracemalloc

    X = np.ones((4_000, 5_000), np.float32)
    X[-1, -1] = np.nan
    part = Shard(X, np.arange(5_000), None, "shard 0")
    tracemalloc.start()
    with pytest.raises(ValueError, match="column 4999"):
        check_finite(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 10


@pytest.mark.parametrize("kind", ["split", "files"])
def test_columns_of_examples_are_named(tmp_path, kind):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"age": [1.0, 2.0], "bmi": [3.0, np.nan]})
    table.to_csv(tmp_path / "a.csv", index=False)
    shards = Shards.split(table, 1) if kind == "split" else Shards.files([tmp_path / "a.csv"])
    with pytest.raises(ValueError, match=r"row 1 contains NaN, first in column 1 \('bmi'\)"):
        check_finite(shards.shard(0, axis=0), axis=0)


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.filterwarnings("error")
def test_one_sum_tells_few_values_and_many(few, dtype, monkeypatch):
    monkeypatch.setattr(finite, "_FEW", few)
    for layout in (np.asarray, np.asfortranarray, lambda X: X[::2, ::-1]):
        assert finite.surely_finite(layout(one_bad(3.0, where=(26, 17), dtype=dtype)))
        for bad in (np.nan, np.inf, -np.inf):
            assert not finite.surely_finite(layout(one_bad(bad, where=(26, 17), dtype=dtype)))
    finite.surely_finite(np.full(9, np.finfo(dtype).max))  # what it says, it says without a warning
