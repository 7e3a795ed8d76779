"""How the time of a Lasso grows with n, d, N and the support: exponents, and a picture.

    python benchmarks/exponents.py [--repeats 3] [--seeds 3] [--picture docs/images/exponents.png]

One size at a time is doubled, all others stay; every point is the least processor time of the
repeats to a certified relative gap of 1e-4, the mean over seeds. An exponent is the slope of a line
through the logarithms: 1 is twice the time for twice the size. celer, which has no nodes, stands
beside.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
from functools import partial

import numpy as np
from lasso import fitted, loosest_tolerance
from rows import Figure, least_times, tell

from atomcast import Lasso, LocalCluster, Solver
from atomcast.data import make_sparse_regression
from atomcast.plots.drawing import COLORS, new_figure

#: What is doubled, from where; the others stay as they are in BASE.
BASE = {"n": 20_000, "d": 2_000, "support": 100, "N": 10}
SWEEPS = {
    "n": [5_000, 10_000, 20_000, 40_000, 80_000],
    "d": [500, 1_000, 2_000, 4_000, 8_000],
    "support": [25, 50, 100, 200, 400],
    "N": [1, 10, 100, 1_000],
}
DENSITY = 0.01
#: What the axis of milliseconds shows.
TICKS = [2, 5, 10, 20, 50, 100]


def times(sizes, seed, repeats):
    """Seconds by library, for one problem of these sizes."""
    share = sizes["support"] / sizes["n"]
    made = make_sparse_regression(sizes["d"], sizes["n"], DENSITY, share, random_state=seed)
    X, y = made[0], made[1]
    penalty = 0.1 * np.abs(X.T @ y).max()
    beta = float(np.abs(fitted("celer", X, y, 0.0, penalty, 1e-10)).sum())
    cluster = LocalCluster(sizes["N"])
    ours = Lasso(beta, fit_intercept=False, solver=Solver(tol=1e-4), cluster=cluster)
    tol = loosest_tolerance("celer", X, y, beta, penalty)
    fits = {
        "atomcast": partial(ours.fit, X, y),
        "celer": partial(fitted, "celer", X, y, beta, penalty, tol),
    }
    return least_times(fits, repeats)


def sweep(name, seeds, repeats):
    """The sizes, and seconds by library, each an array."""
    found = {}
    for size in SWEEPS[name]:
        each = [times(BASE | {name: size}, seed, repeats) for seed in range(seeds)]
        for library in each[0]:
            found.setdefault(library, []).append(np.mean([seconds[library] for seconds in each]))
    return np.array(SWEEPS[name]), {library: np.array(row) for library, row in found.items()}


def exponent(sizes, seconds):
    """The slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def draw(measured, path):
    """A panel for each size."""
    figure = new_figure(11, 3.4)
    axes = figure.subplots(1, len(measured), sharey=True)
    for ax, (name, (sizes, found)) in zip(axes, measured.items(), strict=True):
        for (library, seconds), color, marker in zip(found.items(), COLORS, "os", strict=False):
            label = f"{library}, exponent {exponent(sizes, seconds):.2f}"
            ax.loglog(sizes, 1e3 * seconds, color=color, marker=marker, label=label)
        ax.set(xlabel=name, xticks=sizes, xticklabels=[f"{size:,}" for size in sizes])
        ax.tick_params(axis="x", labelsize=7)
        ax.minorticks_off()
        ax.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[0].set(ylabel="processor time, ms", yticks=TICKS, yticklabels=TICKS, ylim=(2, 100))
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--picture", help="where to draw it")
    parser.add_argument("--json", action="store_true", help="exponents as JSON, too")
    arguments = parser.parse_args()
    measured = {name: sweep(name, arguments.seeds, arguments.repeats) for name in SWEEPS}
    print(f"Lasso, density {DENSITY}, one size at a time from {BASE}: time ~ size^exponent")
    for name, (sizes, found) in measured.items():
        for library, seconds in found.items():
            shown = ", ".join(f"{1e3 * value:.1f}" for value in seconds)
            print(f"{name:8} {library:9} {exponent(sizes, seconds):6.2f}   ms: {shown}")
        ours, theirs = (exponent(sizes, seconds) for seconds in found.values())
        if arguments.json:
            what, beside = f"time of a Lasso ~ {name}^", f"celer {theirs:.2f}"
            tell(Figure(what, ours, "(exponent)", "" if name == "N" else beside))
    if arguments.picture:
        draw(measured, arguments.picture)


if __name__ == "__main__":
    main()
