"""Boosting where each node finds the best decision stump over its own features.

Five clinics hold different measurements of the same patients, some of them missing. In each round
every clinic proposes its best stump for the examples that are still hard, and the winners are
broadcast: a bit for each patient, and the rule itself.

    python examples/boosting_stumps.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from atomcast import L1AdaBoost


def main() -> None:
    """Fit, print the rules with the largest weights, and what was sent."""
    data = load_breast_cancer(as_frame=True)
    X = data.data.mask(np.random.default_rng(0).random(data.data.shape) < 0.05)
    train, test, y, y_test = train_test_split(X, data.target, random_state=0)
    model = L1AdaBoost(temperature=0.1, cluster=5).fit(train, y)
    result = model.result_
    print(
        f"test accuracy {model.score(test, y_test):.3f} with {model.n_estimators_} stumps; "
        f"certified gap {result.relative_gap:.1e}"
    )
    for k in np.argsort(-model.estimator_weights_)[:5]:
        feature, threshold, polarity, missing = model.stumps_[k]
        say = data.target_names
        print(
            f"  {model.estimator_weights_[k]:.3f}  {X.columns[int(feature)]} > {threshold:.4g}: "
            f"{say[int(polarity > 0)]}, else {say[int(polarity < 0)]}; "
            f"missing: {say[int(missing > 0)]}"
        )
    ledger = result.ledger
    print(
        f"{ledger.atoms_sent} stumps sent in {result.rounds} rounds: {ledger.bytes:,} bytes; "
        f"all {train.shape[1]} columns, sent to five nodes as they are, would take "
        f"{5 * 8 * train.size:,}"
    )


if __name__ == "__main__":
    main()
