"""Shards.files: one file per node, checked against each other before a run."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from atomcast.data import Shards, _files, check_finite, row_digest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def matrices(columns=(3, 0, 2), rows=4):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((rows, n)) for n in columns]


def save_all(folder, parts):
    paths = []
    for i, part in enumerate(parts):
        paths.append(folder / f"part-{i:02}.npz")
        if i % 2:
            np.savez(paths[-1], X=part)
        else:
            sparse.save_npz(paths[-1], sparse.csr_array(part))
    return paths


def tables(folder, *, suffix="csv", **changes):
    """Write three tables a, b, c with row ids; `changes` replaces one of them."""
    content = {
        name: pd.DataFrame({"row_id": [1, 2, 3], f"{name}0": [0.5, 1.5, 2.5], f"{name}1": 1.0})
        for name in "abc"
    } | changes
    paths = [folder / f"{name}.{suffix}" for name in content]
    for path, frame in zip(paths, content.values(), strict=True):
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    return paths


def test_ids_count_through_the_files(tmp_path):
    parts = matrices()
    shards = Shards.files(save_all(tmp_path, parts))
    assert (shards.kind, shards.nodes, shards.count(), shards.rows()) == ("files", 3, 5, 4)
    assert shards.matrix is None
    assert shards.names is None
    np.testing.assert_array_equal(shards.assignment(), [0, 0, 0, 2, 2])
    shards.validate()
    start = 0
    for i, expected in enumerate(parts):
        part = shards.shard(i)
        values = part.matrix.toarray() if sparse.issparse(part.matrix) else part.matrix
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(part.ids, np.arange(start, start + expected.shape[1]))
        assert part.ids.dtype == np.int64
        assert (part.source, part.origin) == (f"shard {i} (part-{i:02}.npz)", start)
        start += expected.shape[1]
    assert shards.shard(0).matrix.format == "csc"


def test_files_of_examples(tmp_path):
    parts = [np.ones((2, 3)), np.zeros((4, 3))]
    shards = Shards.files(save_all(tmp_path, parts))
    assert (shards.count(axis=0), shards.rows(axis=0)) == (6, 3)
    shards.validate(axis=0)
    np.testing.assert_array_equal(shards.assignment(axis=0), [0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(shards.shard(1, axis=0).ids, [2, 3, 4, 5])
    assert shards.shard(0, axis=0).matrix.format == "csr"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_names_and_row_digests(tmp_path, suffix):
    shards = Shards.files(tables(tmp_path, suffix=suffix))
    assert shards.names == ("a0", "a1", "b0", "b1", "c0", "c1")
    shards.validate()
    part = shards.shard(1)
    assert part.names == ("b0", "b1")
    assert part.row_digest == row_digest([1, 2, 3])


def test_nothing_is_read_before_it_is_needed(tmp_path, monkeypatch):
    read = []
    original = _files.read_part
    monkeypatch.setattr(
        _files, "read_part", lambda path, **kw: (read.append(path.name), original(path, **kw))[1]
    )
    shards = Shards.files([*save_all(tmp_path, matrices()), tmp_path / "later.npy"])
    np.save(tmp_path / "later.npy", np.zeros((4, 1)))
    shards.validate()
    assert (shards.count(), shards.names, read) == (6, None, [])
    shards.shard(2)
    assert read == ["part-02.npz"]


def test_memory_mapped_file(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((4, 2), np.float32))
    part = Shards.files([tmp_path / "p.npy"]).shard(0)
    assert isinstance(part.matrix, np.memmap)
    assert part.matrix.dtype == np.float32


def test_other_numbers_of_rows_are_named(tmp_path):
    paths = save_all(tmp_path, [np.ones((4, 2)), np.ones((4, 2)), np.ones((3, 2))])
    message = r"shard 2 \(part-02.npz\) has 3 rows, but shard 0 \(part-00.npz\) has 4"
    with pytest.raises(ValueError, match=message):
        Shards.files(paths).validate()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("ids", "difference"),
    [
        ([1, 3, 2], "the same ids in another order"),
        ([1, 2, 4], "first in row 2: 4 against 3"),
        (["p", "q", "r"], "numbers against texts"),
    ],
)
def test_misaligned_rows_are_named(tmp_path, suffix, ids, difference):
    changed = pd.DataFrame({"row_id": ids, "b0": [0.5, 1.5, 2.5]})
    message = rf"shard 1 \(b.{suffix}\): its row ids differ from those of shard 0.*{difference}"
    with pytest.raises(ValueError, match=message):
        Shards.files(tables(tmp_path, suffix=suffix, b=changed)).validate()


def test_parts_without_row_ids_are_not_compared(tmp_path):
    changed = pd.DataFrame({"b0": [0.5, 1.5, 2.5]})
    Shards.files(tables(tmp_path, b=changed)).validate()
    with pytest.raises(ValueError, match=r"b\.csv.*row_ids='row_id' is none of its columns"):
        Shards.files(tables(tmp_path, b=changed), row_ids="row_id").validate()


def test_row_ids_of_examples_need_not_agree(tmp_path):
    first = pd.DataFrame({"row_id": [1, 2], "x": [0.5, 1.5]})
    second = pd.DataFrame({"row_id": [3, 4, 5], "x": [0.5, 1.5, 2.5]})
    shards = Shards.files(tables(tmp_path, a=first, b=second, c=first))
    shards.validate(axis=0)
    assert shards.column_names(axis=0) == ("x",)
    assert shards.count(axis=0) == 7


def test_repeated_name_is_named_with_both_shards(tmp_path):
    changed = pd.DataFrame({"a1": [0.5, 1.5, 2.5]})
    message = r"'a1' occurs in shard 0 \(a.csv\) and in shard 2 \(c.csv\)"
    with pytest.raises(ValueError, match=message):
        Shards.files(tables(tmp_path, c=changed)).validate()


def test_examples_with_other_columns_are_named(tmp_path):
    good = pd.DataFrame({"x": [1.0], "y": [2.0]})
    swapped = good[["y", "x"]]
    shards = Shards.files(tables(tmp_path, a=good, b=good, c=swapped))
    with pytest.raises(ValueError, match=r"shard 2 \(c.csv\): column 0 is named 'y', but 'x'"):
        shards.validate(axis=0)


def test_svmlight_parts_of_examples_need_the_number_of_features(tmp_path):
    paths = [tmp_path / "a.svm", tmp_path / "b.svm"]
    for path, width in zip(paths, (3, 5), strict=True):
        dump_svmlight_file(np.ones((2, width)), np.ones(2), str(path), zero_based=False)
    with pytest.raises(ValueError, match=r"b.svm.*has 5 columns.*pass n_features"):
        Shards.files(paths).validate(axis=0)
    shards = Shards.files(paths, n_features=6)
    shards.validate(axis=0)
    assert shards.shard(0, axis=0).matrix.shape == (2, 6)


def test_nan_is_found_by_its_place_in_the_file(tmp_path):
    parts = matrices((3, 2))
    parts[1][2, 1] = np.nan
    shards = Shards.files(save_all(tmp_path, parts))
    check_finite(shards.shard(0))
    with pytest.raises(ValueError, match=r"shard 1 \(part-01.npz\): column 1 contains NaN"):
        check_finite(shards.shard(1))


def test_file_that_changed_meanwhile(tmp_path):
    path = tmp_path / "p.npy"
    np.save(path, np.zeros((3, 2)))
    shards = Shards.files([path])
    assert shards.count() == 2
    np.save(path, np.zeros((3, 4)))
    with pytest.raises(ValueError, match="now holds 4 atoms, but 2"):
        shards.shard(0)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_find_their_files_from_elsewhere(tmp_path, monkeypatch, duplicate):
    save_all(tmp_path, matrices())
    monkeypatch.chdir(tmp_path)
    copied = duplicate(Shards.files(["part-00.npz", "part-01.npz", "part-02.npz"]))
    monkeypatch.chdir("/")
    assert copied.count() == 5
    np.testing.assert_array_equal(copied.shard(2).ids, [3, 4])


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["north.csv", "south.csv.gz", "x.y.npy"], ("north", "south", "x.y")),
        (["part.csv", "part.npy"], ("part.csv", "part.npy")),
        (["north/part.csv", "south/part.csv"], ("north/part", "south/part")),
        (["coordinator.csv", "b.csv"], ("coordinator.csv", "b.csv")),
        (["/a/b/part.csv", "/c/b/part.csv"], ("/a/b/part.csv", "/c/b/part.csv")),
        (["same.csv", "same.csv"], ("same 0", "same 1")),
        ({"Oslo": "a.csv", "Bern": "b.csv"}, ("Oslo", "Bern")),
    ],
)
def test_parties_are_called_like_their_files_or_as_the_user_says(paths, names):
    shards = Shards.files(paths)
    assert shards.party_names == names
    assert [shards.only(i).party_names for i in range(len(names))] == [(name,) for name in names]
    assert type(shards).again(**shards.arguments()).party_names == names


def test_bad_names_of_parties():
    for names in ({"": "a.csv"}, {"coordinator": "a.csv"}, {3: "a.csv"}):
        with pytest.raises(ValueError, match=r"party name .* is not accepted"):
            Shards.files(names)


def test_bad_paths(tmp_path):
    with pytest.raises(TypeError, match="one path, but a list"):
        Shards.files("part-*.npz")
    with pytest.raises(TypeError, match="one path, but a list"):
        Shards.files(tmp_path)
    with pytest.raises(ValueError, match="paths is empty"):
        Shards.files([])
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        Shards.files([tmp_path / "nothing.npz"]).count()


def test_notebooks_show_who_holds_what_without_reading_a_file(tmp_path):
    paths = {"<i>": tmp_path / "a.npy", "south": tmp_path / "b.npy"}
    shards = Shards.files(paths)
    assert "<td>&lt;i&gt;</td><td>a.npy</td>" in shards._repr_html_()  # there is no such file
    for path in paths.values():
        np.save(path, np.zeros((3, 2)))
    shards.validate()
    assert "<td>south</td><td>b.npy: 3 rows, 2 columns</td>" in shards._repr_html_()
    assert "<td>3 rows, 2 columns</td>" in Shards.mine(np.zeros((3, 2)))._repr_html_()
    cut = Shards.split(np.zeros((3, 30)), 30, by="contiguous")._repr_html_()
    assert "<td>1 columns, or 0 rows</td>" in cut
    assert "<td>19</td>" in cut
    assert "<td>20</td>" not in cut
    assert "<td>2 rows</td>" in Shards.split(np.zeros((3, 5)), 2, by=[1, 2])._repr_html_()
