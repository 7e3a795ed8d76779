"""Structured SVMs against a quadratic program, on any number of nodes, with outputs of any kind."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from atomcast import (
    Checkpoint,
    Faults,
    Lasso,
    LocalCluster,
    RayCluster,
    Shards,
    Solver,
    StructuredSVM,
    load_model,
    save_model,
)
from atomcast.structures import Chain, MultiClass

BLOCKS = "block-coordinate"


def classes(n=40, features=4, seed=0):
    """Three classes that overlap; whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return np.round(4 * (rng.standard_normal((n, features)) + np.eye(3, features)[y])), y


def sequences(n=12, labels=2, features=3, seed=0):
    """Sequences of one to four rows, whose labels tend to stay the same."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for _ in range(n):
        changes = rng.random(rng.integers(1, 5)) < 0.3
        y = (rng.integers(labels) + np.cumsum(changes)) % labels
        ys.append(y)
        xs.append(rng.standard_normal((len(y), features)) + 0.7 * np.eye(labels, features)[y])
    return xs, ys


def optimum(model, xs, ys, C):
    """The primal optimum and its weights, with a constraint for every labeling."""
    import cvxpy

    w, slack = cvxpy.Variable(model.d), cvxpy.Variable(len(xs), nonneg=True)
    constraints = []
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        for labels in product(range(model.classes), repeat=len(y)):
            other = np.array(labels)
            corner = model.joint_feature(x, y) - model.joint_feature(x, other)
            constraints.append(slack[i] >= model.loss(y, other) - corner @ w)
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(w) / 2 + C * cvxpy.sum(slack)), constraints
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value, w.value


@pytest.mark.parametrize(("step", "nodes"), [("corrective", 1), (BLOCKS, 1), (BLOCKS, 3)])
@pytest.mark.parametrize("kind", ["multiclass", "chain"])
def test_the_optimum_is_that_of_a_quadratic_program(kind, step, nodes):
    if kind == "multiclass":
        X, y = classes()
        X = X / 4
        xs, ys, model = [x[None] for x in X], [np.array([label]) for label in y], MultiClass(3, 4)
    else:
        X, y = xs, ys = sequences()
        model = Chain(2, 3)
    best, w = optimum(model, xs, ys, 0.5)
    svm = StructuredSVM(kind, C=0.5, cluster=nodes, solver=Solver(step, tol=1e-8)).fit(X, y)
    result = svm.result_
    assert result.status == "optimal"
    assert -result.objective == pytest.approx(best, rel=1e-6)
    assert result.gap - result.objective == pytest.approx(best, rel=1e-6)  # the primal
    np.testing.assert_allclose(svm.coef_, w, atol=1e-3 * np.abs(w).max())


def hinges(model, w, xs, ys):
    """The sum of hinge losses, by decoding."""
    total = 0.0
    for x, y in zip(xs, ys, strict=True):
        other = model.decode(w, x, y)
        corner = model.joint_feature(x, y) - model.joint_feature(x, other)
        total += model.loss(y, other) - w @ corner
    return total


@pytest.mark.parametrize("step", ["line-search", "corrective", BLOCKS])
def test_the_gap_is_that_between_primal_and_dual(step):
    xs, ys = sequences()
    svm = StructuredSVM("chain", C=2.0, cluster=3, solver=Solver(step, max_rounds=7, tol=1e-9))
    with pytest.warns(UserWarning, match="raise max_rounds"):
        svm.fit(xs, ys)
    primal = svm.coef_ @ svm.coef_ / 2 + 2.0 * hinges(svm.model_, svm.coef_, xs, ys)
    assert svm.result_.gap == pytest.approx(primal + svm.result_.objective, rel=1e-9)


def test_any_number_of_nodes_gives_the_same_model_bit_for_bit():
    X, y = classes()
    one = StructuredSVM(cluster=1).fit(X, y)
    for cluster in (2, LocalCluster(4, "tree"), LocalCluster(4, isolated=True)):
        other = StructuredSVM(cluster=cluster).fit(X, y)
        np.testing.assert_array_equal(other.coef_, one.coef_)
        assert (other.n_iter_, other.passes_) == (one.n_iter_, one.passes_)
    listed = StructuredSVM(cluster=2).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(listed.coef_, one.coef_)
    exact = Solver(tol=1e-10)
    plain = StructuredSVM(solver=exact).fit(X / 3, y)  # sums of these are rounded
    rounded = StructuredSVM(cluster=4, solver=exact).fit(X / 3, y)
    np.testing.assert_allclose(rounded.coef_, plain.coef_, atol=1e-5)


def test_block_steps_never_raise_the_objective_and_agree_between_sessions():
    xs, ys = sequences(20)
    solver = Solver(BLOCKS, tol=1e-6)
    together = StructuredSVM("chain", cluster=3, solver=solver).fit(xs, ys)
    apart = StructuredSVM("chain", cluster=LocalCluster(3, isolated=True), solver=solver)
    np.testing.assert_allclose(apart.fit(xs, ys).coef_, together.coef_, atol=1e-12)
    objective = together.result_.trace.objective
    assert np.all(np.diff(objective) <= 1e-12 * np.abs(objective[1:]))
    assert together.result_.status == "optimal"


def small_digits(n=120):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16, y[:n]


def passes_to(gap, **how):
    """How many times all examples are decoded before the relative gap is so small."""
    model = StructuredSVM(C=0.1, **how)
    return model.set_params(solver__tol=gap).fit(*small_digits()).passes_


@pytest.mark.filterwarnings("ignore:the relative gap")
def test_block_steps_need_far_fewer_passes_and_cached_corners_fewer_still():
    blocks = passes_to(0.2, solver=BLOCKS, cache=False)
    assert blocks < 12
    assert passes_to(0.2, solver=BLOCKS, cache=True) < blocks
    assert passes_to(0.2, solver="corrective") > 2 * blocks
    assert passes_to(0.2, solver=Solver("line-search", max_rounds=60)) == 60


def digit_chains(n=120, seed=0):
    """Digits that mostly count upwards, drawn from images with a lot of noise."""
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    chains, labels = [], []
    for _ in range(n):
        steps = np.where(rng.random(8) < 0.85, 1, rng.integers(10, size=8))
        digits = (rng.integers(10) + np.cumsum(steps)) % 10
        images = np.array([rng.choice(np.flatnonzero(y == digit)) for digit in digits])
        chains.append(X[images] / 16 + 0.6 * rng.standard_normal((8, 64)))
        labels.append(digits)
    return chains, labels


def test_chains_of_digits_beat_independent_classification():
    xs, ys = digit_chains()
    new_xs, new_ys = digit_chains(60, seed=1)
    solver = Solver(tol=0.05)
    alone = StructuredSVM(C=0.05, cluster=2, solver=solver)
    alone.fit(np.concatenate(xs), np.concatenate(ys))
    chain = StructuredSVM("chain", C=0.05, cluster=2, solver=solver).fit(xs, ys)
    independent = alone.score(np.concatenate(new_xs), np.concatenate(new_ys))
    assert chain.score(new_xs, new_ys) > independent + 0.1


# -- what is counted ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "links"),
    [
        (LocalCluster(5), 2 * 5),
        (LocalCluster(5, "tree"), 2 * 4),
        (LocalCluster(5, "complete"), 5 * 4),
        (LocalCluster(5, broadcast="plain"), 5 * 5),
    ],
    ids=repr,
)
def test_a_round_costs_a_vector_over_every_link(cluster, links):
    X, y = classes()
    d = MultiClass(3, 4).d
    batch = StructuredSVM(C=0.01, cluster=cluster).fit(X, y).result_.ledger
    assert {count.values for count in batch.by_round()} == {links * (d + 1)}
    assert set(batch.by_kind()) >= {"corner"}
    assert batch.by_kind()["corner"].values == batch.values
    assert batch.atoms_sent == 0
    few = Solver(BLOCKS, tol=0.3)
    blocks = StructuredSVM(C=0.01, cluster=cluster, solver=few).fit(X, y).result_.ledger
    assert {count.values for count in blocks.by_round()} == {links * (d + 1), links * (d + 3)}


# -- outputs of one's own -------------------------------------------------------------------


class Slopes:
    """Ordered grades: one weight vector, and a threshold for each grade but the first."""

    def __init__(self, grades, features):
        self.grades, self.d = grades, features + grades - 1

    def joint_feature(self, x, y):
        return np.concatenate([y * x[0], -(np.arange(1, self.grades) <= y).astype(float)])

    def loss(self, y, other):
        return float(abs(y - other))

    def decode(self, w, x, y=None):
        scores = [w @ self.joint_feature(x, grade) for grade in range(self.grades)]
        losses = [0.0 if y is None else self.loss(y, grade) for grade in range(self.grades)]
        return int(np.argmax(np.add(scores, losses)))


def graded(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.digitize(X @ [1.0, -0.5, 0.0], [-0.6, 0.6]).tolist()


@pytest.mark.parametrize("step", ["corrective", BLOCKS])
def test_a_model_of_one_s_own(step):
    X, y = graded()
    svm = StructuredSVM(Slopes(3, 3), cluster=3, solver=step).fit(X, y)
    assert svm.result_.status == "optimal"
    assert svm.score(X, y) > -0.1
    assert np.mean(np.equal(svm.predict(X), y)) > 0.9
    assert not hasattr(svm, "decision_function")
    primal = svm.coef_ @ svm.coef_ / 2 + hinges(svm.model_, svm.coef_, X[:, None], y)
    assert svm.result_.gap == pytest.approx(primal + svm.result_.objective, rel=1e-6, abs=1e-9)


class Plain:
    """A chain that is looked at one example at a time."""

    def __init__(self, chain):
        self.d, self.joint_feature = chain.d, chain.joint_feature
        self.loss, self.decode = chain.loss, chain.decode


def test_the_ready_chain_is_what_its_methods_say():
    """The same by one example at a time as by all examples in one pass."""
    xs, ys = sequences()
    ready = StructuredSVM("chain", cluster=2).fit(xs, ys)
    plain = StructuredSVM(Plain(Chain(2, 3)), cluster=2).fit(xs, ys)
    np.testing.assert_allclose(plain.coef_, ready.coef_, atol=1e-9)
    for mine, other in zip(plain.predict(xs), ready.predict(xs), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(("model", "step"), [("chain", None), ("chain", BLOCKS), ("own", None)])
def test_a_sequence_with_a_weight_is_as_good_as_so_many(model, step):
    xs, ys = sequences()
    weights = np.array([0, 1, 2, 3] * 3)
    many = np.repeat(np.arange(len(xs)), weights)
    model = Plain(Chain(2, 3)) if model == "own" else model
    svm = StructuredSVM(model, C=0.3, cluster=2, solver=step, tol=1e-7)
    weighted = svm.fit(xs, ys, weights).coef_
    repeated = svm.fit([xs[i] for i in many], [ys[i] for i in many]).coef_
    np.testing.assert_allclose(weighted, repeated, atol=2e-3)
    assert np.abs(weighted - svm.fit(xs, ys).coef_).max() > 0.1
    rows = sum(map(len, ys))
    with pytest.raises(ValueError, match="sample_weight must be 12 finite numbers"):
        svm.fit(xs, ys, np.ones(rows))


class Failing(Slopes):
    """Fails on a marked example, or does not find the best output."""

    def decode(self, w, x, y=None):
        if x[0, 0] == 99.0:
            raise ZeroDivisionError("no way out")
        if x[0, 0] == 98.0:
            return super().decode(-w, x)
        return super().decode(w, x, y)


@pytest.mark.parametrize("step", ["corrective", BLOCKS])
@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (99.0, r"example 17 of shard.*decode of Failing failed: ZeroDivisionError: no way out"),
        (98.0, r"example 17 of shard.*decode of Failing is not exact"),
    ],
)
def test_a_decoder_that_fails_is_told_of_its_example(step, mark, words):
    X, y = graded()
    X[17, 0], y[17] = mark, 2
    with pytest.raises(ValueError, match=words):
        StructuredSVM(Failing(3, 3), cluster=LocalCluster(3, isolated=True), solver=step).fit(X, y)


def test_a_joint_feature_that_is_no_vector_of_numbers():
    X, y = graded()
    for features in ([np.nan] * 5, np.ones(6), np.ones((5, 1))):
        bad = Slopes(3, 3)
        bad.joint_feature = lambda x, y, features=features: np.asarray(features) * (y == 2)
        bad.decode = lambda w, x, y=None: 2
        with pytest.raises(ValueError, match=r"example \d+ of .*joint_feature or loss of Slopes"):
            StructuredSVM(bad).fit(X, y)


# -- data in all its forms ------------------------------------------------------------------


def test_lists_rows_with_lengths_and_files_are_the_same(tmp_path):
    xs, ys = sequences()
    sizes = [len(y) for y in ys]
    listed = StructuredSVM("chain", cluster=2).fit(xs, ys)
    rows, labels = np.concatenate(xs), np.concatenate(ys)
    flat = StructuredSVM("chain", cluster=2).fit(rows, labels, lengths=sizes)
    np.testing.assert_array_equal(flat.coef_, listed.coef_)
    first = sum(sizes[:5])
    np.save(tmp_path / "a.npy", rows[:first])
    np.save(tmp_path / "b.npy", rows[first:])
    files = Shards.files([tmp_path / "a.npy", tmp_path / "b.npy"])
    filed = StructuredSVM("chain").fit(files, labels, lengths=sizes)
    np.testing.assert_allclose(filed.coef_, listed.coef_, atol=1e-9)
    expected = listed.predict(xs)
    np.testing.assert_array_equal(np.concatenate(expected), filed.predict(rows, lengths=sizes))
    np.testing.assert_array_equal(np.concatenate(expected), filed.predict(files, lengths=sizes))
    assert listed.score(xs, ys) == filed.score(rows, labels, lengths=sizes)


def test_labels_come_back_as_they_were_given():
    X, y = classes()
    names = np.array(["ash", "birch", "elm"])
    model = StructuredSVM(cluster=2).fit(X, names[y])
    assert (
        model.predict(X).tolist() == names[StructuredSVM(cluster=2).fit(X, y).predict(X)].tolist()
    )
    assert model.decision_function(X).shape == (len(X), 3)
    two = StructuredSVM().fit(X, y > 0)
    np.testing.assert_array_equal(two.decision_function(X) > 0, two.predict(X))


def test_models_can_be_saved_unless_they_are_code(tmp_path):
    xs, ys = sequences()
    chain = StructuredSVM("chain", C=2.0).fit(xs, ys)
    save_model(chain, tmp_path / "chain.safetensors")
    loaded = load_model(tmp_path / "chain.safetensors")
    np.testing.assert_array_equal(
        np.concatenate(loaded.predict(xs)), np.concatenate(chain.predict(xs))
    )
    assert (loaded.C, loaded.passes_, loaded.model_) == (2.0, chain.passes_, Chain(2, 3))
    own = StructuredSVM(Slopes(3, 3)).fit(*graded())
    with pytest.raises(ValueError, match="outputs of your own cannot be saved"):
        save_model(own, tmp_path / "own.safetensors")


XS, YS = sequences()
ROWS, ROW_LABELS = np.concatenate(XS), np.concatenate(YS)
SIZES = [len(y) for y in YS]


@pytest.mark.parametrize(
    ("how", "data", "words"),
    [
        ({"model": "tree"}, (ROWS, ROW_LABELS), r"model must be 'multiclass' or 'chain', or"),
        ({"model": 3}, (ROWS, ROW_LABELS), r"joint_feature.*got 3"),
        ({"C": 0.0}, (ROWS, ROW_LABELS), "C must be"),
        ({"model": "chain"}, (ROWS, ROW_LABELS), "lengths is missing"),
        ({"model": "chain"}, (XS, YS[:-1]), "11 examples in y, but 12 examples in X"),
        (
            {"model": "chain"},
            (XS, [*YS[:3], YS[3][:-1], *YS[4:]]),
            "example 3 has . rows in X, but labels of the shape",
        ),
        ({"model": "chain"}, ([*XS[:2], np.ones((2, 9))], YS[:3]), r"example 2 of X has the shape"),
    ],
)  # fmt: skip
def test_bad_input(how, data, words):
    with pytest.raises(ValueError, match=words):
        StructuredSVM(**how).fit(*data)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([1, 2], "there are 3 rows in all by lengths, but"),
        ([1.5, 2], "positive whole numbers"),
        ([0, len(ROWS)], "positive whole numbers"),
        (["a"], "positive whole numbers"),
    ],
)
def test_bad_lengths(lengths, words):
    with pytest.raises(ValueError, match=words):
        StructuredSVM("chain").fit(ROWS, ROW_LABELS, lengths=lengths)


def test_what_does_not_go_with_sums_is_refused(tmp_path):
    X, y = classes()
    with pytest.raises(ValueError, match=r"example \d+ has \d rows, of which one node.* holds"):
        StructuredSVM("chain").fit(Shards.split(ROWS, 3), ROW_LABELS, lengths=SIZES)
    with pytest.raises(ValueError, match="lengths must be 1 where"):
        StructuredSVM().fit(XS, YS)
    for cluster in (LocalCluster(3, faults=Faults(loss=0.1)), LocalCluster(3, asynchronous=True)):
        with pytest.raises(ValueError, match="needs the sum over all nodes"):
            StructuredSVM(cluster=cluster).fit(X, y)
    with pytest.raises(ValueError, match="needs the sum over all nodes"):
        StructuredSVM(cluster=RayCluster(3, asynchronous=True)).fit(X, y)
    with pytest.raises(ValueError, match="neither write nor resume checkpoints"):
        StructuredSVM(solver=Solver(callbacks=[Checkpoint(tmp_path / "c")])).fit(X, y)
    with pytest.raises(ValueError, match="every example counts"):
        StructuredSVM(solver=Solver(selection="random-subset")).fit(X, y)
    with pytest.raises(ValueError, match="a block for each example"):
        Lasso(solver=BLOCKS).fit(X, y)


def test_sequences_may_be_sparse_and_labels_must_go_with_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(3, size=30)
    rows, labels = np.split(X, 3), np.split(y, 3)
    dense = StructuredSVM("chain").fit(rows, labels)
    lean = StructuredSVM("chain").fit([sparse.csr_array(part) for part in rows], labels)
    np.testing.assert_allclose(lean.coef_, dense.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="examples in y"):
        dense.score(rows, y)
