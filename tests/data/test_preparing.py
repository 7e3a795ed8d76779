"""Parties prepare their tables: as scikit-learn would, remembered, and applied to new data."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from atomcast import (
    L1AdaBoost,
    Lasso,
    MultipleKernelRegressor,
    Preparation,
    Shards,
    load_model,
    save_model,
)
from atomcast.cluster.mpi.rank_shards import RankShards
from atomcast.data.prepared import Prepared

ROWS = 60
TIDY = Preparation(impute="median", scale="standard", drop=["name"])


@pytest.fixture(scope="module")
def north():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, ROWS),
            "ward": rng.choice(["a", "b", "c"], ROWS),
            "name": [f"patient {i}" for i in range(ROWS)],
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[1::9, "ward"] = None
    return frame


@pytest.fixture(scope="module")
def south():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"bp": rng.normal(100, 20, ROWS), "code": rng.choice([1, 2, 3], ROWS)})
    frame.loc[::5, "code"] = np.nan
    return frame


@pytest.fixture
def hospitals(north, south, tmp_path, monkeypatch):
    """A folder, made the current one, with a file of each hospital."""
    monkeypatch.chdir(tmp_path)
    north.to_csv("north.csv", index=False)
    south.to_parquet("south.parquet")
    return ["north.csv", "south.parquet"]


@pytest.fixture(scope="module")
def y(north, south):
    return (north["age"].fillna(50) + 9 * (north["ward"] == "a") - south["bp"] / 4).to_numpy()


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("impute", ["mean", "median", "most-frequent"])
@pytest.mark.parametrize("scale", [None, "standard"])
def test_numbers_are_those_of_scikit_learn(north, south, impute, scale):
    table = pd.concat([north[["age", "ward"]], south], axis=1)
    steps = [SimpleImputer(strategy=impute.replace("-", "_"))]
    steps += [StandardScaler()] if scale else []
    theirs = make_column_transformer(
        (make_pipeline(*steps), ["age"]),
        (OneHotEncoder(handle_unknown="ignore"), ["ward"]),
        (make_pipeline(*steps), ["bp", "code"]),
    )
    filled = table.assign(ward=table["ward"].fillna(table["ward"].mode()[0]))
    preparation = Preparation(impute=impute, scale=scale)
    learned = preparation.learned(filled, "X")
    np.testing.assert_allclose(
        dense(learned.matrix(filled, "X")), dense(theirs.fit_transform(filled)), rtol=1e-12
    )
    assert learned.names == ("age", "ward=a", "ward=b", "ward=c", "bp", "code")


def test_new_values_are_in_no_category_and_missing_ones_are_filled(north):
    learned = Preparation(impute="median", drop=["name"]).learned(north, "X")
    new = pd.DataFrame({"ward": ["b", "unheard of", None], "age": [1.0, np.nan, 3.0]})
    median = float(north["age"].median())
    expected = [[1, 0, 1, 0], [median, 0, 0, 0], [3, 0, 0, 0]]
    np.testing.assert_array_equal(dense(learned.matrix(new, "X")), expected)
    frequent = Preparation(impute="most-frequent", drop=["name"]).learned(north, "X")
    mode = list("abc").index(north["ward"].mode()[0])
    assert dense(frequent.matrix(new, "X"))[2, 1 + mode] == 1


def test_a_missing_word_is_not_the_word_none():
    table = pd.DataFrame({"ward": ["None", None, "a", "a"]})
    matrix = dense(Preparation().learned(table, "X").matrix(table, "X"))
    np.testing.assert_array_equal(matrix, [[1, 0], [0, 0], [0, 1], [0, 1]])


def test_numbers_with_gaps_and_whole_numbers_are_the_same_categories(south):
    learned = Preparation(one_hot=["code"]).learned(south, "X")
    assert learned.names == ("bp", "code=1", "code=2", "code=3")
    whole = pd.DataFrame({"bp": [1.0, 1.0], "code": [3, 1]})
    np.testing.assert_array_equal(dense(learned.matrix(whole, "X"))[:, 1:], [[0, 0, 1], [1, 0, 0]])


def test_pandas_categories_of_numbers_are_categories():
    table = pd.DataFrame({"stage": pd.Categorical([1, 2, 1])})
    assert Preparation().learned(table, "X").names == ("stage=1", "stage=2")


def test_columns_may_be_numbered():
    table = pd.DataFrame({0: [1.0, 2.0], 1: ["a", "b"]})
    shards = Shards.split(table, 2, prepare=Preparation())
    assert shards.names == ("0", "1=a", "1=b")


def test_arrow_tables_are_prepared_alike(north):
    import pyarrow

    learned = TIDY.learned(north, "X")
    arrow = pyarrow.Table.from_pandas(north, preserve_index=False)
    assert TIDY.learned(arrow, "X") == learned
    np.testing.assert_array_equal(learned.matrix(arrow, "X"), learned.matrix(north, "X"))


def test_many_categories_make_a_sparse_matrix():
    table = pd.DataFrame({"place": [f"town {i % 20}" for i in range(200)]})
    matrix = Preparation().learned(table, "X").matrix(table, "X")
    assert matrix.format == "csc"
    assert matrix.nnz == 200


def test_what_was_learned_is_plain(north):
    learned = TIDY.learned(north, "X")
    assert Prepared.of(json.loads(json.dumps(learned.plain()))) == learned


@pytest.mark.parametrize("files", [True, False])
def test_a_model_remembers_the_preparation(hospitals, north, south, y, files, tmp_path):
    prepare = {"north": TIDY, "south": Preparation(one_hot=["code"])}
    shards = Shards.files(hospitals, prepare=prepare)
    model = Lasso(20.0).fit(shards, y)
    assert model.feature_names_in_.tolist() == list(shards.names)
    assert model.score(shards, y) > 0.9
    save_model(model, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.preparation_ == model.preparation_
    later = north.assign(ward="unheard of", age=np.nan), south
    if files:
        later[0].to_csv("north.csv", index=False)
        given = Shards.files(hospitals)
    else:
        given = pd.concat(later, axis=1)
    X = np.hstack([dense(p.matrix(t, "")) for p, t in zip(model.preparation_, later, strict=True)])
    np.testing.assert_allclose(loaded.predict(given), X @ model.coef_ + model.intercept_)


def test_new_files_with_a_preparation_of_their_own_are_prepared_as_in_the_fit(hospitals, north, y):
    model = Lasso(20.0).fit(Shards.files(["north.csv"], prepare=TIDY), y)
    before = model.predict(north)
    north.assign(age=north["age"] + 100).to_csv("north.csv", index=False)
    after = model.predict(Shards.files(["north.csv"], prepare=TIDY))
    assert np.ptp(after - before) > 1  # rows of a known age have moved, those of an unknown not
    np.testing.assert_allclose(after, model.predict(pd.read_csv("north.csv")))


def test_the_parties_names_stand_before_prepared_columns(hospitals, north, south, y):
    shards = Shards.files(hospitals, prefix=True, prepare=Preparation(impute="mean", drop=[]))
    with pytest.raises(ValueError, match="'name' has 60 different values in 60 rows"):
        Lasso(20.0).fit(shards, y)
    shards = Shards.files(
        hospitals, prefix=True, prepare={"north": TIDY, "south": Preparation(impute="mean")}
    )
    model = Lasso(20.0).fit(shards, y)
    assert model.feature_names_in_[0] == "north.age"
    whole = pd.concat([north.add_prefix("north."), south.add_prefix("south.")], axis=1)
    np.testing.assert_allclose(model.predict(whole), model.predict(Shards.files(hospitals)))


@pytest.mark.parametrize("model", [L1AdaBoost(0.2), MultipleKernelRegressor(C=1.0)])
def test_other_models_prepare_new_data_too(north, y, model):
    target = y > np.median(y) if isinstance(model, L1AdaBoost) else y
    shards = Shards.split(north, 2, prepare=TIDY)
    model.fit(shards, target)
    np.testing.assert_allclose(model.predict(north), model.predict(shards))


def test_an_ordinary_fit_forgets_an_earlier_preparation(north, y):
    model = Lasso(20.0).fit(Shards.split(north, 2, prepare=TIDY), y)
    X = north[["age"]].fillna(0.0)
    assert not hasattr(model.fit(X, y), "preparation_")
    np.testing.assert_allclose(model.predict(X), X.to_numpy() @ model.coef_ + model.intercept_)


def test_ranks_tell_each_other_what_they_have_learned(north, south):
    parts = [Shards.mine(north, prepare=TIDY), Shards.mine(south, prepare=Preparation("mean"))]
    told = [
        {
            "shape": [part.rows(), part.count()],
            "names": part.column_names(),
            "party": None,
            "source": f"rank {rank}",
            "prepared": [one.plain() for one in part.prepared],
        }
        for rank, part in enumerate(parts)
    ]
    placed = RankShards(parts[0], 0, json.loads(json.dumps(told)))
    assert placed.prepared == (*parts[0].prepared, *parts[1].prepared)
    assert placed.prepared_as(placed.prepared) is placed


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preparation(impute="zero"), "impute must be one of 'mean', .* got 'zero'"),
        (lambda: Preparation(scale="max"), "scale must be one of 'standard', got 'max'"),
        (lambda: Preparation(drop="name"), "drop must be a list of names .* got 'name'"),
        (lambda: Preparation(one_hot=3), "one_hot must be a list of names .* got 3"),
        (lambda: Shards.files(["a.csv"], prepare="mean"), "prepare must be .* got 'mean'"),
        (lambda: Shards.files(["a.csv"], prepare=["mean"]), "prepare must be a Preparation"),
        (
            lambda: Shards.files(["a.csv", "b.csv"], prepare={"c": TIDY}),
            "prepare names 'c', but the parties are 'a', 'b'",
        ),
        (
            lambda: Shards.files(["a.csv"], prepare=[TIDY, TIDY]),
            "prepare is for 2 parties, but there are 1",
        ),
        (
            lambda: Shards.split(np.eye(3), 1, prepare=TIDY),
            "X has no names of columns, which preparing it needs: use a DataFrame",
        ),
        (
            lambda: Shards.split(pd.DataFrame({"a": [1.0]}), 1, prepare=TIDY),
            "X has no column 'name'; its columns are 'a'",
        ),
        (
            lambda: Shards.split(pd.DataFrame({"a": [np.nan]}), 1, prepare=Preparation("mean")),
            "column 'a' holds no value at all: correct it, or leave it out",
        ),
        (
            lambda: Shards.split(pd.DataFrame({"a": [np.inf]}), 1, prepare=Preparation()),
            "column 'a' holds infinity",
        ),
        (
            lambda: Shards.split(pd.DataFrame({"pid": ["x"]}), 1, prepare=Preparation("mean", [])),
            "column 'pid' holds object values, for example 'x'",
        ),
        (
            lambda: Shards.split(pd.DataFrame({"my_id": [1, 2]}), 1, prepare=Preparation()),
            "column 'my_id' is named like an id",
        ),
        (
            lambda: Shards.split(pd.DataFrame([[1, 2]], columns=["a", "a"]), 1, prepare=TIDY),
            "X: the column name 'a' occurs",
        ),
        (
            lambda: Shards.files(["a.csv"], prepare=TIDY).count(axis=0),
            "prepare is for files that hold columns of the same rows",
        ),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_new_data_that_cannot_be_prepared_is_refused(north, y):
    model = Lasso(20.0).fit(Shards.split(north, 2, prepare=TIDY), y)
    with pytest.raises(ValueError, match=r"give new ones as a DataFrame"):
        model.predict(Shards.split(np.zeros((2, 4)), 1))
    with pytest.raises(ValueError, match="X has no names of columns"):
        model.predict(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="X has no column 'ward'"):
        model.predict(north[["age"]])


@pytest.mark.parametrize(
    "column",
    [
        ["a", None, float("inf"), 0.0, 1.0],
        ["a", None, None, 0.0, 0.0],
        ["a", None, "text", 0.0, 1.0],
        ["a", [1], None, 0.0, 1.0],
        [7, None, None, 0.0, 1.0],
        ["a", None, None, "x", 1.0],
        ["a"],
    ],
)
def test_a_preparation_that_makes_no_sense_is_refused(column):
    with pytest.raises((ValueError, TypeError)):
        Prepared.of(["", column])
