"""Figure 2(b): the Lasso on Dorothea, dFW beside nodes that choose atoms by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from atomcast.data.datasets import DataSet
from atomcast.domains.base import L1Ball
from atomcast.experiments import baseline_runs, claims_baselines, real_data
from atomcast.experiments.baseline_runs import Sizes
from atomcast.experiments.curves import Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.options import Options
from atomcast.experiments.parts import ONE_BY_ONE, Done, Part, Plan, checksum, run_parts
from atomcast.experiments.record import Record
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem


@dataclass(frozen=True, kw_only=True)
class Setting(Sizes):
    """The sizes of the experiment; the defaults are the paper's.

    Parameters
    ----------
    betas : sequence of float
        The first is that of the paper's figure, of which it says that others do not change the
        relative performance of the methods.
    """

    betas: Sequence[float] = (16.0, 8.0, 24.0)


QUICK = Setting(rounds=500, per_node=(1, 2, 5, 10))


def panel_name(beta: float) -> str:
    """How a problem is called in the rows."""
    return f"beta={beta:g}"


def one_run(data: DataSet, beta: float, setting: Setting, run: int) -> Done:
    """All methods on one random partition."""
    problem = explicit_problem(SquaredError(data.y), L1Ball(beta))
    panel, d = panel_name(beta), len(data.y)
    return Done(baseline_runs.run_all(panel, run, data.X, lambda step: problem, setting, d))


def fig2b(
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
        Write fig2b.csv, fig2b-mean.csv, fig2b.png and fig2b.svg there.
    note : str
        What the figure should say of the data and sizes.
    plan : Plan
        How the runs are run.
    """
    given = f"{setting} {checksum(data.X, data.y)}"
    parts = [
        Part(f"{panel_name(beta)} run {run}", given, partial(one_run, data, beta, setting, run))
        for beta in setting.betas
        for run in range(runs)
    ]
    rows = [row for done in run_parts("fig2b", parts, out, plan) for row in done.rows]
    if out is not None:
        baseline_runs.write("fig2b", rows, out, note)
    return rows


def findings(rows: Sequence[Point], setting: Setting) -> list[Finding]:
    """What the paper says of this figure, beside the rows of a run."""
    budgets, where = setting.budgets, "section 6.1, figure 2(b)"
    panel, *others = map(panel_name, setting.betas)
    return [
        *claims_baselines.outperforms(rows, panel, budgets, f"abstract; {where}"),
        claims_baselines.slow_baselines(rows, panel, budgets, where),
        claims_baselines.local_beats_random(rows, panel, budgets, "section 6.1, said of Adult"),
        claims_baselines.same_order(rows, panel, others, budgets, where),
    ]


def show(options: Options) -> Record:
    """Run it and print the objectives."""
    setting = QUICK if options.quick else Setting()
    data = real_data.dorothea(synthetic=options.synthetic, download=options.download)
    note = f"{real_data.name('Dorothea', options.synthetic)}, "
    note += f"N = {setting.nodes}, {options.times}, {setting.rounds:,} rounds of the classic step"
    rows = fig2b(data, setting, options.run_count, options.out, note, options.plan)
    tables = [
        baseline_runs.print_objectives(rows, panel_name(beta), setting.budgets, note, ",.0f")
        for beta in setting.betas
    ]
    title = "Figure 2(b): Lasso, dFW beside nodes that choose features by themselves"
    return Record(title, note, tables, findings(rows, setting)).printed()
