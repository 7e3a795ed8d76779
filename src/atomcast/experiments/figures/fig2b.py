"""Figure 2(b): the Lasso on Dorothea, dFW beside nodes that choose atoms by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from atomcast.data.datasets import DataSet
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures import baseline_figure as section61
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Found
from atomcast.experiments.page.findings import Finding
from atomcast.experiments.runs import baseline_runs, real_data
from atomcast.experiments.runs.jobs import Done
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem

#: The radius of the paper's figure, of which it says that others change little.
SHOWN = 16.0


@dataclass(frozen=True, kw_only=True)
class Fig2b(section61.BaselineFigure):
    """The sizes of the experiment; the defaults are the paper's."""

    betas: Sequence[float] = (8.0, 16.0, 24.0)

    name = "fig2b"
    title = "Figure 2(b): Lasso, dFW beside nodes that choose features by themselves"
    quick: ClassVar = {"rounds": 500, "per_node": (1, 2, 5, 10)}
    size, form = (16.0, 4.8), ",.0f"

    def prepare(self, options: Options) -> tuple[DataSet, str]:
        """Dorothea."""
        note = options.usual_note(options.named("Dorothea"), self.nodes, self.rounds)
        return real_data.dorothea(**options.source), note

    def cases(self) -> dict[str, float]:
        """The radii."""
        return {f"beta={beta:g}": beta for beta in self.betas}

    def one_run(self, data: DataSet, label: str, case: float, run: int) -> Done:
        """All methods on one random partition."""
        problem, d = explicit_problem(SquaredError(data.y), L1Ball(case)), len(data.y)
        return Done(baseline_runs.run_all(label, run, data.X, lambda step: problem, self, d))

    def findings(self, found: Found) -> list[Finding]:
        """What the paper says of this figure."""
        races = [section61.Race(found.rows, panel, self.budgets) for panel in self.cases()]
        race = races.pop(self.betas.index(SHOWN) if SHOWN in self.betas else 0)
        where = "section 6.1, figure 2(b)"
        return [
            *section61.outperforms(race, f"abstract; {where}"),
            section61.slow_baselines(race, where),
            section61.local_beats_random(race, "section 6.1, said of Adult"),
            section61.same_order(race, races, where),
        ]
