"""A kernel machine whose fit is resumed is the one that was never interrupted."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from atomcast import Checkpoint, KernelSVC, LocalCluster, MCenters, RandomSubset, Solver
from atomcast.storage.snapshot import read_checkpoint, write_checkpoint
from problems import STEPS


class Copies:
    """Keep the checkpoint of every round under a name of its own."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, state):
        Checkpoint(self.folder / f"{state.round}.safetensors", rounds=1).finish(state)


def examples(classes=2, n=300, seed=0):
    return make_classification(
        n, 12, n_informative=6, n_classes=classes, flip_y=0.1, class_sep=0.7, random_state=seed
    )


def fit(X, y, nodes, solver, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelSVC(**how, cluster=nodes, solver=Solver(**solver)).fit(X, y)


def agrees(resumed, whole):
    """All but the scores of single atoms, which depend on the shape of a shard, is bit for bit."""
    again, first = resumed.result_, whole.result_
    assert (again.rounds, again.status) == (first.rounds, first.status)
    np.testing.assert_equal(resumed.gamma_, whole.gamma_)  # NaN for kernels without one
    np.testing.assert_array_equal(again.atom_ids, first.atom_ids)
    np.testing.assert_array_equal(again.atom_weights, first.atom_weights)
    np.testing.assert_array_equal(resumed.dual_coef_, whole.dual_coef_)
    assert again.objective == first.objective
    assert again.gap == pytest.approx(first.gap, rel=1e-6, abs=1e-10 * first.objective)


def check_every_round(folder, X, y, solver, rounds=None, **how):
    """Resume from some rounds, all by default, each time on another number of nodes."""
    whole = fit(X, y, 3, {**solver, "callbacks": [Copies(folder)]}, **how)
    plain = fit(X, y, 3, solver, **how)
    np.testing.assert_array_equal(whole.dual_coef_, plain.dual_coef_)  # watching changes nothing
    assert whole.result_.rounds >= 3
    for round in range(whole.result_.rounds + 1) if rounds is None else rounds:
        path = folder / f"{round}.safetensors"
        agrees(fit(X, y, 1 + round % 5, {**solver, "resume": path}, **how), whole)
    return whole


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("gamma", ["mean-distance", 0.05])
def test_corrective_from_every_round(tmp_path, classes, gamma):
    X, y = examples(classes)
    check_every_round(tmp_path, X, y, {"tol": 1e-4}, C=10.0, gamma=gamma)


@pytest.mark.parametrize("step", [step for step in STEPS if step != "corrective"])
@pytest.mark.parametrize("classes", [2, 3])
def test_other_steps(tmp_path, step, classes):
    X, y = examples(classes, n=200)
    solver = {"step": step, "tol": 1e-3, "max_rounds": 40}
    check_every_round(tmp_path, X, y, solver, rounds=(0, 1, 17, 40), C=10.0)


@pytest.mark.parametrize(
    ("how", "as_stored"),
    [
        ({"kernel": "laplacian"}, np.asarray),
        ({"kernel": "poly", "gamma": "scale", "coef0": 1.0}, np.asarray),
        ({"kernel": "linear", "class_weight": "balanced"}, sparse.csr_array),
        ({"kernel": lambda X, Z: np.exp(-0.05 * ((X[:, None] - Z) ** 2).sum(axis=2))}, np.asarray),
        ({}, lambda X: X.astype(np.float32)),
        ({}, lambda X: (X > 0).astype(float)),
        ({"gamma": 0.1}, lambda X: sparse.csr_array((X > 0.5).astype(float))),
    ],
    ids=["laplacian", "poly", "linear", "callable", "single precision", "binary", "sparse binary"],
)
def test_kernels_and_data(tmp_path, how, as_stored):
    X, y = examples(n=200)
    check_every_round(tmp_path, as_stored(X), y, {"tol": 1e-3}, rounds=(0, 1, 2, 3), **how)


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_the_other_inner_solver(tmp_path, monkeypatch, tol):
    """Its weights are inexact, so that they depend on its preconditioner and all its rounding."""
    monkeypatch.setattr("atomcast.steps.inner.projected_newton.RANK", 100)
    X, y = examples(3, n=900)
    how = {"C": 1.0, "multi_class": "direct", "cache_bytes": 100_000}  # no room for a matrix
    whole = check_every_round(tmp_path, X, y, {"tol": tol}, **how)
    assert whole.result_.trace.atoms[-1] > 600
    memory = read_checkpoint(tmp_path / f"{whole.result_.rounds}.safetensors").memory
    assert memory["low_rank.inner"].shape == (100, 100)
    assert "corral.inverse" not in memory
    ends = tmp_path / "end.safetensors"
    last = tmp_path / f"{whole.result_.rounds}.safetensors"
    fit(X, y, 2, {"tol": tol, "resume": last, "callbacks": [Checkpoint(ends)]}, **how)
    again = read_checkpoint(ends).memory  # a run that ends where it begins hands everything on
    assert set(again) == set(memory)
    for name, array in memory.items():
        np.testing.assert_array_equal(again[name], array)


def test_descent_over_a_square_matrix(tmp_path, monkeypatch):
    monkeypatch.setattr("atomcast.steps.inner.choice.MANY_POINTS", 150)
    monkeypatch.setattr("atomcast.known.kernels.kernel_matrix.FULL_PRECISION_UP_TO", 200)
    check_every_round(tmp_path, *examples(n=400), {"tol": 1e-3})


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 1000),
    step=st.sampled_from(["classic", "corrective"]),
    classes=st.integers(2, 3),
    interruptions=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    nodes=st.integers(1, 6),
)
def test_any_number_of_interruptions(tmp_path_factory, seed, step, classes, interruptions, nodes):
    X, y = examples(classes, n=150, seed=seed)
    how = {"step": step, "tol": 1e-3}
    whole = fit(X, y, 1, {**how, "max_rounds": 25})
    path, rounds, resume = tmp_path_factory.mktemp("run") / "c.safetensors", 0, None
    for more in interruptions:
        rounds += more
        options = {"max_rounds": min(rounds, 25), "callbacks": [Checkpoint(path)]}
        fit(X, y, nodes, {**how, **options, "resume": resume})
        resume = path
    agrees(fit(X, y, nodes, {**how, "max_rounds": 25, "resume": path}), whole)


@pytest.mark.parametrize(
    "selection", ["per-node", "random-violators", RandomSubset(40), MCenters(m=40)], ids=str
)
def test_selections_on_the_same_nodes(tmp_path, selection):
    X, y = examples(n=250)
    solver = {"tol": 1e-3, "selection": selection, "max_rounds": 12}
    whole = fit(X, y, 3, {**solver, "callbacks": [Copies(tmp_path)]}, C=5.0)
    for round in (1, 3, min(6, whole.result_.rounds)):
        path = tmp_path / f"{round}.safetensors"
        agrees(fit(X, y, 3, {**solver, "resume": path}, C=5.0), whole)


def test_the_points_of_the_log_are_sent_again_and_accounted_for(tmp_path):
    X, y = examples()
    path = tmp_path / "c.safetensors"
    fit(X, y, 4, {"max_rounds": 2, "callbacks": [Checkpoint(path)]})
    known = read_checkpoint(path).ids.tolist()
    ledger = fit(X, y, LocalCluster(4), {"resume": path}).result_.ledger
    sent = [d.atom for d in ledger.disclosures]
    assert sent[: len(known)] == known
    assert len(set(sent)) == len(sent)


def test_a_tighter_tolerance_and_another_budget(tmp_path, monkeypatch):
    """Kernel values that were in single precision are computed anew in double precision."""
    monkeypatch.setattr("atomcast.known.kernels.kernel_matrix.FULL_PRECISION_UP_TO", 0)
    X, y = examples()
    path = tmp_path / "c.safetensors"
    fit(X, y, 2, {"tol": 1e-2, "callbacks": [Checkpoint(path)]}, C=5.0)
    resumed = fit(X, y, 2, {"tol": 1e-7, "resume": path}, C=5.0, cache_bytes=10_000)
    exact = fit(X, y, 2, {"tol": 1e-7}, C=5.0)
    assert resumed.result_.status == "optimal"
    assert resumed.result_.objective == pytest.approx(exact.result_.objective, rel=2e-7)
    np.testing.assert_allclose(resumed.result_.weights, exact.result_.weights, atol=1e-6)


def test_probabilities_are_calibrated_without_the_checkpoint(tmp_path):
    X, y = examples(n=120)
    path = tmp_path / "c.safetensors"
    whole = KernelSVC(probability=True, solver=Solver(callbacks=[Checkpoint(path)])).fit(X, y)
    assert read_checkpoint(path).ids.max() >= 100  # of all rows, not of a fold's
    resumed = KernelSVC(probability=True, solver=Solver(resume=path)).fit(X, y)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


def test_one_machine_a_class(tmp_path):
    X, y = examples(3, n=200)
    check_every_round(tmp_path, X, y, {"tol": 1e-3}, multi_class="one-vs-rest")


def test_other_labels_parameters_and_rows_are_refused(tmp_path):
    X, y = examples(n=100)
    path = tmp_path / "c.safetensors"
    fit(X, y, 2, {"callbacks": [Checkpoint(path)]})
    other = y.copy()
    other[3] = 1 - other[3]
    for labels, how in ((other, {}), (y, {"C": 2.0}), (y, {"gamma": 0.1}), (y, {"degree": 2})):
        with pytest.raises(ValueError, match="checkpoint of another problem"):
            fit(X, labels, 2, {"resume": path}, **how)
    with pytest.raises(ValueError, match="checkpoint of other data"):
        fit(X[::-1].copy(), y, 2, {"resume": path})


CHANGES = {
    "no arrivals": lambda memory: memory.pop("kernel.arrivals"),
    "too few arrivals": lambda memory: memory["kernel.arrivals"].__setitem__(0, 1),
    "negative arrivals": lambda memory: memory["kernel.arrivals"].__setitem__(0, -1),
    "products": lambda memory: memory.update({"kernel.products": np.zeros(3)}),
    "wrong products": lambda memory: memory.update(
        {"kernel.products": memory["kernel.products"] * 1.01}
    ),
    "no violation": lambda memory: memory.pop("last_violation"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_memory_that_makes_no_sense_is_refused(tmp_path, change):
    X, y = examples(n=200)
    path = tmp_path / "c.safetensors"
    fit(X, y, 2, {"max_rounds": 2, "callbacks": [Checkpoint(path)]})
    snapshot = read_checkpoint(path)
    CHANGES[change](snapshot.memory)
    write_checkpoint(path, snapshot)
    with pytest.raises(ValueError, match="does not describe a usable checkpoint"):
        fit(X, y, 2, {"resume": path})
