"""Lasso on MPI ranks, each of which has features that no other rank has.

    mpirun -n 4 python examples/mpi_lasso.py

Without mpirun it runs on one rank. Every rank runs this whole program, and all end with the same
model.
"""

from __future__ import annotations

import numpy as np

from atomcast import Lasso, MPICluster, Shards, Solver

ROWS, FEATURES = 200, 3_000

cluster = MPICluster()
rank, ranks = cluster.rank, cluster.nodes

# Every rank makes (or reads) its own features only; the target is known to all.
mine = np.array_split(np.arange(FEATURES), ranks)[rank]
X_mine = np.stack([np.random.default_rng([1, j]).standard_normal(ROWS) for j in mine], axis=1)
relevant = [np.random.default_rng([1, j]).standard_normal(ROWS) for j in (5, 1_000, 2_500)]
noise = np.random.default_rng(2).standard_normal(ROWS)
y = 3.0 * relevant[0] - 2.0 * relevant[1] + relevant[2] + 0.1 * noise

model = Lasso(beta=5.5, cluster=cluster, solver=Solver(tol=1e-6)).fit(Shards.mine(X_mine), y)

if rank == 0:
    result = model.result_
    chosen = result.atom_ids[np.argsort(-np.abs(result.atom_weights))][:3]
    print(
        f"{ranks} ranks, {model.n_features_in_} features: {result.status}, {result.rounds} rounds"
    )
    print(f"relative gap {result.relative_gap:.1e}; most important: {sorted(chosen.tolist())}")
    print(f"{result.ledger.atoms_sent} features were broadcast, {result.ledger.values:,} values")
