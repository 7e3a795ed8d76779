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
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from atomcast.data.generators import LabelledExamples
from atomcast.data.shards import Shards
from atomcast.errors import ClusterError, StallError
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Found
from atomcast.experiments.page.findings import Finding, finding, not_measured, number, spread
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.pictures import draw, finish
from atomcast.experiments.page.reports import PrintedTable
from atomcast.experiments.runs import clocked_runs, curves
from atomcast.experiments.runs.clocked_runs import (
    PAPERS_NETWORK,
    Network,
    speech_problem,
)
from atomcast.experiments.runs.curves import Point
from atomcast.experiments.runs.jobs import Counter, Plan
from atomcast.experiments.runs.mpi_runs import mpi_run
from atomcast.experiments.runs.timings import Timing, means, median_round, with_speedups
from atomcast.plots.drawing import COLORS, new_figure
from atomcast.problems.problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MPI, CLOCK = "MPI ranks, measured", "simulator's clock"
CORRECTIVE_CLOCK = "simulator's clock, corrective step"
ALONE = "MPI ranks, kernel columns alone"
#: What is said of them where there are none.
NO_RANKS = "MPI ranks are not measured"


class StartedRanks(NamedTuple):
    """The numbers of MPI ranks that can be measured, and which others cannot, and why."""

    numbers: Sequence[int] = ()
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Fig5a(Experiment):
    """The sizes of the experiment; numbers of nodes are the paper's, n is not (8.7 million)."""

    n: int = 500_000
    nodes: Sequence[int] = (1, 2, 5, 10, 25, 50)
    ranks: Sequence[int] = (1, 2, 4, 8)
    rounds: int = 100
    corrective_rounds: int = 8  # 0: without it
    network: Network = PAPERS_NETWORK

    name = "fig5a"
    title = "Figure 5(a): runtime against the number of nodes"
    quick: ClassVar = {"n": 100_000, "nodes": (1, 2, 5, 10), "rounds": 60}
    quick_runs = 1
    told: ClassVar = {"n": "n"}
    judged_as = "time"
    table = TableForm(
        "Seconds for {sizes.rounds} rounds ({note})",
        {
            "how": "", "nodes": "", "seconds": ".3f", "speedup": ".2f", "work": ".3f",
            "step": ".3f", "network": ".4f", "reached": ".3f", "objective": ".3e",
        },
        words={"step": "what all do alike (s)", "network": "messages (s)"},
    )  # fmt: skip

    def prepare(self, options: Options) -> tuple[StartedRanks, str]:
        """The ranks that can be measured, and what the clock shows."""
        return self.ranks_that_start(), (
            f"kernel SVM, stand-in for the speech data, n = {self.n:,} x 120, C = 100, "
            f"{self.rounds} rounds, {options.times};\n{CLOCK}: measured computation of the slowest "
            f"node, each alone on a core, plus messages by a model ({self.network})"
        )

    def ranks_that_start(self) -> StartedRanks:
        """No more ranks than cores, and as many as can be started."""
        cores = len(os.sched_getaffinity(0))
        ranks = sorted(N for N in self.ranks if cores >= N)
        data, problem = speech_problem(1000, 0)
        missing: list[str] = []
        while ranks:
            try:
                mpi_run(problem, Shards.split(data.X, ranks[-1]), 2)
                break
            except (ImportError, OSError, ClusterError, StallError) as error:
                missing.append(f"{ranks.pop()} {NO_RANKS}: {error}")
                warnings.warn(missing[-1], stacklevel=2)
        if not ranks and not missing:
            missing = [f"{NO_RANKS}: none could be started here"]
        return StartedRanks(ranks, "; ".join(missing))

    def remark(self, data: StartedRanks) -> str:
        """Which ranks are missing."""
        return f"; {data.missing}" if data.missing else ""

    def measure(
        self, data: StartedRanks, runs: int, out: Path | None, plan: Plan
    ) -> tuple[Any, Any]:
        """Time runs on every number of nodes.

        Run r has seed r, for the data. Examples come in random order, so that blocks of them are
        random parts.
        """
        steps = 1 + (self.corrective_rounds > 0)
        tell = Counter(self.name, runs * (len(data.numbers) + steps * len(self.nodes)))
        rows: list[Point] = []
        timings: list[Timing] = []
        self._warm_up()
        for run in range(runs):
            examples, problem = speech_problem(self.n, run)
            target = None
            kinds = [(CLOCK, problem)]
            if self.corrective_rounds:
                kinds.append((CORRECTIVE_CLOCK, clocked_runs.corrective_problem(examples)))
            for how, its in kinds:
                for N in self.nodes:
                    points, timing = self.by_clock(its, examples, N, run, target)
                    rows += points
                    timings.append(timing)
                    tell(f"run {run}: {how.replace(CLOCK, f'{N} simulated nodes')}")
                # What the classic step has in the end is what the corrective step must reach.
                target = min(row.objective for row in timings if (row.how, row.run) == (CLOCK, run))
            for N in data.numbers:
                points, both = self._on_ranks(problem, examples, N, run)
                rows += points
                timings += both
                tell(f"run {run}: {N} MPI ranks")
        return rows, with_speedups(timings)

    def _warm_up(self) -> None:
        """Compile what the nodes will use, which must not stand on the clock."""
        data, problem = speech_problem(min(self.n, 20_000), 0)
        better = clocked_runs.corrective_problem(data)
        for its, solver in ((problem, clocked_runs.CLASSIC), (better, clocked_runs.CORRECTIVE)):
            shards = Shards.split(data.X, 2, by="contiguous")
            clocked_runs.clocked_run(its, shards, self.network.cluster(2), 3, solver=solver)

    def by_clock(
        self, problem: Problem, data: LabelledExamples, N: int, run: int, target: float | None
    ) -> tuple[list[Point], Timing]:
        """A run on simulated nodes: of the corrective step, if there is a target to be reached."""
        how, solver, rounds = CLOCK, clocked_runs.CLASSIC, self.rounds
        if target is not None:
            how, solver, rounds = CORRECTIVE_CLOCK, clocked_runs.CORRECTIVE, self.corrective_rounds
        shards, cluster = Shards.split(data.X, N, by="contiguous"), self.network.cluster(N)
        heard = cluster.heard = None if target is not None else []
        result, seconds, _ = clocked_runs.clocked_run(
            problem, shards, cluster, rounds, solver=solver
        )
        clock, objective = cluster.clock, result.trace.objective
        work, steps, network = clock.slowest, clock.steps, clock.network
        if heard is not None:
            parts = clocked_runs.slowest_alone(problem, shards, heard)
            work, steps = (rounds * part for part in parts)
            seconds = np.linspace(0.0, work + steps + network, rounds + 1).tolist()
        reached = seconds[-1]
        if target is not None:
            # Iterates of different N agree up to rounding.
            there = np.flatnonzero(objective <= target * (1 + 1e-9))
            reached = seconds[there[0]] if len(there) else np.inf
        points = curves.points(f"N={N}", how, run, result.trace, seconds=seconds)
        return points, Timing(
            how,
            N,
            run,
            work + steps + network,
            np.nan,
            work,
            steps,
            network,
            reached,
            float(objective[-1]),
        )

    def _on_ranks(
        self, problem: Problem, data: LabelledExamples, N: int, run: int
    ) -> tuple[list[Point], list[Timing]]:
        """A run on MPI ranks, and as many kernel columns as it has rounds on the same ranks."""
        trace, alone = mpi_run(problem, Shards.split(data.X, N, by="contiguous"), self.rounds)
        seconds, nothing = trace.seconds.tolist(), (np.nan,) * 4
        whole, columns = median_round(seconds), float(np.median(alone))
        end = float(trace.objective[-1])
        return curves.points(f"N={N}", MPI, run, trace), [
            Timing(MPI, N, run, self.rounds * whole, *nothing, seconds[-1], end),
            Timing(ALONE, N, run, self.rounds * columns, *nothing),
        ]

    def plot(self, found: Found, note: str) -> Figure:
        """The objective against runtime for each N, and runtime against N."""
        figure = new_figure(11.0, 4.8)
        left, right = figure.subplots(1, 2)
        for k, N in enumerate(self.nodes):
            shown = ((CLOCK, f"N = {N}", "-"), (CORRECTIVE_CLOCK, "", "--"))
            for how, label, dash in shown if self.corrective_rounds else shown[:1]:
                line = curves.average(found.rows, f"N={N}", how, "seconds", "objective")
                draw(left, line, label, k, dash)
        more = f" (dashed: corrective step, {clocked_runs.BATCH} a round)"
        title = CLOCK + (more if self.corrective_rounds else "")
        finish(left, "clock", "objective", title, legend=True)
        for color, how, mark in (
            (COLORS[0], CLOCK, "o-"), (COLORS[2], CORRECTIVE_CLOCK, "^--"), (COLORS[1], MPI, "s-"),
            (COLORS[1], ALONE, "x--"),
        ):  # fmt: skip
            mine = [row for row in means(found.judged) if row.how == how]
            across, label = [row.nodes for row in mine], how
            seconds = [row.seconds for row in mine]
            if how == CORRECTIVE_CLOCK:
                seconds, label = [row.reached for row in mine], f"{how},\nuntil the same objective"
            if mine:
                right.plot(across, seconds, mark, color=color, label=label)
            if mine and how in (CLOCK, MPI):
                # What it would be if N nodes were N times as fast as one.
                ideal = [seconds[0] * across[0] / N for N in across]
                right.plot(across, ideal, ":", color=color, linewidth=1.0)
        title = "runtime (dotted: linear speedup)"
        finish(right, "nodes", f"seconds, {self.rounds} rounds", title, legend=True)
        right.set_xticks(list(self.nodes), [str(N) for N in self.nodes], minor=False)
        if self.ranks and not found.data.numbers:
            note += "\nMPI ranks could not be started here"
        figure.suptitle(note, fontsize=9)
        return figure

    def tables(self, found: Found, note: str) -> list[PrintedTable]:
        """Runtimes and speedups."""
        return [self.table.made(means(found.judged), sizes=self, note=note)]

    def findings(self, found: Found) -> list[Finding]:
        """What the paper says of this figure, or why there is nothing to say."""
        rows = means(found.judged)
        clock, ranks, alone = ([r for r in rows if r.how == how] for how in (CLOCK, MPI, ALONE))
        measured = _speedup(MPI, ranks, alone)
        if not ranks:
            measured = measured._replace(measured=found.data.missing)
        return [_speedup(CLOCK, clock), *_computation(clock), measured]


#: "Near-linear": the speedup is at least this share of N.
NEAR_LINEAR = 0.8
#: "Not a significant issue": messages take at most this share of the time.
MINOR = 0.1
WHERE = "section 6.3, figure 5(a)"


def _speedup(how: str, rows: Sequence[Timing], ceiling: Sequence[Timing] = ()) -> Finding:
    """How much faster N nodes are, by one way of measuring: rows for 1 and more nodes.

    `ceiling` are the times of what could at best be gained on the machine: where that is less than
    what is asked for, nothing follows.
    """
    several = [row for row in rows if row.nodes > 1 and np.isfinite(row.speedup)]
    possible = {row.nodes: row.speedup for row in ceiling}
    texts, most = (
        ", ".join(f"{row.speedup:.2f} at N = {row.nodes}" for row in some if row.nodes > 1)
        for some in (several, ceiling)
    )
    texts += f" ({ceiling[0].how}: {most})" if texts and most else ""
    return finding(
        f"near-linear speedup where data is balanced ({how})",
        f"{WHERE}; the introduction says significant speedups",
        "the speedup over one node is at least 80 % of N: for all N, for some, for none. Where the "
        "cores of this machine do not gain as much with nothing to agree on, it does not count",
        texts,
        [
            row.speedup >= NEAR_LINEAR * row.nodes
            for row in several
            if possible.get(row.nodes, np.inf) >= NEAR_LINEAR * row.nodes
        ],
    )


def _computation(rows: Sequence[Timing]) -> list[Finding]:
    """What the time goes to, where that is known."""
    known = sorted((row for row in rows if np.isfinite(row.work)), key=lambda row: row.nodes)
    shares = [row.network / row.seconds for row in known if row.nodes > 1]
    growth = [
        (few.work / many.work, many.nodes / few.nodes)
        for few, many in pairwise(known)
        if many.work > 0
    ]
    largest = ", ".join(f"{number(time)} for {number(size)}" for time, size in growth)
    percent = spread(100 * share for share in shares)
    return [
        finding(
            "synchronisation costs are not a significant issue where computation is balanced",
            WHERE,
            "messages take at most 10 % of the time: for all N > 1, for some, for none",
            f"{percent} % of the time, by a model of the network" if shares else "",
            [share <= MINOR for share in shares],
        ),
        finding(
            "the computational cost of an iteration is O(n_i) on a node with n_i examples",
            "section 6.3",
            "with k times as many examples, a node's own computation takes at most 1.1 k times as "
            "long: between all neighbouring N, some, none",
            f"times as long, for times as many examples: {largest}" if largest else "",
            [time <= 1.1 * size for time, size in growth],
        ),
        not_measured(
            "dFW needs only O(n_i) memory on a node with n_i examples",
            "section 6.3",
            "not measured here: see benchmarks/kernel_svm.py scale",
        ),
    ]
