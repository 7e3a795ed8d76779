"""Multiple kernel learning: accuracy, what is sent, and 500 kernels on one machine.

    python benchmarks/multiple_kernel.py accuracy [--data digits|usps] [--width 4] [--C 10]
    python benchmarks/multiple_kernel.py traffic
    python benchmarks/multiple_kernel.py scale [--kernels 500] [--n 2000] [--cache-gib 2]

`accuracy` has views of images: pixels, both gradients, pooled pixels, each with an rbf kernel. It
compares each view alone, the average of their kernels, and all of them together, at the same C: as
one model of all classes, and as one model a class, which is the default. USPS, of
which `--train` examples are used, is read from the folder that ATOMCAST_DATA names.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import resource
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from atomcast import MultipleKernelClassifier, MultipleKernelRegressor, Solver
from atomcast.data import load_usps

SOLVER = Solver(tol=1e-3)


def image_views(X: np.ndarray) -> dict[str, np.ndarray]:
    """Pixels, differences to the right and downwards, and means of two by two pixels."""
    side = int(np.sqrt(X.shape[1]))
    images = X.reshape(-1, side, side)
    pooled = images.reshape(-1, side // 2, 2, side // 2, 2).mean(axis=(2, 4))
    views = {"pixels": images, "right": np.diff(images, axis=2), "down": np.diff(images, axis=1)}
    return {name: view.reshape(len(X), -1) for name, view in (views | {"pooled": pooled}).items()}


def kernels_of(train: np.ndarray, test: np.ndarray, factor: float) -> tuple[np.ndarray, ...]:
    """Kernel values among training examples, and of test with training ones."""
    gamma = factor / (2.0 * train.var(axis=0, ddof=1).sum())
    return rbf_kernel(train, gamma=gamma), rbf_kernel(test, train, gamma=gamma)


def split(name: str, size: int):
    """Training and test images, in a random order."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        return X[train], y[train], X[test], y[test]
    data = load_usps()
    order = np.random.default_rng(0).permutation(len(data.y))[:size]
    return data.X[order], data.y[order], data.X_test, data.y_test


def accuracy(options: argparse.Namespace) -> Table:
    """How often each contender is right."""
    X, y, X_test, y_test = split(options.data, options.train)
    train, test = image_views(X), image_views(X_test)
    pairs = {name: kernels_of(train[name], test[name], options.width) for name in train}
    contenders = {name: [pair] for name, pair in pairs.items()}
    contenders["average"] = [tuple(np.mean([p[k] for p in pairs.values()], axis=0) for k in (0, 1))]
    contenders["all together"] = list(pairs.values())
    title = f"{options.data}, n = {len(y)}, C = {options.C:g}, {options.width:g} x mean-distance"
    table = Table("kernels", "one model", "weights", "one model a class", title=title)
    for name, chosen in contenders.items():
        among, of_test = (np.hstack([pair[k] for pair in chosen]) for k in (0, 1))
        model = MultipleKernelClassifier(options.C, kernels="precomputed", solver=SOLVER)
        each = model.fit(among, y).score(of_test, y_test)
        model = model.set_params(multi_class="direct")
        together = model.fit(among, y).score(of_test, y_test)
        used = ", ".join(f"{weight:.2f}" for weight in model.kernel_weights_)
        table.add_row(name, f"{together:.4f}", used, f"{each:.4f}")
    return table


def traffic(options: argparse.Namespace) -> Table:
    """Values sent by directions and by kernel columns, to the same gap."""
    rng = np.random.default_rng(0)
    table = Table("n", "tol", "send", "rounds", "atoms", "values", title="20 views, 3 widths each")
    for n in (100, 200, 400):
        X = rng.standard_normal((n, 40))
        y = np.sin(2 * X[:, 0] * X[:, 1]) + X[:, 4] + 0.3 * rng.standard_normal(n)
        views = np.arange(40).reshape(20, 2).tolist()
        kernels = [{"kernel": "rbf", "factor": factor} for factor in (0.25, 1.0, 4.0)]
        for tol in (1e-3, 1e-4):
            for send in ("directions", "columns"):
                model = MultipleKernelRegressor(
                    C=1.0,
                    kernels=kernels,
                    views=views,
                    send=send,
                    cluster=20,
                    solver=Solver(tol=tol),
                ).fit(X, y)
                ledger = model.result_.ledger
                numbers = model.n_iter_, ledger.atoms_sent, ledger.values
                table.add_row(str(n), f"{tol:g}", send, *(f"{number:,}" for number in numbers))
    return table


def scale(options: argparse.Namespace) -> Table:
    """Many kernels: time of the processor, and memory."""
    rng = np.random.default_rng(0)
    views = options.kernels // 5
    X = rng.standard_normal((options.n, 4 * views))
    y = np.sin(X[:, 0] * X[:, 1]) + X[:, 4] + 0.3 * rng.standard_normal(options.n) > 0.0
    kernels = [{"kernel": "rbf", "factor": factor} for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, wall = time.process_time(), time.perf_counter()
    model = MultipleKernelClassifier(
        C=0.1,
        kernels=kernels,
        views=np.arange(4 * views).reshape(views, 4).tolist(),
        cluster=10,
        cache_bytes=int(options.cache_gib * 2**30),
        solver=SOLVER,
    ).fit(X, y)
    start, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = Table("what", "measured", title=f"{5 * views} kernels, {options.n} examples")
    matrices = 8 * options.n**2 * 5 * views / 2**30
    for what, measured in (
        ("all matrices at once", f"{matrices:.1f} GiB"),
        ("cache", f"{options.cache_gib:g} GiB"),
        ("peak memory, before the fit", f"{peak / 2**20:.2f} GiB, {before / 2**20:.2f} GiB"),
        ("processor time, time by the clock", f"{start:.0f} s, {wall:.0f} s"),
        ("status, relative gap", f"{model.result_.status}, {model.result_.relative_gap:.1e}"),
        ("rounds, atoms sent", f"{model.n_iter_}, {model.result_.ledger.atoms_sent}"),
        ("values sent", f"{model.result_.ledger.values:,}"),
        ("kernels used", f"{np.count_nonzero(model.kernel_weights_)}"),
        ("weight of the informative views", f"{model.kernel_weights_[:10].sum():.2f}"),
    ):
        table.add_row(what, measured)
    return table


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("accuracy", "traffic", "scale"))
    parser.add_argument("--data", choices=("digits", "usps"), default="digits")
    parser.add_argument("--width", type=float, default=4.0)
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=500)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--cache-gib", type=float, default=2.0)
    options = parser.parse_args()
    made = {"accuracy": accuracy, "traffic": traffic, "scale": scale}[options.what](options)
    Console(width=120).print(made)


if __name__ == "__main__":
    main()
