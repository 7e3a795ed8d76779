"""Many kernels on views: the optimum of CVXPY, the views that matter, every way to give them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import (
    Checkpoint,
    Faults,
    LocalCluster,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    Shards,
    Solver,
    load_model,
    save_model,
)
from atomcast.steps.inner.newton import Newton

EXACT = Solver(tol=1e-7)
VIEWS = [[0, 1], [2, 3], [4, 5], [6, 7]]
KERNELS = [{"kernel": "rbf", "gamma": 0.7}, {"kernel": "rbf", "gamma": 0.1}, "linear"]


def data(n=60, columns=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    target = np.sin(2.0 * X[:, 0] * X[:, 1]) + X[:, 4]
    return X, target + 0.2 * rng.standard_normal(n), target > 0.0


def matrices(X):
    """The kernels that the models take, 1 on average on the diagonal, view by view."""
    all_values = []
    for view in VIEWS:
        points = X[:, view]
        all_values += [rbf_kernel(points, gamma=0.7), rbf_kernel(points, gamma=0.1)]
        all_values.append(points @ points.T)
    return [values * len(values) / np.trace(values) for values in all_values]


def optimum(Ks, loss, C=None, beta=None):
    """The optimum over functions f_k, by their coordinates in a factor of each kernel."""
    import cvxpy as cp

    pairs = [np.linalg.eigh(K) for K in Ks]
    kept = [values > 1e-10 * values[-1] for values, _ in pairs]
    factors = [U[:, k] * np.sqrt(s[k]) for (s, U), k in zip(pairs, kept, strict=True)]
    w = [cp.Variable(L.shape[1]) for L in factors]
    size = sum(cp.norm(each) for each in w)
    total = loss(cp, sum(L @ each for L, each in zip(factors, w, strict=True)))
    goal, bound = (0.5 * size**2 + C * total, []) if beta is None else (total, [size <= beta])
    solved = cp.Problem(cp.Minimize(goal), bound)
    solved.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return solved.value, size.value


WAYS = [("directions", {"C": 0.5}), ("directions", {"C": 30.0}), ("directions", {"beta": 3.0})]
WAYS += [("columns", {"C": 0.5}), ("columns", {"beta": 3.0})]


@pytest.mark.parametrize(("send", "size"), WAYS)
def test_regression_equals_cvxpy(send, size):
    X, y, _ = data()

    def loss(cp, f):
        return cp.sum_squares(y - f - cp.Variable())

    model = MultipleKernelRegressor(
        **size, kernels=KERNELS, views=VIEWS, send=send, cluster=3, solver=EXACT
    ).fit(X, y)
    value, norm = optimum(matrices(X), loss, **size)
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    assert model.beta_ == pytest.approx(norm, rel=1e-3)
    residual = float(np.sum((y - model.predict(X)) ** 2))
    penalised = 0.5 * model.beta_**2 + model.C_ * residual
    assert model.result_.objective == pytest.approx(
        residual if "beta" in size else penalised, rel=1e-6
    )


@pytest.mark.parametrize(("send", "size"), WAYS)
def test_classification_equals_cvxpy(send, size):
    X, _, y = data(seed=1)
    signs = np.where(y, 1.0, -1.0)

    def loss(cp, f):
        return cp.sum_squares(cp.pos(1 - cp.multiply(signs, f)))

    model = MultipleKernelClassifier(
        **size, kernels=KERNELS, views=VIEWS, send=send, cluster=3, solver=EXACT
    ).fit(X, y)
    value, norm = optimum([K + 1.0 for K in matrices(X)], loss, **size)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    assert model.beta_ == pytest.approx(norm, rel=1e-3)
    missing = np.maximum(1.0 - signs * model.decision_function(X), 0.0)
    residual = float(missing @ missing)
    penalised = 0.5 * model.beta_**2 + model.C_ * residual
    assert model.result_.objective == pytest.approx(
        residual if "beta" in size else penalised, rel=1e-6
    )


def test_several_classes_equal_cvxpy():
    X, _, _ = data(n=45, seed=2)
    y = np.digitize(X[:, 4] + X[:, 0] ** 2, [0.3, 1.2])
    label = np.where(y[:, None] == y, 1.0, -0.5)

    def loss(cp, f):
        return cp.sum_squares(cp.pos(1 - f))

    settings = {"C": 2.0, "kernels": KERNELS, "views": VIEWS, "solver": EXACT}
    model = MultipleKernelClassifier(**settings, multi_class="direct").fit(X, y)
    value, _ = optimum([(K + 1.0) * label for K in matrices(X)], loss, C=2.0)
    assert model.result_.objective == pytest.approx(value, rel=1e-6)
    decisions = model.decision_function(X)
    assert decisions.shape == (45, 3)
    np.testing.assert_allclose(decisions.sum(axis=1), 0.0, atol=1e-9)
    missing = np.maximum(1.0 - decisions[np.arange(45), y], 0.0)
    penalised = 0.5 * model.beta_**2 + 2.0 * float(missing @ missing)
    assert penalised == pytest.approx(model.result_.objective, rel=1e-6)


def test_one_machine_a_class_is_that_of_each_class_alone(tmp_path):
    X, _, _ = data(n=45, seed=2)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 4] + X[:, 0] ** 2, [0.3, 1.2])]
    settings = {"C": 2.0, "kernels": KERNELS, "views": VIEWS, "solver": EXACT, "cluster": 2}
    model = MultipleKernelClassifier(**settings).fit(X, y)
    alone = [MultipleKernelClassifier(**settings).fit(X, y == one) for one in model.classes_]
    decisions = np.column_stack([one.decision_function(X) for one in alone])
    np.testing.assert_allclose(model.decision_function(X), decisions, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.classes_[decisions.argmax(axis=1)])
    assert model.result_.objective == pytest.approx(sum(one.result_.objective for one in alone))
    assert model.result_.gap == pytest.approx(sum(one.result_.gap for one in alone))
    assert model.result_.status == "optimal"
    ledgers = [one.result_.ledger for one in (model, *alone)]
    whole, *parts = (each.values for each in ledgers)
    assert whole == sum(parts)
    phases = {one.phase.partition(",")[0] for one in ledgers[0].disclosures}
    assert phases == {"class 1", "class 2", "class 3"}
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="multi_class"):
        MultipleKernelClassifier(multi_class="ovo").fit(X, y)
    watched = Solver(callbacks=[Checkpoint(tmp_path / "run.safetensors")])
    model = MultipleKernelClassifier(beta=2.0, send="columns", solver=watched)
    with pytest.raises(ValueError, match=r'a model for each class: give multi_class="direct"'):
        model.fit(X, y)


SMALL = {"C": 2.0, "kernels": ["rbf", "linear"], "solver": Solver(tol=1e-5)}
CLUSTERS = [
    LocalCluster(4, topology="tree"),
    LocalCluster(4, topology="complete"),
    LocalCluster(4, isolated=True),
    LocalCluster(4, faults=Faults(loss=0.3, seed=1)),
    LocalCluster(4, asynchronous=True),
]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=repr)
def test_every_cluster_gives_the_same_model(cluster):
    X, y, _ = data()
    one = MultipleKernelRegressor(views=VIEWS, **SMALL).fit(X, y)
    many = MultipleKernelRegressor(views=VIEWS, **SMALL, cluster=cluster).fit(X, y)
    assert many.result_.status == "optimal"
    assert many.result_.objective == pytest.approx(one.result_.objective, rel=2e-5)
    np.testing.assert_allclose(many.kernel_weights_, one.kernel_weights_, atol=0.02)
    np.testing.assert_allclose(many.predict(X), one.predict(X), atol=0.05)


def test_steps_without_correction_take_the_direction_that_won():
    X, y, _ = data()
    for step in ("classic", "line-search"):
        solver = Solver(step=step, tol=0.1)
        model = MultipleKernelRegressor(beta=2.0, views=VIEWS, cluster=2, solver=solver).fit(X, y)
        assert model.result_.status == "optimal"
        assert model.beta_ <= 2.0 * (1 + 1e-9)
        assert np.sum((y - model.predict(X)) ** 2) == pytest.approx(model.result_.objective)


def test_few_values_are_sent_and_nothing_of_views_that_are_not_used():
    X, y, _ = data()
    model = MultipleKernelRegressor(views=VIEWS, **SMALL, cluster=4).fit(X, y)
    sent = model.result_.ledger.disclosures
    assert {d.values for d in sent} == {len(y) + 2}  # a direction, gamma and the scale
    columns = MultipleKernelRegressor(views=VIEWS, **SMALL, cluster=4, send="columns").fit(X, y)
    assert 4 * model.result_.ledger.values < columns.result_.ledger.values
    assert columns.result_.objective == pytest.approx(model.result_.objective, rel=2e-5)


def test_informative_views_are_found_among_200_of_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2 * 203))
    views = rng.permutation(2 * 203).reshape(-1, 2)
    good = [7, 90, 200]
    f = [X[:, views[k]] for k in good]
    score = np.sin(2 * f[0][:, 0]) + np.abs(f[1]).sum(axis=1) - 1.6 + f[2][:, 0] * f[2][:, 1]
    y = score + 0.1 * rng.standard_normal(300) > 0.0
    model = MultipleKernelClassifier(
        C=0.1, kernels=["rbf"], views=views.tolist(), cluster=20, solver=Solver(tol=1e-3)
    ).fit(X, y)
    assert set(np.argsort(-model.kernel_weights_)[:3]) == set(good)
    assert model.kernel_weights_[good].sum() > 0.5
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(model.views_[90], np.sort(views[90]))


def test_shards_of_files_are_views_and_predict_part_by_part(tmp_path):
    X, y, _ = data()
    paths = [tmp_path / f"{name}.npy" for name in ("north", "south")]
    new = [tmp_path / f"new-{path.name}" for path in paths]
    for k, columns in enumerate((slice(0, 3), slice(3, 8))):
        np.save(paths[k], X[:40, columns])
        np.save(new[k], X[40:, columns])
    kernels = {"north": ["rbf", {"kernel": "rbf", "factor": 4.0}], "south": "linear"}
    shards = Shards.files(paths)
    model = MultipleKernelRegressor(kernels=kernels).fit(shards, y[:40])
    here = MultipleKernelRegressor(
        kernels={0: kernels["north"], 1: kernels["south"]},
        views=[[0, 1, 2], [3, 4, 5, 6, 7]],
    ).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.kernel_weights_, here.kernel_weights_, atol=1e-6)
    assert model.kernel_names_[0] == "north: rbf mean-distance"
    expected = here.predict(X[40:])
    np.testing.assert_allclose(model.predict(Shards.files(new)), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X[40:]), expected, rtol=1e-6)
    assert all(function.points is None for function in model.functions_)
    assert not any(name.endswith("new") for name in model.kernel_names_)


def test_precomputed_kernels_equal_those_by_name():
    X, _, y = data()
    Ks = [rbf_kernel(X[:, view], gamma=0.3) for view in VIEWS]
    by_name = MultipleKernelClassifier(
        C=3.0, kernels={"kernel": "rbf", "gamma": 0.3}, views=VIEWS, solver=EXACT
    ).fit(X[:40], y[:40])
    train = [K[:40, :40] for K in Ks]
    values = np.hstack([K[40:, :40] for K in Ks])
    for given, cluster in ((train, None), (np.stack(train), 4), (np.hstack(train), 3)):
        model = MultipleKernelClassifier(
            C=3.0, kernels="precomputed", cluster=cluster, solver=EXACT
        ).fit(given, y[:40])
        np.testing.assert_allclose(model.kernel_weights_, by_name.kernel_weights_, atol=1e-4)
        expected = by_name.decision_function(X[40:])
        np.testing.assert_allclose(model.decision_function(values), expected, atol=1e-4)
        in_parts = model.decision_function([K[40:, :40] for K in Ks])
        np.testing.assert_allclose(in_parts, expected, atol=1e-4)


def test_sparse_data_and_a_small_cache_change_nothing():
    X, y, _ = data()
    X[np.abs(X) < 0.5] = 0.0
    model = MultipleKernelRegressor(views=VIEWS, **SMALL, cluster=2)
    dense = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(sparse.csr_array(X), y).predict(X), dense, atol=1e-6)
    again = model.set_params(cache_bytes=0).fit(X, y)
    np.testing.assert_allclose(again.predict(X), dense, atol=1e-9)  # from blocks of values


def test_columns_can_be_resumed(tmp_path):
    X, y, _ = data()
    path = tmp_path / "run.safetensors"

    def model(**solver):
        return MultipleKernelRegressor(
            beta=3.0, views=VIEWS, send="columns", cluster=2, solver=Solver(tol=1e-6, **solver)
        )

    with pytest.warns(Warning, match="max_rounds"):
        model(max_rounds=3, callbacks=[Checkpoint(path, rounds=1)]).fit(X, y)
    whole, resumed = model().fit(X, y), model(resume=path).fit(X, y)
    np.testing.assert_allclose(resumed.predict(X), whole.predict(X), atol=1e-4)
    with pytest.raises(ValueError, match="give beta="):
        MultipleKernelRegressor(solver=Solver(resume=path)).fit(X, y)


def test_a_constant_target_needs_no_kernel():
    X, _, _ = data()
    model = MultipleKernelRegressor().fit(X, np.full(60, 3.0))
    assert not model.kernel_weights_.any()
    np.testing.assert_allclose(model.predict(X), 3.0)


def test_parties_that_see_a_quarter_of_an_image_each_are_better_together():
    X, y = load_digits(return_X_y=True)
    X, y = X[::3], y[::3]
    pixels, half = np.arange(64).reshape(8, 8), np.arange(len(X)) % 2 == 0
    quarters = [pixels[a : a + 4, b : b + 4].ravel().tolist() for a in (0, 4) for b in (0, 4)]
    solver = Solver(tol=1e-3)

    def accuracy(views, X):
        model = MultipleKernelClassifier(10.0, kernels=["rbf"], views=views, solver=solver)
        return model.fit(X[half], y[half]).score(X[~half], y[~half])

    alone = [accuracy(None, X[:, quarter]) for quarter in quarters]
    assert accuracy(quarters, X) > max(alone) + 0.1


def test_hard_margins_are_certified_and_constant_targets_too():
    X = np.random.default_rng(0).normal(size=(60, 12))
    model = MultipleKernelClassifier(C=1e4).fit(X, np.sign(2 * X[:, 0] + X[:, 3]))
    columns = MultipleKernelClassifier(C=1e4, send="columns")
    columns.fit(X, np.sign(2 * X[:, 0] + X[:, 3]))
    assert model.result_.status == columns.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(columns.result_.objective, rel=2e-4)
    constant = MultipleKernelRegressor().fit(X, np.ones(60)).result_
    assert (constant.status, constant.gap) == ("optimal", 0.0)


def test_what_is_hardly_new_is_not_taken_for_a_lie():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    y = 2 * X[:, 0] + X[:, 3] + 0.1 * rng.normal(size=60)
    result = MultipleKernelRegressor(C=1e4).fit(X, y).result_
    assert result.status == "optimal"


def test_as_good_as_no_regularisation_takes_few_steps(monkeypatch):
    """Descent alone would creep along directions that are all but flat."""
    steps, step = [], Newton._step

    def counted(*arguments):
        steps.append(arguments)
        step(*arguments)

    monkeypatch.setattr(Newton, "_step", counted)
    X, y, _ = data()
    result = MultipleKernelRegressor(C=1e6, kernels=KERNELS, views=VIEWS).fit(X, y).result_
    value, _ = optimum(matrices(X), lambda cp, f: cp.sum_squares(y - f - cp.Variable()), C=1e6)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(value, rel=1e-4)
    assert len(steps) <= 2 * result.rounds


def exactly(model, X, y):
    """The squared error of the functions that a model's coefficients make, in many digits."""
    X, left = X.astype(np.longdouble), y.astype(np.longdouble)
    products = X @ X.T
    squares = np.diag(products)
    for function in model.functions_:
        values = products
        if function.kernel.spec.kernel == "rbf":
            values = np.exp(-function.gamma * (squares[:, None] + squares - 2 * products))
        left = left - values / np.trace(values) * len(y) @ function.dual[:, 0]
    left = left - left.mean()
    return float(left @ left)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the relative gap")
@pytest.mark.parametrize("send", ["directions", "columns"])
@pytest.mark.parametrize(
    ("seed", "n", "p", "beta"),
    [(9, 82, 4, 1e4), (17, 150, 5, 1e4), (51, 89, 5, 1e2), (62, 100, 4, 2e4), (234, 120, 3, 1e4)],
)  # fmt: skip
def test_gaps_are_true_where_kernels_are_all_but_singular(seed, n, p, beta, send):
    """Of walks: the values of functions with a large dual cancel down to rounding."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, p)).cumsum(axis=0), rng.standard_normal(n).cumsum()
    model = MultipleKernelRegressor(beta=beta, send=send).fit(X, y)
    result, residual = model.result_, y - model.predict(X)
    allowed = result.objective + result.gap + 1e-20 * float(y @ y)
    assert exactly(model, X, y) <= allowed
    assert float(residual @ residual) <= allowed  # in double precision
    assert result.status in ("optimal", "stopped")
    assert result.rounds <= 300


@pytest.mark.parametrize("weighted", [False, True])
def test_one_kernel_is_kernel_ridge(weighted):
    from sklearn.kernel_ridge import KernelRidge

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y, weights = np.sin(X[:, 0]) + X[:, 1], rng.uniform(0, 2, 60) if weighted else None
    kernel = {"kernel": "rbf", "gamma": 0.3}
    ours = MultipleKernelRegressor(2.0, kernels=[kernel], fit_intercept=False, tol=1e-9)
    theirs = KernelRidge(alpha=0.25, **kernel).fit(X, y, weights)
    new = rng.standard_normal((20, 3))
    np.testing.assert_allclose(ours.fit(X, y, weights).predict(new), theirs.predict(new), atol=1e-4)
