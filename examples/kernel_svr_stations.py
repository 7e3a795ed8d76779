"""Weather stations learn one forecast; readings that it already explains never leave.

Each station keeps its readings and what was measured later. Only readings whose forecast would be
off by more than epsilon are broadcast: the more error one tolerates, the fewer.

    python examples/kernel_svr_stations.py
"""

from __future__ import annotations

from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from atomcast import KernelSVR


def main() -> None:
    """Fit with a narrow and with a wide tube, and say what was sent."""
    X, y = make_friedman1(1200, 10, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    for epsilon in (0.1, 1.0, 2.0):
        model = KernelSVR(C=10.0, epsilon=epsilon, gamma=0.5, cluster=6).fit(X, y)
        result = model.result_
        print(
            f"epsilon {epsilon}: R2 {model.score(X_test, y_test):.3f}, {result.status}, "
            f"certified gap {result.relative_gap:.1e}"
        )
        print(
            f"  {result.ledger.atoms_sent} of {len(y)} readings sent in {result.rounds} rounds, "
            f"{len(model.support_)} of them in the model"
        )


if __name__ == "__main__":
    main()
