"""Figures 2(a) and 2(b): dFW beside nodes that choose atoms by themselves, on any problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from atomcast.baselines.subsets import (
    local_frank_wolfe,
    random_subsets,
    solve_on_subsets,
    solve_on_union,
)
from atomcast.cluster.local import LocalCluster
from atomcast.data.shards import Shards
from atomcast.experiments import curves, dfw
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, Point
from atomcast.experiments.options import shown
from atomcast.experiments.output import write_figure, write_rows
from atomcast.problem import Problem
from atomcast.report.tables import print_table
from atomcast.result import Result
from atomcast.trace import Row, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = "dFW, classic step, then batch solve"
LOCAL, RANDOM = "local FW", "random subset"
LOCAL_STAR, RANDOM_STAR = "local FW, to the coordinator only", "random, to the coordinator only"
METHODS = (CLASSIC, BATCH, CORRECTIVE, LOCAL, RANDOM, LOCAL_STAR, RANDOM_STAR)
#: How methods are drawn: a colour by number and a dash. What ends at the coordinator has the
#: colour of what ends everywhere, and so has what is made of the same atoms.
STYLES = ((0, "-"), (0, "--"), (1, "-"), (2, "-"), (3, "-"), (2, ":"), (3, ":"))

#: A problem for a run with this step; where nodes start may depend on it.
MakeProblem = Callable[[str], Problem]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How far the methods go.

    Parameters
    ----------
    nodes : int
    rounds : int
        Of the classic step.
    per_node : sequence of int
        How many atoms every node chooses by itself.
    tol : float
        Relative gap at which runs and batch solvers stop.
    local_step : str
        The step of the local runs.
    batch : int or "auto"
        Atoms that may join in a round of the corrective step.
    """

    nodes: int = 100
    rounds: int = 3000
    per_node: Sequence[int] = (1, 2, 3, 5, 7, 10, 15, 20, 30)
    tol: float = 1e-4
    local_step: str = "line-search"
    batch: Any = "auto"


def run_all(
    panel: str, run: int, X: Any, make: MakeProblem, sizes: Sizes, d: int | None = None
) -> list[Point]:
    """Every method on one random partition."""
    shards = Shards.split(X, sizes.nodes, random_state=run)
    cluster, most = LocalCluster(sizes.nodes), max(sizes.per_node)
    rows: list[Point] = []

    def keep(method: str, trace: Trace, spent: Sequence[float] | None = None) -> None:
        rows.extend(curves.points(panel, method, run, trace, d, spent))

    classic, spent = dfw.run(make("classic"), shards, cluster, "classic", sizes.tol, sizes.rounds)
    keep(CLASSIC, classic.trace, spent)
    keep(BATCH, batch_solved(make("corrective"), shards, classic, sizes.tol))
    result, spent = dfw.run(
        make("corrective"), shards, cluster, "corrective", sizes.tol, sizes.rounds,
        budget=classic.ledger.values, batch=sizes.batch,
    )  # fmt: skip
    keep(CORRECTIVE, result.trace, spent)
    local = make(sizes.local_step)
    choices = {
        LOCAL: local_frank_wolfe(local, shards, most, step=sizes.local_step, tol=sizes.tol),
        RANDOM: random_subsets(local, shards, most, random_state=run),
    }
    for method, star in ((LOCAL, LOCAL_STAR), (RANDOM, RANDOM_STAR)):
        problem, chosen, per_node = make("corrective"), choices[method], sizes.per_node
        trace, _ = solve_on_subsets(problem, shards, chosen, per_node, cluster, tol=sizes.tol)
        keep(method, trace)
        keep(star, _to_coordinator(trace, sizes.nodes))
    return rows


def _to_coordinator(trace: Trace, nodes: int) -> Trace:
    """The same atoms sent over one edge of the star each, instead of N: one up and N - 1 down."""
    once = Trace()
    for row in trace:
        once.append(row._replace(values=row.values // nodes, bytes=row.bytes // nodes))
    return once


def batch_solved(
    problem: Problem, shards: Shards, result: Result, tol: float, places: int = 16
) -> Trace:
    """The best weights on the atoms that a run had broadcast by some of its rounds."""
    rows, trace = list(result.trace), Trace()
    owner = shards.assignment(problem.axis)
    for k in np.unique(np.geomspace(2, max(len(rows) - 1, 2), places).astype(int)).tolist():
        row = rows[min(k, len(rows) - 1)]
        ids = np.array([sent.atom for sent in result.ledger.disclosures if sent.round < row.round])
        if not len(ids):
            continue
        chosen = [np.sort(ids[owner[ids] == i]) for i in range(shards.nodes)]
        best = solve_on_union(problem, shards, chosen, tol)
        trace.append(
            Row(row.round, row.seconds, best.objective, best.gap, len(ids), row.values, row.bytes)
        )
    return trace


Lines = dict[str, list[curves.Average]]


def write(name: str, rows: Sequence[Point], out: Path, note: str) -> None:
    """Write NAME.csv, NAME-mean.csv, NAME.png and NAME.svg into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    write_rows(rows, out / f"{name}.csv")
    panels: dict[str, Lines] = {
        panel: {m: curves.average(rows, panel, m, "values", "objective") for m in METHODS}
        for panel in dict.fromkeys(row.panel for row in rows)
    }
    averages = [line for lines in panels.values() for group in lines.values() for line in group]
    write_rows(averages, out / f"{name}-mean.csv")
    write_figure(plot(panels, note), out / name)


def plot(panels: dict[str, Lines], note: str) -> Figure:
    """The objective against the values sent, on each problem."""
    from atomcast.report.plots import COLORS, new_figure

    figure = new_figure(1.0 + 5.0 * len(panels), 4.8)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (panel, lines) in zip(axes, panels.items(), strict=True):
        for (method, line), (color, dash) in zip(lines.items(), STYLES, strict=True):
            curves.draw(ax, line, method, COLORS[color], dash)
        curves.finish(ax, "values", "objective", panel)
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(note, fontsize=9)
    return figure


def print_objectives(
    rows: Sequence[Point], panel: str, budgets: Sequence[float], note: str, form: str
) -> None:
    """Print what every method has reached after so many values sent."""
    table = [
        [
            method,
            *(
                shown(curves.reached_at(rows, panel, method, "values", "objective", budget), form)
                for budget in budgets
            ),
        ]
        for method in METHODS
    ]
    header = ["method", *(f"{budget:,.0f}" for budget in budgets)]
    print_table(f"{panel}: objective after so many values sent ({note})", header, table)
