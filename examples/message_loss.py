"""Message loss: the same fit over a network that loses four messages in ten.

python examples/message_loss.py
"""

from __future__ import annotations

import warnings

from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from atomcast import Faults, Lasso, LocalCluster, Outage, Solver


def main() -> None:
    """Compare a reliable network, nodes that keep a log, and nodes that skip what they miss."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # 100 rounds of the classic step are few
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(PolynomialFeatures(2, include_bias=False).fit_transform(X))
    lossy = Faults(loss=0.4, per="receiver", seed=1)
    clusters = {
        "reliable network": LocalCluster(10),
        "40 % loss, log": LocalCluster(10, faults=lossy),
        "40 % loss, nothing repaired": LocalCluster(10, faults=lossy, recovery="none"),
    }
    for name, cluster in clusters.items():
        classic = Lasso(100.0, cluster=cluster, solver=Solver("classic", max_rounds=100)).fit(X, y)
        result = classic.result_
        repair = result.ledger.by_kind()["repair"].values / result.ledger.values
        print(
            f"{name:28s} mean objective of the nodes {result.trace.objective[-1]:,.0f}; "
            f"{result.ledger.values:,} values sent, {repair:.0%} of them repair"
        )
    # Node 3 dies in round 2 and comes back in round 6, with its own features and nothing else.
    worse = Faults(loss=0.4, duplicates=0.1, reorder=0.1, outages=[Outage(3, 2, 6)], seed=1)
    model = Lasso(100.0, cluster=LocalCluster(10, "tree", faults=worse)).fit(X, y)
    plain = Lasso(100.0, cluster=10).fit(X, y)
    print(
        f"corrective step on a tree: {model.result_.status}, "
        f"relative gap {model.result_.relative_gap:.1e}, objective {model.result_.objective:,.1f} "
        f"against {plain.result_.objective:,.1f}"
    )


if __name__ == "__main__":
    main()
