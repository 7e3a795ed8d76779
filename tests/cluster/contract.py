"""What every cluster must do: each case is written once and run on all of them.

A case takes `cluster_of`, which makes a cluster of so many nodes, and that number. What comes out
is compared with simulated nodes that hold a shard of their own each, and sometimes with an answer
that has nothing to do with atomcast. On MPI, all ranks run the case.
"""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as PenalisedLasso

from atomcast import Lasso, LassoCV, LocalCluster, Shards, Solver, TimeLimit, lasso_path
from atomcast.errors import FalseMessageError
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from bounded import bounded
from liars import lying
from problems import STEPS, make_domain, mixture, regression, sparse_regression

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def fitted(X, y, cluster, beta=2.0, **solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Lasso(beta, cluster=cluster, solver=Solver(**solver)).fit(X, y)


def simulated(nodes):
    return LocalCluster(nodes, isolated=True)


def assert_same_result(result, expected):
    """The same atoms, weights, certificate, trace and account."""
    assert result.status == expected.status
    assert result.rounds == expected.rounds
    assert result.n == expected.n
    assert sorted(result.atom_ids) == sorted(expected.atom_ids)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-9)
    scale = abs(expected.trace.gap[0]) if np.isfinite(expected.trace.gap[0]) else 1.0
    np.testing.assert_allclose(result.gap, expected.gap, rtol=1e-6, atol=1e-10 * scale)
    for column in ("round", "atoms", "values"):
        np.testing.assert_array_equal(result.trace[column], expected.trace[column], column)
    for column in ("objective", "gap"):
        np.testing.assert_allclose(
            result.trace[column], expected.trace[column], rtol=1e-6, atol=1e-10 * scale
        )
    assert_same_account(result.ledger, expected.ledger)


def assert_same_account(ledger, expected):
    assert ledger.values == expected.values
    assert ledger.atoms_sent == expected.atoms_sent
    assert ledger.disclosures == expected.disclosures
    assert ledger.told == expected.told
    assert ledger.parties == expected.parties
    mine, theirs = ledger.by_kind(), expected.by_kind()
    control = mine.pop("control")
    theirs.pop("control")
    assert mine == theirs
    assert control.values == 0
    for kind in mine:  # what travels along as "control" is not simulated
        assert ledger.by_edge(kind) == expected.by_edge(kind)
    assert ledger.messages == expected.messages
    assert ledger.hops == expected.hops


def assert_same_fit(X, y, cluster, nodes, beta=2.0, **solver):
    model = fitted(X, y, cluster, beta, **solver)
    expected = fitted(X, y, simulated(nodes), beta, **solver)
    assert_same_result(model.result_, expected.result_)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=0, atol=1e-9)
    return model


# -- the same answer ------------------------------------------------------------------------


@case
def dense_data_with_every_step(cluster_of, nodes):
    X, y = regression(seed=1, d=40, n=90)
    for step in STEPS:
        assert_same_fit(X, y, cluster_of(nodes), nodes, step=step, tol=1e-5, max_rounds=15)


@case
def sparse_data_with_every_step(cluster_of, nodes):
    X, y = sparse_regression(seed=2)
    for step in STEPS:
        assert_same_fit(X, y, cluster_of(nodes), nodes, step=step, tol=1e-5, max_rounds=15)


@case
def single_precision(cluster_of, nodes):
    X, y = regression(seed=3, d=50, n=70)
    assert_same_fit(X.astype(np.float32), y, cluster_of(nodes), nodes, tol=1e-6)


@case
def the_optimum_that_scikit_learn_finds(cluster_of, nodes):
    X, y = regression(seed=4, d=60, n=100)
    reference = PenalisedLasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(X, y)
    beta = float(np.abs(reference.coef_).sum())
    model = fitted(X, y, cluster_of(nodes), beta, tol=1e-10)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-5)


@case
def the_winner_on_every_node_and_of_either_sign(cluster_of, nodes):
    d, n = 12, 8
    for owner in {0, nodes - 1}:
        for sign in (1.0, -1.0):
            X = 0.01 * np.random.default_rng(5).standard_normal((d, n * nodes))
            y = np.arange(d) - (d - 1) / 2
            winner = owner * n + 3
            X[:, winner] = sign * y
            shards = Shards.split(X, nodes, by="contiguous")
            for step in ("classic", "corrective"):
                model = assert_same_fit(
                    shards, y, cluster_of(nodes), nodes, beta=0.5, step=step, max_rounds=1
                )
                assert model.result_.atom_ids[np.argmax(np.abs(model.result_.atom_weights))] == (
                    winner
                )
                assert np.sign(model.coef_[winner]) == sign
                if nodes > 1:
                    assert model.result_.ledger.disclosures[0].node == owner


@case
def empty_shards(cluster_of, nodes):
    X, y = regression(seed=6, d=20, n=30)
    for sizes in ([30] + [0] * (nodes - 1), [0] * (nodes - 1) + [30]):
        shards = Shards.split(X, nodes, by=sizes)
        for step in ("line-search", "corrective"):
            assert_same_fit(shards, y, cluster_of(nodes), nodes, step=step, max_rounds=8)


@case
def more_nodes_than_atoms(cluster_of, nodes):
    X, y = regression(seed=7, d=10, n=2)
    assert_same_fit(X, y, cluster_of(nodes), nodes, tol=1e-6)


@case
def ties_go_to_the_smallest_id(cluster_of, nodes):
    base, y = regression(seed=8, d=25, n=6)
    X = np.hstack([base] * 4)  # every column four times, wherever the cuts fall
    for step in STEPS:
        model = assert_same_fit(
            Shards.split(X, nodes, by="contiguous"),
            *(y, cluster_of(nodes), nodes),
            **{"step": step, "max_rounds": 12},
        )
        if step == "classic":
            assert np.all(model.result_.atom_ids < 6)


@case
def a_simplex(cluster_of, nodes):
    X, y = mixture(seed=9)
    problem = explicit_problem(SquaredError(y), make_domain("simplex"))
    shards = Shards.split(X, nodes)
    for step in ("line-search", "pairwise", "corrective"):
        solver = Solver(step=step, tol=1e-6, max_rounds=20)
        result = solver.solve(problem, shards, cluster_of(nodes))
        assert_same_result(result, solver.solve(problem, shards, simulated(nodes)))


@case
def a_path_with_warm_starts(cluster_of, nodes):
    X, y = regression(seed=10, d=40, n=80)
    betas = [0.5, 1.0, 3.0]
    path = lasso_path(X, y, betas=betas, cluster=cluster_of(nodes))
    expected = lasso_path(X, y, betas=betas, cluster=simulated(nodes))
    np.testing.assert_allclose(path.coefs, expected.coefs, rtol=0, atol=1e-9)
    assert_same_account(path.results[-1].ledger, expected.results[-1].ledger)


@case
def atoms_that_better_ones_make_superfluous_are_left_out(cluster_of, nodes):
    rng = np.random.default_rng(8)
    factors, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    X = factors @ rng.standard_normal((6, 120)) + 0.3 * rng.standard_normal((40, 120))
    thin, usual = (fitted(X, y, cluster_of(nodes), thin=thin).result_ for thin in (True, False))
    assert thin.status == usual.status == "optimal"
    np.testing.assert_allclose(thin.objective, usual.objective, rtol=2e-4)
    known, before = (result.trace.atoms[-1] for result in (thin, usual))
    assert known < before


@case
def atoms_left_unread_are_counted_for_all_nodes(cluster_of, nodes):
    X, y = regression(seed=5, d=60, n=200)
    problem = bounded(explicit_problem(SquaredError(y), make_domain("l1", 4.0)))
    shards, cluster = Shards.split(X, nodes), cluster_of(nodes)
    together = isinstance(cluster, LocalCluster) and not cluster.isolated and nodes > 1
    for step in ("classic", "corrective"):
        solver = Solver(step=step, max_rounds=12)
        unread = solver.solve(problem, shards, cluster).trace.unread
        if together:  # nodes that share a matrix are scored in one pass, each by its own best
            assert unread.any()
            continue
        expected = solver.solve(problem, shards, simulated(nodes)).trace.unread
        np.testing.assert_array_equal(unread, expected)
        assert 0 < unread.min() <= unread.max() < X.shape[1]


@case
def mixtures_of_every_node(cluster_of, nodes):
    X, y = regression(seed=12, d=40, n=90, support=40)
    how = {"beta": 8.0, "step": "compound", "tol": 1e-6}
    result = fitted(X, y, cluster_of(nodes), **how).result_
    expected = fitted(X, y, simulated(nodes), **how).result_
    assert result.status == expected.status == "optimal"
    np.testing.assert_allclose(result.weights, expected.weights, rtol=0, atol=1e-3)
    # Rounding decides where an iterative method stops; what is said in a round is the same.
    first, there = (r.ledger.by_round()[:2] for r in (result, expected))
    assert [count.values for count in first] == [count.values for count in there]
    said = [one for one in result.ledger.told if one.kind == "mixture" and one.round == 0]
    assert said == [o for o in expected.ledger.told if o.kind == "mixture" and o.round == 0]
    assert len(said) == (nodes if nodes > 1 else 0)
    betas = [1.0, 4.0]
    path = lasso_path(X, y, betas=betas, cluster=cluster_of(nodes), solver="compound")
    expected = lasso_path(X, y, betas=betas, cluster=simulated(nodes), solver="compound")
    np.testing.assert_allclose(path.coefs, expected.coefs, rtol=0, atol=1e-2)


@case
def atoms_for_a_coordinator_alone(cluster_of, nodes):
    for X, y in (regression(seed=12, d=40, n=90, support=40), sparse_regression(seed=1)):
        how = {"beta": 8.0, "step": "auto", "tol": 1e-6}
        model = assert_same_fit(X, y, cluster_of(nodes), nodes, **how)
        assert model.result_.status == "optimal"
        told = model.result_.ledger.by_kind()["image"].values > 0
        assert told == (nodes > 1 and isinstance(X, np.ndarray))  # sparse atoms are cheap
    betas = [1.0, 4.0]
    path = lasso_path(X, y, betas=betas, cluster=cluster_of(nodes), solver="auto")
    expected = lasso_path(X, y, betas=betas, cluster=simulated(nodes), solver="auto")
    np.testing.assert_allclose(path.coefs, expected.coefs, rtol=0, atol=1e-9)
    assert_same_account(path.results[-1].ledger, expected.results[-1].ledger)


@case
def long_atoms_and_many_at_a_time(cluster_of, nodes):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((3000, 60))
    X[:, 20:40] = rng.random((3000, 20)) < 0.01  # some atoms that take far fewer bytes
    y = X @ rng.standard_normal(60)
    assert_same_fit(X, y, cluster_of(nodes), nodes, beta=20.0, atoms_per_round=40)
    assert_same_fit(X, y, cluster_of(nodes), nodes, beta=20.0, step="away", max_rounds=30)


@case
def names_reach_the_account(cluster_of, nodes):
    X, y = regression(seed=12, d=20, n=12)
    names = [f"feature {j}" for j in range(12)]
    shards = Shards.split(X, nodes, names=names)
    model = assert_same_fit(shards, y, cluster_of(nodes), nodes)
    assert list(model.feature_names_in_) == names
    if nodes > 1:
        assert {d.name for d in model.result_.ledger.disclosures} <= set(names)


@case
def files(cluster_of, nodes):
    X, y = regression(seed=13, d=20, n=24)
    paths = parts_of(X, nodes)
    model = assert_same_fit(Shards.files(paths), y, cluster_of(nodes), nodes, tol=1e-6)
    assert model.result_.ledger.parties == tuple(f"part-{i}" for i in range(nodes))
    called = {f"party {i}": path for i, path in enumerate(paths)}
    model = assert_same_fit(Shards.files(called), y, cluster_of(nodes), nodes, tol=1e-6)
    if nodes > 1:
        assert {one.who for one in model.result_.ledger.disclosures} <= set(called)
        assert set(model.result_.ledger.by_node()) == {"coordinator", *called}


@case
def files_in_another_order(cluster_of, nodes):
    X, y = regression(seed=15, d=20, n=24)
    paths = []
    for i, part in enumerate(np.array_split(X, nodes, axis=1)):
        paths.append(folder_of(X, nodes) / f"part-{i}.npz")
        rows = np.random.default_rng(i).permutation(20)[: 20 - i]  # the last ones lack some
        np.savez(paths[-1], X=part[rows], patient=rows, names=np.arange(part.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        shards = Shards.files(paths, row_ids="patient", align="inner", prefix=True)
        model = fitted(shards, y[shards.alignment.ids], cluster_of(nodes), tol=1e-8)
    expected = fitted(X[shards.alignment.ids], y[shards.alignment.ids], simulated(nodes), tol=1e-8)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
    assert model.feature_names_in_[0] == "part-0.0"
    assert len(set(model.feature_names_in_)) == 24


def folder_of(X, nodes):
    """A folder for files with the columns of X, of this process alone."""
    folder = Path(os.environ["ATOMCAST_CONTRACT_FOLDER"], f"{os.getpid()}-{nodes}-{X.sum()}")
    folder.mkdir(exist_ok=True)
    return folder


def parts_of(X, nodes, axis=1):
    """Files with the columns of X; every rank of an MPI job writes the same ones."""
    folder = folder_of(X, nodes) / str(axis)
    folder.mkdir(exist_ok=True)
    paths = [folder / f"part-{i}.npy" for i in range(nodes)]
    for path, part in zip(paths, np.array_split(X, nodes, axis=axis), strict=True):
        np.save(path, part)
    return paths


def examples_of(X, nodes):
    """Files with the rows of X."""
    return parts_of(X, nodes, axis=0)


@case
def cross_validation(cluster_of, nodes):
    X, y = regression(seed=14, d=40, n=12)
    settings = {"betas": [0.5, 2.0], "cv": 2}
    model = LassoCV(**settings, cluster=cluster_of(nodes)).fit(X, y)
    expected = LassoCV(**settings, cluster=simulated(nodes)).fit(X, y)
    assert model.beta_ == expected.beta_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.mse_path_, expected.mse_path_, rtol=1e-9)
    ledger = model.result_.ledger
    assert_same_account(ledger, expected.result_.ledger)
    if nodes > 1:  # predictions of 40 rows in all, for two radii, up and down
        assert ledger.by_kind()["prediction"].values == 2 * nodes * 40 * 2
        assert {one.kind for one in ledger.told} == {"target", "prediction"}


# -- stopping -------------------------------------------------------------------------------


@case
def a_callback_stops_the_run(cluster_of, nodes):
    X, y = regression(seed=15, d=40, n=80)
    stop_at = {"step": "classic", "callbacks": [lambda state: state.round < 5]}
    result = fitted(X, y, cluster_of(nodes), **stop_at).result_
    assert result.status == "stopped"
    # Where processes have callbacks of their own, it takes a round until all have heard.
    assert result.rounds in (5, 6)
    assert len(result.trace) == result.rounds + 1


@case
def a_time_limit_stops_the_run(cluster_of, nodes):
    X, y = regression(seed=16, d=40, n=80)
    result = fitted(X, y, cluster_of(nodes), step="classic", callbacks=[TimeLimit(1e-9)]).result_
    assert result.status == "time_limit"
    assert result.rounds <= 1


@case
def the_first_ctrl_c_ends_the_run_everywhere(cluster_of, nodes):
    X, y = regression(seed=18, d=40, n=80)
    cluster = cluster_of(nodes)
    hears = getattr(cluster, "rank", nodes - 1) == nodes - 1  # of ranks, the last one alone

    def press(state):
        if hears and state.round == 3:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        how = {"step": "classic", "tol": 1e-12}
        result = fitted(X, y, cluster, callbacks=[press], **how).result_
    finally:
        restored = signal.signal(signal.SIGINT, before)
    assert restored is signal.default_int_handler
    assert result.status == "interrupted"
    assert result.rounds in (3, 4)
    expected = fitted(X, y, simulated(nodes), max_rounds=result.rounds, **how)
    np.testing.assert_allclose(result.weights, expected.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.gap, expected.dual_gap_)


@case
def no_round_at_all(cluster_of, nodes):
    X, y = regression(seed=17)
    assert_same_fit(X, y, cluster_of(nodes), nodes, max_rounds=0)


# -- bad data -------------------------------------------------------------------------------


@case
def a_value_that_is_not_finite(cluster_of, nodes):
    X, y = regression(seed=18, d=20, n=4 * nodes)
    X[3, -2] = np.nan
    shards = Shards.split(X, nodes, by="contiguous")
    column = 4 * nodes - 2
    with pytest.raises(ValueError, match=rf"shard {nodes - 1}: column {column} contains NaN"):
        fitted(shards, y, cluster_of(nodes))


@case
def a_target_of_another_length(cluster_of, nodes):
    X, y = regression(seed=19, d=20, n=4 * nodes)
    with pytest.raises(ValueError, match=r"shard 0 has 20 rows, but the target has 19"):
        fitted(Shards.split(X, nodes), y[:-1], cluster_of(nodes))


@case
def another_number_of_shards(cluster_of, nodes):
    X, y = regression(seed=20)
    with pytest.raises(ValueError, match=rf"cut into {nodes + 1} shards"):
        fitted(Shards.split(X, nodes + 1), y, cluster_of(nodes))


@case
def a_run_after_a_failed_one(cluster_of, nodes):
    X, y = regression(seed=21, d=20, n=4 * nodes)
    cluster = cluster_of(nodes)
    with pytest.raises(ValueError, match="rows, but the target has"):
        fitted(Shards.split(X, nodes), y[:-1], cluster)
    assert_same_fit(X, y, cluster, nodes)


@case
def a_node_that_lies_is_named(cluster_of, nodes):
    X, _ = regression(seed=3, d=20, n=16)
    y = X[:, -2:] @ np.array([3.0, -2.0])
    problem = explicit_problem(SquaredError(y), make_domain("l1", 4.0))
    shards = Shards.split(X, nodes, by="contiguous")
    together = isinstance(cluster_of(nodes), LocalCluster) and not cluster_of(nodes).isolated
    blamed = r"\d" if together else nodes - 1  # nodes that share a matrix lie together
    for lie in ("another", "scores"):
        lies = lying(problem, lie, y, X.shape[1] - 1)
        with pytest.raises(FalseMessageError, match=f"node {blamed} "):
            Solver(step="line-search").solve(lies, shards, cluster_of(nodes))
    honest = Solver(max_rounds=3).solve(problem, shards, cluster_of(nodes))
    assert honest.relative_gap < 1.0  # and the cluster is as good as ever
