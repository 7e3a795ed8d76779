"""Atoms that are not read again, or in single precision alone: proposals and gaps are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast import Lasso, LocalCluster, Solver, SparseLogisticRegression
from atomcast.atoms import explicit
from atomcast.atoms.explicit import DenseAtoms, SparseAtoms
from atomcast.atoms.single import norm_bounds, single_bounds, sparse_norm_bounds
from atomcast.cluster import last_scores
from atomcast.cluster.node import Fleet
from atomcast.domains.balls import L1Ball, SolidSimplex
from atomcast.errors import FalseMessageError
from atomcast.loop.replica import Replica, Tolerance
from atomcast.messages.proposals import Request
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import STEPS

#: However few atoms there are, and however many are left open.
ALWAYS = {"LONG": 1, "SOME": 1, "THICK": 0, "VAIN": 1e9, "VAIN_ROWS": 1e9}


def always(patch, gradients=64):
    for name, value in ALWAYS.items():
        patch.setattr(explicit, name, value)
    patch.setattr(last_scores, "MISSED", 0)
    patch.setattr(last_scores, "SHARE", 1.0)
    patch.setattr(last_scores, "GRADIENTS", gradients)


@pytest.fixture
def screened(monkeypatch):
    always(monkeypatch)


def columns(seed, d, n, kind="normal"):
    """Columns some of which are equal, and one zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    if kind == "heavy":
        X = np.exp(3 * X)
    elif kind == "counts":
        X = np.rint(2 * X)
    elif kind == "scales":
        X = X * 10.0 ** rng.integers(-4, 4, n)
    elif kind == "tiny":
        X = 1e-30 * X
    elif kind == "huge":
        X = 1e30 * X
    X[:, n // 2] = X[:, 0]
    X[:, n // 3] = 0.0
    return X


KINDS = ["normal", "heavy", "counts", "scales", "tiny", "huge"]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(2, 30), st.integers(2, 60)),
    kind=st.sampled_from(KINDS),
    form=st.sampled_from(["C", "F", "single C", "single F", "sparse"]),
    domain=st.sampled_from([L1Ball(3.0), SolidSimplex(beta=3.0)]),
    nodes=st.integers(1, 4),
    gradients=st.integers(1, 5),
    requests=st.lists(
        st.tuples(
            st.integers(1, 9),  # how many
            st.sampled_from([-np.inf, 0.1, 0.5, 0.9, 0.999]),  # above this share of the best
            st.booleans(),  # known ones, too
            st.booleans(),  # partial sums
            st.floats(0.0, 1.0) | st.just(0.0),  # how far to go before
        ),
        min_size=2,
        max_size=8,
    ),
)
def test_proposals_are_those_of_all_scores(
    seed, shape, kind, form, domain, nodes, gradients, requests
):
    X = columns(seed, *shape, kind)
    rng = np.random.default_rng(seed)
    y = np.abs(X).max() * rng.standard_normal(shape[0])
    if form == "sparse":
        X = sparse.csc_array(np.where(rng.random(shape) < 0.3, X, 0.0))
    else:
        X = np.asarray(X, dtype=np.float32 if "single" in form else np.float64, order=form[-1])
    make = SparseAtoms if form == "sparse" else DenseAtoms
    problem = explicit_problem(SquaredError(y), domain)
    replica = Replica(problem, STEPS["away"]("auto"), Tolerance(0))
    owner = rng.integers(0, nodes, shape[1])

    def fleet():
        return Fleet(make(X), np.arange(shape[1]), owner, nodes)

    plain = fleet()
    with pytest.MonkeyPatch.context() as patch:
        always(patch, gradients)
        screened = fleet()
    assert screened._screen is not None
    assert plain._screen is None
    told = rng.permutation(shape[1])[: len(requests)]
    with pytest.MonkeyPatch.context() as patch:
        always(patch, gradients)
        for (count, level, known_too, sums, far), joining in zip(requests, told, strict=False):
            best = float(domain.merit(plain.atoms.scores(replica)).max())
            request = Request(
                count=count,
                threshold=level * abs(best),
                known_too=known_too,
                partial_sums=sums,
            )
            same(screened.propose(replica, request), plain.propose(replica, request), sums)
            replica.active.append([plain.atoms.atom(int(joining), int(joining))])
            weights = (1.0 - 0.5 * far) * replica.active.weights
            weights[-1] = far * rng.standard_normal() / len(told)
            replica.active.set_weights(np.abs(weights))


def same(found, expected, sums):
    """Whether proposals are the same, up to the rounding of scores."""
    np.testing.assert_array_equal(found.id, expected.id)
    np.testing.assert_array_equal(found.node, expected.node)
    for name in ("score", "merit", "best") + ("partial",) * sums:
        one, other = getattr(found, name), getattr(expected, name)
        scale = np.abs(expected.best[np.isfinite(expected.best)]).max(initial=0.0)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * scale, err_msg=name)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 30, 300, 5000])
def test_single_precision_is_bounded(order, kind, d):
    X = np.asarray(columns(0, d, 40, kind).astype(np.float32), order=order)
    exact, norms = X.astype(np.float64), norm_bounds(X)
    true = np.linalg.norm(exact, axis=0)
    assert np.all(norms >= true)
    if kind not in ("tiny", "huge"):
        assert np.all(norms <= (1 + 1e-2) * true + 1e-15)
    for k in range(5):
        g = np.random.default_rng(k).standard_normal(d) * 10.0 ** (20 * k - 40)
        near, off = single_bounds(X, g, norms)
        assert np.all(np.abs(near - exact.T @ g) <= off)
        if kind not in ("tiny", "huge"):
            assert np.all(off <= 1e-3 * np.linalg.norm(g) * true + 1e-15 * np.linalg.norm(g))


def test_what_overflows_in_single_precision_is_open():
    X = np.full((50, 3), 3e38, dtype=np.float32)
    near, off = single_bounds(X, np.ones(50), norm_bounds(X))
    assert np.all(np.isfinite(near))
    assert np.all(off == np.inf)
    assert np.all(single_bounds(X, np.full(50, 1e-200), norm_bounds(X))[1] == np.inf)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e150])
def test_norms_are_never_too_small(scale):
    X = columns(1, 40, 30) * scale
    true = scale * np.linalg.norm(X / scale, axis=0)
    rare = sparse.csc_array(np.where(np.arange(30) % 7, X, 0.0))
    rare.data[0] = 0.0
    true_rare = scale * np.linalg.norm(rare.toarray() / scale, axis=0)
    for found, norms in (
        (norm_bounds(X), true),
        (sparse_norm_bounds(rare), true_rare),
        (sparse_norm_bounds(sparse.csc_array((5, 3))), np.zeros(3)),
    ):
        assert np.all(found >= norms)
        assert np.all(found <= norms * (1 + 1e-12) + 1e-150)


@pytest.mark.parametrize("step", ["corrective", "line-search", "classic", "away", "pairwise"])
@pytest.mark.parametrize("form", ["C", "F", "single", "sparse"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_run_is_the_same(step, form, nodes, monkeypatch):
    X = columns(1, 60, 400)
    y = X[:, :5] @ np.ones(5) + np.random.default_rng(2).standard_normal(60)
    if form == "sparse":
        X = sparse.csc_array(np.where(np.abs(X) > 1.0, X, 0.0))
    else:
        X = np.asarray(
            X, dtype="f4" if form == "single" else "f8", order="F" if form == "F" else "C"
        )

    def fitted():
        few = {"atoms_per_round": 1} if step == "corrective" else {}
        solver = Solver(step=step, max_rounds=200, tol=1e-4, **few)
        return Lasso(4.0, solver=solver, cluster=LocalCluster(nodes)).fit(X, y).result_

    plain = fitted()
    always(monkeypatch)
    for name in ("VAIN", "VAIN_ROWS"):
        monkeypatch.setattr(explicit, name, 0.5)
    screened = fitted()
    assert not plain.trace.unread.any()
    assert screened.trace.unread[-1] > 200
    assert np.all(screened.trace.unread < 400)
    assert plain.status == screened.status
    np.testing.assert_allclose(screened.trace.gap, plain.trace.gap, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(np.sort(screened.atom_ids), np.sort(plain.atom_ids))
    np.testing.assert_allclose(screened.objective, plain.objective, rtol=1e-9)


def test_a_path_remembers(screened):
    X = columns(3, 80, 300)
    y = X[:, :4].sum(axis=1) + np.random.default_rng(0).standard_normal(80)
    path = Lasso(solver="away").path(X, y, betas=[1.0, 1.1, 1.2])
    for beta, coef in zip(path.betas, path.coefs.T, strict=True):
        alone = Lasso(beta, solver="away").fit(X, y)
        np.testing.assert_allclose(coef, alone.coef_, atol=1e-2)


def test_other_losses(screened):
    X = columns(4, 80, 200)
    y = np.where(X[:, 0] - X[:, 1] > 0, "yes", "no")
    model = SparseLogisticRegression(beta=2.0, solver="away").fit(X, y)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    residual = signs / (1.0 + np.exp(signs * model.decision_function(X)))
    gap = model.coef_.ravel() @ (X.T @ -residual) + 2.0 * np.abs(X.T @ residual).max()
    rounding = 1e-14 * model.result_.objective
    np.testing.assert_allclose(gap, model.result_.gap, rtol=1e-6, atol=rounding)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
def test_scores_that_are_no_numbers_are_found(screened):
    X = np.random.default_rng(0).standard_normal((20, 30))
    X[:, 7] = 1e300
    y = 1e10 * np.random.default_rng(1).standard_normal(20)
    with pytest.raises(FalseMessageError, match="merit nan"):
        Lasso(2.0, solver="away", fit_intercept=False, cluster=2).fit(X, y)


def test_small_data_is_read_as_ever():
    assert not DenseAtoms(np.ones((500, 500))).large
    assert not SparseAtoms(sparse.csc_array(np.eye(2000))).large
    assert DenseAtoms(np.broadcast_to(1.0, (1000, 2000))).large
    assert not DenseAtoms(np.broadcast_to(np.int8(1), (1000, 2000))).large
