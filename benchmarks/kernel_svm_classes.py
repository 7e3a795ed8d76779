"""Several classes: time and accuracy of KernelSVC beside scikit-learn's SVC, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from rows import Figure, Row, least_times
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from atomcast import KernelSVC
from atomcast.data import load_letter, load_usps

#: The costs of errors that are tried where each model may choose its own.
COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def cases() -> Iterator[tuple[str, Any, Any, Any, Any, list[tuple[float, float]]]]:
    """Training and test data of each kind, and the C and gamma to try."""
    X, y = load_digits(return_X_y=True)
    train = np.arange(len(y)) % 3 > 0
    X = X / 16
    settings = [(10.0, 0.5), (1.0, 0.05), (100.0, 0.05)]
    yield "digits", X[train], y[train], X[~train], y[~train], settings
    letters = load_letter()
    for count in (6, 10):
        names = np.unique(letters.y)[:count]
        train, test = np.isin(letters.y, names), np.isin(letters.y_test, names)
        settings = [(1.0, 5.0), (10.0, 5.0), (10.0, 20.0), (100.0, 2.0)]
        parts = letters.X[train], letters.y[train], letters.X_test[test], letters.y_test[test]
        yield f"letter, {count} classes", *parts, settings
    usps = load_usps()
    settings = [(1.0, 0.01), (10.0, 0.01), (100.0, 0.02)]
    yield "usps", usps.X, usps.y, usps.X_test, usps.y_test, settings


def made(seed: int) -> Iterator[tuple[str, Any, Any, Any, Any, list[tuple[float, float]]]]:
    """The same of made data, in which classes overlap; of C, all are tried."""
    for name, (X, y), gammas in (
        (
            "six classes, 20 features",
            make_classification(3_600, 20, n_informative=10, n_classes=6, random_state=seed),
            (0.01, 0.02, 0.04),
        ),
        (
            "five clouds, 5 features",
            make_blobs(3_000, 5, centers=5, cluster_std=5.0, random_state=seed),
            (0.002, 0.004, 0.008),
        ),
    ):
        half = len(y) // 2
        yield name, X[:half], y[:half], X[half:], y[half:], [(1.0, gamma) for gamma in gammas]


def comparisons(repeats: int) -> Iterator[tuple[Row, SVC, KernelSVC, Any, Any]]:
    """Yield, for each kind and setting, a `Row`, both fitted models and the test data."""
    for name, X, y, X_test, y_test, settings in cases():
        for C, gamma in settings:
            svc, ours = SVC(C=C, gamma=gamma, cache_size=1000), KernelSVC(C=C, gamma=gamma)
            ours.fit(X, y)  # compiles
            fits = {"scikit-learn": partial(svc.fit, X, y), "atomcast": partial(ours.fit, X, y)}
            seconds = least_times(fits, repeats)
            problem = f"kernel SVM, {name}, C {C:g}, gamma {gamma:g}"
            scores = ours.score(X_test, y_test), svc.score(X_test, y_test)
            note = "accuracy {:.4f}, SVC {:.4f}".format(*scores)
            yield Row(problem, len(ours.support_), seconds, note), svc, ours, X_test, y_test


def folds(repeats: int) -> Iterator[Row | Figure]:
    """Digits in three folds: time to fit and predict, and accuracy, which should be that of SVC."""
    X, y = load_digits(return_X_y=True)
    X, fold = X / 16, np.arange(len(y)) % 3
    models = {"scikit-learn": SVC(C=10.0, gamma=0.5), "atomcast": KernelSVC(C=10.0, gamma=0.5)}
    models["atomcast"].fit(X, y)  # compiles

    def right(model: Any) -> float:
        """How much of all digits a model tells that has not seen them."""
        rows = [(fold != k, fold == k) for k in range(3)]
        hits = [model.fit(X[old], y[old]).predict(X[new]) == y[new] for old, new in rows]
        return float(np.concatenate(hits).mean())

    seconds = least_times({name: partial(right, model) for name, model in models.items()}, repeats)
    theirs, own = (right(model) for model in models.values())
    problem, note = "kernel SVM, digits in three folds", f"accuracy {own:.4f}, SVC {theirs:.4f}"
    yield Row(problem, len(models["atomcast"].support_), seconds, note)
    yield Figure(f"{problem}, accuracy", own - theirs, "more than SVC", note, at_least=-0.003)


def classes(args: Any) -> None:
    """CPU time on one thread, the minimum of fits in turn, and accuracy on the test rows."""
    print("problem: SVC s, KernelSVC s (ratio), accuracy of both, support vectors, atoms")
    for row, svc, ours, *test in comparisons(repeats=3):
        theirs, own = row.seconds.values()
        print(
            f"{row.problem}: {theirs:.3f}, {own:.3f} ({row.ratio:.2f}), "
            f"{svc.score(*test):.4f} and {ours.score(*test):.4f}, "
            f"{len(svc.support_)} and {len(ours.support_)}, {ours.result_.trace.atoms[-1]}",
            flush=True,
        )


def costs(args: Any) -> None:
    """Accuracy where C is the same, and where each model has that which suits it, by three folds.

    The two criteria are not the same function of C: only the second compares models.
    """
    print("data: KernelSVC - SVC in points at equal C and gamma, least, median and most;")
    print("  of each model, the C and gamma that three folds choose, and accuracy on test rows")
    folds = StratifiedKFold(3, shuffle=True, random_state=args.seed)
    for name, X, y, X_test, y_test, settings in (*cases(), *made(args.seed)):
        grid = {"C": COSTS, "gamma": sorted({gamma for _, gamma in settings})}
        models = {"SVC": SVC(cache_size=1000), "KernelSVC": KernelSVC()}
        found = {who: GridSearchCV(m, grid, cv=folds).fit(X, y) for who, m in models.items()}
        theirs, ours = (100 * search.cv_results_["mean_test_score"] for search in found.values())
        more = ours - theirs
        print(f"{name}: {more.min():+.2f}, {np.median(more):+.2f}, {more.max():+.2f}", flush=True)
        for who, search in found.items():
            best = "C {C:g}, gamma {gamma:g}".format(**search.best_params_)
            print(f"  {who}: {best}, {search.score(X_test, y_test):.4f}", flush=True)
