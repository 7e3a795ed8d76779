"""Figure 2(b): the Lasso on Dorothea, dFW beside nodes that choose atoms by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from atomcast.baselines.subsets import local_frank_wolfe, random_subsets, solve_on_subsets
from atomcast.cluster.local import LocalCluster
from atomcast.data.datasets import DataSet
from atomcast.data.shards import Shards
from atomcast.domains import L1Ball
from atomcast.experiments import curves, dfw
from atomcast.experiments.curves import CLASSIC, CORRECTIVE, Counter, Point
from atomcast.experiments.output import write_figure, write_rows
from atomcast.objectives import SquaredError
from atomcast.problem import explicit_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCAL, RANDOM = "local FW", "random subset"
LOCAL_STAR, RANDOM_STAR = "local FW, to the coordinator only", "random, to the coordinator only"
METHODS = (CLASSIC, CORRECTIVE, LOCAL, RANDOM, LOCAL_STAR, RANDOM_STAR)
PANEL = "Dorothea"


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment; the defaults are the paper's."""

    beta: float = 16.0
    nodes: int = 100
    rounds: int = 3000
    per_node: Sequence[int] = (1, 2, 3, 5, 7, 10, 15, 20, 30)
    tol: float = 1e-4


QUICK = Setting(rounds=500, per_node=(1, 2, 5, 10))


def fig2b(
    data: DataSet, setting: Setting, runs: int = 5, out: Path | None = None, note: str = ""
) -> list[Point]:
    """Run all methods on as many random partitions as there are runs.

    Parameters
    ----------
    data : DataSet
    setting : Setting
    runs : int
        Run r has seed r, for the partition and for the random choice.
    out : path of a folder, optional
        Write fig2b.csv, fig2b-mean.csv, fig2b.png and fig2b.svg there.
    note : str
        What the figure should say of the data and sizes.
    """
    tell = Counter("fig2b", 4 * runs)
    problem = explicit_problem(SquaredError(data.y), L1Ball(setting.beta))
    cluster = LocalCluster(setting.nodes)
    rows: list[Point] = []
    d, most = len(data.y), max(setting.per_node)
    for run in range(runs):
        shards = Shards.split(data.X, setting.nodes, random_state=run)
        for method, step in ((CLASSIC, "classic"), (CORRECTIVE, "corrective")):
            result, spent = dfw.run(problem, shards, cluster, step, setting.tol, setting.rounds)
            rows += curves.points(PANEL, method, run, result.trace, d, spent)
            tell(f"run {run}: {method}")
        choices = {
            LOCAL: local_frank_wolfe(problem, shards, most),
            RANDOM: random_subsets(problem, shards, most, random_state=run),
        }
        for method, star in ((LOCAL, LOCAL_STAR), (RANDOM, RANDOM_STAR)):
            trace, _ = solve_on_subsets(
                problem, shards, choices[method], setting.per_node, cluster, tol=setting.tol
            )
            rows += curves.points(PANEL, method, run, trace, d)
            trace, _ = solve_on_subsets(
                problem, shards, choices[method], setting.per_node, cluster, tol=setting.tol,
                destination="coordinator",
            )  # fmt: skip
            rows += curves.points(PANEL, star, run, trace, d)
            tell(f"run {run}: {method}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "fig2b.csv")
        lines = {m: curves.average(rows, PANEL, m, "values", "objective") for m in METHODS}
        write_rows([line for group in lines.values() for line in group], out / "fig2b-mean.csv")
        write_figure(plot(lines, note), out / "fig2b")
    return rows


def plot(lines: dict[str, list[curves.Average]], note: str) -> Figure:
    """The objective against the values sent."""
    from atomcast.report.plots import COLORS, new_figure

    figure = new_figure(7.0, 4.6)
    ax = figure.subplots()
    for k, (method, line) in enumerate(lines.items()):
        # What ends at the coordinator has the colour of what ends everywhere.
        color = COLORS[k if k < 4 else k - 2]
        curves.draw(ax, line, method, color, "-" if k < 4 else ":")
    curves.finish(ax, "values", "objective", note)
    ax.legend(frameon=False, fontsize=8)
    return figure
