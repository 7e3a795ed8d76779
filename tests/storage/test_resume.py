"""A run that is resumed from any round ends as if it had never been interrupted."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from atomcast import (
    Checkpoint,
    GroupLasso,
    L1AdaBoost,
    Lasso,
    LassoCV,
    LocalCluster,
    MCenters,
    RandomSubset,
    Shards,
    Solver,
    SparseLogisticRegression,
    load_model,
    save_model,
)
from atomcast.domains.balls import L1Ball
from atomcast.storage.snapshot import read_checkpoint, write_checkpoint
from problems import (
    DOMAINS,
    STEPS,
    dense_problem,
    make_domain,
    regression,
    solve,
    sparse_regression,
)


class Copies:
    """Keep the checkpoint of every round under a name of its own."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, state):
        Checkpoint(self.folder / f"{state.round}.safetensors", rounds=1).finish(state)


def agrees(resumed, whole, tolerance=1e-9):
    scale = max(float(np.abs(whole.weights).sum()), 1e-300)
    np.testing.assert_allclose(resumed.weights, whole.weights, rtol=0, atol=tolerance * scale)
    np.testing.assert_array_equal(resumed.atom_ids, whole.atom_ids)
    assert (resumed.rounds, resumed.status) == (whole.rounds, whole.status)
    assert resumed.objective == pytest.approx(whole.objective, rel=1e-9)
    assert resumed.gap == pytest.approx(whole.gap, rel=1e-6, abs=tolerance * whole.objective)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("step", STEPS)
def test_from_every_round_and_on_other_numbers_of_nodes(tmp_path, step, domain):
    data = dense_problem(domain, seed=3, d=30, n=60)
    how = {"step": step, "tol": 1e-5, "max_rounds": 40, "atoms_per_round": 3}
    where = make_domain(domain, 4.0)
    whole = solve(*data, where, nodes=3, callbacks=[Copies(tmp_path)], **how)
    plain = solve(*data, where, nodes=3, **how)
    np.testing.assert_array_equal(whole.weights, plain.weights)  # watching changes nothing
    assert whole.rounds >= 3
    for round in range(whole.rounds + 1):
        path = tmp_path / f"{round}.safetensors"
        resumed = solve(*data, where, nodes=1 + round % 5, seed=round, resume=path, **how)
        agrees(resumed, whole)
        assert resumed.trace.round.tolist() == list(range(round, whole.rounds + 1))


def test_sparse_data_with_growing_batches(tmp_path):
    X, y = sparse_regression(seed=1, d=300, n=600)
    how = {"tol": 1e-8}
    whole = solve(X, y, L1Ball(20.0), nodes=4, callbacks=[Copies(tmp_path)], **how)
    assert whole.status == "optimal"
    for round in range(whole.rounds + 1):
        path = tmp_path / f"{round}.safetensors"
        agrees(solve(X, y, L1Ball(20.0), nodes=7, resume=path, **how), whole)


SELECTIONS = {
    "random violators": "random-violators",
    "random subset": RandomSubset(0.5, seed=7),
    "growing subset": RandomSubset(lambda round: 6 + 2 * round),
    "growing centers": MCenters(lambda round: 4 + 3 * round),
    "equal work": MCenters("equal-work", speeds=[1.0, 2.0, 1.5]),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_what_is_drawn_or_grows_by_the_round(tmp_path, name):
    """Draws follow from seed, node and round, and so need not be stored."""
    X, y = regression(seed=8, d=40, n=90, support=25)
    how = {"tol": 1e-7, "atoms_per_round": 2, "max_rounds": 20, "selection": SELECTIONS[name]}
    whole = solve(X, y, L1Ball(8.0), nodes=3, callbacks=[Copies(tmp_path)], **how)
    assert whole.rounds > 4
    for round in range(whole.rounds + 1):
        path = tmp_path / f"{round}.safetensors"
        resumed = solve(X, y, L1Ball(8.0), nodes=3, resume=path, **how)
        agrees(resumed, whole)
        assert resumed.radius == pytest.approx(whole.radius)


def test_the_gap_of_a_selection_does_not_outlive_it(tmp_path):
    """Weights that are best for some atoms are not certified for all of them."""
    X, y = regression(seed=2, d=40, n=80)
    path = tmp_path / "run.safetensors"
    some = RandomSubset(10)
    solve(X, y, L1Ball(8.0), selection=some, callbacks=[Checkpoint(path, rounds=1)])
    round = read_checkpoint(path).round
    for more in (0, 1):
        result = solve(X, y, L1Ball(8.0), resume=path, max_rounds=round + more)
        gradient = 2 * X.T @ (X @ result.weights - y)
        true_gap = result.weights @ gradient + 8.0 * np.abs(gradient).max()
        assert result.gap == pytest.approx(true_gap, rel=1e-6)


def test_coordinate_descent_goes_on_from_what_a_checkpoint_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("atomcast.known.active_set.FEW", 20)  # coordinate descent beyond that
    monkeypatch.setattr("atomcast.known.active_set.WORTH", 0)
    X, y = regression(seed=2, d=80, n=200, support=40)
    how = {"tol": 1e-6, "atoms_per_round": 8}
    whole = solve(X, y, L1Ball(15.0), nodes=4, callbacks=[Copies(tmp_path)], **how)
    for round in range(whole.rounds + 1):
        path = tmp_path / f"{round}.safetensors"
        # Rounding is a little larger after many steps of an iterative solver.
        agrees(solve(X, y, L1Ball(15.0), nodes=2, resume=path, **how), whole, tolerance=1e-8)


def test_what_an_earlier_inner_solver_remembered_is_no_hindrance(tmp_path):
    """Checkpoints used to hold the direction of a power method."""
    X, y = regression(seed=2, d=60, n=40)
    whole = solve(X, y, L1Ball(1.5), callbacks=[Copies(tmp_path)], tol=1e-6)
    snapshot = read_checkpoint(tmp_path / "1.safetensors")
    older = replace(snapshot, memory={**snapshot.memory, "direction": np.ones(3)})
    write_checkpoint(tmp_path / "older.safetensors", older)
    agrees(solve(X, y, L1Ball(1.5), resume=tmp_path / "older.safetensors", tol=1e-6), whole)


def test_rounds_without_progress_are_counted_across_the_interruption(tmp_path):
    X, y = regression(seed=5, d=20, n=40)
    how = {"step": "away", "tol": 1e-18, "max_rounds": 5_000}
    whole = solve(X, y, L1Ball(1.5), callbacks=[Copies(tmp_path)], **how)
    assert whole.status == "stopped"  # a hundred rounds of rounding
    resumed = solve(X, y, L1Ball(1.5), resume=tmp_path / f"{whole.rounds - 50}.safetensors", **how)
    assert (resumed.status, resumed.rounds) == ("stopped", whole.rounds)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    step=st.sampled_from(STEPS),
    interruptions=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    nodes=st.integers(1, 8),
)
def test_any_number_of_interruptions(tmp_path_factory, seed, step, interruptions, nodes):
    X, y = regression(seed=seed, d=15, n=25)
    how = {"step": step, "tol": 1e-4}
    whole = solve(X, y, L1Ball(1.5), max_rounds=40, **how)
    path, rounds, resume = tmp_path_factory.mktemp("run") / "c.safetensors", 0, None
    for more in interruptions:
        rounds += more
        options = {**how, "max_rounds": min(rounds, 40), "callbacks": [Checkpoint(path)]}
        solve(X, y, L1Ball(1.5), nodes=nodes, resume=resume, **options)
        resume = path  # the end of a run is always written
    agrees(solve(X, y, L1Ball(1.5), nodes=nodes, resume=path, max_rounds=40, **how), whole, 1e-8)


def test_the_atoms_of_the_log_are_sent_again_and_accounted_for(tmp_path):
    X, y = regression(seed=1, d=25, n=60)
    path = tmp_path / "c.safetensors"
    stopped = solve(X, y, L1Ball(2.0), nodes=4, max_rounds=2, callbacks=[Checkpoint(path)])
    known = read_checkpoint(path).ids.tolist()
    assert known == [d.atom for d in stopped.ledger.disclosures]
    resumed = solve(X, y, L1Ball(2.0), nodes=4, resume=path)
    again = [d for d in resumed.ledger.disclosures if d.round == 2][: len(known)]
    assert [d.atom for d in again] == known
    sent = [d.atom for d in resumed.ledger.disclosures]
    assert len(set(sent)) == len(sent)
    owner = Shards.split(X, 4).assignment()
    assert [d.node for d in again] == owner[known].tolist()
    assert solve(X, y, L1Ball(2.0), nodes=1, resume=path).ledger.values == 0


def test_a_tighter_tolerance_can_be_reached_from_a_finished_run(tmp_path):
    X, y = regression(seed=1, d=25, n=60)
    path = tmp_path / "c.safetensors"
    solve(X, y, L1Ball(2.0), tol=0.3, callbacks=[Checkpoint(path)])
    result = solve(X, y, L1Ball(2.0), tol=1e-9, resume=path)
    exact = solve(X, y, L1Ball(2.0), tol=1e-9)
    assert result.status == "optimal"
    np.testing.assert_allclose(result.weights, exact.weights, atol=1e-9)


def test_the_best_weights_may_be_older_than_the_checkpoint(tmp_path):
    X, y = regression(seed=5, d=25, n=60)
    how = {"step": "classic", "tol": 1e-9, "max_rounds": 60}
    whole = solve(X, y, L1Ball(2.0), callbacks=[Copies(tmp_path)], **how)
    best = int(np.argmin(whole.trace.gap))
    assert best < whole.rounds  # the gap of the classic step rises and falls
    agrees(solve(X, y, L1Ball(2.0), resume=tmp_path / f"{whole.rounds}.safetensors", **how), whole)


def test_estimators_resume_and_forget_it_when_saved(tmp_path):
    X, y = regression(seed=1, d=25, n=60)
    path, saved = tmp_path / "c.safetensors", tmp_path / "m.safetensors"
    whole = Lasso(2.0, cluster=5).fit(X, y)
    with pytest.warns(UserWarning, match="raise max_rounds"):
        Lasso(2.0, cluster=5, solver=Solver(max_rounds=2, callbacks=[Checkpoint(path)])).fit(X, y)
    model = Lasso(2.0, cluster=LocalCluster(3, "tree"), solver=Solver(resume=path)).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    assert model.intercept_ == pytest.approx(whole.intercept_)
    save_model(model, saved)
    assert load_model(saved).solver == Solver()


def test_a_path_of_other_problems_is_refused(tmp_path):
    X, y = regression(seed=1, d=25, n=60)
    path = tmp_path / "c.safetensors"
    Lasso(2.0, solver=Solver(callbacks=[Checkpoint(path)])).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        LassoCV([1.0, 2.0], solver=Solver(resume=path)).fit(X, y)


ESTIMATORS = {
    "logistic": (SparseLogisticRegression(beta=20.0), 2),
    "multinomial": (SparseLogisticRegression(beta=20.0), 3),
    "boosting": (L1AdaBoost(), 2),
    "groups": (GroupLasso(beta=20.0, groups=np.arange(60).reshape(12, 5).tolist()), 0),
}


@pytest.mark.parametrize("name", list(ESTIMATORS))
@pytest.mark.parametrize("step", ["corrective", "line-search"])
def test_other_estimators(tmp_path, name, step):
    estimator, classes = ESTIMATORS[name]
    X, y = regression(seed=6, d=90, n=60, support=12)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    how = {"step": step, "tol": 1e-4, "max_rounds": 25, "atoms_per_round": 2}

    def fit(nodes, **more):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return (
                clone(estimator).set_params(cluster=nodes, solver=Solver(**how, **more)).fit(X, y)
            )

    whole = fit(4, callbacks=[Copies(tmp_path)]).result_
    assert whole.rounds >= 4
    for round in sorted({1, 3, whole.rounds // 2, whole.rounds}):
        resumed = fit(2, resume=tmp_path / f"{round}.safetensors").result_
        np.testing.assert_array_equal(resumed.atom_ids, whole.atom_ids)
        scale = np.abs(whole.atom_weights).sum()
        np.testing.assert_allclose(
            resumed.atom_weights, whole.atom_weights, rtol=0, atol=1e-9 * scale
        )
        assert (resumed.rounds, resumed.status) == (whole.rounds, whole.status)


def test_isolated_nodes_that_read_files(tmp_path):
    X, y = regression(seed=1, d=25, n=60)
    parts = [tmp_path / f"{i}.npy" for i in range(3)]
    for i, part in enumerate(parts):
        np.save(part, X[:, 20 * i : 20 * i + 20])
    how = {"step": "pairwise", "tol": 1e-7}
    whole = solve(X, y, L1Ball(2.0), callbacks=[Copies(tmp_path)], **how)
    for round in range(0, whole.rounds + 1, 5):
        path = tmp_path / f"{round}.safetensors"
        agrees(solve(Shards.files(parts), y, L1Ball(2.0), resume=path, **how), whole)
