"""Figure 5(c): the kernel SVM on Adult over a network that loses messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from atomcast.cluster.local import LocalCluster
from atomcast.data.datasets import DataSet
from atomcast.data.shards import Shards
from atomcast.experiments import claims_large, curves, real_data
from atomcast.experiments.curves import Average, Counter, Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.kernel_runs import C, mean_distance_gamma, svm_problem
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.record import Record
from atomcast.network.faults import Faults
from atomcast.result import Result
from atomcast.solver import Solver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "classic step, nothing repaired (the paper)"
LOG = "classic step, log"
CORRECTIVE_LOG = "corrective step, log"
#: What is run: the recovery and the step of each panel.
PROTOCOLS: dict[str, tuple[str, str]] = {
    PAPER: ("none", "classic"),
    LOG: ("log", "classic"),
    CORRECTIVE_LOG: ("log", "corrective"),
}


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment.

    Parameters
    ----------
    losses : sequence of float
        The probabilities that a message is lost, the first of them 0.
    nodes, rounds : int
    corrective_rounds : int
        The corrective step needs far fewer, and more time for each.
    tol : float
        The gap at which the corrective step stops.
    cost : float
        C of the SVM.
    examples : int, optional
        Only so many of the examples, the first ones.
    """

    losses: Sequence[float] = (0.0, 0.1, 0.2, 0.4)
    nodes: int = 10
    rounds: int = 500
    corrective_rounds: int = 10
    tol: float = 1e-2
    cost: float = C
    examples: int | None = None


QUICK = Setting(rounds=300, corrective_rounds=40, examples=4000)


class Outcome(NamedTuple):
    """How the runs of a protocol ended, on average; `low` and `high` are of single runs.

    The ratio is to the classic step without loss, whatever the protocol. `certified` and `gap` are
    of the closing round: of the best node where nodes have drifted apart.
    """

    protocol: str
    loss: float
    objective: float
    low: float
    high: float
    ratio: float
    certified: float
    gap: float
    rounds: float
    values: float
    repair: float


def fig5c(
    data: DataSet, setting: Setting, runs: int = 5, out: Path | None = None, note: str = ""
) -> tuple[list[Point], list[Outcome]]:
    """Run both protocols at every loss, on as many random partitions as there are runs.

    Parameters
    ----------
    data : DataSet
    setting : Setting
    runs : int
        Run r has seed r, for the partition and for the faults.
    out : path of a folder, optional
        Write fig5c.csv, fig5c-mean.csv, fig5c-outcome.csv, fig5c.png and fig5c.svg there.
    note : str
        What the figure should say of the data and sizes.
    """
    tell = Counter("fig5c", runs * len(PROTOCOLS) * len(setting.losses))
    X, y = data.X[: setting.examples], data.y[: setting.examples]
    gamma = mean_distance_gamma(X)
    rows: list[Point] = []
    results: dict[tuple[str, float], list[Result]] = {}
    for run in range(runs):
        shards = Shards.split(X, setting.nodes, random_state=run)
        for protocol in PROTOCOLS:
            for loss in setting.losses:
                result = _run(setting, protocol, loss, run, shards, y, gamma)
                points = curves.points(protocol, _label(loss), run, result.trace, d=1)
                rows += [point for point in points if np.isfinite(point.objective)]
                results.setdefault((protocol, loss), []).append(result)
                tell(f"run {run}: {protocol}, p = {loss:g}")
    outcomes = _outcomes(results)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        means = average(rows)
        write_rows(rows, out / "fig5c.csv")
        write_rows([mean for line in means.values() for mean in line], out / "fig5c-mean.csv")
        write_rows(outcomes, out / "fig5c-outcome.csv")
        write_figure(plot(means, note), out / "fig5c")
    return rows, outcomes


def _label(loss: float) -> str:
    return f"p = {loss:g}"


def _run(
    setting: Setting, protocol: str, loss: float, run: int, shards: Shards, y: Any, gamma: float
) -> Result:
    recovery, step = PROTOCOLS[protocol]
    faults = Faults(loss=loss, per="receiver", seed=run)
    cluster = LocalCluster(setting.nodes, faults=faults, recovery=recovery)
    rounds = setting.corrective_rounds if step == "corrective" else setting.rounds
    problem = replace(svm_problem(y, gamma, step, setting.tol, setting.cost), sample=1)
    return Solver(step, tol=setting.tol, max_rounds=rounds).solve(problem, shards, cluster)


def _outcomes(results: dict[tuple[str, float], list[Result]]) -> list[Outcome]:
    """Mean and spread of how the runs ended."""
    without = float(np.mean([r.trace.objective[-1] for r in results[PAPER, 0.0]]))
    outcomes = []
    for (protocol, loss), group in results.items():
        last = [float(r.trace.objective[-1]) for r in group]
        numbers: dict[str, list[float]] = {
            "certified": [r.objective for r in group],
            "gap": [r.relative_gap for r in group],
            "rounds": [r.rounds for r in group],
            "values": [r.ledger.values for r in group],
            "repair": [r.ledger.by_kind()["repair"].values / r.ledger.values for r in group],
        }
        means = {name: float(np.mean(column)) for name, column in numbers.items()}
        mean = float(np.mean(last))
        spread = {"low": min(last), "high": max(last), "ratio": mean / without}
        outcomes.append(Outcome(protocol, loss, mean, **spread, **means))
    return outcomes


def average(rows: Sequence[Point]) -> dict[tuple[str, str], list[Average]]:
    """Mean, smallest and largest objective of the runs in each round, as it was in that round.

    A run that has ended stays at its last objective.
    """
    lines: dict[tuple[str, str], list[Average]] = {}
    for panel, method in dict.fromkeys((row.panel, row.method) for row in rows):
        runs = curves.runs_of(rows, panel, method)
        grid = sorted({row.round for run in runs for row in run if row.round > 0})
        table = [_sampled(run, grid) for run in runs]
        lines[panel, method] = [
            Average(panel, method, "round", x, float(np.mean(at)), min(at), max(at))
            for x, at in zip(grid, np.transpose(table).tolist(), strict=True)
        ]
    return lines


def _sampled(run: Sequence[Point], grid: Sequence[int]) -> list[float]:
    place = np.searchsorted([row.round for row in run], grid, side="right") - 1
    return [run[k].objective for k in np.maximum(place, 0).tolist()]


def plot(lines: dict[tuple[str, str], list[Average]], note: str) -> Figure:
    """The objective of each round, a panel for each protocol."""
    from atomcast.report.plots import COLORS, new_figure

    figure = new_figure(11.0, 4.0)
    axes = figure.subplots(1, len(PROTOCOLS), sharey=True)
    methods = list(dict.fromkeys(method for _, method in lines))
    for ax, protocol in zip(axes, PROTOCOLS, strict=True):
        for k, method in enumerate(methods):
            if (protocol, method) in lines:
                curves.draw(ax, lines[protocol, method], method, COLORS[k])
        curves.finish(ax, "round", "objective", protocol)
        ax.set_ylabel("objective, mean over nodes" if ax is axes[0] else "")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(note, fontsize=9)
    return figure


def findings(rows: Sequence[Point], outcomes: Sequence[Outcome]) -> list[Finding]:
    """What the paper says of this figure, beside the rounds and the ends of a run."""
    lines = average([row for row in rows if row.panel == PAPER])
    losses = {_label(outcome.loss): outcome.loss for outcome in outcomes}
    repaired = [o for o in outcomes if o.protocol == LOG and o.loss > 0]
    return claims_large.lossy({losses[m]: line for (_, m), line in lines.items()}, repaired)


def show(options: Options) -> Record:
    """Run it and print how the runs ended."""
    setting = QUICK if options.quick else Setting()
    data = real_data.adult(synthetic=options.synthetic, download=options.download)
    n = min(setting.examples or len(data.y), len(data.y))
    note = f"{real_data.name('Adult', options.synthetic)}, n = {n:,}, C = {setting.cost:g}, "
    note += f"N = {setting.nodes}, {options.times}, {setting.rounds:,} rounds of the classic step"
    rows, outcomes = fig5c(data, setting, options.run_count, options.out, note)
    columns = (*Outcome._fields[:3], *Outcome._fields[5:])
    table = print_rows(
        f"At the end ({note})", outcomes, columns, loss="g", objective=".3e", ratio=".3f",
        certified=".3e", gap=".2g", repair=".0%",
    )  # fmt: skip
    title = "Figure 5(c): kernel SVM where messages are lost"
    return Record(title, note, [table], findings(rows, outcomes)).printed()
