"""Two classes: time of KernelSVC beside scikit-learn's SVC where C and gamma vary, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from kinds import spread
from rows import Row, least_times
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from atomcast import KernelSVC


def comparisons(n: int, seeds: int, repeats: int) -> Iterator[tuple[Row, SVC, KernelSVC]]:
    """Yield, for each seed, C and gamma, a `Row` and both fitted models."""
    for seed, C, gamma in product(range(seeds), (0.1, 1.0, 10.0, 100.0), (0.01, 0.05, 0.2)):
        X, y = make_classification(n, 20, n_informative=10, random_state=seed)
        svc, ours = SVC(C=C, gamma=gamma), KernelSVC(C=C, gamma=gamma)
        ours.fit(X[:100], y[:100])  # compiles
        fits = {"scikit-learn": partial(svc.fit, X, y), "atomcast": partial(ours.fit, X, y)}
        seconds = least_times(fits, repeats)
        problem = f"kernel SVM, {n:,} x 20, seed {seed}, C {C:g}, gamma {gamma:g}"
        yield Row(problem, len(ours.support_), seconds), svc, ours


def binary(args: Any) -> None:
    """CPU time on one thread, the minimum of two fits in turn: the size is that of --n."""
    n, ratios = args.n or 3_000, []
    print("problem: SVC s, KernelSVC s (ratio), support vectors of both, atoms")
    for row, svc, ours in comparisons(n, seeds=2, repeats=2):
        theirs, own = row.seconds.values()
        ratios.append(row.ratio)
        print(
            f"{row.problem}: {theirs:.3f}, {own:.3f} ({row.ratio:.2f}), "
            f"{len(svc.support_)} and {len(ours.support_)}, {ours.result_.trace.atoms[-1]}",
            flush=True,
        )
    print(f"{n:,} rows, KernelSVC / SVC: {spread(ratios)}")
