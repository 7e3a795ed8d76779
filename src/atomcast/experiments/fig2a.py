"""Figure 2(a): the kernel SVM on Adult, dFW beside nodes that choose examples by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from atomcast.data.datasets import DataSet
from atomcast.experiments import baseline_runs, claims_baselines, real_data
from atomcast.experiments.baseline_runs import Sizes
from atomcast.experiments.curves import Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.kernel_runs import C, mean_distance_gamma, svm_problem
from atomcast.experiments.options import Options
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, checksum, run_parts
from atomcast.experiments.record import Record
from atomcast.problems.problem import Problem

PANEL = "Adult"


@dataclass(frozen=True, kw_only=True)
class Setting(Sizes):
    """The sizes of the experiment; the defaults are the paper's.

    Parameters
    ----------
    examples : int, optional
        Only so many of the examples, the first ones.
    """

    rounds: int = 5000
    per_node: Sequence[int] = (1, 2, 3, 5, 7, 10, 15, 20, 30)
    tol: float = 1e-2
    local_step: str = "classic"  # chooses better here than line search
    batch: int = 10
    cost: float = C
    examples: int | None = None


QUICK = Setting(rounds=1500, per_node=(1, 2, 5, 10), examples=8000)


def one_run(X: Any, y: NDArray[Any], gamma: float, setting: Setting, run: int) -> Done:
    """All methods on one random partition."""

    def make(step: str) -> Problem:
        problem = svm_problem(y, gamma, step, setting.tol, setting.cost)
        # One example to start from, for all methods alike; gamma needs no sample.
        return replace(problem, sample=1)

    return Done(baseline_runs.run_all(PANEL, run, X, make, setting))


def fig2a(
    data: DataSet,
    setting: Setting,
    runs: int = 5,
    out: Path | None = None,
    note: str = "",
    plan: Plan = ONE_BY_ONE,
) -> list[Point]:
    """Run all methods on as many random partitions as there are runs.

    Parameters
    ----------
    data : DataSet
    setting : Setting
    runs : int
        Run r has seed r, for the partition and for the random choice.
    out : path of a folder, optional
        Write fig2a.csv, fig2a-mean.csv, fig2a.png and fig2a.svg there.
    note : str
        What the figure should say of the data and sizes.
    plan : Plan
        How the runs are run.
    """
    X, y = data.X[: setting.examples], data.y[: setting.examples]
    gamma = mean_distance_gamma(X)
    given = f"{setting} {checksum(X, y)}"
    parts = [
        Part(f"run {run}", given, partial(one_run, X, y, gamma, setting, run))
        for run in range(runs)
    ]
    rows = [row for done in run_parts("fig2a", parts, out, plan) for row in done.rows]
    if out is not None:
        baseline_runs.write("fig2a", rows, out, note)
    return rows


def findings(rows: Sequence[Point], setting: Setting) -> list[Finding]:
    """What the paper says of this figure, beside the rows of a run."""
    budgets, where = setting.budgets, "section 6.1, figure 2(a)"
    return [
        *claims_baselines.outperforms(rows, PANEL, budgets, f"abstract; {where}"),
        claims_baselines.local_beats_random(rows, PANEL, budgets, where),
    ]


def show(options: Options) -> Record:
    """Run it and print the objectives."""
    setting = QUICK if options.quick else Setting()
    data = real_data.adult(synthetic=options.synthetic, download=options.download)
    n = min(setting.examples or len(data.y), len(data.y))
    note = f"{real_data.name('Adult', options.synthetic)}, n = {n:,}, C = {setting.cost:g}, "
    note += f"N = {setting.nodes}, {options.times}, {setting.rounds:,} rounds of the classic step"
    rows = fig2a(data, setting, options.run_count, options.out, note, options.plan)
    table = baseline_runs.print_objectives(rows, PANEL, setting.budgets, note, ".2e")
    title = "Figure 2(a): kernel SVM, dFW beside nodes that choose examples by themselves"
    return Record(title, note, [table], findings(rows, setting)).printed()
