"""What it takes to get a Lasso right: dFW beside ADMM and beside nodes that choose by themselves.

python examples/baselines.py
"""

from __future__ import annotations

import numpy as np

from atomcast import LocalCluster, Shards, Solver
from atomcast.baselines.admm import Admm
from atomcast.baselines.subsets import local_frank_wolfe, random_subsets, solve_on_subsets
from atomcast.data.generators import make_sparse_regression
from atomcast.domains.balls import L1Ball
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem

NODES, BETA = 20, 20.0


def main() -> None:
    """Solve one problem by every method, and print what each sent and reached."""
    X, y, _ = make_sparse_regression(500, 5000, 0.02, 0.01, random_state=0)
    problem = explicit_problem(SquaredError(y), L1Ball(BETA))
    shards, star = Shards.split(X, NODES), LocalCluster(NODES)

    def show(method: str, values: int, objective: float) -> None:
        print(f"{method:36} {values:>12,} values  objective {objective:8.2f}")

    dfw = Solver("corrective").solve(problem, shards, star)
    show("dFW, corrective step", dfw.ledger.values, dfw.objective)
    classic = Solver("classic", max_rounds=500).solve(problem, shards, star)
    show("dFW, classic step, 500 rounds", classic.ledger.values, classic.objective)

    for name, chosen in (
        ("local Frank-Wolfe", local_frank_wolfe(problem, shards, 20)),
        ("random subset", random_subsets(problem, shards, 20)),
    ):
        trace, _ = solve_on_subsets(problem, shards, chosen, (20,), star)
        show(f"{name}, 20 atoms a node", trace["values"][-1], trace.objective[-1])

    # ADMM takes a penalty instead of a radius: the one whose solution has this l1 norm.
    penalty = float(np.abs(X.T @ (y - dfw.image)).max())
    admm = Admm(penalty, rho=10.0, alpha=1.5, beta=BETA, max_rounds=60).solve(y, shards)
    show(f"ADMM, {admm.rounds} rounds", admm.ledger.values, admm.objective)


if __name__ == "__main__":
    main()
