"""ADMM: the iterates of the textbook, the solution of scikit-learn, and what is charged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Lasso

from atomcast.baselines.admm import Admm, Features, lasso
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.simulation.local import LocalCluster
from problems import optimum, regression, sparse_regression


def reference(X, y, lam):
    """The minimiser of 1/2 ||y - Xw||^2 + lam ||w||_1 by scikit-learn."""
    model = Lasso(alpha=lam / len(y), fit_intercept=False, tol=1e-12, max_iter=10**6)
    return model.fit(X, y).coef_


def penalty(X, y, share=0.2):
    return share * float(np.abs(X.T @ y).max())


@pytest.mark.parametrize(
    ("nodes", "rho", "alpha"),
    [
        *((3, rho, alpha) for rho in (0.1, 1.0, 10.0) for alpha in (1.0, 1.5)),
        (1, 1.0, 1.5),
        (40, 10.0, 1.5),
    ],
)
def test_it_converges_to_the_lasso(nodes, rho, alpha):
    X, y = regression(seed=4)  # 30 features: of 40 nodes, some have none
    lam = penalty(X, y)
    how = Admm(lam, rho, alpha, max_rounds=20_000, tol=1e-9, local_tol=1e-11)
    result = how.solve(y, Shards.split(X, nodes))
    assert result.status == "optimal"
    expected = reference(X, y, lam)
    np.testing.assert_allclose(result.weights, expected, atol=1e-6)
    np.testing.assert_allclose(result.image, X @ expected, atol=1e-5)
    assert result.objective == pytest.approx(np.sum((y - X @ expected) ** 2), rel=1e-6)
    assert result.relative_gap < 1e-5


@pytest.mark.parametrize("local", ["coordinate", "proximal"])
def test_sparse_features_too(local):
    X, y = sparse_regression()
    lam = penalty(X, y)
    how = Admm(lam, 1.0, 1.5, max_rounds=5000, tol=1e-9, local_tol=1e-11, local=local)
    result = how.solve(y, Shards.split(X, 5))
    np.testing.assert_allclose(result.weights, reference(X, y, lam), atol=1e-6)


def test_proximal_gradient_takes_the_same_rounds():
    X, y = regression(seed=4)
    shards = Shards.split(X, 12)  # nodes of two and three features
    how = Admm(penalty(X, y), 1.0, 1.5, max_rounds=20, tol=1e-12, local_tol=1e-12)
    proximal = replace(how, local="proximal")
    expected, found = (one.solve(y, shards).trace["objective"] for one in (how, proximal))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def textbook(X, y, blocks, lam, rho, alpha, rounds):
    """ADMM on min l(sum z_i) + lam ||x||_1, A_i x_i = z_i, with all z_i and u_i written out.

    The z-update is a linear system in all z_i at once; nothing is simplified as in section 7.3.
    """
    N, d = len(blocks), len(y)
    x = [np.zeros(len(block)) for block in blocks]
    z, u = np.zeros((N, d)), np.zeros((N, d))
    images = []
    for _ in range(rounds):
        for i, block in enumerate(blocks):
            x[i] = reference(X[:, block], z[i] - u[i], lam / rho)
        hat = np.array([X[:, b] @ x[i] for i, b in enumerate(blocks)])
        image = hat.sum(axis=0)
        hat = alpha * hat + (1 - alpha) * z
        # Gradient zero: (sum z - y) + rho (z_i - hat_i - u_i) = 0 for every i.
        system = np.ones((N, N)) + rho * np.eye(N)
        z = np.linalg.solve(system, y[None, :] + rho * (hat + u))
        u = u + hat - z
        images.append(image)
    return images


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_iterates_are_those_of_the_textbook(alpha):
    X, y = regression(seed=6)
    shards = Shards.split(X, 3, random_state=0)
    blocks = [shards.shard(i).ids for i in range(3)]
    lam, rho = penalty(X, y), 2.0
    expected = textbook(X, y, blocks, lam, rho, alpha, 8)
    how = Admm(lam, rho, alpha, max_rounds=8, tol=1e-15, local_tol=1e-13)
    trace = how.solve(y, shards).trace
    assert len(trace) == 9  # round 0: nothing chosen yet
    errors = [np.sum((y - image) ** 2) for image in expected]
    np.testing.assert_allclose(trace.objective[1:], errors, rtol=1e-8)
    assert trace.objective[0] == pytest.approx(y @ y)


def test_what_is_charged_is_what_is_sent():
    X, y = sparse_regression()
    shards = Shards.split(X, 5)
    seen = []
    for rounds in (1, 2, 3, 4):
        result = Admm(penalty(X, y), 10.0, max_rounds=rounds).solve(y, shards)
        by_id = result.weights
        local = [shards.shard(i) for i in range(5)]
        up = [part.matrix @ by_id[part.ids] for part in local]
        used = sum(np.count_nonzero(v) if 2 * np.count_nonzero(v) <= 200 else 200 for v in up)
        seen.append((result.ledger.values, used + 5 * 200))
        assert result.ledger.messages == 2 * 5 * rounds
        assert result.ledger.by_kind()["prediction"].values == result.ledger.values
        assert result.trace["values"][-1] == result.ledger.values
    totals, expected = np.array(seen).T
    assert np.diff(totals).tolist() == expected[1:].tolist()
    assert totals[0] == expected[0]


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), nodes=st.integers(2, 6), beta=st.floats(0.2, 5.0))
def test_on_the_ball_no_iterate_beats_the_optimum_and_gaps_hold(seed, nodes, beta):
    X, y = regression(seed=seed)
    best, _ = optimum(X, y, L1Ball(beta))
    trace = Admm(penalty(X, y, 0.1), 5.0, 1.5, beta, 15).solve(y, Shards.split(X, nodes)).trace
    slack = 1e-8 * (y @ y)
    assert np.all(trace.objective >= best - slack)
    assert np.all(trace.gap >= trace.objective - best - slack)


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_the_batch_lasso(share):
    X, y = sparse_regression(seed=1)
    lam = penalty(X, y, share)
    x = lasso(y, Features.of(Shards.split(X, 4)), lam, tol=1e-12)
    np.testing.assert_allclose(x, reference(X, y, lam), atol=1e-8)


def test_nothing_is_chosen_above_the_largest_penalty():
    X, y = regression()
    result = Admm(penalty(X, y, 1.01), 1.0, max_rounds=300).solve(y, Shards.split(X, 3))
    assert not len(result.atom_ids)
    assert result.objective == pytest.approx(y @ y)


def test_single_precision_and_other_layouts_are_accepted():
    X, y = regression()
    lam = penalty(X, y)
    for matrix in (X.astype(np.float32), sparse.csr_array(X)):
        result = Admm(lam, max_rounds=2000, tol=1e-8).solve(y, Shards.split(matrix, 3))
        expected = reference(np.asarray(sparse.csr_array(matrix).todense(), dtype=float), y, lam)
        np.testing.assert_allclose(result.weights, expected, atol=1e-4)


def test_wrong_parameters_are_named():
    X, y = regression()
    for name, value in (("lam", 0), ("rho", -1), ("beta", 0), ("local_tol", 0.0), ("tol", 0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            Admm(**({"lam": 1.0} | {name: value}))
    with pytest.raises(ValueError, match="alpha must be in"):
        Admm(1.0, alpha=2.0)
    with pytest.raises(ValueError, match="max_rounds must be"):
        Admm(1.0, max_rounds=0)
    shards = Shards.split(X, 2)
    with pytest.raises(ValueError, match="ADMM needs a star"):
        Admm(1.0).solve(y, shards, LocalCluster(2, "tree"))
    with pytest.raises(ValueError, match="ADMM needs a star"):
        Admm(1.0).solve(y, shards, LocalCluster(3))
    with pytest.raises(ValueError, match="the features have 20 rows"):
        Admm(1.0).solve(y[:-1], shards, LocalCluster(2))
    assert sparse.issparse(Features.of(shards).matrix)


def test_it_stops_once_the_objective_is_low_enough():
    X, y = regression(seed=4)
    how = Admm(penalty(X, y), 10.0, max_rounds=50)
    whole = how.solve(y, Shards.split(X, 4)).trace.objective
    target = float(whole[10])
    short = replace(how, enough=target).solve(y, Shards.split(X, 4))
    assert short.status == "stopped"
    assert len(short.trace) == 1 + np.flatnonzero(whole <= target)[0]
    np.testing.assert_array_equal(short.trace.objective, whole[: len(short.trace)])
