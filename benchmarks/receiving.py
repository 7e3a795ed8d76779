"""What it costs to check what a node receives: the share of a round.

    python benchmarks/receiving.py [--repeats 5]

Times every check inside whole fits, in seconds of this thread, so that other programs on the
machine do not count. Dorothea is taken from the folder that ATOMCAST_DATA names, if it is there.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from atomcast import GroupLasso, KernelSVC, Lasso, LocalCluster, Solver
from atomcast.data import load_dorothea
from atomcast.known import active_set


class Watch:
    """Seconds spent on receiving atoms, without those spent on storing them."""

    def __init__(self) -> None:
        self.seconds, self.looks = 0.0, 0
        self._receive, self._append = active_set.receive, active_set.ActiveSet.append

    def _timed(self, function, sign):
        def run(*arguments):
            start = time.thread_time()
            result = function(*arguments)
            self.seconds += sign * (time.thread_time() - start)
            self.looks += 1
            return result

        return run

    def __enter__(self):
        active_set.receive = self._timed(self._receive, 1)
        active_set.ActiveSet.append = self._timed(self._append, -1)
        return self

    def __exit__(self, *_):
        active_set.receive, active_set.ActiveSet.append = self._receive, self._append


def problems():
    """By name, a model and its data."""
    rng = np.random.default_rng(0)
    d, n = 1_000, 2_000
    X = np.asfortranarray(rng.standard_normal((d, n)))
    y = X[:, :50] @ rng.standard_normal(50) + rng.standard_normal(d)
    for step, rounds in (("classic", 200), ("line-search", 200), ("corrective", 20)):
        how = Solver(step=step, max_rounds=rounds, tol=1e-6)
        yield f"dense {d} x {n}, {step}", Lasso(20.0, cluster=8, solver=how), X, y
    groups = np.arange(n).reshape(-1, 4).tolist()
    how = Solver(max_rounds=6)
    yield "groups of 4, corrective", GroupLasso(20.0, groups=groups, cluster=8, solver=how), X, y
    points = rng.standard_normal((2_000, 20))
    yield "kernel 2,000 x 20", KernelSVC(cluster=8, solver=how), points, points[:, 0] > 0
    try:
        data = load_dorothea()
    except (FileNotFoundError, ValueError):
        return
    for step, rounds in (("classic", 200), ("corrective", 100)):
        how = Solver(step=step, max_rounds=rounds)
        model = Lasso(16.0, fit_intercept=False, cluster=LocalCluster(100), solver=how)
        yield f"Dorothea, 100 nodes, {step}", model, data.X, data.y


def clock_seconds() -> float:
    """What two looks at the clock cost."""
    start = time.thread_time()
    for _ in range(1_000):
        time.thread_time(), time.thread_time()
    return (time.thread_time() - start) / 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", ConvergenceWarning)
    row = "{:32} {:>7} {:>10} {:>10} {:>9}"
    print(row.format("problem", "rounds", "round, us", "checks, us", "share, %"))
    for name, model, X, y in problems():
        found, clock = [], clock_seconds()
        for _ in range(repeats + 1):  # the first one warms up
            with Watch() as watch:
                start = time.thread_time()
                rounds = model.fit(X, y).result_.rounds
                whole = time.thread_time() - start
                # To look at the clock takes time itself, twice for every look.
                found.append((whole - watch.looks * clock, watch.seconds - watch.looks * clock))
        whole, checks = np.min(found[1:], axis=0) / rounds * 1e6
        share = f"{100 * checks / whole:.2f}"
        print(row.format(name, rounds, f"{whole:.0f}", f"{checks:.1f}", share), flush=True)


if __name__ == "__main__":
    main()
