"""Clinics of very different sizes train one kernel machine; most records never leave.

One clinic holds half of all records, the others share the rest. The exact run lets every clinic
look through all its records in every round; the approximate one gives each clinic equal work, by
letting the large one propose only well spread centers (Algorithm 5 of the paper).

    python examples/kernel_svm_clinics.py
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from atomcast import KernelSVC, LocalCluster, MCenters, Shards, Solver


def main() -> None:
    """Fit exactly and approximately, and say what left each clinic."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    sizes = [213, 55, 53, 53, 52]
    shards = Shards.split(X, nodes=5, by=sizes)
    for name, selection in [("exact", "exact"), ("equal work", MCenters("equal-work"))]:
        solver = Solver(tol=1e-3, selection=selection)
        model = KernelSVC(C=10.0, cluster=LocalCluster(5), solver=solver).fit(shards, y)
        result = model.result_
        print(f"{name}: accuracy {model.score(X_test, y_test):.3f}, {result.status}")
        print(f"  objective {result.objective:.5f}, certified gap {result.relative_gap:.1e}")
        print(f"  {result.rounds} rounds, {result.ledger.values:,} values")
        for node, size in enumerate(sizes):
            sent = sum(one.node == node for one in result.ledger.disclosures)
            radius = f", radius {result.radius[node]:.3f}" if result.radius else ""
            print(f"  clinic {node} sent {sent} of {size} records{radius}")


if __name__ == "__main__":
    main()
