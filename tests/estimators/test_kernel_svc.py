"""KernelSVC against independent solutions of the same problem, and scikit-learn's machines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from sklearn.datasets import load_digits, load_iris, make_blobs, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import _ovr_decision_function

from atomcast import KernelSVC, LocalCluster, Shards, Solver
from atomcast.data import load_usps
from atomcast.estimators.voting import pair_values
from realdata import use


def examples(classes, n=300, seed=0):
    X, y = make_classification(
        n, 8, n_informative=6, n_classes=classes, class_sep=0.7, random_state=seed
    )
    return X, y


def augmented(X, y, gamma, C):
    classes = len(np.unique(y))
    signs = np.where(y[:, None] == y, 1.0, -1.0 / (classes - 1))
    return signs * (rbf_kernel(X, X, gamma) + 1) + np.diag(
        np.broadcast_to(1 / np.asarray(C), len(y))
    )


def optimum_by_nnls(K):
    """min over the simplex of a'Ka: by scaling, min |Lb|^2 - 2 sum(b) over b >= 0, K = LL'."""
    L = np.linalg.cholesky(K)
    b, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(K))), maxiter=100 * len(K))
    return b / b.sum(), 1.0 / b.sum()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_equals_nnls_on_the_kernel_matrix(classes, C):
    X, y = examples(classes, n=800 if C == 1.0 else 400)
    how = {"solver": Solver(tol=1e-8), "multi_class": "direct"}
    model = KernelSVC(C=C, cluster=3, **how).fit(X, y)
    alpha, optimum = optimum_by_nnls(augmented(X, y, model.gamma_, C))
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(model.result_.weights, alpha, atol=1e-6 * alpha.max())


@pytest.mark.parametrize("classes", [2, 3])
def test_equals_cvxpy(classes):
    import cvxpy

    X, y = examples(classes, n=120)
    how = {"solver": Solver(tol=1e-8), "multi_class": "direct"}
    model = KernelSVC(C=5.0, gamma=0.05, **how).fit(X, y)
    K = augmented(X, y, 0.05, 5.0)
    a = cvxpy.Variable(len(y), nonneg=True)
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(np.linalg.cholesky(K).T @ a)), [cvxpy.sum(a) == 1]
    )
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert model.result_.objective == pytest.approx(problem.value, rel=1e-6)


@pytest.mark.parametrize(
    ("step", "tol", "rounds"),
    [
        ("classic", 0.3, 3000),
        ("line-search", 0.3, 3000),
        ("away", 1e-4, 20_000),
        ("pairwise", 1e-4, 20_000),
        ("blended-pairwise", 1e-6, 1000),
        ("corrective", 1e-6, 100),
    ],
)
def test_every_step_certifies_its_distance_from_the_optimum(step, tol, rounds):
    X, y = examples(2, n=150)
    model = KernelSVC(gamma=0.05, solver=Solver(step, tol=tol, max_rounds=rounds)).fit(X, y)
    _, optimum = optimum_by_nnls(augmented(X, y, 0.05, 1.0))
    result = model.result_
    assert result.status == "optimal"
    assert optimum * (1 - 1e-9) <= result.objective <= optimum + result.gap * (1 + 1e-9)
    assert result.atom_weights.min() > 0
    assert result.atom_weights.sum() == pytest.approx(1.0)
    K = augmented(X, y, 0.05, 1.0)
    scores = 2 * K @ result.weights
    assert result.gap == pytest.approx(result.weights @ scores - scores.min(), rel=1e-6, abs=1e-12)


def test_linear_kernel_equals_the_primal_svm():
    X, y = examples(2, n=200, seed=3)
    C = 0.8
    model = KernelSVC(C=C, kernel="linear", solver=Solver(tol=1e-9)).fit(X, y)
    # There C / 2 weighs the squared errors against half the squared norm, intercept included.
    primal = LinearSVC(C=C / 2, loss="squared_hinge", tol=1e-10, max_iter=100_000).fit(X, y)
    w = model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(w, primal.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, primal.intercept_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(X), primal.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_margins_and_intercept_follow_from_the_support_vectors():
    X, y = examples(3)
    model = KernelSVC(C=2.0, multi_class="direct", solver=Solver(tol=1e-8)).fit(X, y)
    K = rbf_kernel(X, model.support_vectors_, model.gamma_)
    np.testing.assert_allclose(
        model.decision_function(X), K @ model.dual_coef_.T + model.intercept_, atol=1e-9
    )
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_]))
    # Complementary slackness: the margin of a support vector falls short of one by alpha / C.
    own = model.decision_function(X)[np.arange(len(y)), y]
    shortfall = model.result_.weights / model.result_.objective / 2.0
    np.testing.assert_allclose(own[model.support_], 1 - shortfall[model.support_], atol=1e-5)
    assert own.min() >= (1 - shortfall).min() - 1e-5


@pytest.mark.parametrize("step", ["classic", "pairwise", "corrective"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_model_does_not_depend_on_the_nodes(step, classes):
    X, y = examples(classes)
    fits = [
        KernelSVC(cluster=cluster, solver=Solver(step, tol=1e-6, max_rounds=60)).fit(X, y)
        for cluster in (1, LocalCluster(4), LocalCluster(7, isolated=True))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.support_, fits[0].support_)
        np.testing.assert_allclose(other.dual_coef_, fits[0].dual_coef_, rtol=1e-7)
        assert other.gamma_ == fits[0].gamma_
        assert other.result_.rounds == fits[0].result_.rounds
    assert fits[0].result_.ledger.values == 0
    assert fits[1].result_.ledger.values > 0


@pytest.mark.parametrize(("step", "tol"), [("pairwise", 1e-3), ("corrective", 1e-7)])
def test_duplicates_and_contradicting_labels(step, tol):
    X, y = examples(2, n=80)
    X = np.vstack([X, X[:40], X[:40]])
    y = np.concatenate([y, y[:40], 1 - y[:40]])  # twice the same, and once with the other label
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = KernelSVC(C=10.0, gamma=0.05, cluster=3, solver=Solver(step, tol=tol)).fit(X, y)
    _, optimum = optimum_by_nnls(augmented(X, y, 0.05, 10.0))
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(optimum, rel=max(1e-6, tol))


def test_sparse_dense_and_single_precision_agree():
    X, y = examples(3)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense, compressed, single = (
        KernelSVC(solver=Solver(tol=1e-7), cluster=2).fit(data, y)
        for data in (X, sparse.csr_array(X), X.astype(np.float32))
    )
    np.testing.assert_array_equal(dense.support_, compressed.support_)
    np.testing.assert_allclose(dense.dual_coef_, compressed.dual_coef_, rtol=1e-5)
    assert sparse.issparse(compressed.support_vectors_)
    np.testing.assert_allclose(
        dense.decision_function(X), compressed.decision_function(sparse.csr_array(X)), atol=1e-6
    )
    np.testing.assert_allclose(
        dense.decision_function(X), compressed.decision_function(X), atol=1e-6
    )
    np.testing.assert_allclose(dense.decision_function(X), single.decision_function(X), atol=1e-3)
    # A sparse point costs its nonzeros, a dense one all its values, and either one label.
    costs = {d.atom: d.values for d in compressed.result_.ledger.disclosures}
    assert all(count == np.count_nonzero(X[i]) + 1 for i, count in costs.items())
    assert all(d.values == 9 for d in dense.result_.ledger.disclosures)


def test_shards_of_examples_and_their_files(tmp_path):
    X, y = examples(2)
    whole = KernelSVC(cluster=3).fit(X, y)
    paths = []
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 3)):
        paths.append(tmp_path / f"part-{i}.npy")
        np.save(paths[-1], X[rows])
    files = Shards.files(paths)
    model = KernelSVC().fit(files, y)
    np.testing.assert_array_equal(model.support_, whole.support_)
    np.testing.assert_allclose(
        model.decision_function(files), whole.decision_function(X), rtol=1e-9
    )


def test_what_does_not_fit_in_the_cache_is_computed_anew():
    X, y = examples(2, n=1500)
    kept = KernelSVC(C=3.0, solver=Solver(tol=1e-6)).fit(X, y)
    anew = KernelSVC(C=3.0, solver=Solver(tol=1e-6), cache_bytes=0).fit(X, y)
    assert anew.result_.objective == pytest.approx(kept.result_.objective, rel=1e-6)
    assert anew.result_.status == "optimal"


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_all_points_join_at_once_where_their_kernel_values_are_kept_or_quickly_computed(kernel):
    X, y = make_classification(600, 20, n_informative=10, random_state=1)
    at_once = KernelSVC(kernel=kernel, C=1.0, gamma=0.05).fit(X, y)
    assert at_once.result_.trace.atoms[1] == 600
    short = KernelSVC(kernel=kernel, C=1.0, gamma=0.05, cache_bytes=1_000_000).fit(X, y)
    assert (short.result_.trace.atoms[1] == 600) == (kernel == "rbf")
    assert short.result_.objective == pytest.approx(at_once.result_.objective, rel=1e-3)


@pytest.mark.parametrize("gamma", ["mean-distance", "scale"])
@pytest.mark.parametrize("classes", [2, 3])
def test_who_is_alone_asks_nobody_and_finds_what_the_nodes_of_a_cluster_find(gamma, classes):
    """Iris stands class by class: gamma is estimated from the same points all the same."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    alone = KernelSVC(gamma=gamma, tol=1e-6).fit(X, y)
    asked = KernelSVC(gamma=gamma, tol=1e-6, cluster=3).fit(X, y)
    assert alone.result_.trace.atoms.tolist() == [0, len(y)]
    assert alone.gamma_ == pytest.approx(asked.gamma_, rel=1e-12)
    assert alone.result_.objective == pytest.approx(asked.result_.objective, rel=2e-6)
    np.testing.assert_allclose(
        alone.decision_function(X), asked.decision_function(X), rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("rows", [20, 100, 500])
@pytest.mark.parametrize("cost", [1.0, 30.0, 300.0])
def test_a_model_does_not_depend_on_how_many_rows_are_kept(rows, cost):
    X, y = make_classification(1200, 20, n_informative=10, flip_y=0.2, random_state=2)
    whole = KernelSVC(C=cost, gamma=0.05).fit(X, y)
    short = KernelSVC(C=cost, gamma=0.05, cache_bytes=rows * 4 * 1200).fit(X, y)
    assert short.result_.status == "optimal"
    assert short.result_.objective == pytest.approx(whole.result_.objective, rel=1e-3)
    K = augmented(X, y, 0.05, cost)
    scores = 2 * K @ short.result_.weights
    gap = short.result_.weights @ scores - scores.min()
    assert gap <= 1.05e-3 * short.result_.objective


def test_half_of_the_points_that_still_fit_join_at_most():
    X, y = make_classification(1500, 20, n_informative=10, flip_y=0.4, random_state=1)
    solver = Solver(tol=1e-2)
    model = KernelSVC(kernel="laplacian", gamma=0.02, cache_bytes=4_000_000, solver=solver)
    model.fit(X, y)
    known = model.result_.trace.atoms[1:]
    half = (1000 - known[:-1]) // 2
    assert known[-1] > 1000  # so that all of the way is seen
    assert np.all(np.diff(known)[half >= 64] <= half[half >= 64])


def test_many_known_points_take_the_other_inner_solver():
    """Above a thousand known points the corral gives way to projected Newton steps."""
    X, y = make_blobs(2600, 6, centers=[[0] * 6, [0.6] * 6], cluster_std=1.0, random_state=0)
    model = KernelSVC(C=1.0, solver=Solver(tol=1e-6)).fit(X, y)
    assert len(model.support_) > 1200
    K = augmented(X, y, model.gamma_, 1.0)
    scores = 2 * K @ model.result_.weights
    gap = model.result_.weights @ scores - scores.min()
    assert gap <= 1.05e-6 * model.result_.objective
    assert model.result_.atom_weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_class_weights_multiply_c():
    X, y = examples(2)
    weighted = KernelSVC(C=2.0, gamma=0.05, class_weight={0: 1.0, 1: 4.0}, solver=Solver(tol=1e-7))
    weighted.fit(X, y)
    _, optimum = optimum_by_nnls(augmented(X, y, 0.05, np.where(y == 1, 8.0, 2.0)))
    assert weighted.result_.objective == pytest.approx(optimum, rel=1e-6)
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:15]])
    plain = KernelSVC(C=0.1).fit(X[few], y[few])
    balanced = KernelSVC(C=0.1, class_weight="balanced").fit(X[few], y[few])
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_mean_distance_is_estimated_from_a_sample_that_is_paid_for():
    X, y = examples(2, n=1200)
    model = KernelSVC(cluster=4, solver=Solver("classic", max_rounds=1, tol=0.9)).fit(X, y)
    sample = [d.atom for d in model.result_.ledger.disclosures if d.round == 0]
    assert len(sample) == len(set(sample)) == 128
    squares = ((X[sample][:, None] - X[sample]) ** 2).sum(axis=2)
    assert model.gamma_ == pytest.approx(128 * 127 / squares.sum(), rel=1e-9)
    values = sum(d.values for d in model.result_.ledger.disclosures)
    assert model.result_.ledger.by_kind()["atom"].values == values * 4


def test_probabilities_are_calibrated():
    X, y = examples(2, n=400)
    model = KernelSVC(probability=True).fit(X[:200], y[:200])
    p = model.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    order = np.argsort(model.decision_function(X[200:]))
    assert np.all(np.diff(p[order, 1]) >= 0)
    high = p[:, 1] > 0.8
    assert high.sum() > 10
    assert y[200:][high].mean() > 0.65
    three = KernelSVC(probability=True).fit(*load_iris(return_X_y=True))
    np.testing.assert_allclose(three.predict_proba(load_iris().data).sum(axis=1), 1.0)
    with pytest.raises(AttributeError, match="predict_proba"):
        KernelSVC().fit(X, y).predict_proba(X)


def test_check_estimator():
    check_estimator(KernelSVC(tol=1e-9))  # a weight is as good as a repeated row, to seven digits


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"C": 0.0}, "C must"),
        ({"C": -1.0}, "C must"),
        ({"gamma": 0}, "gamma"),
        ({"kernel": "cosine"}, "kernel"),
        ({"class_weight": {7: 2.0}}, "class_weight"),
        ({"class_weight": {0: -2.0}}, "class_weight"),
        ({"cache_bytes": -1}, "cache_bytes"),
        ({"solver": 3}, "solver"),
    ],
)
def test_bad_parameters_are_named(settings, word):
    X, y = examples(2, n=60)
    with pytest.raises(ValueError, match=word):
        KernelSVC(**settings).fit(X, y)


def test_bad_labels():
    X, y = examples(2, n=60)
    with pytest.raises(ValueError, match="one class"):
        KernelSVC().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="label"):
        KernelSVC().fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="classes"):
        KernelSVC().fit(Shards.mine(X), y)
    with pytest.raises(ValueError, match="labels"):
        KernelSVC().fit(Shards.split(X, 2), y[:50])


def test_kernels_that_are_none():
    X, y = examples(2, n=60)
    with pytest.raises(ValueError, match="positive semidefinite"):
        KernelSVC(kernel=lambda A, B: -rbf_kernel(A, B) * 5, C=10.0).fit(X, y)
    with pytest.raises(ValueError, match="differs"):
        KernelSVC(kernel=lambda A, B: A @ B.T + A[:, :1], C=10.0).fit(X, y)
    with pytest.raises(ValueError, match="shape"):
        KernelSVC(kernel=lambda A, B: A @ A.T).fit(np.vstack([X] * 9), np.tile(y, 9))
    with pytest.raises(ValueError, match="finite"):
        KernelSVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)

    def dense_only(A, B):
        return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))

    with pytest.raises(ValueError, match="sparse"):
        KernelSVC(kernel=dense_only).fit(sparse.csr_array(X), y)
    same = KernelSVC(kernel=dense_only).fit(X, y)
    assert same.result_.status == "optimal"


@pytest.mark.parametrize("tol", [1e-8, 1e-3])
def test_one_machine_per_class_equals_separate_machines(tol):
    X, y = examples(3)
    model = KernelSVC(gamma=0.05, multi_class="one-vs-rest", cluster=3, solver=Solver(tol=tol))
    model.fit(X, y)
    total = 0.0
    for c in range(3):
        alone = KernelSVC(gamma=0.05, solver=Solver(tol=1e-8)).fit(X, y == c)
        total += alone.result_.objective
        if tol == 1e-8:
            np.testing.assert_allclose(
                model.decision_function(X)[:, c], alone.decision_function(X), atol=1e-5
            )
    assert total * (1 - 1e-9) <= model.result_.objective <= total + model.result_.gap
    check_what_is_known(model, X)


@pytest.mark.parametrize("tol", [1e-8, 1e-3])
def test_a_machine_for_every_two_classes_equals_separate_machines(tol):
    X, y = examples(4, n=400)
    costs = {0: 1.0, 1: 2.0, 2: 1.0, 3: 0.5}
    how = {"gamma": 0.05, "C": 3.0}
    model = KernelSVC(**how, class_weight=costs, cluster=3, solver=Solver(tol=tol)).fit(X, y)
    K = rbf_kernel(X, model.support_vectors_, 0.05)
    values = pair_values(K, model.dual_coef_, model.n_support_) + model.intercept_
    pairs, total = [(i, j) for i in range(4) for j in range(i + 1, 4)], 0.0
    for m, (i, j) in enumerate(pairs):
        rows = np.isin(y, (i, j))
        weights = {True: costs[i], False: costs[j]}
        alone = KernelSVC(**how, class_weight=weights, solver=Solver(tol=1e-8))
        alone.fit(X[rows], y[rows] == i)
        total += alone.result_.objective
        if tol == 1e-8:
            np.testing.assert_allclose(values[:, m], alone.decision_function(X), atol=1e-5)
    assert total * (1 - 1e-9) <= model.result_.objective <= total * (1 + 1e-12) + model.result_.gap
    assert model.result_.relative_gap <= tol
    check_what_is_known(model, X)
    # Votes are counted as scikit-learn does, from the same layout.
    expected = _ovr_decision_function(values < 0, -values, 4)
    np.testing.assert_allclose(model.decision_function(X), expected)
    np.testing.assert_array_equal(y[model.support_], np.repeat(range(4), model.n_support_))


def check_what_is_known(model, X):
    """No example was sent twice, and the support vectors are examples."""
    sent = [d.atom for d in model.result_.ledger.disclosures]
    assert len(sent) == len(set(sent)) > 0
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


def test_machines_are_as_good_as_those_of_svc():
    X, y = load_digits(return_X_y=True)
    train, X = np.arange(len(y)) % 3 > 0, X / 16
    svc = SVC(C=10.0, gamma=0.5).fit(X[train], y[train])
    ours = KernelSVC(C=10.0, gamma=0.5).fit(X[train], y[train])
    assert ours.score(X[~train], y[~train]) >= svc.score(X[~train], y[~train]) - 0.003


@pytest.mark.parametrize("multi_class", ["one-vs-one", "one-vs-rest"])
def test_machines_without_a_cache_and_of_sparse_points(multi_class):
    X, y = examples(3)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    how = {"multi_class": multi_class, "gamma": 0.05, "solver": Solver(tol=1e-7)}
    kept = KernelSVC(**how).fit(X, y)
    for other in (
        KernelSVC(**how, cache_bytes=0).fit(X, y),
        KernelSVC(**how, cluster=4).fit(sparse.csr_array(X), y),
    ):
        assert other.result_.objective == pytest.approx(kept.result_.objective, rel=1e-6)
        np.testing.assert_allclose(other.decision_function(X), kept.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_badly_scaled_features_leave_a_model(kernel, monkeypatch):
    """Rounding makes the low-rank part of such a kernel indefinite."""
    monkeypatch.setattr("atomcast.steps.inner.choice.MANY_POINTS", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * [1e3, 1.0, 1e-3, 1.0, 1.0]
    few = {"solver": Solver(max_rounds=3), "cache_bytes": 50_000}  # no room for a matrix
    model = KernelSVC(C=100.0, kernel=kernel, gamma=1.0, **few)
    with pytest.warns(match="the relative gap is"):
        model.fit(X, X[:, 1] > 0)
    assert np.isfinite(model.dual_coef_).all()


@pytest.mark.parametrize("multi_class", ["one-vs-one", "direct"])
def test_no_kernel_value_is_computed_for_two_purposes(multi_class):
    """Of known points, scores come from their own matrix: no column is computed for them."""
    computed = 0

    def kernel(X, Z):
        nonlocal computed
        computed += len(X) * len(Z)
        return np.exp(-0.1 * ((X[:, None] - Z) ** 2).sum(axis=2))

    X, y = examples(3, n=400)
    model = KernelSVC(C=0.1, kernel=kernel, multi_class=multi_class).fit(X, y)
    known = int(model.result_.trace.atoms[-1])
    assert known > 350  # nearly all: with columns of all examples, half as many values again
    assert computed <= 1.1 * len(X) * known


def test_machines_need_the_corrective_step():
    X, y = examples(3, n=60)
    few = Solver("classic", max_rounds=2, tol=0.9)
    with pytest.raises(ValueError, match="multi_class='one-vs-one' needs the corrective step"):
        KernelSVC(multi_class="one-vs-one", solver=few).fit(X, y)
    with pytest.raises(ValueError, match="multi_class"):
        KernelSVC(multi_class="all").fit(X, y)
    with pytest.warns(match="gap"):
        assert KernelSVC(solver=few).fit(X, y).dual_coef_.shape[0] == 3  # one machine for all


def test_a_class_that_nobody_has_an_example_of():
    X, y = examples(3, n=150)
    model = KernelSVC(cluster=2).fit(X, y, classes=[0, 1, 2, 3])
    assert model.result_.status == "optimal"
    assert model.n_support_[3] == 0
    np.testing.assert_array_equal(model.predict(X), KernelSVC(cluster=2).fit(X, y).predict(X))


@pytest.mark.slow
@pytest.mark.data
def test_usps_is_as_good_as_the_best_svc_of_a_grid(monkeypatch):
    use("usps", monkeypatch)
    data = load_usps()
    grid = {"C": [1.0, 10.0], "gamma": [0.005, 0.01, 0.02]}
    search = GridSearchCV(SVC(), grid, cv=3).fit(data.X[:2500], data.y[:2500])
    best = SVC(**search.best_params_).fit(data.X, data.y)
    ours = KernelSVC(**search.best_params_, cluster=10, solver=Solver(tol=1e-2)).fit(data.X, data.y)
    reference = best.score(data.X_test, data.y_test)
    assert ours.score(data.X_test, data.y_test) >= reference - 0.005
