"""What every cluster promises: the model and the account that simulated nodes come to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.loop.callbacks import State
from atomcast.loop.session import Cluster
from atomcast.loop.solver import Solver
from atomcast.objectives import Logistic, SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster
from atomcast.testing.promise import equal, promise


def check_cluster(cluster: Cluster, seed: int = 0) -> None:
    """Check that a cluster keeps its contract, by small fits on simulated nodes and on its own.

    Nodes must work in step: asynchronous ones and those with faults may go other ways. Where
    several processes run the program, as under mpirun, all of them must call this.

    Parameters
    ----------
    cluster : Cluster
        Of at most ten nodes or so.
    seed : int, default=0
        Of the problems.

    Raises
    ------
    AssertionError
        Says what is promised and not kept.
    """
    promise(isinstance(cluster, Cluster), f"{cluster!r} is no Cluster: make it a subclass")
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 4 * cluster.nodes + 3))
    for first in (3.0, -3.0):  # the first winner is on node 0, with either sign
        y = first * X[:, 0] + X[:, -1] + rng.standard_normal(20)
        for step in ("classic", "pairwise", "corrective"):
            _compare(cluster, X, SquaredError(y, True), step=step, tol=1e-5, max_rounds=12)
    _compare(cluster, X, Logistic(np.where(y > y.mean(), 1.0, -1.0), True), tol=1e-4)
    _compare(cluster, np.where(np.abs(X) > 1.0, X, 0.0).astype(np.float32), SquaredError(y))
    stopped = _solved(cluster, X, SquaredError(y), step="classic", callbacks=[_two])
    promise(stopped.status == "stopped", "a run must stop where a callback says so")
    # Where processes vote, a wish may travel with the next proposals.
    late = f"a run that a callback stops in round 2 ends by round 3, not {stopped.rounds}"
    promise(2 <= stopped.rounds <= 3, late)
    try:
        _solved(cluster, X, SquaredError(y[:-1]))
    except ValueError:
        return
    raise AssertionError("atoms that do not fit the target must be refused with a ValueError")


def _two(state: State) -> bool:
    """Go on for two rounds."""
    return state.round < 2


def _solved(cluster: Cluster, X: Any, objective: Any, **how: Any) -> Any:
    shards = cluster.place(Shards.split(X, cluster.nodes, by="contiguous"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Solver(**how).solve(explicit_problem(objective, L1Ball(3.5)), shards, cluster)


def _compare(cluster: Cluster, X: Any, objective: Any, **how: Any) -> None:
    found = _solved(cluster, X, objective, **how)
    expected = _solved(LocalCluster(cluster.nodes, isolated=True), X, objective, **how)
    same = (found.status, found.rounds, found.n) == (expected.status, expected.rounds, expected.n)
    promise(
        same,
        f"a run must go as with simulated nodes: {found.status} after {found.rounds} rounds with "
        f"{found.n} atoms, against {expected.status}, {expected.rounds} and {expected.n}",
    )
    equal(found.weights, expected.weights, "the weights must be those of the simulation", atol=1e-7)
    equal(found.objective, expected.objective, "so must the objective", rtol=1e-6)
    room = 1e-6 * abs(expected.objective)
    equal(found.gap, expected.gap, "so must the certified gap", rtol=1e-3, atol=room)
    promise(
        found.ledger.disclosures == expected.ledger.disclosures,
        "the ledger must tell which atom left which node in which round",
    )
    told = {"values": found.ledger.values, "atoms": found.ledger.atoms_sent}
    right = {"values": expected.ledger.values, "atoms": expected.ledger.atoms_sent}
    promise(
        told == right or type(cluster.network()) is not type(LocalCluster(2).network()),
        f"the ledger must count what a star would send: {told} against {right}",
    )
