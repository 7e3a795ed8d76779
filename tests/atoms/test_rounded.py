"""Where most columns are only bounded, winners and gaps are those of scoring all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast import Lasso, LocalCluster, Shards, Solver, SparseLogisticRegression
from atomcast.atoms import explicit
from atomcast.atoms.explicit import DenseAtoms
from atomcast.atoms.rounded import RoundedColumns
from atomcast.cluster import last_scores
from atomcast.cluster.node import Fleet
from atomcast.cluster.screening import Screen
from atomcast.domains.balls import L1Ball, SolidSimplex
from atomcast.loop.replica import Replica, Tolerance
from atomcast.messages.proposals import Request
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import STEPS

ALWAYS = {"LONG": 1, "SOME": 1, "MUCH": 1, "PASSES": 0, "START": 0, "VAIN": 1e9, "VAIN_ROWS": 1e9}


@pytest.fixture
def always(monkeypatch):
    for name, value in ALWAYS.items():
        monkeypatch.setattr(explicit, name, value)
    monkeypatch.setattr(last_scores, "MISSED", 10**9)  # the copy tells all


def columns(seed, d, n, kind="normal"):
    """Columns that rounding treats differently, some of them equal."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    if kind == "heavy":
        X = np.exp(3 * X)
    elif kind == "counts":
        X = np.rint(2 * X)
    elif kind == "scales":
        X = X * 10.0 ** rng.integers(-30, 30, n)
    X[:, n // 2] = X[:, 0]
    X[:, n // 3] = 0.0
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("kind", ["normal", "heavy", "counts", "scales"])
def test_bounds_hold(dtype, order, kind):
    X = columns(0, 150, 200, kind).astype(dtype)
    matrix = X[::2, ::2] if order == "strided" else np.asarray(X, order=order)
    rounded = RoundedColumns(matrix)
    for seed in range(5):
        g = np.random.default_rng(seed).standard_normal(len(matrix)) * 10.0 ** (20 * seed - 40)
        near, off = rounded.bounds(g)
        exact = matrix.astype(np.float64).T @ g
        assert np.all(np.abs(near - exact) <= off)
        norms = np.linalg.norm(matrix.astype(np.float64), axis=0) * np.linalg.norm(g)
        assert np.all(off <= (0.1 if kind == "heavy" else 0.02) * norms)


def test_bounds_of_what_is_too_small_to_round_are_wide():
    matrix = np.full((3, 2), 1e-305)
    near, off = RoundedColumns(matrix).bounds(np.ones(3))
    assert np.all(np.abs(near - 3e-305) <= off)
    near, off = RoundedColumns(matrix).bounds(np.full(3, 1e-200))
    assert np.all(off == np.inf)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 80)),
    kind=st.sampled_from(["normal", "heavy", "counts"]),
    single=st.booleans(),
    domain=st.sampled_from([L1Ball(3.0), SolidSimplex(beta=3.0)]),
    count=st.integers(1, 9),
    level=st.sampled_from([-np.inf, 0.1, 0.5, 0.9]),
    known_too=st.booleans(),
    partial_sums=st.booleans(),
    told=st.integers(0, 4),
)
def test_proposals_are_those_of_all_scores(
    seed, shape, kind, single, domain, count, level, known_too, partial_sums, told
):
    X = columns(seed, *shape, kind).astype(np.float32 if single else np.float64)
    y = np.random.default_rng(seed).standard_normal(shape[0])
    replica = Replica(
        explicit_problem(SquaredError(y), domain), STEPS["away"]("auto"), Tolerance(0)
    )
    atoms = DenseAtoms(X)
    for j in range(0, min(told, shape[1])):
        replica.active.append([atoms.atom(j, j)])
    replica.active.set_weights(np.full(len(replica.active), 0.5))
    best = float(domain.merit(atoms.scores(replica)).max())
    request = Request(
        count=count, threshold=level * abs(best), known_too=known_too, partial_sums=partial_sums
    )

    def proposed(bounded):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in ALWAYS.items() if bounded else ():
                patch.setattr(explicit, name, value)
            fleet = Fleet(DenseAtoms(X), np.arange(shape[1]), np.zeros(shape[1], np.int64), 1)
            return fleet.propose(replica, request)

    plain, screened = proposed(False), proposed(True)
    np.testing.assert_array_equal(screened.id, plain.id)
    for name in ("score", "merit", "best") + ("partial",) * partial_sums:
        expected, scale = getattr(plain, name), np.abs(X).astype(np.float64).sum() * np.abs(y).sum()
        np.testing.assert_allclose(
            getattr(screened, name), expected, rtol=1e-10, atol=1e-13 * scale, err_msg=name
        )


@pytest.mark.parametrize("step", ["corrective", "classic", "away", "blended-pairwise"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_run_is_the_same(always, step, order, monkeypatch):
    X = np.asarray(columns(1, 60, 400), order=order)
    y = X[:, :5] @ np.ones(5) + np.random.default_rng(2).standard_normal(60)
    solver = Solver(step=step, max_rounds=60, tol=1e-6)

    def fitted():
        return Lasso(4.0, solver=solver, cluster=1).fit(X, y).result_

    read = []
    plain_read = Screen._read

    def noted(self, replica, rows, known):
        read.append(len(rows))
        return plain_read(self, replica, rows, known)

    monkeypatch.setattr(Screen, "_read", noted)
    bounded = fitted()
    assert len(read) == bounded.rounds + 1
    assert np.mean(read) < 100
    np.testing.assert_array_equal(bounded.trace.unread, 400 - np.array(read))
    monkeypatch.setattr(explicit, "START", 10**12)
    plain = fitted()
    assert len(read) == bounded.rounds + 1
    assert not plain.trace.unread.any()
    np.testing.assert_allclose(bounded.trace.gap, plain.trace.gap, rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(np.sort(bounded.atom_ids), np.sort(plain.atom_ids))
    np.testing.assert_allclose(bounded.objective, plain.objective, rtol=1e-9)


def test_the_cut_does_not_matter(always):
    X = columns(3, 50, 300)
    y = X[:, :4].sum(axis=1)
    found = [
        Lasso(3.0, cluster=LocalCluster(nodes)).fit(Shards.split(X, nodes), y).result_
        for nodes in (1, 3)  # several nodes that live together score as ever
    ]
    assert found[0].atom_ids.tolist() == found[1].atom_ids.tolist()
    np.testing.assert_allclose(found[0].trace.gap, found[1].trace.gap, rtol=1e-6, atol=1e-9)


def test_other_losses_are_bounded_as_well(always):
    X = columns(4, 80, 200)
    y = np.where(X[:, 0] - X[:, 1] > 0, "yes", "no")
    bounded = SparseLogisticRegression(beta=2.0).fit(X, y)
    assert bounded.result_.status == "optimal"
    exact = np.abs(X.T @ (bounded.predict_proba(X)[:, 1] - (y == "yes"))).max()
    assert np.isfinite(exact)


def test_bounds_that_leave_too_much_open_are_given_up(always, monkeypatch):
    monkeypatch.setattr(explicit, "VAIN_ROWS", 1e-9)
    monkeypatch.setattr(explicit, "TRIALS", 1)
    X = columns(5, 40, 60)
    y = X[:, :3].sum(axis=1)
    made = []
    monkeypatch.setattr(explicit, "RoundedColumns", lambda m: made.append(m) or RoundedColumns(m))
    result = Lasso(2.0, solver="away", cluster=1).fit(X, y).result_
    assert result.status == "optimal"
    assert len(made) == 1


def test_only_large_data_is_ever_rounded():
    assert not DenseAtoms(np.ones((500, 500))).large
    assert not DenseAtoms(np.broadcast_to(1.0, (100, 1 << 20))).large
    assert DenseAtoms(np.broadcast_to(1.0, (1000, 1 << 20))).large
