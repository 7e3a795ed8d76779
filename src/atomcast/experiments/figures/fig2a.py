"""Figure 2(a): the kernel SVM on Adult, dFW beside nodes that choose examples by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from atomcast.data.datasets import DataSet
from atomcast.experiments.figures import baseline_figure as section61
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Found
from atomcast.experiments.page.findings import Finding
from atomcast.experiments.runs import baseline_runs, real_data
from atomcast.experiments.runs.jobs import Done
from atomcast.experiments.runs.kernel_runs import C, mean_distance_gamma, svm_problem
from atomcast.problems.problem import Problem

PANEL = "Adult"


@dataclass(frozen=True, kw_only=True)
class Fig2a(section61.BaselineFigure):
    """The sizes of the experiment; the defaults are the paper's."""

    rounds: int = 5000
    tol: float = 1e-2
    local_step: str = "classic"  # chooses better here than line search
    batch: int = 10
    cost: float = C
    examples: int | None = None  # only so many, the first ones

    name = "fig2a"
    title = "Figure 2(a): kernel SVM, dFW beside nodes that choose examples by themselves"
    quick: ClassVar = {"rounds": 1500, "per_node": (1, 2, 5, 10), "examples": 8000}
    size, form = (6.0, 4.8), ".2e"

    def prepare(self, options: Options) -> tuple[DataSet, str]:
        """Adult, or as much of it as is wanted."""
        data = real_data.adult(**options.source, examples=self.examples)
        about = f"{options.named('Adult')}, n = {len(data.y):,}, C = {self.cost:g}"
        return data, options.usual_note(about, self.nodes, self.rounds)

    def one_run(self, data: DataSet, label: str, case: None, run: int) -> Done:
        """All methods on one random partition."""
        gamma = mean_distance_gamma(data.X)

        def make(step: str) -> Problem:
            problem = svm_problem(data.y, gamma, step, self.tol, self.cost)
            # One example to start from, for all methods alike; gamma needs no sample.
            return replace(problem, sample=1)

        return Done(baseline_runs.run_all(PANEL, run, data.X, make, self))

    def findings(self, found: Found) -> list[Finding]:
        """What the paper says of this figure."""
        race, where = section61.Race(found.rows, PANEL, self.budgets), "section 6.1, figure 2(a)"
        return [
            *section61.outperforms(race, f"abstract; {where}"),
            section61.local_beats_random(race, where),
        ]
