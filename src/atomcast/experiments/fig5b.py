"""Figure 5(b): half of the data on one of ten nodes; exact dFW beside cheaper selections.

Exact dFW waits for the large node in every round. With m-centers (Algorithm 5), or with a random
subset, the large node scores as many examples as the others. What the centers themselves cost is
shown too. Our corrective step, over all examples and over a random subset, has as many seconds as
exact dFW took for its rounds; it starts from as many examples as may join in a round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.data.shards import Shards
from atomcast.experiments import claims_large, curves
from atomcast.experiments.censored import cost_range
from atomcast.experiments.clocked_runs import (
    CLASSIC,
    PAPERS_NETWORK,
    Network,
    clocked_run,
    corrective_problem,
    speech_problem,
)
from atomcast.experiments.clocked_runs import CORRECTIVE as BETTER
from atomcast.experiments.curves import Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, run_parts
from atomcast.experiments.record import Record
from atomcast.selection.rules import EXACT, MCenters, RandomSubset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Whether examples cluster, as the paper says of its own; in the usual stand-in no two are close.
KINDS = (False, True)
#: How the stand-in is made then.
CLUSTERED = {"rank": 4, "noise": 0.1}
BALANCED, EXACTLY = "exact, balanced data", "exact"
CENTERS, FREE = "m-centers", "m-centers, clustering not counted"
RANDOM = "random subset"
CORRECTIVE, CORRECTIVE_RANDOM = "exact, corrective step", "random subset, corrective step"
METHODS = (BALANCED, EXACTLY, CENTERS, FREE, RANDOM, CORRECTIVE, CORRECTIVE_RANDOM)
#: How methods are drawn: a colour by number, one for each selection, and a dash.
STYLES = ((4, "-"), (0, "-"), (1, "-"), (1, ":"), (2, "-"), (0, "--"), (2, "--"))


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment; nodes and share are the paper's, n is not (8.7 million)."""

    n: int = 160_000
    nodes: int = 10
    share: float = 0.5
    rounds: int = 1000
    network: Network = PAPERS_NETWORK


# Fewer nodes rather than fewer examples on each: nodes with very few score them in another way,
# which takes longer for each.
QUICK = Setting(n=54_000, nodes=4, rounds=300)


class Outcome(NamedTuple):
    """What a method reached: mean over the runs.

    `catches_up` is the time it needs for the objective that exact dFW on the unbalanced data has
    at half of its rounds, inf if a run never gets there; `at_least` is what is known of it then.
    """

    data: str
    method: str
    ms_a_round: float
    preparing: float
    objective: float
    catches_up: float
    at_least: float


def panel_name(clustered: bool) -> str:
    """How data of one kind is called in the rows."""
    return "examples that cluster" if clustered else "examples far apart"


def sizes_of(setting: Setting) -> list[int]:
    """The number of examples on each node: half of them on the first, the rest in equal parts."""
    large = round(setting.share * setting.n)
    small = np.array_split(np.arange(setting.n - large), setting.nodes - 1)
    return [large, *(len(part) for part in small)]


def one_run(clustered: bool, setting: Setting, run: int) -> Done:
    """Every selection on data of one seed; the facts are the seconds of preparation."""
    panel, more = panel_name(clustered), CLUSTERED if clustered else {}
    _warm_up(setting)
    data, problem = speech_problem(setting.n, run, **more)
    unbalanced = Shards.split(data.X, setting.nodes, by=sizes_of(setting))
    balanced = Shards.split(data.X, setting.nodes, by="contiguous")
    better, limit, random = corrective_problem(data), np.inf, RandomSubset(seed=run)
    rows: list[Point] = []
    prepared: dict[str, float] = {}
    for method, shards, selection, solver in (
        (BALANCED, balanced, EXACT, CLASSIC),
        (EXACTLY, unbalanced, EXACT, CLASSIC),
        (CENTERS, unbalanced, MCenters(), CLASSIC),
        (RANDOM, unbalanced, random, CLASSIC),
        (CORRECTIVE, unbalanced, EXACT, BETTER),
        (CORRECTIVE_RANDOM, unbalanced, random, BETTER),
    ):
        cluster = setting.network.cluster(setting.nodes)
        given, most = (problem, np.inf) if solver is CLASSIC else (better, limit)
        result, seconds, preparing = clocked_run(
            given, shards, cluster, setting.rounds, selection, solver, limit=most
        )
        rows += curves.points(panel, method, run, result.trace, seconds=seconds)
        prepared[method] = preparing[-1]
        if method == EXACTLY:
            limit = seconds[-1]
        if method == CENTERS:
            free = (np.array(seconds) - preparing).tolist()
            rows += curves.points(panel, FREE, run, result.trace, seconds=free)
            prepared[FREE] = 0.0
    return Done(rows, tuple(prepared[method] for method in METHODS))


def fig5b(
    setting: Setting,
    runs: int = 5,
    out: Path | None = None,
    note: str = "",
    plan: Plan = ONE_BY_ONE,
) -> tuple[list[Point], list[Outcome]]:
    """Run every selection on data of every seed, of both kinds.

    Parameters
    ----------
    setting : Setting
    runs : int
        Run r has seed r, for the data and for the random choice. Examples come in random order,
        so that a block of them is a random part.
    out : path of a folder, optional
        Write fig5b.csv, fig5b-mean.csv, fig5b-outcome.csv, fig5b.png and fig5b.svg there.
    note : str
        What the figure should say of the sizes.
    plan : Plan
        How the runs are run. Seconds are measured, so that one job is best.
    """
    parts = [
        Part(
            f"{panel_name(kind)} run {run}",
            f"{setting} {BETTER} {CLUSTERED if kind else ''}",
            partial(one_run, kind, setting, run),
        )
        for kind in KINDS
        for run in range(runs)
    ]
    done = run_parts("fig5b", parts, out, plan)
    rows = [row for one in done for row in one.rows]
    outcomes = []
    for k, kind in enumerate(KINDS):
        facts = [one.facts for one in done[k * runs : (k + 1) * runs]]
        prepared = dict(zip(METHODS, np.transpose(facts).tolist(), strict=True))
        outcomes += judge(rows, panel_name(kind), prepared, setting)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "fig5b.csv")
        write_rows(outcomes, out / "fig5b-outcome.csv")
        lines = {
            panel: {m: curves.average(rows, panel, m, "seconds", "objective") for m in METHODS}
            for panel in map(panel_name, KINDS)
        }
        every = [line for by in lines.values() for group in by.values() for line in group]
        write_rows(every, out / "fig5b-mean.csv")
        write_figure(plot(lines, note), out / "fig5b")
    return rows, outcomes


@cache
def _warm_up(setting: Setting) -> None:
    """Compile what the nodes will use, which must not stand on the clock."""
    data, problem = speech_problem(min(setting.n, 40_000), 0)
    shards = Shards.split(data.X, 2, by="contiguous")
    for selection in (EXACT, MCenters(m=50)):
        clocked_run(problem, shards, setting.network.cluster(2), 3, selection)
    better = corrective_problem(data)
    clocked_run(better, shards, setting.network.cluster(2), 10, EXACT, BETTER)


def judge(
    rows: Sequence[Point], panel: str, prepared: dict[str, list[float]], setting: Setting
) -> list[Outcome]:
    """What every method reached, and when it had what exact dFW has at half of its rounds."""
    outcomes = []
    for method in METHODS:
        runs = curves.runs_of(rows, panel, method)
        exact = curves.runs_of(rows, panel, EXACTLY)
        targets = [halfway(run, setting) for run in exact]
        at_least, catches_up = cost_range(runs, "seconds", targets)
        # The first rounds also choose, and build tables of norms.
        late = [[row for row in run if row.round >= run[-1].round // 10] for run in runs]
        ends = [(run[-1].seconds - run[0].seconds, run[-1].round - run[0].round) for run in late]
        outcomes.append(
            Outcome(
                panel,
                method,
                1e3 * float(np.mean([seconds / max(rounds, 1) for seconds, rounds in ends])),
                float(np.mean(prepared[method])),
                float(np.mean([np.nanmin([row.objective for row in run]) for run in runs])),
                catches_up,
                at_least,
            )
        )
    return outcomes


def halfway(run: Sequence[Point], setting: Setting) -> float:
    """The objective of a run at half of its rounds."""
    return min(row.objective for row in run if 0 < row.round <= setting.rounds // 2)


def plot(panels: dict[str, dict[str, list[curves.Average]]], note: str) -> Figure:
    """The objective against the simulator's clock, on data of each kind."""
    from atomcast.plots.curves import COLORS, new_figure

    figure = new_figure(11.0, 5.0)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (panel, lines) in zip(axes, panels.items(), strict=True):
        for (method, line), (color, dash) in zip(lines.items(), STYLES, strict=True):
            curves.draw(ax, line, method, COLORS[color], dash)
        curves.finish(ax, "clock", "objective", panel)
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(note, fontsize=9)
    return figure


def findings(outcomes: Sequence[Outcome]) -> list[Finding]:
    """What the paper says of this figure, beside what a run reached on data of each kind."""
    found = []
    for panel in map(panel_name, KINDS):
        by = {outcome.method: outcome for outcome in outcomes if outcome.data == panel}
        ours = claims_large.unbalanced(by[BALANCED], by[EXACTLY], by[CENTERS], by[FREE], by[RANDOM])
        found += [one._replace(claim=f"{one.claim} ({panel})") for one in ours]
    return found


def show(options: Options) -> Record:
    """Run it and print what every selection reached."""
    options = options.by_default(runs_if_quick=1)
    setting = QUICK if options.quick else Setting()
    if options.n is not None:
        setting = replace(setting, n=options.n)
    note = f"kernel SVM, stand-in for the speech data, n = {setting.n:,} x 120, "
    note += f"{setting.share:.0%} on one of {setting.nodes} nodes,\n{options.times}, "
    note += f"{setting.rounds:,} rounds; measured computation of the slowest node, one core each,\n"
    note += f"plus the time of messages by a model ({setting.network})"
    _, outcomes = fig5b(setting, options.run_count, options.out, note, options.timed_plan)
    title = f"Unbalanced data ({' '.join(note.split())})"
    table = print_rows(
        title, outcomes, Outcome._fields[:6], (0, 1), ms_a_round=".2f", preparing=".2f",
        objective=".3e", catches_up=".2f",
    )  # fmt: skip
    heading = "Figure 5(b): unbalanced data, exact and approximate dFW"
    return Record(heading, " ".join(note.split()), [table], findings(outcomes)).printed()
