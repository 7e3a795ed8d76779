"""Baselines of section 6.1: each node chooses some of its atoms, a batch solver does the rest.

A node chooses at random, or by Frank-Wolfe on its own atoms alone (Lodi et al., 2010). What was
chosen is sent, and the objective is minimised over the union. Nothing here depends on the kind of
atoms: the problem makes them, and the one loop chooses and solves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice, check_count
from atomcast.baselines.gathered import Gathered, gather
from atomcast.data.shards import Shard, Shards
from atomcast.loop.callbacks import State
from atomcast.loop.interrupting import all_or_nothing
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.loop.trace import Row, Trace
from atomcast.network.build import kind_of
from atomcast.network.ledger import COORDINATOR, Accountant, Ledger
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster

Ids = NDArray[np.int64]
Destination = Literal["everybody", "coordinator"]


def random_subsets(
    problem: Problem, shards: Shards, per_node: int, random_state: Any = 0
) -> list[Ids]:
    """Let every node choose some of its atoms uniformly at random.

    Returns
    -------
    list of arrays
        Global ids on each node in the order of choice: the first m are a random subset for any m.
    """
    check_count("per_node", per_node, "atoms that each node chooses")
    rng = np.random.default_rng(random_state)
    owner = shards.assignment(problem.axis)
    mine = [np.flatnonzero(owner == i) for i in range(shards.nodes)]
    return [rng.permutation(ids)[:per_node].astype(np.int64) for ids in mine]


@all_or_nothing()
def local_frank_wolfe(
    problem: Problem,
    shards: Shards,
    per_node: int,
    *,
    step: str = "line-search",
    max_rounds: int | None = None,
    tol: float = 1e-4,
) -> list[Ids]:
    """Let every node choose atoms by Frank-Wolfe on its own atoms, as if there were no others.

    Parameters
    ----------
    problem : Problem
    shards : Shards
    per_node : int
        A node stops once it has chosen so many different atoms.
    step : str, default="line-search"
        The step of the local runs.
    max_rounds : int, optional
        Rounds of a local run; default: 10 for each atom to choose.
    tol : float, default=1e-4
        A node also stops where its own atoms can do no better: it then chooses fewer.

    Returns
    -------
    list of arrays
        Global ids on each node in the order of choice: the first m are what m atoms would be.
    """
    check_count("per_node", per_node, "atoms that each node chooses")
    rounds = 10 * per_node if max_rounds is None else max_rounds
    chosen = []
    for part in _parts(problem, shards):
        found: list[int] = []

        def enough(state: State, found: list[int] = found) -> bool:
            found[:] = state.replica.active.ids
            return len(found) < per_node

        solver = Solver(
            step=step, tol=tol, max_rounds=rounds, atoms_per_round=1, callbacks=[enough]
        )
        if len(part.ids):
            solver.solve(problem, shards, Gathered(part))
        chosen.append(np.array(found[:per_node], dtype=np.int64))
    return chosen


@all_or_nothing()
def solve_on_subsets(
    problem: Problem,
    shards: Shards,
    chosen: Sequence[Ids],
    sizes: Iterable[int],
    cluster: LocalCluster,
    *,
    destination: Destination = "everybody",
    tol: float = 1e-4,
) -> tuple[Trace, Ledger]:
    """Send the first m chosen atoms of every node and solve on their union, for growing m.

    Parameters
    ----------
    problem : Problem
    shards : Shards
    chosen : list of arrays
        What each node has chosen, from `random_subsets` or `local_frank_wolfe`.
    sizes : iterable of int
        The m to look at, increasing; only what is new is sent.
    cluster : LocalCluster
        The network that carries the atoms.
    destination : {"everybody", "coordinator"}
        "everybody": all nodes can compute the model, as in dFW. "coordinator": only the
        coordinator of a star can, and every atom crosses one edge instead of N.
    tol : float, default=1e-4
        Relative gap of the batch solver.

    Returns
    -------
    Trace
        A row for each m (as `round`); the gap is to the best weights over the union.
    Ledger
    """
    check_choice("destination", destination, ("everybody", "coordinator"))
    if destination == "coordinator" and kind_of(cluster.topology) != "star":
        raise ValueError('destination="coordinator" needs LocalCluster(topology="star")')
    parts = _parts(problem, shards)
    trace, accountant = Trace(), Accountant(cluster.network())
    ledger = accountant.ledger
    start, sent = time.perf_counter(), 0
    for m in sizes:
        ledger.round = m
        owners, new = _atoms(problem, parts, [ids[sent:m] for ids in chosen])
        counts = np.array([atom.count for atom in new], dtype=np.int64)
        lengths = np.array([wire.encoded_size(atom) for atom in new], dtype=np.int64)
        if destination == "everybody":
            accountant.network.broadcast(owners, counts, lengths, ledger)
        elif cluster.nodes > 1:
            _to_coordinator(owners, counts, lengths, ledger)
        for owner, atom in zip(owners.tolist(), new, strict=True):
            ledger.disclose(owner, atom.id, atom.name, atom.count)
        sent = m
        result = solve_on_union(problem, shards, [ids[:m] for ids in chosen], tol, parts)
        seconds = time.perf_counter() - start
        known = sum(len(ids[:m]) for ids in chosen)
        row = Row(m, seconds, result.objective, result.gap, known, ledger.values, ledger.bytes)
        trace.append(row)
    return trace, ledger


def solve_on_union(
    problem: Problem,
    shards: Shards,
    chosen: Sequence[Ids],
    tol: float = 1e-4,
    parts: Sequence[Shard] | None = None,
) -> Result:
    """Minimise the objective over the union of what nodes have chosen, in one place.

    Parameters
    ----------
    problem : Problem
    shards : Shards
    chosen : list of arrays
        Global ids of atoms of each node.
    tol : float, default=1e-4
        Relative gap, to the best weights over the union.
    parts : sequence of Shard, optional
        What the nodes hold, if that has been cut out of the shards before.
    """
    parts = _parts(problem, shards) if parts is None else parts
    union = gather(parts, chosen, problem.axis)
    return Solver(step="corrective", tol=tol).solve(problem, shards, Gathered(union))


def _parts(problem: Problem, shards: Shards) -> list[Shard]:
    return [shards.shard(i, problem.axis) for i in range(shards.nodes)]


def _atoms(
    problem: Problem, parts: Sequence[Shard], chosen: Sequence[Ids]
) -> tuple[Ids, list[Any]]:
    """The chosen atoms as they travel, and the node that each comes from."""
    owners, atoms = [], []
    for i, (part, ids) in enumerate(zip(parts, chosen, strict=True)):
        source = problem.make_atoms(part) if len(ids) else None
        for id in ids.tolist():
            assert source is not None
            atoms.append(source.atom(int(np.searchsorted(part.ids, id)), id))
            owners.append(i)
    return np.array(owners, dtype=np.int64), atoms


def _to_coordinator(owners: Ids, counts: Ids, lengths: Ids, ledger: Ledger) -> None:
    """What a node sends at one time is one message over its one edge."""
    senders, which = np.unique(owners, return_inverse=True)
    target = np.full(len(senders), COORDINATOR)
    values = np.bincount(which, counts, len(senders)).astype(np.int64)
    size = np.bincount(which, lengths, len(senders)).astype(np.int64)
    ledger.record("atom", senders, target, values, size)
