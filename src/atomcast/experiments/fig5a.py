"""Figure 5(a): how long exact dFW takes on N nodes, for the kernel SVM of the paper.

Twice: on as many MPI ranks as there are cores, with a stopwatch; and on up to 50 simulated nodes,
by the simulator's clock. The iterates do not depend on N, so that a number of rounds stands for an
objective.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atomcast.callbacks import State
from atomcast.data.shards import Shards
from atomcast.errors import ClusterError, StallError
from atomcast.experiments import claims_large, curves
from atomcast.experiments.clocked_runs import (
    PAPERS_NETWORK,
    TOL,
    Network,
    clocked_run,
    speech_problem,
)
from atomcast.experiments.curves import Counter, Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.record import Record
from atomcast.problem import Problem
from atomcast.result import Result
from atomcast.solver import Solver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MPI, CLOCK = "MPI ranks, measured", "simulator's clock"


@dataclass(frozen=True)
class Setting:
    """The sizes of the experiment; numbers of nodes are the paper's, n is not (8.7 million)."""

    n: int = 500_000
    nodes: Sequence[int] = (1, 2, 5, 10, 25, 50)
    ranks: Sequence[int] = (1, 2)
    rounds: int = 100
    network: Network = PAPERS_NETWORK


QUICK = Setting(n=100_000, nodes=(1, 2, 5, 10), rounds=60)


class Timing(NamedTuple):
    """How long one run took: its rounds times the median of a round, in seconds.

    `work` is the part that is a node's own computation, `step` what every node does alike, and
    `network` the messages; of MPI ranks only the whole is known.
    """

    how: str
    nodes: int
    run: int
    seconds: float
    speedup: float
    work: float
    step: float
    network: float


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
    tell = Counter("fig5a", runs * (len(ranks) + len(setting.nodes)))
    rows: list[Point] = []
    timings: list[Timing] = []
    _warm_up(setting)
    for run in range(runs):
        data, problem = speech_problem(setting.n, run)
        for N in setting.nodes:
            shards = Shards.split(data.X, N, by="contiguous")
            result, seconds, timing = _by_clock(problem, shards, setting, run)
            rows += curves.points(f"N={N}", CLOCK, run, result.trace, seconds=seconds)
            timings.append(timing)
            tell(f"run {run}: {N} simulated nodes")
        for N in ranks:
            shards = Shards.split(data.X, N, by="contiguous")
            result, seconds = mpi_run(problem, shards, setting.rounds)
            rows += curves.points(f"N={N}", MPI, run, result.trace, seconds=seconds)
            whole = setting.rounds * median_round(seconds)
            timings.append(Timing(MPI, N, run, whole, np.nan, np.nan, np.nan, np.nan))
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
    shards = Shards.split(data.X, 2, by="contiguous")
    clocked_run(problem, shards, setting.network.cluster(2), 3)


def ranks_that_start(setting: Setting) -> list[int]:
    """The numbers of MPI ranks to measure: no more than cores, and none if none can be started."""
    cores = len(os.sched_getaffinity(0))
    ranks = [N for N in setting.ranks if cores >= N]
    if ranks:
        data, problem = speech_problem(1000, 0)
        try:
            mpi_run(problem, Shards.split(data.X, max(ranks)), 2)
        except (ImportError, ClusterError, StallError) as error:
            warnings.warn(f"MPI ranks are not measured: {error}", stacklevel=2)
            return []
    return ranks


def _by_clock(
    problem: Problem, shards: Shards, setting: Setting, run: int
) -> tuple[Result, list[float], Timing]:
    """A run on simulated nodes."""
    cluster = setting.network.cluster(shards.nodes)
    result, seconds, _ = clocked_run(problem, shards, cluster, setting.rounds)
    clock, whole = cluster.clock, setting.rounds * median_round(seconds)
    share = [part / clock.seconds for part in (clock.slowest, clock.steps, clock.network)]
    parts = [whole * part for part in share]
    return result, seconds, Timing(CLOCK, shards.nodes, run, whole, np.nan, *parts)


def mpi_run(problem: Problem, shards: Shards, rounds: int) -> tuple[Result, list[float]]:
    """A run of the classic step on MPI ranks of this machine, and the seconds up to each round."""
    from atomcast.cluster.mpi import MPICluster

    seconds: list[float] = []

    def look(state: State) -> None:
        seconds.append(state.seconds)

    solver = Solver("classic", tol=TOL, max_rounds=rounds, callbacks=[look])
    return solver.solve(problem, shards, MPICluster.launch(shards.nodes)), seconds


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
    from atomcast.report.plots import COLORS, new_figure

    figure = new_figure(11.0, 4.8)
    left, right = figure.subplots(1, 2)
    for k, N in enumerate(setting.nodes):
        line = curves.average(rows, f"N={N}", CLOCK, "seconds", "objective")
        curves.draw(left, line, f"N = {N}", COLORS[k % len(COLORS)])
    curves.finish(left, "clock", "objective", f"{CLOCK}")
    left.legend(frameon=False, fontsize=8)
    for color, how, mark in ((COLORS[0], CLOCK, "o-"), (COLORS[1], MPI, "s-")):
        mine = [row for row in means(timings) if row.how == how]
        if mine:
            across = [row.nodes for row in mine]
            right.plot(across, [row.seconds for row in mine], mark, color=color, label=how)
            ideal = [mine[0].seconds * mine[0].nodes / N for N in across]
            right.plot(across, ideal, ":", color=color, linewidth=1.0)
    right.set(
        xscale="log", yscale="log", xlabel="nodes N", ylabel=f"seconds, {setting.rounds} rounds"
    )
    right.set_xticks(list(setting.nodes), [str(N) for N in setting.nodes], minor=False)
    right.set_title("runtime (dotted: linear speedup)", fontsize=9)
    right.grid(True, which="major", alpha=0.3)
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(note, fontsize=9)
    return figure


def findings(timings: Sequence[Timing]) -> list[Finding]:
    """What the paper says of this figure, beside the times of a run."""
    groups = {how: [row for row in means(timings) if row.how == how] for how in (CLOCK, MPI)}
    found = [claims_large.speedup(group) for group in groups.values() if group]
    return found + claims_large.computation(groups[CLOCK])


def show(options: Options) -> Record:
    """Run it and print runtimes and speedups."""
    options = options.by_default(runs_if_quick=1)
    setting = QUICK if options.quick else Setting()
    if options.n is not None:
        setting = replace(setting, n=options.n)
    note = f"kernel SVM, stand-in for the speech data, n = {setting.n:,} x 120, C = 100, "
    note += f"{setting.rounds} rounds, {options.times}\n{CLOCK}: measured computation of the "
    note += f"slowest node, one core each, plus messages by a model ({setting.network})"
    _, timings = fig5a(setting, options.run_count, options.out, note)
    title = f"Seconds for {setting.rounds} rounds ({' '.join(note.split())})"
    table = print_rows(
        title, means(timings), ("how", "nodes", "seconds", "speedup", "work", "step", "network"),
        seconds=".3f", speedup=".2f", work=".3f", step=".3f", network=".4f",
    )  # fmt: skip
    heading = "Figure 5(a): runtime against the number of nodes"
    return Record(heading, " ".join(note.split()), [table], findings(timings)).printed()
