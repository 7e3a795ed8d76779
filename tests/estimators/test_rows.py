"""Data frames: the rows of X and y belong together, and mistakes are said of a column."""

import numpy as np
import pytest

from atomcast import KernelSVC, L1AdaBoost, Lasso, LassoCV, Shards, SparseLogisticRegression

pd = pytest.importorskip("pandas")

CLASSES = np.array([0, 1] * 10)
MODELS = [Lasso(1.0), LassoCV(), SparseLogisticRegression(1.0), L1AdaBoost(), KernelSVC()]


def frame(**changes):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((20, 3)), columns=["age", "bmi", "ldl"])
    return table.assign(**changes)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_an_index_of_y_in_another_order_is_an_error(model):
    X, y = frame(), pd.Series(CLASSES)
    message = r"the index of y differs from that of X \(the same ids in another order\).*y\.loc"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y.iloc[::-1])
    with pytest.raises(ValueError, match=r"first in row 0: 1 against 0"):
        model.fit(X, y.set_axis(range(1, 21)))
    with pytest.raises(ValueError, match="the index of y differs"):
        model.fit(Shards.split(X, 2), y.iloc[::-1])


def test_an_index_is_compared_only_where_both_have_one():
    X, y = frame().set_index(np.arange(20)[::-1]), pd.Series(CLASSES)
    expected = Lasso(1.0).fit(X.to_numpy(), CLASSES).coef_
    for features, target in (
        (X, y.set_axis(X.index)),
        (X, y.to_frame("y").set_index(X.index)["y"]),
        (X, CLASSES),
        (X, CLASSES.tolist()),
        (X.to_numpy(), y),
        (X.to_numpy().tolist(), y),
        (Shards.split(X.to_numpy(), 2), y),
    ):
        np.testing.assert_allclose(Lasso(1.0).fit(features, target).coef_, expected, atol=1e-12)


def test_an_index_with_the_name_of_the_row_ids_is_compared_with_files(tmp_path):
    X, ids = frame(), np.arange(100, 120)
    X.assign(patient=ids).to_csv(tmp_path / "a.csv", index=False)
    shards = Shards.files([tmp_path / "a.csv"], row_ids="patient")
    index = pd.Index(ids, name="patient")
    Lasso(1.0).fit(shards, pd.Series(CLASSES, index=index))
    Lasso(1.0).fit(shards, pd.Series(CLASSES))  # an index of another name tells nothing
    with pytest.raises(ValueError, match="the index of y differs"):
        Lasso(1.0).fit(shards, pd.Series(CLASSES, index=index[::-1]))
    with pytest.raises(ValueError, match="the index of y differs"):
        KernelSVC().fit(shards, pd.Series(CLASSES, index=index[::-1]))


BAD = {
    "text": ({"bmi": ["1.5"] * 7 + ["high"] * 13}, r"X: column 'bmi' holds.*'high' in row 7"),
    "comma": ({"bmi": ["1.5"] * 7 + ["2,5"] * 13}, r"'2,5' in row 7 \(numbers need a decimal"),
    "nan": ({"bmi": [1.5] * 7 + [np.nan] * 13}, r"X: column 'bmi' contains NaN, first in row 7"),
    "inf": ({"ldl": [1.5] * 7 + [-np.inf] * 13}, r"column 'ldl' contains infinity, first in row 7"),
    "ids": ({"patient_id": range(20)}, r"X: column 'patient_id' is named like an id"),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_frame_is_said_of_its_column(model, case):
    columns, message = BAD[case]
    if isinstance(model, L1AdaBoost) and case == "nan":
        pytest.skip("stumps can do without values")
    with pytest.raises(ValueError, match=message):
        model.fit(frame(**columns), CLASSES)


def test_so_it_is_when_predicting():
    for model in (Lasso(1.0), SparseLogisticRegression(1.0), KernelSVC(), L1AdaBoost()):
        fitted = model.fit(frame(), CLASSES)
        with pytest.raises(ValueError, match="X: column 'bmi' holds"):
            fitted.predict(frame(bmi="high"))


def test_infinity_is_found_beside_values_that_may_be_missing():
    bad = frame(age=[np.nan] * 20, ldl=[np.inf] * 20)
    with pytest.raises(ValueError, match="column 'ldl' contains infinity"):
        L1AdaBoost().fit(bad, CLASSES)


@pytest.mark.parametrize("name", ["id", "ID", "row id", "Patient-ID", "subject.id", "patientId"])
def test_names_of_ids(name):
    with pytest.raises(ValueError, match="is named like an id"):
        Lasso(1.0).fit(frame(**{name: range(20)}), CLASSES)
    # It is a feature if its name says otherwise, or if rows share it.
    Lasso(1.0).fit(frame(**{f"{name}s": range(20)}), CLASSES)
    Lasso(1.0).fit(frame(**{name: [1, 2] * 10}), CLASSES)


def test_words_that_end_in_id_are_no_ids():
    Lasso(1.0).fit(frame(solid=range(20), grid=range(20), thyroid=range(20)), CLASSES)
