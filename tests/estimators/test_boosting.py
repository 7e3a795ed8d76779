"""Boosting: the optimum over an enumerable class, the same on any number of nodes, accuracy."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from atomcast import L1AdaBoost, LocalCluster, Shards, Solver

# Steps that are slow by nature are cut short here, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

STEPS = ("classic", "line-search", "away", "pairwise", "blended-pairwise", "corrective")


def small_problem(seed=0, d=40, n=5, missing=False):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((d, n)), 1)
    y = np.where(X[:, 0] + X[:, 1] + 0.7 * rng.standard_normal(d) > 0, "yes", "no")
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


def enumerated(X):
    """The predictions of every stump, missing values said either way, shape (d, many)."""
    columns = []
    for x in X.T:
        gone = np.isnan(x)
        for threshold in [-np.inf, *np.unique(x[~gone])[:-1]]:
            for said in (-1.0, 1.0):
                h = np.where(x > threshold, 1.0, -1.0)
                h[gone] = said
                columns += [h, -h]
    return np.unique(np.column_stack(columns), axis=1)


def optimum(H, y, temperature):
    """min over the simplex of (8), by CVXPY with Clarabel at tight tolerances."""
    import cvxpy as cp

    alpha = cp.Variable(H.shape[1])
    exponents = cp.multiply(-y / temperature, H @ alpha)
    task = cp.Problem(
        cp.Minimize(cp.log_sum_exp(exponents) - np.log(len(y))), [alpha >= 0, cp.sum(alpha) == 1]
    )
    return task.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_optimum_over_all_stumps_is_cvxpy_s(temperature, missing):
    X, y = small_problem(missing=missing)
    model = L1AdaBoost(temperature, cluster=3, solver=Solver(tol=1e-8)).fit(X, y)
    signs = np.where(y == "yes", 1.0, -1.0)
    expected = optimum(enumerated(X), signs, temperature)
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(expected, abs=1e-6)
    # What the model says of the training examples is what was optimised.
    votes = model.decision_function(X)
    np.testing.assert_allclose(votes, model.result_.image, atol=1e-12)
    assert np.log(np.mean(np.exp(-signs * votes / temperature))) == pytest.approx(
        model.result_.objective, rel=1e-9
    )
    assert model.estimator_weights_.sum() == pytest.approx(1.0)
    assert model.example_weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("step", STEPS)
def test_any_number_of_nodes_and_every_step(step):
    X, y = small_problem(seed=3, d=60, n=12, missing=True)
    loose = step in ("classic", "line-search")
    solver = Solver(step=step, tol=1e-3 if loose else 1e-5, max_rounds=100)
    models = [
        L1AdaBoost(0.5, cluster=cluster, solver=solver).fit(X, y)
        for cluster in (None, 2, 7, LocalCluster(5, isolated=True))
    ]
    best = L1AdaBoost(0.5, solver=Solver(tol=1e-9)).fit(X, y).result_.objective
    for model in models:
        result = model.result_
        assert result.rounds == models[0].result_.rounds
        np.testing.assert_array_equal(result.atom_ids, models[0].result_.atom_ids)
        np.testing.assert_allclose(
            result.atom_weights, models[0].result_.atom_weights, rtol=0, atol=1e-8
        )
        np.testing.assert_array_equal(model.stumps_, models[0].stumps_)
        assert best - 1e-9 <= result.objective <= best + result.gap + 1e-9


@pytest.mark.parametrize("step", ["pairwise", "corrective"])
def test_ties_between_equal_features_do_not_depend_on_the_partition(step):
    X, y = small_problem(seed=4, d=50, n=4)
    X = np.hstack([X, -X, X, np.exp(X)])  # every stump four times over
    solver = Solver(step=step, tol=1e-4, max_rounds=60)
    alone = L1AdaBoost(0.3, solver=solver).fit(X, y)
    if step == "pairwise":  # one atom a round: of those that tie, the smallest id wins
        assert alone.stumps_[:, 0].max() < 4
    for nodes in (2, 5, 16):
        model = L1AdaBoost(0.3, cluster=nodes, solver=solver).fit(X, y)
        np.testing.assert_array_equal(model.stumps_, alone.stumps_)


def test_communication_is_in_bits():
    X, y = small_problem(d=800, n=8)
    model = L1AdaBoost(0.3, cluster=4).fit(X, y)
    ledger = model.result_.ledger
    sent = [entry.atom for entry in ledger.disclosures]
    assert len(sent) == len(set(sent))
    atoms = ledger.by_kind()["atom"]
    assert atoms.values == 4 * len(sent) * (800 + 4)  # each crosses the star's four edges
    assert atoms.bytes < 4 * len(sent) * (800 / 8 + 80)


@pytest.mark.parametrize("kind", ["sparse", "shards", "single"])
def test_layouts_give_the_same_model(kind):
    rng = np.random.default_rng(0)
    X = (rng.random((400, 200)) < 0.1) * np.round(rng.standard_normal((400, 200)), 1)
    X = X.astype(np.float32).astype(np.float64)
    y = np.sign(X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(400))
    plain = L1AdaBoost(0.2).fit(X, y)
    other = {
        "sparse": lambda: sparse.csr_matrix(X),
        "shards": lambda: Shards.split(X, 3),
        "single": lambda: X.astype(np.float32),
    }[kind]()
    model = L1AdaBoost(0.2).fit(other, y)
    np.testing.assert_array_equal(model.stumps_, plain.stumps_)
    np.testing.assert_allclose(model.decision_function(other), plain.decision_function(X))


def test_a_matrix_of_base_predictions():
    X, y = small_problem()
    H = enumerated(X)
    signs = np.where(y == "yes", 1.0, -1.0)
    model = L1AdaBoost(0.3, base="matrix", cluster=4, solver=Solver(tol=1e-8)).fit(H, y)
    assert model.result_.objective == pytest.approx(optimum(H, signs, 0.3), abs=1e-6)
    np.testing.assert_allclose(model.decision_function(H), model.result_.image, atol=1e-12)
    stumps = L1AdaBoost(0.3, solver=Solver(tol=1e-8)).fit(X, y)
    assert stumps.result_.objective == pytest.approx(model.result_.objective, rel=1e-7)


def test_fitted_classifiers_on_the_nodes():
    X, y = load_breast_cancer(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), random_state=0)
    base = [DecisionTreeClassifier(max_depth=2, max_features=3, random_state=s) for s in range(12)]
    base += [KNeighborsClassifier(3), LogisticRegression(max_iter=5_000)]
    base = [classifier.fit(X[train], y[train]) for classifier in base]
    model = L1AdaBoost(0.3, base=base, cluster=5).fit(X[train], y[train])
    votes = np.column_stack([2.0 * classifier.predict(X[test]) - 1.0 for classifier in base])
    expected = votes[:, model.estimator_ids_] @ model.estimator_weights_
    np.testing.assert_allclose(model.decision_function(X[test]), expected)
    assert model.score(X[test], y[test]) >= 0.9
    assert model.result_.ledger.atoms_sent < len(base)


@pytest.mark.parametrize("data", ["breast cancer", "digits"])
def test_accuracy_is_level_with_adaboost(data):
    """Over four splits, at an equal number of base classifiers."""
    X, y = (load_breast_cancer if data == "breast cancer" else load_digits)(return_X_y=True)
    if data == "digits":
        X, y = X[(y == 3) | (y == 8)], y[(y == 3) | (y == 8)]
    ours, theirs = [], []
    for seed in range(4):
        train, test, t, u = train_test_split(X, y, random_state=seed, stratify=y)
        model = L1AdaBoost(0.05, cluster=10).fit(train, t)
        stump = DecisionTreeClassifier(max_depth=1)
        other = AdaBoostClassifier(stump, n_estimators=model.n_estimators_, random_state=0)
        ours.append(model.score(test, u))
        theirs.append(other.fit(train, t).score(test, u))
    assert np.mean(ours) >= np.mean(theirs) - 0.01


def test_classes_that_no_stump_can_tell_apart():
    """Exclusive or: the best combination says nothing, and the run ends."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = L1AdaBoost(0.5).fit(X, [0, 1, 1, 0])
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(0.0, abs=1e-6)


def test_a_single_stump_that_is_always_right():
    X = np.arange(20.0)[:, None]
    model = L1AdaBoost(0.1, cluster=3).fit(X, X[:, 0] > 7)
    assert model.n_estimators_ == 1
    assert model.stumps_[0, 1] == 7.5
    assert model.result_.objective == pytest.approx(-10.0)
    assert model.predict([[7.4], [7.6]]).tolist() == [False, True]
    assert model.predict_proba([[7.6]])[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (L1AdaBoost(temperature=0.0), "temperature must be a finite number > 0"),
        (L1AdaBoost(temperature=-1), "temperature must be a finite number > 0"),
        (L1AdaBoost(base="trees"), "base must be"),
        (L1AdaBoost(base=[]), "at least one fitted classifier"),
        (L1AdaBoost(base=[3]), "no method predict"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*small_problem())


def test_bad_data():
    X, y = small_problem(missing=True)
    with pytest.raises(ValueError, match="only one class"):
        L1AdaBoost().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="Only binary classification"):
        L1AdaBoost().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="infinity"):
        L1AdaBoost().fit(np.full_like(X, np.inf), y)
    with pytest.raises(ValueError, match="NaN"):
        L1AdaBoost(base="matrix").fit(X, y)
    strange = DecisionTreeClassifier().fit(np.nan_to_num(X), np.where(y == "yes", "a", "b"))
    with pytest.raises(ValueError, match="not one of the classes"):
        L1AdaBoost(base=[strange]).fit(np.nan_to_num(X), y)


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_weights_of_the_result_are_those_of_the_features(nodes):
    X, y = make_classification(80, 7, n_informative=4, random_state=0)
    model = L1AdaBoost(0.2, cluster=nodes).fit(X, y)
    features = model.stumps_[:, 0].astype(int)
    assert len(np.unique(features)) < len(features)  # some feature has more than one stump
    expected = np.bincount(features, model.estimator_weights_, minlength=7)
    np.testing.assert_allclose(model.result_.weights, expected)
    assert model.result_.weights.sum() == pytest.approx(1.0)
