"""The first fit of every estimator in a new process, with nothing compiled before.

    python benchmarks/cold.py [--only boosting]

Seconds of the processor: to import atomcast, with NumPy there and models not yet loaded; for the
first fit with an empty cache of compiled code; for the same in a process after that; and for a
second fit. The last column says how many functions were compiled.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: By name, a model of the library, which is imported where its time is taken.
FITS: dict[str, Callable[[Any], Any]] = {
    "Lasso": lambda atomcast: atomcast.Lasso(5.0),
    "Lasso, many features": lambda atomcast: atomcast.Lasso(60.0),
    "logistic": lambda atomcast: atomcast.SparseLogisticRegression(2.0),
    "logistic, many features": lambda atomcast: atomcast.SparseLogisticRegression(40.0),
    "group": lambda atomcast: atomcast.GroupLasso(20.0, groups=np.arange(400).reshape(-1, 4)),
    "kernel SVM": lambda atomcast: atomcast.KernelSVC(gamma=0.1),
    "kernel SVM, three classes": lambda atomcast: atomcast.KernelSVC(gamma=0.1),
    "boosting": lambda atomcast: atomcast.L1AdaBoost(max_rounds=20),
    "pursuit": lambda atomcast: atomcast.MatchingPursuit(n_nonzero=10),
}


def time_here(name: str) -> None:
    """Print the seconds to import, of the first fit and of the second."""
    times = [time.process_time()]
    import atomcast

    times.append(time.process_time())
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 400))
    y = X[:, :150] @ rng.standard_normal(150) + rng.standard_normal(300)
    model = FITS[name](atomcast)
    if name.endswith("classes"):
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    elif not name.startswith(("Lasso", "group", "pursuit")):
        y = y > 0.0
    for _ in range(2):
        before = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - before)
    print(times[1] - times[0], *times[2:])


def timed(name: str, cache: str) -> list[float]:
    """The same in a new process, with what is compiled kept in a folder."""
    done = subprocess.run(
        [sys.executable, __file__, "--here", name],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=FITS)
    parser.add_argument("--here", choices=FITS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        time_here(arguments.here)
        return
    print(f"{'':26}{'import':>8}{'first':>8}{'cached':>8}{'second':>8}{'compiled':>10}")
    for name in [arguments.only] if arguments.only else FITS:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = timed(name, cache), timed(name, cache)
            compiled = len(list(Path(cache).rglob("*.nbc")))
        print(f"{name:26}{cold[0]:8.2f}{cold[1]:8.2f}{warm[1]:8.2f}{warm[2]:8.3f}{compiled:10}")


if __name__ == "__main__":
    main()
