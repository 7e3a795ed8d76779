"""Multiple kernel learning: accuracy, what is sent, and 500 kernels on one machine.

    python benchmarks/multiple_kernel.py accuracy [--data digits|usps] [--train 2000]
    python benchmarks/multiple_kernel.py traffic
    python benchmarks/multiple_kernel.py scale [--kernels 500] [--n 2000] [--cache-gib 2]

`accuracy` has views of images (pixels, both gradients, pooled pixels), each with two widths of the
rbf kernel. Every contender, which is one kernel, the average of all, or all of them together, gets
the C in 1, 10, 100 that is best on a quarter of the training data, and sees the test data once.
USPS is read from the folder that ATOMCAST_DATA names.
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

FACTORS = (1.0, 4.0)
COSTS = (1.0, 10.0, 100.0)
SOLVER = Solver(tol=1e-3)


def image_views(X: np.ndarray) -> dict[str, np.ndarray]:
    """Pixels, differences to the right and downwards, and means of two by two pixels."""
    side = int(np.sqrt(X.shape[1]))
    images = X.reshape(-1, side, side)
    pooled = images.reshape(-1, side // 2, 2, side // 2, 2).mean(axis=(2, 4))
    views = {"pixels": images, "right": np.diff(images, axis=2), "down": np.diff(images, axis=1)}
    return {name: view.reshape(len(X), -1) for name, view in (views | {"pooled": pooled}).items()}


def kernels_of(train: dict[str, np.ndarray], test: dict[str, np.ndarray]):
    """Kernel values among training examples, and of test with training ones, by name."""
    for name, points in train.items():
        gamma = 1.0 / (2.0 * points.var(axis=0, ddof=1).sum())
        for factor in FACTORS:
            among = rbf_kernel(points, gamma=factor * gamma)
            yield f"{name} x {factor:g}", among, rbf_kernel(test[name], points, factor * gamma)


def chosen(Ks: list[np.ndarray], y: np.ndarray) -> float:
    """The C that is best on the last quarter of the training data."""
    cut = 3 * len(y) // 4

    def score(C: float) -> float:
        model = MultipleKernelClassifier(C, kernels="precomputed", solver=SOLVER)
        model.fit([K[:cut, :cut] for K in Ks], y[:cut])
        return model.score([K[cut:, :cut] for K in Ks], y[cut:])

    return max(COSTS, key=score)


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
    named = list(kernels_of(image_views(X), image_views(X_test)))
    contenders = {name: ([K], [K_test]) for name, K, K_test in named}
    means = [np.mean([each[k] for each in named], axis=0) for k in (1, 2)]
    contenders["average"] = [means[0]], [means[1]]
    contenders["all together"] = [K for _, K, _ in named], [K_test for _, _, K_test in named]
    table = Table("kernels", "C", "accuracy", "of all", title=f"{options.data}, n = {len(y)}")
    for name, (Ks, Ks_test) in contenders.items():
        C = chosen(Ks, y)
        model = MultipleKernelClassifier(C, kernels="precomputed", solver=SOLVER).fit(Ks, y)
        used = ", ".join(f"{weight:.2f}" for weight in model.kernel_weights_)
        table.add_row(name, f"{C:g}", f"{model.score(Ks_test, y_test):.4f}", used)
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
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--kernels", type=int, default=500)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--cache-gib", type=float, default=2.0)
    options = parser.parse_args()
    made = {"accuracy": accuracy, "traffic": traffic, "scale": scale}[options.what](options)
    Console(width=120).print(made)


if __name__ == "__main__":
    main()
