"""Two classes: time of KernelSVC beside scikit-learn's SVC where C and gamma vary, in one run."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from kinds import spread
from rows import least_times
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from atomcast import KernelSVC


def binary(args: Any) -> None:
    """CPU time on one thread, the minimum of two fits in turn: the size is that of --n."""
    n, ratios = args.n or 3_000, []
    print("seed, C, gamma: SVC s, KernelSVC s (ratio), support vectors of both, atoms")
    for seed, C, gamma in product(range(2), (0.1, 1.0, 10.0, 100.0), (0.01, 0.05, 0.2)):
        X, y = make_classification(n, 20, n_informative=10, random_state=seed)
        svc, ours = SVC(C=C, gamma=gamma), KernelSVC(C=C, gamma=gamma)
        if not ratios:
            ours.fit(X, y)  # compiles
        fits = {"SVC": partial(svc.fit, X, y), "KernelSVC": partial(ours.fit, X, y)}
        theirs, own = least_times(fits, 2).values()
        ratios.append(own / theirs)
        print(
            f"{seed}, {C:g}, {gamma:g}: {theirs:.3f}, {own:.3f} ({ratios[-1]:.2f}), "
            f"{len(svc.support_)} and {len(ours.support_)}, {ours.result_.trace.atoms[-1]}",
            flush=True,
        )
    print(f"{n:,} rows, KernelSVC / SVC: {spread(ratios)}")
