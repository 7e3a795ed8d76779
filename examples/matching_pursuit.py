"""Which genes explain a trait? A matching pursuit over the columns of five laboratories.

In each round the column that explains most of what is left is broadcast, so that as many columns
are sent as the model has. The exact recovery coefficient says whether the choice was forced.

    python examples/matching_pursuit.py
"""

from __future__ import annotations

import numpy as np

from atomcast import MatchingPursuit


def main() -> None:
    """Choose more and more columns, for one trait and for three that share their causes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1000))
    causes = [17, 230, 555, 811]
    weights = rng.standard_normal((4, 3)) + 1.0
    Y = X[:, causes] @ weights + 0.3 * rng.standard_normal((300, 3))
    for count in (1, 2, 4, 6):
        model = MatchingPursuit(count, cluster=5).fit(X, Y[:, 0])
        chosen = np.flatnonzero(model.coef_).tolist()
        print(
            f"{count} columns: residual {model.residual_:8.2f}, exact recovery "
            f"{model.exact_recovery_:.2f}, {model.result_.ledger.values:,} values sent, {chosen}"
        )
    together = MatchingPursuit(4, cluster=5).fit(X, Y)
    print(f"three traits at once: {np.flatnonzero(together.coef_.any(axis=0)).tolist()}")
    print(f"what made them:       {causes}")


if __name__ == "__main__":
    main()
