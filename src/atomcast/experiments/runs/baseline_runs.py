"""Figures 2(a) and 2(b): dFW beside nodes that choose atoms by themselves, on any problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomcast.baselines import subsets
from atomcast.data.shards import Shards
from atomcast.experiments.runs import curves, dfw
from atomcast.experiments.runs.curves import CLASSIC, CORRECTIVE, LINE_SEARCH, ONCE, Point
from atomcast.loop.trace import Row, Trace
from atomcast.network.ledger import Disclosure
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster

BATCH = "dFW, classic step, then batch solve"
LOCAL, RANDOM = "local FW", "random subset"
LOCAL_STAR, RANDOM_STAR = "local FW, to the coordinator only", "random, to the coordinator only"
METHODS = (CLASSIC, LINE_SEARCH, ONCE, CORRECTIVE, BATCH, LOCAL, RANDOM, LOCAL_STAR, RANDOM_STAR)

#: A problem for a run with this step; where nodes start may depend on it.
MakeProblem = Callable[[str], Problem]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How far the methods go."""

    nodes: int = 100
    rounds: int = 3000  # of the steps of the paper
    per_node: Sequence[int] = (1, 2, 3, 5, 7, 10, 15, 20, 30)  # atoms a node chooses by itself
    tol: float = 1e-4  # relative gap at which runs and batch solvers stop
    local_step: str = "line-search"
    batch: Any = "auto"  # atoms that may join in a round of the corrective step
    budgets: Sequence[float] = (1e5, 3e5, 1e6, 3e6)  # values sent, at which methods are compared


def run_all(
    panel: str, run: int, X: Any, make: MakeProblem, sizes: Sizes, d: int | None = None
) -> list[Point]:
    """Every method on one random partition."""
    shards = Shards.split(X, sizes.nodes, random_state=run)
    cluster, most = LocalCluster(sizes.nodes), max(sizes.per_node)
    rows: list[Point] = []

    def keep(method: str, trace: Trace) -> None:
        rows.extend(curves.points(panel, method, run, trace, d))

    local, per_node = make(sizes.local_step), sizes.per_node
    choices = {
        LOCAL: subsets.local_frank_wolfe(local, shards, most, step=sizes.local_step, tol=sizes.tol),
        RANDOM: subsets.random_subsets(local, shards, most, random_state=run),
    }
    places = list(sizes.budgets)
    for method, star in ((LOCAL, LOCAL_STAR), (RANDOM, RANDOM_STAR)):
        problem, chosen = make("corrective"), choices[method]
        trace, _ = subsets.solve_on_subsets(
            problem, shards, chosen, per_node, cluster, tol=sizes.tol
        )
        keep(method, trace)
        keep(star, _to_coordinator(trace, sizes.nodes))
        places += trace["values"].tolist()
    done = {
        step: dfw.run(make(step), shards, step, sizes.tol, sizes.rounds)
        for step in ("classic", "line-search")
    }
    once, sent = done["classic"].once, done["classic"].result.ledger.disclosures
    keep(BATCH, batch_solved(make("corrective"), shards, once, sent, sizes.tol, places))
    done["corrective"] = dfw.run(
        make("corrective"), shards, "corrective", sizes.tol, sizes.rounds, batch=sizes.batch,
        enough=dfw.sent_as_much(once["values"][-1]),
    )  # fmt: skip
    return rows + dfw.points(panel, run, done, d)


def _to_coordinator(trace: Trace, nodes: int) -> Trace:
    """The same atoms sent over one edge of the star each, instead of N: one up and N - 1 down."""
    once = Trace()
    for row in trace:
        once.append(row._replace(values=row.values // nodes, bytes=row.bytes // nodes))
    return once


def batch_solved(
    problem: Problem,
    shards: Shards,
    once: Trace,
    sent: Sequence[Disclosure],
    tol: float,
    places: Sequence[float],
    more: int = 10,
) -> Trace:
    """The best weights on the atoms that a run had sent after some of its rounds.

    These rounds are the last ones that had sent no more values than each of `places`, so that the
    atoms are compared with those of others at equal cost, and some more.
    """
    rows, trace = list(once), Trace()
    owner = shards.assignment(problem.axis)
    chosen = np.searchsorted(once["values"], places, side="right") - 1
    chosen = np.append(chosen, np.geomspace(2, max(len(rows) - 1, 2), more).astype(int))
    for row in (rows[k] for k in np.unique(chosen).tolist() if 0 <= k < len(rows)):
        ids = np.unique([one.atom for one in sent if one.round < row.round])
        if not len(ids):
            continue
        atoms = [ids[owner[ids] == i] for i in range(shards.nodes)]
        best = subsets.solve_on_union(problem, shards, atoms, tol)
        trace.append(
            Row(row.round, row.seconds, best.objective, best.gap, len(ids), row.values, row.bytes)
        )
    return trace
