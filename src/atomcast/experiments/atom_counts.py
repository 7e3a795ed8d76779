"""Theorem 2: what dFW sends until its gap is within eps, as the number of atoms grows.

All else stays: N, d, eps, beta and the norms of the atoms; a problem has all atoms of the smaller
ones, and more. The relative gap would not do, for more atoms make a smaller objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from atomcast.data.shards import Shards
from atomcast.domains.base import L1Ball
from atomcast.experiments.claims_theory import ITERATIONS
from atomcast.experiments.output import write_rows
from atomcast.loop.callbacks import State
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster

NODES, BETA = 10, 3.0
#: C_f of ||y - A alpha||^2 on an l1 ball with atoms of norm 1: twice its squared diameter.
CURVATURE = 2 * (2 * BETA) ** 2


class Row(NamedTuple):
    """One run of the classic step on a star; `allowed` are the rounds of Theorem 1."""

    atoms: int
    run: int
    rounds: int
    allowed: float
    values: int


def atom_counts(
    sizes: Sequence[int] = (500, 2000, 8000, 32_000),
    d: int = 50,
    runs: int = 5,
    eps: float = 0.05,
    out: Path | None = None,
) -> list[Row]:
    """Solve problems of more and more atoms to the same gap.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of atoms n, in ascending order.
    d : int
        Length of an atom.
    runs : int
        Run r has seed r, for the data.
    eps : float
        The gap, for a target of norm 1.
    out : path of a folder, optional
        Write topologies-atoms.csv there.
    """
    rows = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        X = rng.standard_normal((d, max(sizes)))
        X /= np.linalg.norm(X, axis=0)
        y = X[:, :10] @ rng.standard_normal(10) + 0.1 * rng.standard_normal(d)
        problem = explicit_problem(SquaredError(y / np.linalg.norm(y)), L1Ball(BETA))

        def unfinished(state: State) -> bool:
            return state.gap > eps

        solver = Solver("classic", tol=1e-12, max_rounds=1_000_000, callbacks=[unfinished])
        for n in sizes:
            shards = Shards.split(X[:, :n], NODES, by="contiguous")
            result = solver.solve(problem, shards, LocalCluster(NODES, resend=True))
            allowed = ITERATIONS * CURVATURE / eps
            rows.append(Row(n, run, result.rounds, allowed, result.ledger.values))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "topologies-atoms.csv")
    return rows
