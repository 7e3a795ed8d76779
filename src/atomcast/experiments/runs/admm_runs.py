"""ADMM with several parameters on one problem, of which the figures show the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atomcast.baselines.admm import Admm, Features
from atomcast.experiments.runs import curves
from atomcast.experiments.runs.curves import Point

RHOS, ALPHAS = (0.1, 1.0, 10.0), (1.0, 1.5)


def name(rho: float, alpha: float) -> str:
    """How a choice of parameters is called."""
    return f"ADMM (rho={rho:g}, alpha={alpha:g})"


PARAMETERS = {name(rho, alpha): (rho, alpha) for rho in RHOS for alpha in ALPHAS}
NAMES = tuple(PARAMETERS)
#: The paper's own way, with the parameters that are the best here.
PROXIMAL = "ADMM, proximal gradient (the paper)"


def run_all(
    panel: str,
    run: int,
    y: NDArray[np.float64],
    features: Features,
    lam: float,
    beta: float,
    rounds: int,
    *,
    proximal: bool = False,
    enough: float | None = None,
) -> list[Point]:
    """ADMM with every choice of parameters, measured on the l1 ball of radius beta.

    Until the objective is low enough, if that is said. With the best choice also as the paper
    solved the local problems, if wanted.
    """
    rows, how = [], Admm(lam, 1.0, 1.0, beta, rounds, tol=1e-5, local_tol=1e-4, enough=enough)
    for method, (rho, alpha) in PARAMETERS.items():
        how = replace(how, rho=rho, alpha=alpha)
        rows += curves.points(panel, method, run, how.solve(y, features).trace, len(y))
    if proximal:
        rho, alpha = PARAMETERS[best(rows, panel)]
        how = replace(how, rho=rho, alpha=alpha, local="proximal")
        rows += curves.points(panel, PROXIMAL, run, how.solve(y, features).trace, len(y))
    return rows


def best(rows: Sequence[Point], panel: str) -> str:
    """The parameters with the lowest curve: of objective against communication, on log scales."""
    ends = [row.values for row in rows if row.panel == panel and row.method in NAMES and row.values]
    grid = np.geomspace(min(ends), max(ends), 100)

    def height(method: str) -> float:
        runs = curves.runs_of(rows, panel, method)
        start = max(row.mse for run in runs for row in run)
        reached = np.array([curves.sampled(run, "values", "mse", grid) for run in runs])
        return float(np.log(np.nan_to_num(reached, nan=start)).mean())

    return min(NAMES, key=height)
