"""Cross-validated lasso beside scikit-learn's: CPU time, validation error, and size of the model.

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/lasso_cv.py [--large]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from kinds import text_like
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV as PenalisedCV

from atomcast import LassoCV


def drawn(seed: int, rows: int, n: int, support: int, noise: float):
    """Independent features, of which a few count."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, n))
    w = np.zeros(n)
    w[rng.choice(n, support, replace=False)] = 3.0 * rng.standard_normal(support)
    return X, X @ w + noise * rng.standard_normal(rows)


PROBLEMS = {
    "diabetes, 442 x 10": load_diabetes(return_X_y=True),
    "random, 200 x 500": drawn(0, 200, 500, 20, 1.0),
    "random, 72 x 7,000": drawn(1, 72, 7000, 10, 1.0),
    "random, 5,000 x 100": drawn(2, 5000, 100, 20, 5.0),
    "sparse text, 2,000 x 6,000": text_like(0, 2_000, 6_000, 50_000),
}


def timed(model, X, y, repeats):
    """The least CPU time of some fits, and the model."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds), model


def main() -> None:
    """Print a row for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="one large problem, fitted once")
    problems, repeats = PROBLEMS, 3
    if parser.parse_args().large:
        problems = {"sparse text, 20,000 x 60,000": text_like(0, 20_000, 60_000, 600_000)}
        repeats = 1
    warnings.simplefilter("ignore")
    print("| | atomcast | scikit-learn | CV error | scikit-learn | features | scikit-learn |")
    print("|---|---|---|---|---|---|---|")
    for name, (X, y) in problems.items():
        seconds, ours = timed(LassoCV(), X, y, repeats)
        their_seconds, theirs = timed(PenalisedCV(), X, y, repeats)
        errors = (model.mse_path_.mean(axis=1).min() for model in (ours, theirs))
        sizes = (np.count_nonzero(model.coef_) for model in (ours, theirs))
        cells = [f"{seconds:.2f}", f"{their_seconds:.2f}", *(f"{error:.4g}" for error in errors)]
        print(f"| {name} | " + " | ".join([*cells, *map(str, sizes)]) + " |", flush=True)


if __name__ == "__main__":
    main()
