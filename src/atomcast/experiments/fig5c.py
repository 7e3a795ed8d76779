"""Figure 5(c): the kernel SVM on Adult over a network that loses messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from atomcast.data.datasets import DataSet
from atomcast.data.shards import Shards
from atomcast.experiments import claims_large, curves, real_data
from atomcast.experiments.curves import Average, Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.kernel_runs import C, mean_distance_gamma, svm_problem
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, checksum, run_parts
from atomcast.experiments.record import Record
from atomcast.loop.solver import Solver
from atomcast.network.faults import Faults
from atomcast.simulation.local import LocalCluster

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


class Ending(NamedTuple):
    """How one run ended; `last` is the mean objective of the nodes in its last round."""

    last: float
    certified: float
    gap: float
    rounds: float
    values: float
    repair: float


def fig5c(
    data: DataSet,
    setting: Setting,
    runs: int = 5,
    out: Path | None = None,
    note: str = "",
    plan: Plan = ONE_BY_ONE,
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
    plan : Plan
        How the runs are run.
    """
    X, y = data.X[: setting.examples], data.y[: setting.examples]
    gamma, given = mean_distance_gamma(X), f"{setting} {checksum(X, y)}"
    cases = [(protocol, loss) for protocol in PROTOCOLS for loss in setting.losses]
    parts = [
        Part(
            f"{'-'.join(PROTOCOLS[protocol])} {_label(loss)} run {run}",
            given,
            partial(one_run, X, y, gamma, setting, protocol, loss, run),
        )
        for run in range(runs)
        for protocol, loss in cases
    ]
    done = run_parts("fig5c", parts, out, plan)
    rows = [row for one in done for row in one.rows]
    endings: dict[tuple[str, float], list[Ending]] = {}
    for case, one in zip(cases * runs, done, strict=True):
        endings.setdefault(case, []).append(Ending(*one.facts))
    outcomes = _outcomes(endings)
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


def one_run(
    X: Any, y: Any, gamma: float, setting: Setting, protocol: str, loss: float, run: int
) -> Done:
    """One protocol at one loss, on one random partition."""
    recovery, step = PROTOCOLS[protocol]
    faults = Faults(loss=loss, per="receiver", seed=run)
    cluster = LocalCluster(setting.nodes, faults=faults, recovery=recovery)
    rounds = setting.corrective_rounds if step == "corrective" else setting.rounds
    problem = replace(svm_problem(y, gamma, step, setting.tol, setting.cost), sample=1)
    shards = Shards.split(X, setting.nodes, random_state=run)
    result = Solver(step, tol=setting.tol, max_rounds=rounds).solve(problem, shards, cluster)
    points = curves.points(protocol, _label(loss), run, result.trace, d=1)
    ledger = result.ledger
    ending = Ending(
        float(result.trace.objective[-1]),
        float(result.objective),
        float(result.relative_gap),
        result.rounds,
        ledger.values,
        ledger.by_kind()["repair"].values / ledger.values,
    )
    return Done([point for point in points if np.isfinite(point.objective)], ending)


def _outcomes(endings: dict[tuple[str, float], list[Ending]]) -> list[Outcome]:
    """Mean and spread of how the runs ended."""
    without = float(np.mean([ending.last for ending in endings[PAPER, 0.0]]))
    outcomes = []
    for (protocol, loss), group in endings.items():
        last = [ending.last for ending in group]
        mean, *others = map(float, np.mean(group, axis=0))
        outcomes.append(
            Outcome(protocol, loss, mean, min(last), max(last), mean / without, *others)
        )
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
    from atomcast.plots.curves import COLORS, new_figure

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
    rows, outcomes = fig5c(data, setting, options.run_count, options.out, note, options.plan)
    columns = (*Outcome._fields[:3], *Outcome._fields[5:])
    table = print_rows(
        f"At the end ({note})", outcomes, columns, loss="g", objective=".3e", ratio=".3f",
        certified=".3e", gap=".2g", repair=".0%",
    )  # fmt: skip
    title = "Figure 5(c): kernel SVM where messages are lost"
    return Record(title, note, [table], findings(rows, outcomes)).printed()
