"""Lasso on Ray actors, each of which reads its own file.

    python examples/ray_lasso.py

Without an address Ray runs on this machine; with RAY_ADDRESS, or RayCluster(address=...), on a
cluster. An actor that is lost is restarted, and the run goes on to the same answer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from atomcast import Lasso, RayCluster, Shards, Solver

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 1_000))
y = X[:, [5, 400, 900]] @ [3.0, -2.0, 1.0] + 0.1 * rng.standard_normal(200)

with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder, f"part-{i}.npy") for i in range(2)]
    for path, columns in zip(paths, np.array_split(np.arange(1_000), 2), strict=True):
        np.save(path, X[:, columns])

    cluster = RayCluster(nodes=2)
    model = Lasso(beta=5.5, cluster=cluster, solver=Solver(tol=1e-6)).fit(Shards.files(paths), y)
    cluster.close()

result = model.result_
chosen = result.atom_ids[np.argsort(-np.abs(result.atom_weights))][:3]
print(f"{cluster.nodes} actors: {result.status}, {result.rounds} rounds")
print(f"relative gap {result.relative_gap:.1e}; most important: {sorted(chosen.tolist())}")
print(f"{result.ledger.atoms_sent} features were broadcast, {result.ledger.values:,} values")
