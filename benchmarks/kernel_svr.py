"""KernelSVR beside scikit-learn's SVR and KernelRidge: accuracy, points, and CPU time on one core.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_svr.py --n 1000 3000 6000

SVR has another loss, the absolute one, so that its points and accuracy are like ours, not equal;
KernelRidge has all points. The data is made; test scores are on 1,000 rows more.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_sparse_uncorrelated
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from atomcast import KernelSVR

TEST = 1000
KINDS = {
    "friedman1": lambda n: make_friedman1(n, 10, noise=1.0, random_state=0),
    "friedman2": lambda n: make_friedman2(n, noise=50.0, random_state=0),
    "uncorrelated": lambda n: make_sparse_uncorrelated(n, 10, random_state=0),
}
COSTS = ((1.0, 0.1), (10.0, 0.2), (100.0, 0.2))


def timed(model, X, y) -> float:
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    args = parser.parse_args()
    names = "n", "C", "epsilon", "seconds", "R2", "points", "sent", "rounds"
    print("| data |", " | ".join(names), "| SVR s | R2 | points | KernelRidge s | R2 |")
    print("|---" * (len(names) + 6) + "|")
    for kind in args.kinds:
        for n in args.n:
            X, y = (StandardScaler().fit_transform(np.c_[part]) for part in KINDS[kind](n + TEST))
            y = y.ravel()
            for C, epsilon in COSTS:
                gamma = 0.5 / X.shape[1]
                ours = KernelSVR(C, epsilon=epsilon, gamma=gamma, cluster=4)
                svr = SVR(C=C, epsilon=epsilon, gamma=gamma)
                ridge = KernelRidge(alpha=1.0 / C, kernel="rbf", gamma=gamma)
                seconds = [timed(model, X[:n], y[:n]) for model in (ours, svr, ridge)]
                scores = [model.score(X[n:], y[n:]) for model in (ours, svr, ridge)]
                sent, rounds = ours.result_.ledger.atoms_sent, ours.n_iter_
                print(
                    f"| {kind} | {n:,} | {C:g} | {epsilon:g} | {seconds[0]:.2f} | {scores[0]:.3f} "
                    f"| {ours.n_support_[0]:,} | {sent:,} | {rounds} | {seconds[1]:.2f} "
                    f"| {scores[1]:.3f} | {svr.n_support_[0]:,} | {seconds[2]:.2f} "
                    f"| {scores[2]:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
