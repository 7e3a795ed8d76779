"""One of 8 nodes is 10 times slower than the others: what that costs, and what it need not cost.

Simulated nodes take 0.1 ms to score a feature, and messages take 1 ms. In step, every round takes
as long as the slow node. With a balanced selection it scores fewer features a round. In an
asynchronous run nobody waits for it but once at the end, for the certificate.

    python examples/asynchronous.py
"""

from __future__ import annotations

from sklearn.datasets import make_regression

from atomcast import Faults, Lasso, LocalCluster, Solver

X, y = make_regression(200, 4000, n_informative=40, noise=5.0, random_state=0)


def fit(asynchronous=False, selection="exact"):
    """A lasso within a relative gap of 1e-3, and how long the simulated nodes took."""
    cluster = LocalCluster(
        nodes=8,
        compute=1e-4,
        latency=1e-3,
        faults=Faults(slow={7: 10.0}),
        asynchronous=asynchronous,
    )
    solver = Solver(tol=1e-3, selection=selection)
    return Lasso(beta=1500.0, cluster=cluster, solver=solver).fit(X, y)


print(f"{'':<14}{'seconds':>9}{'steps':>7}{'atoms':>7}{'values':>10}{'gap':>10}{'objective':>14}")
for name, how in {
    "in step": {},
    "balanced": {"selection": "balanced"},
    "asynchronous": {"asynchronous": True},
}.items():
    result = fit(**how).result_
    ledger = result.ledger
    print(
        f"{name:<14}{ledger.seconds:>9.2f}{result.rounds:>7}{ledger.atoms_sent:>7}"
        f"{ledger.values:>10,}{result.relative_gap:>10.1e}{result.objective:>14,.1f}"
    )
