"""Rows that belong together: parts and target are checked, or aligned, by their row ids."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from atomcast import Lasso, Shards
from atomcast.data._files import FileShards
from atomcast.data.joining import inner_join

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

#: North has patients 1 to 8, south lacks 3 and has 20 more, the target lacks 5; all shuffled.
NORTH = [4, 1, 3, 2, 8, 6, 7, 5]
SOUTH = [20, 8, 7, 6, 5, 4, 2, 1]
TARGET = [1, 2, 3, 4, 6, 7, 8]
COMMON = [4, 1, 2, 8, 6, 7]
SUFFIXES = ["csv", "csv.gz", "parquet", "npz", "sparse.npz"]


def value(patient, column):
    return 10.0 * patient + column


def write(path, patients, names, column="patient_id"):
    """Write a table in the format of its suffix, whose values tell patient and column."""
    X = np.array([[value(int(p or 0), j) for j in range(len(names))] for p in patients])
    if path.name.endswith("sparse.npz"):
        sparse.save_npz(path, sparse.coo_array(X))
        with np.load(path) as file:
            np.savez(path, names=names, **{column: patients}, **file)
    elif path.suffix == ".npz":
        np.savez(path, X=X, names=names, **{column: patients})
    else:
        table = pd.DataFrame(X, columns=names).assign(**{column: patients})
        table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return path


@pytest.fixture
def parts(tmp_path):
    return [
        write(tmp_path / "north.csv", NORTH, ["age", "bmi"]),
        write(tmp_path / "south.csv", SOUTH, ["ldl"]),
    ]


@pytest.fixture
def target(tmp_path):
    return write(tmp_path / "y.csv", TARGET, ["outcome"])


def joined(paths, **options):
    return Shards.files(paths, row_ids="patient_id", align="inner", **options)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_parts_and_target_come_into_one_order(tmp_path, suffix):
    paths = [
        write(tmp_path / f"north.{suffix}", NORTH, ["age", "bmi"]),
        write(tmp_path / f"south.{suffix}", SOUTH, ["ldl"]),
    ]
    goal = write(tmp_path / "y.csv", TARGET, ["outcome"])
    shards = joined(paths, target=goal)
    with pytest.warns(UserWarning, match="rows that are not in all parts were dropped, 6 are left"):
        shards.validate()
    assert (shards.rows(), shards.count()) == (6, 3)
    np.testing.assert_array_equal(shards.alignment.ids, COMMON)
    np.testing.assert_array_equal(shards.target, [value(p, 0) for p in COMMON])
    for i, columns in enumerate((2, 1)):
        matrix = shards.shard(i).matrix
        matrix = matrix.toarray() if sparse.issparse(matrix) else matrix
        expected = [[value(p, j) for j in range(columns)] for p in COMMON]
        np.testing.assert_array_equal(matrix, expected)
    assert shards.shard(0).row_digest == shards.shard(1).row_digest


def test_what_was_dropped_is_told_for_each_party(parts, target):
    shards = joined(parts, target=target)
    with pytest.warns(UserWarning, match="were dropped") as caught:
        dropped = shards.alignment.dropped
    assert {source: ids.tolist() for source, ids in dropped.items()} == {
        "shard 0 (north.csv)": [3, 5],
        "shard 1 (south.csv)": [5, 20],
        "the target": [3],
    }
    (warning,) = caught
    assert "shard 0 (north.csv): 2 of 8 (id 3, 5)" in str(warning.message)
    assert "the target: 1 of 7 (id 3)" in str(warning.message)


def test_many_dropped_rows_are_counted_and_a_few_shown():
    with pytest.warns(UserWarning, match=r"a: 98 of 100 \(id 2, 3, 4, 5, 6 and 93 more\)"):
        inner_join([np.arange(100), np.array([1, 0])], ["a", "b"])


def test_nothing_is_said_where_nothing_is_dropped(tmp_path):
    paths = [
        write(tmp_path / f"{name}.csv", ids, [name])
        for name, ids in (("a", [1, 2, 3]), ("b", [3, 1, 2]))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shards = joined(paths)
        shards.validate()
    assert not shards.alignment.dropped
    np.testing.assert_array_equal(shards.alignment.orders, [[0, 1, 2], [1, 2, 0]])


def test_a_fit_of_aligned_files_is_that_of_the_merged_table(tmp_path):
    rng = np.random.default_rng(0)
    X, ids = rng.standard_normal((40, 6)), rng.permutation(1000)[:40]
    y = X @ [1.0, -2.0, 0.0, 0.0, 3.0, 0.0] + 0.1 * rng.standard_normal(40)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(patient_id=ids)
    paths = [tmp_path / "one.csv", tmp_path / "two.parquet"]
    frame[["patient_id", "a", "b", "c"]].iloc[:35].to_csv(paths[0], index=False)
    frame[["d", "e", "f", "patient_id"]].iloc[::-1].to_parquet(paths[1])
    series = pd.Series(y, index=ids).iloc[rng.permutation(np.arange(5, 40))]
    shards = joined(paths, target=series)
    with pytest.warns(UserWarning, match="30 are left"):
        model = Lasso(4.0).fit(shards, shards.target)
    expected = Lasso(4.0).fit(X[5:35], y[5:35])
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-10)


@pytest.mark.filterwarnings("ignore:rows that are not in all parts")
@pytest.mark.parametrize(
    "again",
    [
        copy.deepcopy,
        lambda shards: pickle.loads(pickle.dumps(shards)),
        lambda shards: FileShards.again(**pickle.loads(pickle.dumps(shards.arguments()))),
    ],
    ids=["deepcopy", "pickle", "ranks"],
)
def test_copies_have_the_same_order(parts, again):
    shards = joined(parts, prefix=True)
    copied = again(shards)
    for i in range(2):
        own = shards.only(i)
        assert own.nodes == 1
        for other, place in ((copied, i), (own, 0)):
            np.testing.assert_array_equal(other.shard(place).matrix, shards.shard(i).matrix)
            assert other.shard(place).names == shards.shard(i).names
    assert copied.names == ("north.age", "north.bmi", "south.ldl")


def test_without_align_a_mismatch_is_an_error_that_offers_it(parts):
    message = r"south\.csv\): its row ids differ .*first in row 0: 20 against 4.*align=\"inner\""
    with pytest.raises(ValueError, match=message):
        Shards.files(parts, row_ids="patient_id").validate()


@pytest.mark.parametrize("suffix", SUFFIXES[:4])
def test_a_target_in_another_order_is_an_error(tmp_path, suffix):
    part = write(tmp_path / "a.csv", [1, 2, 3], ["age"])
    goal = write(tmp_path / f"y.{suffix}", [1, 3, 2], ["y"])
    if suffix == "npz":
        np.savez(goal, y=[1.0, 3.0, 2.0], patient_id=[1, 3, 2])
    shards = Shards.files([part], row_ids="patient_id", target=goal)
    with pytest.raises(ValueError, match=r"the target: its row ids differ.*in another order"):
        _ = shards.target


def test_a_target_in_the_right_order_or_without_ids_is_taken(tmp_path):
    part = write(tmp_path / "a.csv", [1, 2, 3], ["age"], column="row_id")
    goal = write(tmp_path / "y.csv", [1, 2, 3], ["y"], column="row_id")
    np.testing.assert_array_equal(Shards.files([part], target=goal).target, [10.0, 20.0, 30.0])
    np.testing.assert_array_equal(Shards.files([part], target=[5, 6, 7]).target, [5, 6, 7])
    assert Shards.files([part]).target is None


def test_a_target_of_examples_goes_through_the_files(tmp_path):
    paths = [
        write(tmp_path / "a.csv", [1, 2], ["age"], column="row_id"),
        write(tmp_path / "b.csv", [3, 4, 5], ["age"], column="row_id"),
    ]
    good = write(tmp_path / "y.csv", [1, 2, 3, 4, 5], ["y"], column="row_id")
    bad = write(tmp_path / "z.csv", [1, 2, 3, 5, 4], ["y"], column="row_id")
    assert len(Shards.files(paths, target=good).target) == 5
    with pytest.raises(ValueError, match="those of the parts, one after the other"):
        _ = Shards.files(paths, target=bad).target


@pytest.mark.parametrize("align", [None, "inner"])
def test_repeated_ids_are_named(tmp_path, align):
    paths = [
        write(tmp_path / "a.csv", [1, 2, 3, 4], ["age"]),
        write(tmp_path / "b.csv", [2, 4, 2, 4], ["bmi"]),
    ]
    message = r"shard 1 \(b\.csv\): the row id 2, 4 occurs more than once"
    with pytest.raises(ValueError, match=message):
        Shards.files(paths, row_ids="patient_id", align=align).validate()


@pytest.mark.parametrize("ids", [[1, None, 3], [1.5, None, 3.5]])
def test_rows_without_an_id_are_named(tmp_path, ids):
    paths = [
        write(tmp_path / "a.csv", ids, ["age"]),
        write(tmp_path / "b.csv", ids, ["bmi"]),
    ]
    with pytest.raises(ValueError, match=r"a\.csv\): row 1 has no row id"):
        joined(paths).validate()


def test_a_part_without_ids_cannot_be_aligned(tmp_path, parts):
    np.save(tmp_path / "c.npy", np.zeros((8, 2)))
    pd.DataFrame({"x": range(8)}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(ValueError, match=r"c\.npy.*no named columns"):
        joined([*parts, tmp_path / "c.npy"]).validate()
    with pytest.raises(ValueError, match=r"d\.csv\) has no row ids to align by.*--row-ids"):
        Shards.files([tmp_path / "d.csv"], align="inner").validate()
    with pytest.raises(ValueError, match="the target has no row ids to align by"):
        _ = joined(parts, target=np.zeros(8)).alignment


def test_parts_without_a_common_row(tmp_path):
    paths = [
        write(tmp_path / "a.csv", [1, 2], ["age"]),
        write(tmp_path / "b.csv", [3, 4], ["bmi"]),
    ]
    with pytest.raises(ValueError, match=r"no row id is in all parts.*a\.csv\): 1, 2.*3, 4"):
        joined(paths).rows()


def test_numbers_and_texts_are_the_same_ids(tmp_path):
    paths = [
        write(tmp_path / "a.csv", [3, 1, 2], ["age"]),
        write(tmp_path / "b.parquet", ["1", "2", "3"], ["bmi"]),
    ]
    shards = joined(paths)
    np.testing.assert_array_equal(shards.shard(0).matrix[:, 0], [30.0, 10.0, 20.0])
    np.testing.assert_array_equal(shards.shard(1).matrix[:, 0], [30.0, 10.0, 20.0])


@pytest.mark.filterwarnings("ignore:rows that are not in all parts")
def test_a_file_that_changed_meanwhile(parts):
    shards = joined(parts)
    shards.validate()
    write(parts[1], SOUTH[::-1], ["ldl"])
    with pytest.raises(ValueError, match=r"south\.csv\) now holds other rows"):
        shards.shard(1)


def test_files_of_examples_are_not_aligned_or_prefixed(parts):
    with pytest.raises(ValueError, match="align is for files that hold columns of the same rows"):
        joined(parts).validate(axis=0)
    with pytest.raises(ValueError, match="prefix is for files that hold columns"):
        Shards.files(parts, prefix=True).validate(axis=0)


def test_bad_options(parts, tmp_path):
    with pytest.raises(ValueError, match="align must be one of 'inner', got 'outer'"):
        Shards.files(parts, align="outer")
    with pytest.raises(ValueError, match="prefix has 1 entries, but there are 2 files"):
        Shards.files(parts, prefix=["north"])
    with pytest.raises(TypeError, match="prefix='north' is one text"):
        Shards.files(parts, prefix="north")
    with pytest.raises(ValueError, match="the same name: give each file its own"):
        Shards.files(parts, prefix=["north", "north"])
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv cannot be read here.*align='inner'"):
        joined([*parts, tmp_path / "nothing.csv"]).validate()


def test_clashing_names_can_be_prefixed(tmp_path):
    paths = [
        write(tmp_path / "north.csv.gz", [1, 2], ["age", "bmi"], column="row_id"),
        write(tmp_path / "south.parquet", [1, 2], ["age"], column="row_id"),
    ]
    with pytest.raises(ValueError, match=r"'age' occurs in shard 0.*prefix=True \(--prefix\)"):
        Shards.files(paths).validate()
    shards = Shards.files(paths, prefix=True)
    shards.validate()
    assert shards.names == ("north.age", "north.bmi", "south.age")
    assert shards.shard(1).names == ("south.age",)
    assert Shards.files(paths, prefix=["N", "S"]).names == ("N.age", "N.bmi", "S.age")
