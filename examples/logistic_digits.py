"""Which pixels tell ten digits apart? Sparse multinomial regression over eight nodes of pixels.

The columns (pixels) are spread over the nodes. A pixel that some class needs is broadcast once and
then serves all ten classes; pixels that no class needs never leave their node.

    python examples/logistic_digits.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from atomcast import SparseLogisticRegression


def main() -> None:
    """Fit for a few radii, and draw which pixels were broadcast."""
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.data / 16.0, digits.target, random_state=0, stratify=digits.target
    )
    for beta in (20.0, 80.0):
        model = SparseLogisticRegression(beta, cluster=8).fit(X, y)
        result = model.result_
        print(
            f"beta {beta:g}: accuracy {model.score(X_test, y_test):.3f}, "
            f"{np.count_nonzero(model.coef_)} coefficients, {result.ledger.atoms_sent} of 64 "
            f"pixels broadcast in {result.rounds} rounds, gap {result.relative_gap:.1e}"
        )
        sent = np.zeros(64, dtype=int)
        sent[[entry.atom for entry in result.ledger.disclosures]] = 1
        used = np.count_nonzero(model.coef_, axis=0)
        for row in range(8):
            cells = range(8 * row, 8 * row + 8)
            print("   ", " ".join(f"{used[j]:>2}" if sent[j] else " ." for j in cells))
    print("a number says how many classes use the pixel; a dot, that it stayed on its node")


if __name__ == "__main__":
    main()
