"""Three branches train one reader of handwritten numbers; no page leaves its branch.

The digits of a number follow each other by a rule that is mostly kept. A model that labels whole
sequences learns both, the looks of digits and the rule; one that looks at each digit alone does
not. What leaves a branch in a round is one vector, the sum over its own sequences.

    python examples/chains_of_digits.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from atomcast import LocalCluster, Solver, StructuredSVM


def chains(n: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of eight noisy digits, each mostly one more than the one before."""
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    images, labels = [], []
    for _ in range(n):
        steps = np.where(rng.random(8) < 0.85, 1, rng.integers(10, size=8))
        digits = (rng.integers(10) + np.cumsum(steps)) % 10
        rows = [rng.choice(np.flatnonzero(y == digit)) for digit in digits]
        images.append(X[rows] / 16 + 0.6 * rng.standard_normal((8, 64)))
        labels.append(digits)
    return images, labels


def main() -> None:
    """Fit with and without neighbours, and by block steps, which decode less often."""
    X, y = chains(80, seed=0)
    X_test, y_test = chains(100, seed=1)
    how = {"C": 0.05, "cluster": LocalCluster(3)}
    alone = StructuredSVM(**how, solver=Solver(tol=0.1)).fit(np.concatenate(X), np.concatenate(y))
    right = alone.score(np.concatenate(X_test), np.concatenate(y_test))
    print(f"digits one by one: {right:.3f} of the labels of new sequences are right")
    for step in ("corrective", "block-coordinate"):
        model = StructuredSVM("chain", **how, solver=Solver(step, tol=0.1)).fit(X, y)
        result = model.result_
        print(f"chains, {step}: {model.score(X_test, y_test):.3f} are right")
        print(f"  certified gap {result.relative_gap:.1e} after {model.passes_:.1f} passes")
        print(
            f"  {result.rounds} sums of {model.model_.d + 1} values, {result.ledger.values:,} sent"
        )
    rule = model.model_.transitions(model.coef_)
    kept = np.mean(rule.argmax(axis=1) == (np.arange(10) + 1) % 10)
    print(f"after {kept:.0%} of the digits, the likeliest is one more")


if __name__ == "__main__":
    main()
