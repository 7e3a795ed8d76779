"""Baselines that choose atoms node by node: what they choose, what they reach, what they send."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast.baselines.gathered import Gathered, gather
from atomcast.baselines.subsets import local_frank_wolfe, random_subsets, solve_on_subsets
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster
from problems import BETA, DOMAINS, dense_problem, frank_wolfe, make_domain, optimum, regression


def problem_of(y, domain=None):
    return explicit_problem(SquaredError(y), L1Ball(BETA) if domain is None else domain)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), nodes=st.integers(1, 8), per_node=st.integers(1, 12))
def test_random_choices_are_the_nodes_own_and_grow(seed, nodes, per_node):
    X, y = regression(seed=0)
    shards = Shards.split(X, nodes, random_state=seed)
    chosen = random_subsets(problem_of(y), shards, per_node, random_state=seed)
    owner = shards.assignment()
    for i, ids in enumerate(chosen):
        assert len(set(ids.tolist())) == len(ids) == min(per_node, np.sum(owner == i))
        assert np.all(owner[ids] == i)
    fewer = random_subsets(problem_of(y), shards, 1, random_state=seed)
    assert all(few.tolist() == many[:1].tolist() for few, many in zip(fewer, chosen, strict=True))


def test_random_choices_are_uniform():
    X, y = regression(n=30)
    shards = Shards.split(X, 3, by="contiguous")
    counts = np.zeros(30)
    for seed in range(600):
        for ids in random_subsets(problem_of(y), shards, 2, random_state=seed):
            counts[ids] += 1
    # 600 draws of probability 1/5 each: mean 120, standard deviation 9.8.
    assert np.all(np.abs(counts - 120) < 50)


@pytest.mark.parametrize("domain", DOMAINS)
def test_local_choices_are_those_of_frank_wolfe_on_the_nodes_own_atoms(domain):
    X, y = dense_problem(domain, seed=3)
    shards = Shards.split(X, 3, random_state=1)
    problem = problem_of(y, make_domain(domain, BETA))
    chosen = local_frank_wolfe(problem, shards, 4, max_rounds=40, tol=1e-12)
    for i, ids in enumerate(chosen):
        mine = np.flatnonzero(shards.assignment() == i)
        path = np.array(frank_wolfe(X[:, mine], y, domain, 40, exact=True))
        entered = np.argmax(path != 0, axis=0)
        order = [j for j in np.argsort(entered, kind="stable") if path[:, j].any()]
        assert ids.tolist() == mine[order[:4]].tolist()


def test_a_node_that_can_do_no_better_chooses_fewer():
    y = np.array([1.0, 0.0, 0.0, 0.0])
    shards = Shards.split(np.eye(4), 2, by="contiguous")
    chosen = local_frank_wolfe(problem_of(y, L1Ball(0.5)), shards, 2)
    assert [ids.tolist() for ids in chosen] == [[0], []]


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_union_is_solved(domain):
    X, y = dense_problem(domain, seed=5)
    shards = Shards.split(X, 4, random_state=2)
    problem = problem_of(y, make_domain(domain, BETA))
    chosen = random_subsets(problem, shards, 5, random_state=0)
    trace, _ = solve_on_subsets(problem, shards, chosen, (2, 5), LocalCluster(4), tol=1e-9)
    for m, value in zip((2, 5), trace.objective, strict=True):
        union = np.concatenate([ids[:m] for ids in chosen])
        best, _ = optimum(X[:, union], y, make_domain(domain, BETA))
        assert value == pytest.approx(best, rel=1e-7)
    assert trace.round.tolist() == [2, 5]
    assert trace.atoms.tolist() == [sum(len(ids[:m]) for ids in chosen) for m in (2, 5)]


def test_all_atoms_give_the_optimum_itself():
    X, y = regression(seed=1)
    shards = Shards.split(X, 3)
    problem = problem_of(y)
    chosen = random_subsets(problem, shards, 30)
    trace, _ = solve_on_subsets(problem, shards, chosen, (30,), LocalCluster(3), tol=1e-9)
    assert trace.objective[0] == pytest.approx(optimum(X, y, L1Ball(BETA))[0], rel=1e-7)


def test_what_is_sent_is_counted_once_and_hop_by_hop():
    X, y = regression(d=20, n=40)
    nodes, d = 4, 20
    shards = Shards.split(X, nodes, by="contiguous")
    problem = problem_of(y)
    chosen = random_subsets(problem, shards, 3)
    cluster = LocalCluster(nodes)
    trace, ledger = solve_on_subsets(problem, shards, chosen, (1, 3), cluster)
    # Every atom crosses one edge up to the coordinator and N - 1 down.
    assert trace["values"].tolist() == [nodes * nodes * d, 3 * nodes * nodes * d]
    assert ledger.by_kind()["atom"].values == ledger.values
    sent = sorted(entry.atom for entry in ledger.disclosures)
    assert sent == sorted(np.concatenate(chosen).tolist())
    trace, ledger = solve_on_subsets(
        problem, shards, chosen, (1, 3), cluster, destination="coordinator"
    )
    assert trace["values"].tolist() == [nodes * d, 3 * nodes * d]
    assert ledger.messages == 2 * nodes
    tree, _ = solve_on_subsets(problem, shards, chosen, (3,), LocalCluster(nodes, "tree"))
    assert tree["values"].tolist() == [3 * nodes * (nodes - 1) * d]


def test_sparse_atoms_are_sent_as_their_nonzeros():
    X = sparse.random_array((50, 30), density=0.1, format="csc", rng=np.random.default_rng(0))
    y = np.asarray(X.sum(axis=1)).ravel()
    shards = Shards.split(X, 3, random_state=0)
    problem = problem_of(y)
    chosen = local_frank_wolfe(problem, shards, 3)
    trace, _ = solve_on_subsets(problem, shards, chosen, (3,), LocalCluster(3))
    nonzeros = np.diff(X.indptr)[np.concatenate(chosen)].sum()
    assert trace["values"][0] == 3 * nonzeros


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("axis", [0, 1])
def test_gathered_atoms_keep_their_ids(make, axis):
    X = make(np.arange(1.0, 31.0).reshape(5, 6))
    shards = Shards.split(X, 2, random_state=1, names=[f"f{j}" for j in range(6)])
    parts = [shards.shard(i, axis) for i in range(2)]
    chosen = [part.ids[::-1][:2] for part in parts]
    union = gather(parts, chosen, axis)
    assert union.ids.tolist() == sorted(np.concatenate(chosen).tolist())
    dense = X.toarray() if sparse.issparse(X) else X
    expected = dense[:, union.ids] if axis == 1 else dense[union.ids]
    found = union.matrix.toarray() if sparse.issparse(union.matrix) else union.matrix
    np.testing.assert_array_equal(found, expected)
    assert union.names == (tuple(f"f{j}" for j in union.ids) if axis == 1 else None)


def test_results_on_gathered_atoms_speak_of_the_whole():
    X, y = regression(seed=2)
    shards = Shards.split(X, 3, random_state=0)
    problem = problem_of(y)
    result = Solver(tol=1e-8).solve(problem, shards, Gathered(shards.shard(1)))
    assert result.n == 30
    assert set(result.atom_ids) <= set(shards.shard(1).ids)
    np.testing.assert_allclose(X @ result.weights, result.image)
    assert result.ledger.values == 0


def test_wrong_parameters_are_named():
    X, y = regression()
    shards, problem = Shards.split(X, 2), problem_of(y)
    with pytest.raises(ValueError, match="per_node must be a whole number >= 1"):
        random_subsets(problem, shards, 0)
    with pytest.raises(ValueError, match="per_node"):
        local_frank_wolfe(problem, shards, 0)
    chosen = random_subsets(problem, shards, 2)
    with pytest.raises(ValueError, match="destination must be one of"):
        solve_on_subsets(problem, shards, chosen, (1,), LocalCluster(2), destination="nobody")
    with pytest.raises(ValueError, match="needs LocalCluster"):
        solve_on_subsets(
            problem, shards, chosen, (1,), LocalCluster(2, "tree"), destination="coordinator"
        )
