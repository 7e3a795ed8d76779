"""Figure 2(a): the kernel SVM on Adult, dFW beside nodes that choose examples by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from atomcast.data.datasets import DataSet
from atomcast.experiments import baseline_runs, claims_baselines, real_data
from atomcast.experiments.baseline_runs import Sizes
from atomcast.experiments.curves import Counter, Point
from atomcast.experiments.findings import Finding
from atomcast.experiments.kernel_runs import C, mean_distance_gamma, svm_problem
from atomcast.experiments.options import Options
from atomcast.experiments.record import Record
from atomcast.problem import Problem

PANEL = "Adult"
#: Values sent at which the methods are compared.
BUDGETS = (1e5, 3e5, 1e6, 3e6)


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


def fig2a(
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
        Write fig2a.csv, fig2a-mean.csv, fig2a.png and fig2a.svg there.
    note : str
        What the figure should say of the data and sizes.
    """
    tell = Counter("fig2a", 4 * runs)
    X, y = data.X[: setting.examples], data.y[: setting.examples]
    gamma = mean_distance_gamma(X)

    def make(step: str) -> Problem:
        problem = svm_problem(y, gamma, step, setting.tol, setting.cost)
        # One example to start from, for all methods alike; gamma needs no sample.
        return replace(problem, sample=1)

    rows: list[Point] = []
    for run in range(runs):
        rows += baseline_runs.run_all(PANEL, run, X, make, setting, None, tell)
    if out is not None:
        baseline_runs.write("fig2a", PANEL, rows, out, note)
    return rows


def findings(rows: Sequence[Point]) -> list[Finding]:
    """What the paper says of this figure, beside the rows of a run."""
    where = "section 6.1, figure 2(a)"
    return [
        *claims_baselines.outperforms(rows, PANEL, BUDGETS, f"abstract; {where}"),
        claims_baselines.local_beats_random(rows, PANEL, BUDGETS, where),
    ]


def show(options: Options) -> Record:
    """Run it and print the objectives."""
    setting = QUICK if options.quick else Setting()
    data = real_data.adult(synthetic=options.synthetic, download=options.download)
    n = min(setting.examples or len(data.y), len(data.y))
    note = f"{real_data.name('Adult', options.synthetic)}, n = {n:,}, C = {setting.cost:g}, "
    note += f"N = {setting.nodes}, {options.times}, {setting.rounds:,} rounds of the classic step"
    rows = fig2a(data, setting, options.run_count, options.out, note)
    table = baseline_runs.print_objectives(rows, PANEL, BUDGETS, note, ".2e")
    title = "Figure 2(a): kernel SVM, dFW beside nodes that choose examples by themselves"
    return Record(title, note, [table], findings(rows)).printed()
