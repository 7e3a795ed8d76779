"""Figure 2(b): the Lasso on Dorothea, dFW beside nodes that choose atoms by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atomcast.data.datasets import DataSet
from atomcast.domains import L1Ball
from atomcast.experiments import baseline_runs, claims_baselines, real_data
from atomcast.experiments.baseline_runs import Sizes
from atomcast.experiments.curves import Counter, Point
from atomcast.experiments.findings import Finding, not_measured
from atomcast.experiments.options import Options
from atomcast.experiments.record import Record
from atomcast.objectives import SquaredError
from atomcast.problem import explicit_problem

PANEL = "Dorothea"
#: Values sent at which the methods are compared.
BUDGETS = (1e5, 3e5, 1e6, 3e6)


@dataclass(frozen=True, kw_only=True)
class Setting(Sizes):
    """The sizes of the experiment; the defaults are the paper's."""

    beta: float = 16.0


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
    rows: list[Point] = []
    for run in range(runs):
        rows += baseline_runs.run_all(
            PANEL, run, data.X, lambda step: problem, setting, len(data.y), tell
        )
    if out is not None:
        baseline_runs.write("fig2b", PANEL, rows, out, note)
    return rows


def findings(rows: Sequence[Point]) -> list[Finding]:
    """What the paper says of this figure, beside the rows of a run."""
    where = "section 6.1, figure 2(b)"
    return [
        *claims_baselines.outperforms(rows, PANEL, BUDGETS, f"abstract; {where}"),
        claims_baselines.slow_baselines(rows, PANEL, BUDGETS, where),
        claims_baselines.local_beats_random(rows, PANEL, BUDGETS, "section 6.1, said of Adult"),
        not_measured(
            "other values of beta do not change the relative performance significantly",
            where,
            "one beta is run, as in the figure",
        ),
    ]


def show(options: Options) -> Record:
    """Run it and print the objectives."""
    setting = QUICK if options.quick else Setting()
    data = real_data.dorothea(synthetic=options.synthetic, download=options.download)
    note = f"{real_data.name('Dorothea', options.synthetic)}, beta = {setting.beta:g}, "
    note += f"N = {setting.nodes}, {options.times}, {setting.rounds:,} rounds of the classic step"
    rows = fig2b(data, setting, options.run_count, options.out, note)
    table = baseline_runs.print_objectives(rows, PANEL, BUDGETS, note, ",.0f")
    title = "Figure 2(b): Lasso, dFW beside nodes that choose features by themselves"
    return Record(title, note, [table], findings(rows)).printed()
