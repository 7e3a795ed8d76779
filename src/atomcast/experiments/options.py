"""What all experiments have in common on the command line: options, notes and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from atomcast.experiments.parts import Plan
from atomcast.experiments.record import Record, Table


@dataclass(frozen=True)
class Options:
    """What was asked for; not every experiment needs all of it.

    Parameters
    ----------
    quick : bool
        Smaller problems or fewer rounds.
    runs : int, optional
        Runs to average.
    out : path of a folder
    synthetic, download : bool
        Where real data is missing: generate a stand-in, or download it.
    n : int, optional
        Number of generated examples.
    atom_density : sequence of float, optional
        Only these s_A; all, if it is left out.
    jobs : int
        Processes that run side by side, where no time is measured.
    resume : bool
        Take finished runs from `out`.
    """

    quick: bool = False
    runs: int | None = None
    out: Path = Path("out")
    synthetic: bool = False
    download: bool = False
    n: int | None = None
    atom_density: Sequence[float] | None = None
    jobs: int = 1
    resume: bool = False

    @property
    def run_count(self) -> int:
        """How many runs: as asked for, else 5, or 2 if it is to be quick."""
        return self.runs if self.runs is not None else 2 if self.quick else 5

    def by_default(self, runs_if_quick: int) -> Self:
        """The same options for an experiment whose runs take long even if it is to be quick."""
        return replace(self, runs=runs_if_quick) if self.quick and self.runs is None else self

    @property
    def plan(self) -> Plan:
        """How runs are run in which no time is measured."""
        return Plan(self.jobs, self.resume)

    @property
    def timed_plan(self) -> Plan:
        """How runs are run in which time is measured: one after the other."""
        return Plan(1, self.resume)

    @property
    def times(self) -> str:
        """The number of runs in words."""
        return "1 run" if self.run_count == 1 else f"{self.run_count} runs"


#: Runs an experiment, prints what it found, and returns that.
Show = Callable[[Options], Record]


def shown(value: str | float, form: str = ",.0f") -> str:
    """A number for a table; a dash where there is none."""
    if isinstance(value, str):
        return value
    return format(value, form) if abs(value) < float("inf") else "-"  # also for NaN


#: What stands above a column of a table, where that is not the name of the field.
WORDS = {
    "above": "above the optimum",
    "allowed": "rounds allowed",
    "bound": "bound (values)",
    "break_cauchy_schwarz": "pairs that break Cauchy-Schwarz",
    "break_footnote": "pairs that break the footnote",
    "catches_up": "to half-way of exact (s)",
    "certified": "certified objective",
    "distance": "distance (edges)",
    "formula": "values by formula",
    "hops": "hops in a row",
    "how": "measured by",
    "loss": "probability of loss",
    "ms_a_round": "a round (ms)",
    "nearest_break": "nearest neighbours that do",
    "needed": "atoms to exceed (3d/4)",
    "preparing": "clustering (s)",
    "ratio": "to classic without loss",
    "reached": "to the classic step's end (s)",
    "repair": "repairs, of all values",
    "round": "rounds",
    "support": "atoms with a weight",
    "values": "values sent",
    "work": "own computation (s)",
    "worst": "largest ratio to the footnote",
}


def print_rows(
    title: str,
    rows: Sequence[NamedTuple],
    columns: Sequence[str],
    text_columns: Sequence[int] = (0,),
    words: Mapping[str, str] = WORDS,
    **forms: str,
) -> Table:
    """Print some fields of rows, each in its form and under its words, and return the table."""
    table: list[list[Any]] = [
        [shown(getattr(row, name), forms.get(name, ",.0f")) for name in columns] for row in rows
    ]
    return Table(title, [words.get(name, name) for name in columns], table, text_columns).printed()
