"""What every step promises: feasible weights, the same on every node, and progress."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from atomcast.data.shards import Shards
from atomcast.domains.balls import Domain, L1Ball, Simplex
from atomcast.loop.callbacks import State
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster
from atomcast.storage.checkpoint import Checkpoint
from atomcast.testing.promise import equal, promise

#: So many rounds are watched, and so many of them before an interruption.
ROUNDS, FIRST = 30, 7


def check_step(step: Any, seed: int = 0) -> None:
    """Check that a step keeps its contract, on small problems over the l1 ball and the simplex.

    Parameters
    ----------
    step : str, Step or callable
        As for `Solver`.
    seed : int, default=0
        Of the problems.

    Raises
    ------
    AssertionError
        Says what is promised and not kept.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 18))
    truth = np.where(np.arange(18) < 4, 0.25, 0.0)
    y = X @ truth + 0.1 * rng.standard_normal(25)
    for domain, target in ((L1Ball(0.8), y - 2.0 * X[:, 5]), (Simplex(), y)):
        _Case(X, target, domain).check(step)


class _Case:
    """One small problem, and runs on it."""

    def __init__(self, X: Any, y: Any, domain: Domain) -> None:
        self.X, self.domain = X, domain
        self.problem = explicit_problem(SquaredError(y), domain)

    def run(self, step: Any, nodes: int = 3, watch: Any = None, **how: Any) -> Any:
        shards = Shards.split(self.X, nodes, random_state=1)
        solver = Solver(step, callbacks=watch or (), **{"max_rounds": ROUNDS, "tol": 1e-12, **how})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return solver.solve(self.problem, shards, LocalCluster(nodes, isolated=True))

    def check(self, step: Any) -> None:
        seen: list[float] = []
        result = self.run(step, watch=[lambda state: seen.append(self.feasible(state))])
        promise(len(seen) > 1, "a step must lead to another round")
        start = next(value for value in seen if np.isfinite(value))
        promise(
            result.objective < start or result.status == "optimal",
            f"a step must make progress: after {result.rounds} rounds the objective is "
            f"{result.objective!r}, and it was {start!r}",
        )
        optimum = self.run("corrective", tol=1e-10, max_rounds=1_000)
        promise(
            optimum.objective - optimum.gap <= result.objective * (1 + 1e-9)
            and result.objective - result.gap <= optimum.objective * (1 + 1e-9),
            "the gap must bound the distance to the optimum",
        )
        again = self.run(step)
        equal(again.weights, result.weights, "each run must start with a fresh workspace", 0.0)
        alone = self.run(step, nodes=1)
        equal(
            alone.weights,
            result.weights,
            "the weights must not depend on how the atoms are spread over nodes",
            atol=1e-8 * self.domain.scale,
        )
        self.check_memory(step, result)

    def feasible(self, state: State) -> float:
        """The objective of a round, if its weights belong to the domain."""
        active, domain = state.replica.active, self.domain
        promise(
            np.all(np.isfinite(active.weights)), f"weights of round {state.round} are no numbers"
        )
        if len(active) and state.replica.feasible:
            equal(
                domain.project(active.ids, active.weights),
                active.weights,
                f"the weights of round {state.round} must belong to {domain!r}",
                atol=1e-9 * domain.scale,
            )
        return state.objective

    def check_memory(self, step: Any, expected: Any) -> None:
        """A run that goes on from a checkpoint ends as if it had never been interrupted."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.ckpt"
            self.run(step, max_rounds=FIRST, watch=[Checkpoint(path, rounds=1)])
            resumed = self.run(step, resume=path)
        equal(
            resumed.weights,
            expected.weights,
            "what a step carries from round to round must be in its memory()",
            atol=1e-9 * self.domain.scale,
        )
