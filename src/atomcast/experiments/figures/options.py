"""What experiments can be told, and how the command line says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self


def told(default: Any, help: str, least: float | None = None) -> Any:
    """A field with what `--help` says of it, and the least that is accepted."""
    return field(default=default, metadata={"help": help, "min": least})


@dataclass(frozen=True)
class Options:
    """What was asked for; not every experiment needs all of it."""

    quick: bool = told(False, "Smaller instances: seconds or minutes.")
    runs: int | None = told(None, "Runs to average; mostly 5 by default, and 2 with --quick.", 1)
    out: Path = field(
        default=Path("out"),
        metadata={"help": "Folder for the page, the CSV files and the pictures."},
    )
    into: Path | None = field(
        default=None,
        metadata={"help": "A Markdown page into which the table of claims is written as well."},
    )
    synthetic: bool = told(False, "Use a generated stand-in instead of real data.")
    download: bool = told(False, "Download real data if it is missing.")
    n: int | None = told(None, "Examples of the stand-in for speech data.", 1000)
    atom_density: Sequence[float] | None = told(
        None, "Only these s_A; may be repeated. Default: all."
    )
    jobs: int = told(1, "Processes side by side, where no time is measured.", 1)
    resume: bool = told(False, "Go on where a call with this --out was stopped.")
    finished: bool = told(False, "Run nothing: judge the runs that a call has finished.")

    def with_runs(self, usual: int) -> Self:
        """The same with a number of runs: as asked for, or else the usual one."""
        return self if self.runs else replace(self, runs=usual)

    @property
    def times(self) -> str:
        """The number of runs in words."""
        most = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"up to {most}" if self.finished else most

    @property
    def source(self) -> dict[str, bool]:
        """Where real data comes from."""
        return {"synthetic": self.synthetic, "download": self.download}

    def named(self, data: str) -> str:
        """What a figure should call its data."""
        return f"generated stand-in for {data}" if self.synthetic else data

    def usual_note(self, about: str, nodes: int, rounds: int) -> str:
        """What a figure says of its runs, after what it says about the data."""
        return f"{about}, N = {nodes}, {self.times}, {rounds:,} rounds of dFW"
