"""The shape that all experiments share.

Sizes, then runs of cases on seeds, whose rows go to NAME.csv; what is judged from them, which goes
to a CSV file too; mean curves, for NAME-mean.csv; a picture; a table; and findings beside what the
paper says. An experiment fills in what is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from atomcast.experiments.figures.options import Options
from atomcast.experiments.page import output, pictures
from atomcast.experiments.page.findings import Finding
from atomcast.experiments.page.reports import PrintedTable, Report
from atomcast.experiments.runs import curves
from atomcast.experiments.runs.curves import Lines, Point
from atomcast.experiments.runs.jobs import ONE_BY_ONE, Done, Job, Plan, checksum, run_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The further numbers of the runs of each case, by its label.
Facts = dict[str, list[tuple[float, ...]]]


class Found(NamedTuple):
    """What was measured: rows of all runs, what is judged from them, curves; and the data."""

    rows: Any = ()
    judged: Any = ()
    lines: Lines = MappingProxyType({})
    data: Any = None


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or a claim of the paper; its fields are sizes, by default those of the paper."""

    name: ClassVar[str]  # as on the command line; also the beginning of all files
    title: ClassVar[str]  # begins with the figure or the section of the paper
    quick: ClassVar[Mapping[str, Any]] = {}  # sizes that differ where it is to be quick
    usual_runs: ClassVar[int] = 5
    quick_runs: ClassVar[int] = 2
    told: ClassVar[Mapping[str, str]] = {}  # options that say a size, and the size
    timed: ClassVar[bool] = False  # seconds are measured: runs must not be side by side
    judged_as: ClassVar[str] = ""  # the CSV file of what is judged is NAME-this; "" for none
    table: ClassVar[output.TableForm]  # of what is judged, or else of the rows
    styles: ClassVar[pictures.Styles] = {}  # the methods of the picture
    size: ClassVar[tuple[float, float]]  # of the picture
    across: ClassVar[str] = "values"  # the field that goes from left to right,
    axis: ClassVar[str] = "values"  # and what the picture calls it
    known: ClassVar[dict[str, type[Experiment]]] = {}  # all that were imported, by name

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            cls.known[cls.name] = cls

    @classmethod
    def asked(cls, options: Options) -> Self:
        """The experiment with the sizes that were asked for."""
        sizes = dict(cls.quick) if options.quick else {}
        for option, size in cls.told.items():
            if value := getattr(options, option):
                sizes[size] = value if isinstance(value, int) else tuple(dict.fromkeys(value))
        return cls(**sizes)

    def prepare(self, options: Options) -> tuple[Any, str]:
        """The data, if it is not generated run by run, and what is said of the runs."""
        raise NotImplementedError

    def remark(self, data: Any) -> str:
        """What the page should add to that, and the picture need not."""
        return ""

    def cases(self) -> dict[str, Any]:
        """What is run on every seed, by how files, and mostly the rows as well, call it."""
        return {"": None}

    def given(self, data: Any, case: Any) -> str:
        """All that the outcome of a run depends on, in words."""
        return f"{self.sizes} {checksum(data.X, data.y)}"

    def one_run(self, data: Any, label: str, case: Any, run: int) -> Done:
        """One case; the seed is the number of the run."""
        raise NotImplementedError

    def judge(self, rows: Sequence[Point], facts: Facts) -> Any:
        """What follows from the rows of all runs."""
        return []

    def lines(self, rows: Any, judged: Any) -> Lines:
        """The curves of the picture."""
        panels = dict.fromkeys(row.panel for row in rows) if self.styles else ()
        return {
            (panel, method): curves.average(rows, panel, method, self.across, "objective")
            for panel in panels
            for method in self.styles
        }

    def plot(self, found: Found, note: str) -> Figure:
        """The picture."""
        return pictures.panels_in_a_row(found.lines, self.styles, self.size, self.axis, note)

    def tables(self, found: Found, note: str) -> list[PrintedTable]:
        """What is printed."""
        return [self.table.made(found.judged or found.rows, sizes=self, note=note)]

    def findings(self, found: Found) -> list[Finding]:
        """What the paper says, beside what was measured."""
        raise NotImplementedError

    @property
    def sizes(self) -> str:
        """The fields in words, as all versions have written them into files of finished runs."""
        return f"Setting{repr(self).removeprefix(type(self).__qualname__)}"

    def measure(self, data: Any, runs: int, out: Path | None, plan: Plan) -> tuple[Any, Any]:
        """Run every case on every seed: the rows, and what is judged from them.

        One seed after the other, so that what is stopped leaves whole runs.
        """
        keys = [(label, case, run) for run in range(runs) for label, case in self.cases().items()]
        jobs = [
            Job(
                f"{label} run {run}".strip(),
                self.given(data, case),
                partial(self.one_run, data, label, case, run),
            )
            for label, case, run in keys
        ]
        rows: list[Point] = []
        facts: Facts = {}
        for (label, *_), done in zip(keys, run_jobs(self.name, jobs, out, plan), strict=True):
            if done is not None:
                rows += done.rows
                facts.setdefault(label, []).append(done.facts)
        if missing := [label for label in self.cases() if label not in facts]:
            raise ValueError(f"--finished needs a finished run of each problem; {missing} has none")
        return rows, self.judge(rows, facts)

    def run(
        self,
        data: Any = None,
        runs: int = 5,
        out: Path | None = None,
        note: str = "",
        plan: Plan = ONE_BY_ONE,
    ) -> Found:
        """Run everything, on `data` as `prepare` gives it.

        Run r has seed r: for what is generated, for partitions and for random choices. CSV files
        and a picture with `note` go to the folder `out`, if there is one.
        """
        rows, judged = self.measure(data, runs, out, plan)
        found = Found(rows, judged, self.lines(rows, judged), data)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            output.write_rows(rows, out / f"{self.name}.csv")
            if self.judged_as:
                output.write_rows(judged, out / f"{self.name}-{self.judged_as}.csv")
            if found.lines:
                means = [mean for line in found.lines.values() for mean in line]
                output.write_rows(means, out / f"{self.name}-mean.csv")
            output.write_figure(self.plot(found, note), out / self.name)
        return found

    def show(self, options: Options) -> Report:
        """Run what was asked for, print what it found, and return that."""
        options = options.with_runs(self.quick_runs if options.quick else self.usual_runs)
        data, note = self.prepare(options)
        plan = Plan(1 if self.timed else options.jobs, options.resume, options.finished)
        found = self.run(data, options.runs or 1, options.out, note, plan)
        note = " ".join(f"{note}{self.remark(data)}".split())
        return Report(self.title, note, self.tables(found, note), self.findings(found)).printed()
