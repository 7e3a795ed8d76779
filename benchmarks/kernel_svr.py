"""KernelSVR beside scikit-learn's SVR and KernelRidge: accuracy, points, and CPU time on one core.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernel_svr.py --n 1000 3000 6000

SVR has another loss, the absolute one, so that its points and accuracy are like ours, not equal;
KernelRidge has all points. The data is made; test scores are on 1,000 rows more. Targets are
scaled, but for the kinds that end in "raw". Our fits end after `--limit` seconds, SVR after many
iterations, and both say how they ended.
"""

from __future__ import annotations

import argparse
import time

from sklearn.datasets import make_friedman1, make_friedman2, make_sparse_uncorrelated
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from atomcast import KernelSVR, Solver, TimeLimit

TEST = 1000
KINDS = {
    "friedman1": lambda n: make_friedman1(n, 10, noise=1.0, random_state=0),
    "friedman1-raw": lambda n: make_friedman1(n, 10, noise=1.0, random_state=0),
    "noiseless-raw": lambda n: make_friedman1(n, 10, random_state=0),
    "friedman2": lambda n: make_friedman2(n, noise=50.0, random_state=0),
    "uncorrelated": lambda n: make_sparse_uncorrelated(n, 10, random_state=0),
}
COSTS = ((1.0, 0.1), (10.0, 0.2), (100.0, 0.2))
#: The most iterations of SVR, which takes hours where errors are dear.
SVR_ITERATIONS = 1_000_000


def cost(text: str) -> tuple[float, float]:
    """C and epsilon from "100,0.2"."""
    C, epsilon = map(float, text.split(","))
    return C, epsilon


def data(kind: str, n: int):
    """Scaled data of a kind, with the rows to test on at the end."""
    X, y = KINDS[kind](n + TEST)
    scaled = StandardScaler().fit_transform
    return scaled(X), y if kind.endswith("raw") else scaled(y[:, None]).ravel()


def timed(model, X, y) -> float:
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--costs", type=cost, nargs="+", default=COSTS, metavar="C,EPSILON")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a fit of ours")
    args = parser.parse_args()
    names = "n", "C", "epsilon", "seconds", "status", "R2", "points", "sent", "rounds"
    theirs = "SVR s", "ended", "R2", "points", "KernelRidge s", "R2"
    print("| data |", " | ".join(names + theirs), "|")
    print("|---" * (len(names + theirs) + 1) + "|")
    for kind in args.kinds:
        for n in args.n:
            X, y = data(kind, n)
            solver = Solver(tol=1e-3, callbacks=[TimeLimit(args.limit)])
            for C, epsilon in args.costs:
                gamma = 0.5 / X.shape[1]
                ours = KernelSVR(C, epsilon=epsilon, gamma=gamma, cluster=4, solver=solver)
                svr = SVR(C=C, epsilon=epsilon, gamma=gamma, max_iter=SVR_ITERATIONS)
                ridge = KernelRidge(alpha=1.0 / C, kernel="rbf", gamma=gamma)
                seconds = [timed(model, X[:n], y[:n]) for model in (ours, svr, ridge)]
                scores = [model.score(X[n:], y[n:]) for model in (ours, svr, ridge)]
                result, ended = ours.result_, "iterations" if svr.fit_status_ else "optimal"
                print(
                    f"| {kind} | {n:,} | {C:g} | {epsilon:g} | {seconds[0]:.2f} | {result.status} "
                    f"| {scores[0]:.3f} | {ours.n_support_[0]:,} | {result.ledger.atoms_sent:,} "
                    f"| {result.rounds} | {seconds[1]:.2f} | {ended} | {scores[1]:.3f} "
                    f"| {svr.n_support_[0]:,} | {seconds[2]:.2f} | {scores[2]:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
