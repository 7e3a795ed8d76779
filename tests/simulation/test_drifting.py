"""The paper's protocol under loss, `recovery="none"`: nodes skip what they miss."""

from __future__ import annotations

import copy
import random
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as PenalisedLasso

from atomcast import (
    Faults,
    GroupLasso,
    KernelSVC,
    LocalCluster,
    Partition,
    Shards,
    Solver,
    SparseLogisticRegression,
    lasso_path,
)
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.drifting_replica import DriftingReplica
from problems import mixture, regression

X, Y = regression(seed=5, d=25, n=40)
BETA = 2.0


def solve(cluster, step="classic", rounds=40, domain=None, data=(X, Y), tol=1e-6, **how):
    A, y = data
    problem = explicit_problem(SquaredError(y), domain or L1Ball(BETA))
    solver = Solver(step, tol=tol, max_rounds=rounds, **how)
    return solver.solve(problem, Shards.split(A, cluster.nodes, by="contiguous"), cluster)


def dropping(nodes, loss, seed=0, topology="star", **how):
    faults = Faults(loss=loss, per="receiver", seed=seed, **how)
    return LocalCluster(nodes, topology, faults=faults, recovery="none")


@pytest.mark.parametrize("topology", ["star", "complete"])
@pytest.mark.parametrize("step", ["classic", "line-search", "corrective"])
def test_without_loss_it_is_the_plain_run_with_every_winner_sent_again(step, topology):
    plain = solve(LocalCluster(4, topology, resend=True), step)
    nothing = solve(dropping(4, 0.0, topology=topology), step)
    np.testing.assert_allclose(nothing.weights, plain.weights, atol=1e-12)
    np.testing.assert_allclose(nothing.trace.objective, plain.trace.objective, rtol=1e-12)
    np.testing.assert_allclose(nothing.trace.gap, plain.trace.gap, rtol=1e-6, atol=1e-9)
    assert nothing.ledger.values == plain.ledger.values
    assert nothing.ledger.by_edge() == plain.ledger.by_edge()
    assert nothing.status == plain.status


def plainly(loss, seed, nodes, rounds):
    """Section 6.3 written down with NumPy, node by node; the mean objective in each round."""
    chance = random.Random(seed)
    parts = np.array_split(np.arange(X.shape[1]), nodes)
    alpha = np.zeros((nodes, X.shape[1]))
    means = []
    for k in range(rounds + 1):
        images = alpha @ X.T
        means.append(np.mean(np.sum((Y - images) ** 2, axis=1)))
        arrived = [chance.random() >= loss for _ in range(nodes)]
        proposals = []
        for i in range(nodes):
            gradient = -2 * X[:, parts[i]].T @ (Y - images[i])
            j = int(np.argmax(np.abs(gradient)))
            proposals.append((abs(gradient[j]), parts[i][j], gradient[j], i))
        if k == rounds:
            break
        heard = [p for p, ok in zip(proposals, arrived, strict=True) if ok]
        receives = [chance.random() >= loss for _ in range(nodes)]
        if not heard:
            continue
        _, j, slope, owner = max(heard, key=lambda p: p[0])
        for i in range(nodes):
            if receives[i] or i == owner:
                vertex = np.zeros(X.shape[1])
                vertex[j] = -BETA * np.sign(slope)
                alpha[i] += 2 / (k + 2) * (vertex - alpha[i])
    return np.array(means), alpha


def on_a_mesh(loss, seed, nodes, rounds):
    """The same where every node hears every other by itself, or does not."""
    chance, parts = random.Random(seed), np.array_split(np.arange(X.shape[1]), nodes)
    alpha, means = np.zeros((nodes, X.shape[1])), []

    def reach():
        return [[i == j or chance.random() >= loss for j in range(nodes)] for i in range(nodes)]

    for k in range(rounds + 1):
        images = alpha @ X.T
        means.append(np.mean(np.sum((Y - images) ** 2, axis=1)))
        if k == rounds:
            break
        slopes = [-2 * X[:, parts[i]].T @ (Y - images[i]) for i in range(nodes)]
        best = [int(np.argmax(np.abs(slope))) for slope in slopes]
        size = [abs(slope[j]) for slope, j in zip(slopes, best, strict=True)]
        heard = reach()
        casting = [i for i in range(nodes) if all(size[i] >= size[j] for j in range(nodes)
                                                  if heard[j][i])]  # fmt: skip
        gets = reach()
        for i in range(nodes):
            received = [owner for owner in casting if gets[owner][i]]
            if received:
                owner = max(received, key=size.__getitem__)
                vertex = np.zeros(X.shape[1])
                vertex[parts[owner][best[owner]]] = -BETA * np.sign(slopes[owner][best[owner]])
                alpha[i] += 2 / (k + 2) * (vertex - alpha[i])
    return np.array(means)


@pytest.mark.parametrize("loss", [0.1, 0.4, 0.9])
def test_on_a_complete_graph_every_node_takes_the_best_atom_that_it_gets(loss):
    result = solve(dropping(4, loss, seed=7, topology="complete"), rounds=30)
    np.testing.assert_allclose(result.trace.objective, on_a_mesh(loss, 7, 4, 30), rtol=1e-9)
    cast = np.unique([one.round for one in result.ledger.disclosures], return_counts=True)[1]
    assert cast.max() > 1  # some round had more than one that took itself for the winner
    repair, control = (result.ledger.by_kind()[kind].values for kind in ("repair", "control"))
    assert repair > 0
    assert control == 4 * 3  # at the end everybody tells everybody an objective


def test_on_a_complete_graph_both_sides_of_a_partition_go_on():
    forever = Partition((0, 1), 0, 1000)
    result = solve(dropping(4, 0.0, topology="complete", partitions=[forever]), rounds=20)
    sides = [solve(LocalCluster(2), rounds=20, data=(X[:, part], Y))
             for part in (slice(20), slice(20, 40))]  # fmt: skip
    mean = (sides[0].trace.objective + sides[1].trace.objective) / 2
    np.testing.assert_allclose(result.trace.objective, mean, rtol=1e-9)


@pytest.mark.parametrize("loss", [0.1, 0.4, 0.9])
def test_the_mean_objective_is_that_of_the_papers_experiment(loss):
    result = solve(dropping(4, loss, seed=7), rounds=30)
    means, alpha = plainly(loss, seed=7, nodes=4, rounds=30)
    np.testing.assert_allclose(result.trace.objective, means, rtol=1e-9)
    ends = np.sum((Y[:, None] - X @ alpha.T) ** 2, axis=0)
    np.testing.assert_allclose(result.weights, alpha[np.argmin(ends)], atol=1e-9)


@pytest.mark.parametrize("step", ["classic", "line-search", "corrective"])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_at_the_end_is_true_for_the_weights_of_the_best_node(step, seed):
    penalised = PenalisedLasso(alpha=0.2, fit_intercept=False, tol=1e-12, max_iter=10**6)
    coef = penalised.fit(X, Y).coef_
    beta, optimum = float(np.abs(coef).sum()), float(np.sum((Y - X @ coef) ** 2))
    result = solve(dropping(5, 0.3, seed), step, domain=L1Ball(beta))
    assert not np.isfinite(result.trace.gap[-1])  # iterates differ: nothing is certified
    objective = float(np.sum((Y - X @ result.weights) ** 2))
    gradient = -2 * X.T @ (Y - X @ result.weights)
    gap = gradient @ result.weights + beta * np.abs(gradient).max()
    assert result.objective == pytest.approx(objective, rel=1e-9)
    assert result.gap == pytest.approx(gap, rel=1e-6, abs=1e-9)
    assert objective - result.gap <= optimum * (1 + 1e-9)
    assert np.abs(result.weights).sum() <= beta * (1 + 1e-9)
    assert result.objective <= result.trace.objective[-1] * (1 + 1e-12)  # best is below mean
    assert result.ledger.by_kind()["repair"].values > 0


def test_on_a_simplex_only_nodes_with_an_iterate_count():
    result = solve(dropping(5, 0.5, 1), domain=Simplex(), data=mixture(seed=1, n=40))
    assert np.isnan(result.trace.objective[0])
    assert np.all(np.isfinite(result.trace.objective[1:]))
    assert result.weights.sum() == pytest.approx(1.0)


def test_nodes_that_are_cut_off_stay_where_they_are():
    forever = Partition((0, 1, 2), 0, 1000)
    result = solve(dropping(4, 0.0, partitions=[forever]), rounds=30)
    alone = solve(LocalCluster(1), rounds=30, data=(X[:, 30:], Y))
    start = np.sum(Y**2)
    np.testing.assert_allclose(
        result.trace.objective, (3 * start + alone.trace.objective) / 4, rtol=1e-9
    )


def test_drift_costs_more_than_the_log():
    A, y = make_classification(300, 20, n_informative=10, random_state=0)

    def last(cluster):
        solver = Solver("classic", tol=1e-9, max_rounds=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KernelSVC(C=100.0, gamma=0.05, cluster=cluster, solver=solver).fit(A, y)
        return model.result_.trace.objective[-1]

    plain, lossy = last(5), Faults(loss=0.4, per="receiver")
    assert last(LocalCluster(5, faults=lossy)) < 1.1 * plain
    assert last(LocalCluster(5, faults=lossy, recovery="none")) > 1.2 * plain


def test_an_atom_can_be_lost_on_its_way_to_the_coordinator():
    faults = Faults(loss=0.5, per="link", seed=2)
    by_link = solve(LocalCluster(4, faults=faults, recovery="none"), rounds=20)
    by_receiver = solve(dropping(4, 0.5, 2), rounds=20)
    assert by_link.trace.objective[-1] != by_receiver.trace.objective[-1]
    assert np.isfinite(by_link.gap)


def test_a_single_node_drifts_from_nobody():
    alone, plain = solve(dropping(1, 0.0)), solve(LocalCluster(1))
    np.testing.assert_allclose(alone.weights, plain.weights, atol=1e-12)


@pytest.mark.parametrize("per", ["link", "receiver"])
def test_a_single_node_sends_nothing_that_could_be_lost(per):
    cluster = LocalCluster(1, faults=Faults(loss=0.9, per=per), recovery="none")
    alone, plain = (solve(c, "corrective") for c in (cluster, LocalCluster(1)))
    assert (alone.status, alone.rounds) == (plain.status, plain.rounds) == ("optimal", 2)


def test_rounds_in_which_all_proposals_are_lost_do_not_end_the_run():
    cut_off = Partition((0, 1, 2), 1, 12)
    result = solve(dropping(3, 0.0, partitions=[cut_off]), "corrective")
    assert result.rounds > 12
    assert result.trace.objective[-1] < 0.9 * result.trace.objective[11]


def test_a_run_ends_where_nobody_has_anything_to_offer():
    result = solve(dropping(3, 0.5), "corrective", rounds=1000)
    assert result.rounds < 100


def test_the_closing_round_tells_atoms_with_several_weights_once():
    A, labels = make_classification(
        80, 12, n_informative=6, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    groups = np.arange(12).reshape(4, 3).tolist()
    for model, y in (
        (SparseLogisticRegression(3.0, cluster=dropping(4, 0.15, seed=2)), labels),
        (GroupLasso(2.0, groups=groups, cluster=dropping(4, 0.15, seed=2)), A[:, :4].sum(axis=1)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = model.fit(A, y).result_
        assert np.isfinite(result.gap)
        atoms = np.unique(result.atom_ids // 3)  # of three classes, or three columns, each
        assert len(atoms) < len(result.atom_ids)
        # With this seed nobody has missed an atom that is used: ids and weights are all it takes.
        numbers = len(atoms) + len(result.atom_ids)
        assert result.ledger.by_kind()["repair"].values == 4 * numbers


def test_what_needs_a_common_state_is_refused(tmp_path):
    from atomcast import Checkpoint

    cluster = dropping(3, 0.2)
    with pytest.raises(ValueError, match=r"step='pairwise' does not go with recovery=\"none\""):
        solve(cluster, "pairwise")
    with pytest.raises(ValueError, match="one problem at a time"):
        lasso_path(X, Y, betas=[0.5, 1.0], cluster=cluster)
    with pytest.raises(ValueError, match=r"selection=RandomSubset\(.*\) does not go"):
        solve(cluster, selection="random-subset")
    with pytest.raises(ValueError, match="can neither write nor resume checkpoints"):
        solve(cluster, callbacks=[Checkpoint(tmp_path / "run.safetensors", rounds=1)])


def test_the_loop_goes_on_with_the_replica_that_stands_for_the_nodes():
    copies = []

    def keep(state):
        copies.append(copy.deepcopy(state.replica))

    cluster = LocalCluster(3, faults=Faults(loss=0.3, seed=1), recovery="none")
    solve(cluster, rounds=3, callbacks=[keep])
    assert [type(replica) for replica in copies] == [DriftingReplica] * 4
    assert len({replica.objective for replica in copies}) == 4
    assert copies[-1].members[0] is not copies[-2].members[0]
