"""The outcome does not depend on who holds what: any number of nodes, any partition, any layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.network.star import Star
from atomcast.simulation.local import LocalCluster
from problems import (
    DOMAINS,
    STEPS,
    dense_problem,
    make_domain,
    regression,
    solve,
    sparse_regression,
)


def history(X, y, domain, *, step, rounds=25, how_many="auto", fit_intercept=False, **where):
    """For every round the atoms known, in order of arrival, their weights, and the gap."""
    seen = []

    def watch(state):
        active = state.replica.active
        seen.append((list(active.ids), active.weights.copy(), state.gap))

    how = {"step": step, "tol": 1e-7, "max_rounds": rounds, "callbacks": [watch]}
    how["atoms_per_round"] = how_many
    result = solve(X, y, domain, fit_intercept=fit_intercept, **how, **where)
    return seen, result


def check_same(one, other):
    (seen, result), (seen_there, result_there) = one, other
    assert len(seen) == len(seen_there)
    for (ids, weights, gap), (ids_there, weights_there, gap_there) in zip(
        seen, seen_there, strict=True
    ):
        assert ids == ids_there
        np.testing.assert_allclose(weights, weights_there, rtol=0, atol=1e-9)
        assert gap == pytest.approx(gap_there, rel=1e-7, abs=1e-9)
    assert result.status == result_there.status
    assert result.rounds == result_there.rounds
    np.testing.assert_array_equal(result.atom_ids, result_there.atom_ids)
    np.testing.assert_allclose(result.weights, result_there.weights, rtol=0, atol=1e-9)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_any_number_of_nodes(domain, step):
    X, y = dense_problem(domain, seed=2, d=30, n=60)
    alone = history(X, y, make_domain(domain, 1.5), step=step)
    assert len(alone[0]) > 2
    for nodes in (2, 4, 37, 100):
        for by in ("random", "contiguous"):
            check_same(
                alone, history(X, y, make_domain(domain, 1.5), step=step, nodes=nodes, by=by)
            )


@pytest.mark.parametrize("step", STEPS)
def test_sparse_data_with_an_intercept(step):
    X, y = sparse_regression(seed=3, d=80, n=120)
    alone = history(X, y, L1Ball(3.0), step=step, fit_intercept=True)
    for nodes in (2, 37, 200):
        check_same(
            alone,
            history(X, y, L1Ball(3.0), step=step, fit_intercept=True, nodes=nodes, seed=nodes),
        )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    marks=st.lists(st.integers(0, 24), min_size=0, max_size=9),
    step=st.sampled_from(STEPS),
    domain=st.sampled_from(DOMAINS),
    isolated=st.booleans(),
)
def test_unbalanced_and_empty_shards(seed, marks, step, domain, isolated):
    X, y = dense_problem(domain, seed, d=12, n=24)
    sizes = np.diff([0, *sorted(marks), 24]).tolist()
    alone = history(X, y, make_domain(domain, 1.0), step=step, rounds=10)
    cluster = LocalCluster(len(sizes), isolated=isolated)
    where = {"nodes": len(sizes), "by": sizes, "cluster": cluster}
    check_same(alone, history(X, y, make_domain(domain, 1.0), step=step, rounds=10, **where))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("owner", [0, 1, 3])
@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("step", STEPS)
def test_the_winner_may_be_on_any_node_and_of_either_sign(step, nodes, owner, sign):
    """The sign of a score must survive the way from its owner, node 0 included."""
    if owner >= nodes:
        owner = 0
    rng = np.random.default_rng(0)
    X = 0.01 * rng.standard_normal((10, 8))
    winner = 2 * owner if nodes == 4 else (5 * owner if nodes == 2 else 3)
    y = rng.standard_normal(10)
    X[:, winner] = sign * y
    result = solve(X, y, L1Ball(0.5), nodes=nodes, by="contiguous", step=step, tol=1e-6)
    assert result.atom_ids[np.argmax(np.abs(result.atom_weights))] == winner
    assert np.sign(result.weights[winner]) == sign
    if nodes > 1:
        sent = [entry for entry in result.ledger.disclosures if entry.atom == winner]
        assert [entry.node for entry in sent] == [owner]


# -- exact ties ---------------------------------------------------------------------------------


def layouts(X, tmp_path):
    """The same matrix in every layout that a user may bring."""
    path = tmp_path / "X.npy"
    np.save(path, X)
    csc = sparse.csc_array(X)
    wide = sparse.csc_array(
        (csc.data, csc.indices.astype(np.int64), csc.indptr.astype(np.int64)), shape=csc.shape
    )
    assert wide.indices.dtype == np.int64
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "memmap": np.load(path, mmap_mode="r"),
        "csc": csc,
        "csc int64": wide,
        "csr": sparse.csr_matrix(X),
        "csr array": sparse.csr_array(X),
    }


def with_ties(X, seed):
    """Every column three times and once negated, in random order; and the id that must win."""
    n = X.shape[1]
    order = np.random.default_rng(seed).permutation(4 * n)
    original = np.tile(np.arange(n), 4)[order]
    first = np.array([np.flatnonzero(original == original[j])[0] for j in range(4 * n)])
    return np.hstack([X, X, X, -X])[:, order], set(first.tolist())


@pytest.mark.parametrize("step", ["classic", "away", "corrective"])
@pytest.mark.parametrize("single", [False, True])
def test_of_equal_atoms_the_smallest_id_wins_in_every_layout(step, single, tmp_path):
    X, y = regression(seed=4, d=23, n=11)
    X *= np.random.default_rng(0).random(X.shape) < 0.7
    if single:
        X = X.astype(np.float32)
    X, first = with_ties(X, seed=1)
    reference = None
    for matrix in layouts(X, tmp_path).values():
        for nodes in (1, 2, 4, 37):
            for seed in (0, 1):
                run = history(matrix, y, L1Ball(1.0), step=step, nodes=nodes, seed=seed, rounds=8)
                reference = reference or run
                check_same(reference, run)
    ids, _, _ = reference[0][-1]
    if step != "corrective":  # which takes several a round, equals included
        assert set(ids) <= first
    else:
        assert ids[0] in first


@pytest.mark.parametrize("step", STEPS)
def test_equal_atoms_on_the_simplex(step):
    X, y = dense_problem("simplex", seed=5, d=15, n=9)
    X = np.hstack([X, X, X])
    alone = history(X, y, Simplex(), step=step, rounds=12)
    for nodes in (2, 5, 27, 40):
        check_same(alone, history(X, y, Simplex(), step=step, rounds=12, nodes=nodes, seed=nodes))
    if step != "corrective":
        assert max(alone[0][-1][0]) < 9


def test_ties_at_the_last_place_of_a_batch():
    """More equal atoms than places: the smallest ids get them, wherever they are."""
    X, y = regression(seed=6, d=12, n=5)
    X = np.tile(X, 20)[:, np.random.default_rng(2).permutation(100)]
    for count in (1, 3, 7, 30):
        alone = history(X, y, L1Ball(0.5), step="corrective", how_many=count)
        for nodes in (2, 10, 100):
            there = history(X, y, L1Ball(0.5), step="corrective", how_many=count, nodes=nodes)
            check_same(alone, there)


# -- isolated nodes -----------------------------------------------------------------------------


def messages(y, domain, cluster, step, shards, monkeypatch):
    """Every table of proposals that reached the network, and every agreement."""
    tables = []
    plain = Star.agree

    def spy(self, proposals, count, ledger):
        agreement = plain(self, proposals, count, ledger)
        tables.append((proposals, agreement))
        return agreement

    with monkeypatch.context() as patch:
        patch.setattr("atomcast.network.star.Star.agree", spy)
        result = solve(shards, y, domain, cluster=cluster, step=step, tol=1e-7, max_rounds=20)
    return tables, result


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("step", STEPS)
def test_isolated_nodes_say_the_same_message_by_message(step, domain, monkeypatch):
    X, y = dense_problem(domain, seed=7, d=20, n=40)
    X = np.hstack([X, X[:, :7]])
    shards = Shards.split(X, 6, by=[10, 0, 1, 20, 0, 16])
    runs = [
        messages(
            y, make_domain(domain, 1.2), LocalCluster(6, isolated=i), step, shards, monkeypatch
        )
        for i in (False, True)
    ]
    (tables, result), (alone, isolated) = runs
    assert len(tables) == len(alone) > 1
    for (table, agreement), (other, other_agreement) in zip(tables, alone, strict=True):
        np.testing.assert_array_equal(table.node, other.node)
        np.testing.assert_array_equal(table.id, other.id)
        np.testing.assert_array_equal(table.per_node, other.per_node)
        np.testing.assert_allclose(table.score, other.score, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(table.merit, other.merit, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(table.best, other.best, rtol=1e-9, atol=1e-9)
        if table.partial is not None:
            np.testing.assert_allclose(table.partial, other.partial, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(agreement.id, other_agreement.id)
        np.testing.assert_array_equal(agreement.owner, other_agreement.owner)
    assert result.ledger.disclosures == isolated.ledger.disclosures
    for view in ("by_kind", "by_node", "by_edge", "by_round"):
        assert getattr(result.ledger, view)() == getattr(isolated.ledger, view)()


def test_a_thousand_nodes_for_ten_atoms():
    X, y = regression(seed=8, d=15, n=10)
    alone = history(X, y, L1Ball(1.0), step="corrective")
    check_same(alone, history(X, y, L1Ball(1.0), step="corrective", nodes=1000))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 8),
    n=st.integers(1, 30),
    step=st.sampled_from(STEPS),
    domain=st.sampled_from(DOMAINS),
    nodes=st.integers(2, 8),
    layout=st.sampled_from([np.ascontiguousarray, np.asfortranarray, sparse.csc_array]),
)
def test_data_full_of_ties(seed, d, n, step, domain, nodes, layout):
    """Small integers, so that ties come in every round, among atoms that are not equal as well."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (d, n)).astype(float)
    y = rng.integers(-2, 3, d).astype(float)
    where = make_domain(domain, 1.0)
    (alone, _), (there, _) = (
        history(layout(X), y, where, step=step, rounds=12, nodes=N, seed=seed) for N in (1, nodes)
    )
    for (ids, weights, gap), (ids_there, weights_there, _) in zip(alone, there, strict=False):
        assert ids == ids_there
        np.testing.assert_allclose(weights, weights_there, rtol=0, atol=1e-9)
        if gap < 1e-4 * max(float(y @ y), 1.0):
            break  # scores are small differences now, and ties are lost in rounding
