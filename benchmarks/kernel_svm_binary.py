"""Two classes: time of KernelSVC beside scikit-learn's SVC where C and gamma vary, in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
from kinds import spread
from rows import Row, least_times
from sklearn.datasets import make_blobs, make_circles, make_classification, make_moons
from sklearn.svm import SVC

from atomcast import KernelSVC

COSTS = (0.1, 1.0, 10.0, 100.0)
#: Kind, C and gamma of large machines, and how many rows more they are tested on.
LARGE, TEST = (("20 features", 1.0, 0.05), ("moons, noise 0.3", 10.0, 2.0)), 5_000


def blobs(n: int, seed: int) -> tuple[Any, Any]:
    """Six clouds of five features that overlap a little."""
    X, y = make_blobs(n, 5, centers=6, cluster_std=2.0, random_state=seed)
    return X / 5, y % 2


def checkerboard(n: int, seed: int) -> tuple[Any, Any]:
    """Sixteen squares, with blurred edges."""
    rng = np.random.default_rng(seed)
    X = 4 * rng.random((n, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    return X + 0.05 * rng.standard_normal(X.shape), y


#: How the data of a kind is made, and which gammas are tried. All but the first have few features;
#: of them, the first and the circles have few support vectors.
KINDS: dict[str, tuple[Callable[[int, int], tuple[Any, Any]], tuple[float, ...]]] = {
    "20 features": (
        lambda n, seed: make_classification(n, 20, n_informative=10, random_state=seed),
        (0.01, 0.05, 0.2),
    ),
    "moons, noise 0.1": (lambda n, seed: make_moons(n, noise=0.1, random_state=seed), (0.5, 2, 10)),
    "moons, noise 0.2": (lambda n, seed: make_moons(n, noise=0.2, random_state=seed), (0.5, 2, 10)),
    "moons, noise 0.3": (lambda n, seed: make_moons(n, noise=0.3, random_state=seed), (0.5, 2, 10)),
    "circles": (
        lambda n, seed: make_circles(n, noise=0.1, factor=0.5, random_state=seed),
        (0.5, 2, 10),
    ),
    "blobs": (blobs, (0.5, 2, 10)),
    "checkerboard": (checkerboard, (0.5, 2, 10)),
}


def comparisons(
    n: int, seeds: range, repeats: int, kinds: Iterable[str] = KINDS
) -> Iterator[tuple[Row, SVC, KernelSVC, str]]:
    """Yield, for each kind, seed, C and gamma, a `Row`, both fitted models and the kind."""
    for kind in kinds:
        make, gammas = KINDS[kind]
        for seed, C, gamma in product(seeds, COSTS, gammas):
            seconds, svc, ours = timed(*make(n, seed), C, gamma, repeats)
            problem = f"kernel SVM, {kind}, {n:,} rows, seed {seed}, C {C:g}, gamma {gamma:g}"
            yield Row(problem, len(ours.support_), seconds), svc, ours, kind


def timed(
    X: Any, y: Any, C: float, gamma: float, repeats: int
) -> tuple[dict[str, float], SVC, KernelSVC]:
    """The least processor time of both, and both models."""
    svc, ours = SVC(C=C, gamma=gamma), KernelSVC(C=C, gamma=gamma)
    ours.fit(X, y)  # compiles
    fits = {"scikit-learn": partial(svc.fit, X, y), "atomcast": partial(ours.fit, X, y)}
    return least_times(fits, repeats), svc, ours


def large(n: int, seed: int, repeats: int) -> Iterator[Row]:
    """A few machines of many rows, with the accuracy of both on others."""
    for kind, C, gamma in LARGE:
        X, y = KINDS[kind][0](n + TEST, seed)
        seconds, svc, ours = timed(X[:n], y[:n], C, gamma, repeats)
        problem = f"kernel SVM, {kind}, {n:,} rows, seed {seed}, C {C:g}, gamma {gamma:g}"
        scores = [model.score(X[n:], y[n:]) for model in (ours, svc)]
        note = "accuracy {:.4f}, SVC {:.4f}".format(*scores)
        yield Row(problem, len(ours.support_), seconds, note)


def binary(args: Any) -> None:
    """CPU time, the minimum of two fits in turn: size and seeds are those of --n and --seed."""
    n, ratios = args.n or 3_000, dict[str, list[float]]()
    print("problem: SVC s, KernelSVC s (ratio), support vectors of both, rounds")
    for row, svc, ours, kind in comparisons(n, range(args.seed, args.seed + 2), repeats=2):
        theirs, own = row.seconds.values()
        ratios.setdefault(kind, []).append(row.ratio)
        print(
            f"{row.problem}: {theirs:.4f}, {own:.4f} ({row.ratio:.2f}), "
            f"{len(svc.support_)} and {len(ours.support_)}, {ours.result_.rounds}",
            flush=True,
        )
    for kind, some in ratios.items():
        print(f"{kind}, {n:,} rows, KernelSVC / SVC: {spread(some)}")
    print(f"all, {n:,} rows, KernelSVC / SVC: {spread(list(chain.from_iterable(ratios.values())))}")
