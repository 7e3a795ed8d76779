"""What threads gain and cost: wall and CPU time of fits with one thread and with the default.

    python benchmarks/threads.py [--repeats 3] [--busy]

Users set no number of threads, so that every BLAS takes as many as there are cores, and its threads
spin while they wait for work. Each fit runs in processes of its own, with OMP_NUM_THREADS=1 and
without; --busy lets a loop run beside them on as many cores as half of the machine has.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings

import numpy as np

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def regression(d: int, n: int, used: int, noise: float):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((d, n))
    return X, X[:, :used] @ rng.standard_normal(used) + noise * rng.standard_normal(d)


def classes(n: int, d: int):
    from sklearn.datasets import make_classification

    return make_classification(n, d, n_informative=d // 5, random_state=0)


def fits():
    """Name, model and data of each fit, made when it is wanted."""
    import atomcast as ac

    return {
        "Lasso, 2,000 x 3,000": (ac.Lasso(beta=300.0), lambda: regression(2_000, 3_000, 600, 1.0)),
        "Lasso, 2,000 x 60,000": (ac.Lasso(beta=30.0), lambda: regression(2_000, 60_000, 50, 1.0)),
        "LassoCV, 300 x 2,000": (ac.LassoCV(), lambda: regression(300, 2_000, 50, 6.0)),
        "logistic, 3,000 x 500": (
            ac.SparseLogisticRegression(beta=20.0),
            lambda: classes(3_000, 500),
        ),
        "KernelSVC, 6,000 x 200": (
            ac.KernelSVC(C=1.0, gamma=0.005),
            lambda: classes(6_000, 200),
        ),
    }


def timed(name: str, repeats: int) -> None:
    """Print the least wall and CPU time of a fit, in this process, as JSON."""
    model, make = fits()[name]
    X, y = make()
    walls, cpus = [], []
    for _ in range(repeats + 1):  # the first one warms up
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    print(json.dumps([min(walls[1:]), min(cpus[1:])]))


def measured(name: str, repeats: int, one: bool) -> tuple[float, float]:
    """Wall and CPU time in a process with one thread, or with as many as libraries take."""
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    environment |= dict.fromkeys(VARIABLES, "1") if one else {}
    command = [sys.executable, __file__, "--timed", name, "--repeats", str(repeats)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    wall, cpu = json.loads(done.stdout)
    return wall, cpu


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--busy", action="store_true", help="with other work on half of the cores")
    parser.add_argument("--timed", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.timed:
        timed(arguments.timed, arguments.repeats)
        return
    loop = [sys.executable, "-c", "while True: pass"]
    cores = len(os.sched_getaffinity(0))
    others = [subprocess.Popen(loop) for _ in range(max(cores // 2, 1) if arguments.busy else 0)]
    try:
        print(f"seconds, {cores} cores, {len(others)} of them busy: one thread, default threads")
        for name in fits():
            one, default = (measured(name, arguments.repeats, one) for one in (True, False))
            print(
                f"{name:24} wall {one[0]:.3f} {default[0]:.3f} ({default[0] / one[0]:.2f})   "
                f"CPU {one[1]:.3f} {default[1]:.3f} ({default[1] / one[1]:.2f})",
                flush=True,
            )
    finally:
        for other in others:
            other.kill()


if __name__ == "__main__":
    main()
