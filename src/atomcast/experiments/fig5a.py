"""Figure 5(a): how long exact dFW takes on N nodes, for the kernel SVM of the paper.

Twice: on as many MPI ranks as there are cores, with a stopwatch; and on up to 50 simulated nodes,
by the simulator's clock. The iterates do not depend on N, so that a number of rounds stands for an
objective. Beside that, how long the corrective step takes until it has the same objective; and how
long the ranks take for the kernel columns alone, which is all that they could gain on this machine.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.data.generators import LabelledExamples
from atomcast.data.shards import Shards
from atomcast.errors import ClusterError, StallError
from atomcast.experiments import claims_large, curves
from atomcast.experiments.clocked_runs import (
    BATCH,
    CLASSIC,
    CORRECTIVE,
    PAPERS_NETWORK,
    Network,
    clocked_run,
    corrective_problem,
    speech_problem,
)
from atomcast.experiments.curves import Counter, Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.mpi_runs import mpi_run
from atomcast.experiments.options import WORDS, Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.record import Record
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.problems.problem import Problem
from atomcast.simulation.clocked import Clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MPI, CLOCK = "MPI ranks, measured", "simulator's clock"
CORRECTIVE_CLOCK = "simulator's clock, corrective step"
ALONE = "MPI ranks, kernel columns alone"
#: What a warning says of them.
NO_RANKS = "MPI ranks are not measured"


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment; numbers of nodes are the paper's, n is not (8.7 million)."""

    n: int = 500_000
    nodes: Sequence[int] = (1, 2, 5, 10, 25, 50)
    ranks: Sequence[int] = (1, 2, 4, 8)
    rounds: int = 100
    corrective_rounds: int = 8
    network: Network = PAPERS_NETWORK


QUICK = Setting(n=100_000, nodes=(1, 2, 5, 10), rounds=60)


class Timing(NamedTuple):
    """How long one run took: its rounds times the median of a round, in seconds.

    `work` is the part that is a node's own computation, `step` what every node does alike, and
    `network` the messages; of MPI ranks only the whole is known. Rounds of the corrective step
    differ: theirs are added up. `reached` is the time until the objective that the classic step has
    after all its rounds, with the first ones, and `objective` the one at the end.
    """

    how: str
    nodes: int
    run: int
    seconds: float
    speedup: float
    work: float
    step: float
    network: float
    reached: float = np.nan
    objective: float = np.nan


def fig5a(
    setting: Setting, runs: int = 5, out: Path | None = None, note: str = ""
) -> tuple[list[Point], list[Timing]]:
    """Time runs on every number of nodes.

    Parameters
    ----------
    setting : Setting
    runs : int
        Run r has seed r, for the data. Examples come in random order, so that blocks of them are
        random parts.
    out : path of a folder, optional
        Write fig5a.csv, fig5a-time.csv, fig5a.png and fig5a.svg there.
    note : str
        What the figure should say of the sizes.
    """
    ranks = ranks_that_start(setting)
    if setting.ranks and not ranks:
        note += "\nMPI ranks could not be started here"
    tell = Counter("fig5a", runs * (len(ranks) + 2 * len(setting.nodes)))
    rows: list[Point] = []
    timings: list[Timing] = []
    _warm_up(setting)
    for run in range(runs):
        data, problem = speech_problem(setting.n, run)
        target = np.inf
        for N in setting.nodes:
            points, timing = _by_clock(problem, data, N, setting, run)
            target = min(target, timing.objective)
            rows += points
            timings.append(timing)
            tell(f"run {run}: {N} simulated nodes")
        better = corrective_problem(data)
        for N in setting.nodes:
            points, timing = _corrective(better, data, N, setting, run, target)
            rows += points
            timings.append(timing)
            tell(f"run {run}: {N} simulated nodes, corrective step")
        for N in ranks:
            points, both = _on_ranks(problem, data, N, setting, run)
            rows += points
            timings += both
            tell(f"run {run}: {N} MPI ranks")
    timings = with_speedups(timings)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "fig5a.csv")
        write_rows(timings, out / "fig5a-time.csv")
        write_figure(plot(rows, timings, setting, note), out / "fig5a")
    return rows, timings


def _warm_up(setting: Setting) -> None:
    """Compile what the nodes will use, which must not stand on the clock."""
    data, problem = speech_problem(min(setting.n, 20_000), 0)
    for solver, its in ((CLASSIC, problem), (CORRECTIVE, corrective_problem(data))):
        _clocked(its, data, 2, setting, 3, solver)


def ranks_that_start(setting: Setting) -> list[int]:
    """The numbers of MPI ranks to measure: no more than cores, and as many as can be started."""
    cores = len(os.sched_getaffinity(0))
    ranks = sorted(N for N in setting.ranks if cores >= N)
    data, problem = speech_problem(1000, 0)
    while ranks:
        try:
            mpi_run(problem, Shards.split(data.X, ranks[-1]), 2)
        except (ImportError, OSError, ClusterError, StallError) as error:
            warnings.warn(f"{ranks[-1]} MPI ranks are not measured: {error}", stacklevel=2)
            ranks.pop()
        else:
            break
    return ranks


def _by_clock(
    problem: Problem, data: LabelledExamples, N: int, setting: Setting, run: int
) -> tuple[list[Point], Timing]:
    """A run of the classic step on simulated nodes."""
    result, seconds, clock = _clocked(problem, data, N, setting, setting.rounds, CLASSIC)
    whole = setting.rounds * median_round(seconds)
    share = [part / clock.seconds for part in (clock.slowest, clock.steps, clock.network)]
    parts = [whole * part for part in share]
    end = float(result.trace.objective[-1])
    points = curves.points(f"N={N}", CLOCK, run, result.trace, seconds=seconds)
    timing = Timing(CLOCK, N, run, whole, np.nan, *parts)
    return points, timing._replace(reached=seconds[-1], objective=end)


def _corrective(
    problem: Problem, data: LabelledExamples, N: int, setting: Setting, run: int, target: float
) -> tuple[list[Point], Timing]:
    """A run of the corrective step on simulated nodes, and when it reached the target."""
    rounds = setting.corrective_rounds
    result, seconds, clock = _clocked(problem, data, N, setting, rounds, CORRECTIVE)
    parts = clock.slowest, clock.steps, clock.network
    objective = result.trace.objective
    # Iterates of different N agree up to rounding.
    there = np.flatnonzero(objective <= target * (1 + 1e-9))
    reached = seconds[there[0]] if len(there) else np.inf
    points = curves.points(f"N={N}", CORRECTIVE_CLOCK, run, result.trace, seconds=seconds)
    end = float(objective[-1])
    return points, Timing(CORRECTIVE_CLOCK, N, run, clock.seconds, np.nan, *parts, reached, end)


def _clocked(
    problem: Problem, data: LabelledExamples, N: int, setting: Setting, rounds: int, solver: Solver
) -> tuple[Result, list[float], Clock]:
    shards, cluster = Shards.split(data.X, N, by="contiguous"), setting.network.cluster(N)
    result, seconds, _ = clocked_run(problem, shards, cluster, rounds, solver=solver)
    return result, seconds, cluster.clock


def _on_ranks(
    problem: Problem, data: LabelledExamples, N: int, setting: Setting, run: int
) -> tuple[list[Point], list[Timing]]:
    """A run on MPI ranks, and as many kernel columns as it has rounds on the same ranks."""
    shards = Shards.split(data.X, N, by="contiguous")
    trace, alone = mpi_run(problem, shards, setting.rounds)
    seconds, nothing = trace.seconds.tolist(), (np.nan,) * 4
    whole = setting.rounds * median_round(seconds)
    end = float(trace.objective[-1])
    columns = setting.rounds * float(np.median(alone))
    return curves.points(f"N={N}", MPI, run, trace), [
        Timing(MPI, N, run, whole, *nothing, seconds[-1], end),
        Timing(ALONE, N, run, columns, *nothing),
    ]


def median_round(seconds: Sequence[float]) -> float:
    """How long a round takes: the first ones, which also set up, do not weigh in."""
    return float(np.median(np.diff(seconds)[1:]))


def with_speedups(timings: Sequence[Timing]) -> list[Timing]:
    """Fill in how much faster each run was than one node, of the same kind and on the same data."""
    alone = {(row.how, row.run): row.seconds for row in timings if row.nodes == 1}
    return [
        row._replace(speedup=alone.get((row.how, row.run), np.nan) / row.seconds) for row in timings
    ]


def means(timings: Sequence[Timing]) -> list[Timing]:
    """The mean over the runs for each way of measuring and each N; `run` is their number."""
    groups: dict[tuple[str, int], list[Timing]] = {}
    for row in timings:
        groups.setdefault((row.how, row.nodes), []).append(row)
    return with_speedups([
        Timing(how, N, len(group), *map(float, np.mean([row[3:] for row in group], axis=0)))
        for (how, N), group in groups.items()
    ])  # fmt: skip


def plot(rows: Sequence[Point], timings: Sequence[Timing], setting: Setting, note: str) -> Figure:
    """The objective against runtime for each N, and runtime against N."""
    from atomcast.plots.curves import COLORS, new_figure

    figure = new_figure(11.0, 4.8)
    left, right = figure.subplots(1, 2)
    for k, N in enumerate(setting.nodes):
        line = curves.average(rows, f"N={N}", CLOCK, "seconds", "objective")
        curves.draw(left, line, f"N = {N}", COLORS[k % len(COLORS)])
        line = curves.average(rows, f"N={N}", CORRECTIVE_CLOCK, "seconds", "objective")
        curves.draw(left, line, "", COLORS[k % len(COLORS)], "--")
    curves.finish(left, "clock", "objective", f"{CLOCK} (dashed: corrective step, {BATCH} a round)")
    left.legend(frameon=False, fontsize=8)
    _draw_times(right, means(timings))
    right.set(
        xscale="log", yscale="log", xlabel="nodes N", ylabel=f"seconds, {setting.rounds} rounds"
    )
    right.set_xticks(list(setting.nodes), [str(N) for N in setting.nodes], minor=False)
    right.set_title("runtime (dotted: linear speedup)", fontsize=9)
    right.grid(True, which="major", alpha=0.3)
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(note, fontsize=9)
    return figure


def _draw_times(ax: Axes, timings: Sequence[Timing]) -> None:
    """Runtime against N, and dotted what it would be if N nodes were N times as fast as one."""
    from atomcast.plots.curves import COLORS

    same = f"{CORRECTIVE_CLOCK},\nuntil the same objective"
    for color, how, mark, label in (
        (COLORS[0], CLOCK, "o-", CLOCK),
        (COLORS[2], CORRECTIVE_CLOCK, "^--", same),
        (COLORS[1], MPI, "s-", MPI),
        (COLORS[1], ALONE, "x--", ALONE),
    ):
        mine = [row for row in timings if row.how == how]
        if mine:
            across = [row.nodes for row in mine]
            seconds = [row.reached if how == CORRECTIVE_CLOCK else row.seconds for row in mine]
            ax.plot(across, seconds, mark, color=color, label=label)
            if how in (CLOCK, MPI):
                ideal = [seconds[0] * across[0] / N for N in across]
                ax.plot(across, ideal, ":", color=color, linewidth=1.0)


def findings(timings: Sequence[Timing], missing: str = NO_RANKS) -> list[Finding]:
    """What the paper says of this figure, beside the times of a run.

    `missing` says why there are no MPI ranks, if there are none.
    """
    rows = means(timings)
    clock, ranks, alone = ([row for row in rows if row.how == how] for how in (CLOCK, MPI, ALONE))
    measured = claims_large.speedup(MPI, ranks, alone)
    if not ranks:
        measured = measured._replace(measured=missing)
    return [claims_large.speedup(CLOCK, clock), *claims_large.computation(clock), measured]


def show(options: Options) -> Record:
    """Run it and print runtimes and speedups."""
    options = options.by_default(runs_if_quick=1)
    setting = QUICK if options.quick else Setting()
    if options.n is not None:
        setting = replace(setting, n=options.n)
    note = f"kernel SVM, stand-in for the speech data, n = {setting.n:,} x 120, C = 100, "
    note += f"{setting.rounds} rounds, {options.times};\n{CLOCK}: measured computation of the "
    note += f"slowest node, one core each, plus messages by a model ({setting.network})"
    # Which MPI ranks could not be started, and why, belongs on the page too.
    with warnings.catch_warnings(record=True) as said:
        _, timings = fig5a(setting, options.run_count, options.out, note)
    for one in said:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    missing = "; ".join(text for text in (str(one.message) for one in said) if NO_RANKS in text)
    if not missing and not any(row.how == MPI for row in timings):
        missing = f"{NO_RANKS}: none could be started here"
    note += f"; {missing}" if missing else ""
    title = f"Seconds for {setting.rounds} rounds ({' '.join(note.split())})"
    words = WORDS | {"step": "what all do alike (s)", "network": "messages (s)"}
    table = print_rows(
        title, means(timings), [name for name in Timing._fields if name != "run"], words=words,
        seconds=".3f", speedup=".2f", work=".3f", step=".3f", network=".4f", reached=".3f",
        objective=".3e",
    )  # fmt: skip
    heading = "Figure 5(a): runtime against the number of nodes"
    return Record(heading, " ".join(note.split()), [table], findings(timings, missing)).printed()
