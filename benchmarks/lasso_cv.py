"""Cross-validated lasso beside others: CPU time, validation error, and size of the model.

celer and skglm fit the same folds at as many penalties as we do radii, between the same end points:
where the error still falls at 1/1000 of the largest penalty, we go on, and so do they. `--short`
leaves them at 30 penalties down to 1/1000. scikit-learn's `LassoCV` has 100 penalties.

What each certifies along its path: atomcast a gap of 1e-4 of the loss at hand; celer and
scikit-learn one of 1e-4 of the sum of squares of y, which is twice the loss without features,
however small the loss has become; skglm slopes within 1e-6. Radii are common to all folds here,
penalties there: folds are fitted to the same norm, not to the same slope, and the best of each
need not be the same model.

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/lasso_cv.py [--large 0 1 2] [--seeds 0 1]

The last line is the ratio to the fastest of the others: best, median and worst.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from kinds import text_like
from rows import Figure, Row, least_times, tell
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV as PenalisedCV
from sklearn.model_selection import KFold

from atomcast import LassoCV

PENALTIES = 30
#: celer's is relative, as ours is; skglm's is not, and at 1e-4 its errors are too large by half.
TOLERANCE = {"celer": 1e-4, "skglm": 1e-6}


def drawn(
    seed: int,
    rows: int,
    n: int,
    support: int,
    noise: float,
    common: float = 0.0,
    units: float = 0.0,
):
    """Features of which a few count: independent, or with much in common; in units alike or not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, n))
    w = np.zeros(n)
    w[rng.choice(n, support, replace=False)] = 3.0 * rng.standard_normal(support)
    if common:
        X += common * rng.standard_normal((rows, 1))
    y = X @ w + noise * rng.standard_normal(rows)
    return X * rng.lognormal(0.0, units, n) if units else X, y


PROBLEMS = {
    "diabetes, 442 x 10": load_diabetes(return_X_y=True),
    "random, 200 x 500": drawn(0, 200, 500, 20, 1.0),
    "random, 72 x 7,000": drawn(1, 72, 7000, 10, 1.0),
    "random, 5,000 x 100": drawn(2, 5000, 100, 20, 5.0),
    "random, 500 x 5,000": drawn(3, 500, 5000, 20, 5.0),
    "sparse text, 2,000 x 6,000": text_like(0, 2_000, 6_000, 50_000),
}


def kinds(seed: int) -> dict[str, Any]:
    """The same kinds and some more, of a seed."""
    made = {
        "random, 200 x 500": drawn(seed, 200, 500, 20, 1.0),
        "random, 5,000 x 100": drawn(seed, 5000, 100, 20, 5.0),
        "random, 500 x 5,000": drawn(seed, 500, 5000, 20, 5.0),
        "random, 700 x 4,000": drawn(seed, 700, 4000, 50, 5.0),
        "correlated, 300 x 1,000": drawn(seed, 300, 1000, 20, 5.0, common=0.5),
        "badly scaled, 300 x 1,000": drawn(seed, 300, 1000, 20, 5.0, units=1.5),
        "sparse text, 2,000 x 6,000": text_like(seed, 2_000, 6_000, 50_000),
    }
    return {f"{name}, seed {seed}": problem for name, problem in made.items()}


def large(seeds: list[int]) -> dict[str, Any]:
    """One large problem a seed."""
    name, size = "sparse text, 20,000 x 60,000, seed", (20_000, 60_000, 600_000)
    return {f"{name} {seed}": text_like(seed, *size) for seed in seeds}


class PathCV:
    """Cross-validation of another library's lasso: the same folds, as many penalties, warm starts.

    Parameters
    ----------
    library : str
        "celer" or "skglm": their own `LassoCV` is missing, or fails with this scikit-learn.
    """

    def __init__(self, library: str, fit_intercept: bool) -> None:
        self.library, self.fit_intercept, self.count = library, fit_intercept, PENALTIES

    def fit(self, X, y) -> PathCV:
        """Find `mse_path_` of all folds, and the model of the best penalty on all rows."""
        largest = np.abs(X.T @ (y - self.fit_intercept * y.mean())).max() / len(y)
        penalties = largest * 1e-3 ** (np.arange(self.count) / (PENALTIES - 1))
        rows = sparse.csr_array(X) if sparse.issparse(X) else X
        errors = []
        for train, test in KFold(5).split(X):
            part = rows[train]
            part = part.tocsc() if sparse.issparse(part) else np.asfortranarray(part)
            models = self._path(part, y[train], penalties)
            errors.append([np.mean((y[test] - m.predict(rows[test])) ** 2) for m in models])
        self.mse_path_ = np.array(errors).T
        best = int(self.mse_path_.mean(axis=1).argmin())
        *_, model = self._path(X, y, penalties[: best + 1])
        self.coef_ = model.coef_
        return self

    def _path(self, X, y, penalties):
        """Yield the model at each penalty."""
        options = {"fit_intercept": self.fit_intercept, "warm_start": True}
        lasso = importlib.import_module(self.library).Lasso(tol=TOLERANCE[self.library], **options)
        for penalty in penalties:
            yield lasso.set_params(alpha=penalty).fit(X, y)


def comparisons(
    problems: dict[str, Any], repeats: int, short: bool = False
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield, for each problem, a `Row` and the fitted models."""
    solvers = {"atomcast": LassoCV, **{name: partial(PathCV, name) for name in TOLERANCE}}
    if repeats > 1:  # it does not end within half an hour on the large one
        solvers["scikit-learn"] = PenalisedCV
    for name, (X, y) in problems.items():
        # With an intercept, celer takes ten times as long on sparse data.
        intercept = not sparse.issparse(X)
        models = {solver: make(fit_intercept=intercept) for solver, make in solvers.items()}
        target = y if intercept else y - y.mean()
        fits = {solver: partial(model.fit, X, target) for solver, model in models.items()}
        seconds = least_times({"atomcast": fits.pop("atomcast")}, repeats)
        for model in models.values():
            if isinstance(model, PathCV) and not short:
                model.count = len(models["atomcast"].betas_)
        seconds |= least_times(fits, repeats)
        size = np.count_nonzero(models["atomcast"].coef_)
        yield Row(f"cross-validated Lasso, {name}", size, seconds), models


def show_jobs(jobs: int) -> None:
    """What folds side by side gain, in time on the wall, the least of three fits in turn."""
    problems = {
        "500 x 5,000": drawn(3, 500, 5000, 20, 5.0),
        "sparse text, 8,000 x 30,000": text_like(0, 8_000, 30_000, 300_000),
    }
    for name, (X, y) in problems.items():
        least = {None: np.inf, jobs: np.inf}
        for _, count in product(range(3), least):
            start = time.perf_counter()
            LassoCV(n_jobs=count).fit(X, y)
            least[count] = min(least[count], time.perf_counter() - start)
        beside = f"{least[None]:.2f} s and {least[jobs]:.2f} s"
        tell(Figure(f"LassoCV(n_jobs={jobs}), {name}", least[None] / least[jobs], "x one", beside))


def main() -> None:
    """Print a row for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", nargs="+", type=int, help="seeds of one large problem each")
    parser.add_argument("--seeds", nargs="+", type=int, help="more kinds, of these seeds")
    parser.add_argument("--jobs", type=int, help="only: what so many folds at a time gain")
    parser.add_argument("--short", action="store_true", help="30 penalties for the others")
    problems, repeats = PROBLEMS, 3
    arguments = parser.parse_args()
    if arguments.large:
        problems, repeats = large(arguments.large), 1
    if arguments.seeds:
        problems = {k: v for seed in arguments.seeds for k, v in kinds(seed).items()}
    warnings.simplefilter("ignore")
    if arguments.jobs:
        return show_jobs(arguments.jobs)
    ratios = []
    for row, models in comparisons(problems, repeats, arguments.short):
        print(f"\n| {row.problem} | s | CV error | features |\n|---|---|---|---|")
        for solver, model in models.items():
            error, size = model.mse_path_.mean(axis=1).min(), np.count_nonzero(model.coef_)
            print(f"| {solver} | {row.seconds[solver]:.3f} | {error:.4g} | {size} |", flush=True)
        others = [seconds for solver, seconds in row.seconds.items() if solver != "atomcast"]
        ratios.append(row.seconds["atomcast"] / min(others))
    best, median, worst = np.quantile(ratios, [0.0, 0.5, 1.0])
    print(f"\natomcast / fastest other: {best:.2f} to {worst:.2f}, median {median:.2f}")


if __name__ == "__main__":
    main()
