"""One table of all comparisons with other libraries, and what the machine can do at all.

    python benchmarks/summary.py [--seeds 1] [--repeats 2] [--out out/bench] [--only lasso mpi]

Every row is a problem that atomcast and its peers solve to the same certified gap, on one core, in
one run, taking turns. Beside them stand the machine's limits, measured in the same run, how near to
them kernel columns and rounds of MPI come, how times grow with sizes, and how much memory is taken.
Written as Markdown, JSON and a picture, anew after each part: a part that fails, or that takes
longer than `--minutes`, loses nothing but what it had not found yet. `--quick` goes through all of
them with one problem each. Data sets are looked for in the folder ATOMCAST_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer

import numpy as np
from kinds import spread
from rows import Figure, Row, heard, least_times, tell

HERE = Path(__file__).parent
#: The ratio that a problem should not exceed, by how its name begins.
AIMS = {
    "table": 1.5,
    "Lasso, Dorothea": 1.0,
    "Lasso, synthetic": 1.0,
    "Lasso, small": 1.5,
    "Lasso": 1.2,
    "cross-validated Lasso": 1.0,
    "logistic": 1.2,
    "multinomial": 1.5,
    "GroupLasso": 1.5,
    "kernel SVM, digits": 1.5,
    "kernel SVM, letter": 1.5,
    "kernel SVM, usps": 1.5,
    "kernel SVM": 1.0,
}


# -- the parts --------------------------------------------------------------------------------


def lasso_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Generated kinds, Dorothea, large sparse data."""
    from lasso import comparisons

    yield from comparisons("all", seeds, repeats)


def logistic_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """The same kinds, Dorothea and a9a."""
    from logistic import comparisons

    for row, *_ in comparisons("all", seeds, (0.1, 0.02), repeats):
        yield row


def multinomial_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Two rows for each problem: by radius and by C, both beside saga as it is certified."""
    from multinomial import comparisons

    for row in comparisons(seeds, (0.01, 0.03, 0.1), repeats):
        others = {"scikit-learn": row.seconds["saga"]} if "saga" in row.seconds else {}
        for own, how in (("atomcast", "by radius"), ("atomcast, C", "by C")):
            seconds = {"atomcast": row.seconds[own], **others}
            yield Row(f"multinomial, {row.problem}, {how}", row.size, seconds)


def table_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Small tables of scikit-learn, fitted as its users would."""
    from tables import comparisons

    yield from comparisons(max(repeats, 5))


def group_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Gene-like data."""
    from group_lasso import comparisons

    for row, *_ in comparisons(seeds, repeats):
        yield row


def path_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Cross-validated Lasso: small tables, other kinds of the first seed, and a large one."""
    from lasso_cv import PROBLEMS, comparisons, kinds, large

    others = ("700 x 4,000", "correlated", "badly scaled")
    more = {name: made for name, made in kinds(0).items() if any(kind in name for kind in others)}
    for row, _ in chain(
        comparisons({**PROBLEMS, **more}, max(repeats, 2)), comparisons(large([0]), 1)
    ):
        yield row


def binary_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Kernel machines that end by their own rule each: kinds of 3,000 rows, and some of more."""
    from kernel_svm_binary import comparisons, large

    for row, *_ in chain(
        comparisons(3_000, range(seeds), repeats),
        comparisons(6_500, range(1), repeats, ["20 features"]),
    ):
        yield row
    yield from large(15_000, 0, 2)


def class_rows(seeds: int, repeats: int) -> Iterator[Row | Figure]:
    """Kernel machines of several classes, with the accuracy of both."""
    from kernel_svm_classes import comparisons, folds

    for row, *_ in comparisons(repeats):
        yield row
    yield from folds(repeats)


def limits(seeds: int, repeats: int) -> Iterator[Row | Figure]:
    """How fast one core reads, and how fast it multiplies."""
    numbers, square = np.ones(1 << 25), np.ones((1_000, 1_000))
    seconds = least_times({"read": numbers.sum, "multiply": partial(np.dot, square, square)}, 5)
    yield Figure("one core reads", numbers.nbytes / seconds["read"] / 1e9, "GB/s")
    yield Figure("one core multiplies", 2.0 / seconds["multiply"], "GFLOP/s")


#: What is compared, or measured, from here.
OWN: dict[str, Callable[[int, int], Iterator[Row | Figure]]] = {
    "limits": limits,
    "lasso": lasso_rows,
    "logistic": logistic_rows,
    "multinomial": multinomial_rows,
    "tables": table_rows,
    "groups": group_rows,
    "paths": path_rows,
    "binary": binary_rows,
    "classes": class_rows,
}
#: Other scripts.
SCRIPTS = {
    "columns": ["kernel_svm.py", "columns", "--json"],
    "classic": ["kernel_svm.py", "classic", "--json"],
    "mpi": ["engines.py", "--only", "mpi", "--json"],
    "speedup": ["engines.py", "--speedup", "--json"],
    "folds": ["lasso_cv.py", "--jobs", "2"],
    "exponents": ["exponents.py", "--repeats", "2", "--seeds", "2", "--json"],
    "memory": ["memory.py", "--mb", "150", "--kinds", "dense", "sparse", "--json"],
}
#: How they are quick.
QUICK = {"exponents": ["--repeats", "1", "--seeds", "1"], "memory": ["--only", "Lasso"]}
#: What is measured on one core; the others have them all, unless they say otherwise.
ALONE = (*OWN, "classic")


def command(part: str, arguments: argparse.Namespace) -> list[str]:
    """How to run a part in a process of its own."""
    if part in OWN:
        seeds, repeats = f"--seeds={arguments.seeds}", f"--repeats={arguments.repeats}"
        line = ["summary.py", "--part", part, seeds, repeats]
        line += ["--quick"] if arguments.quick else []
    else:
        line = SCRIPTS[part] + (QUICK.get(part, []) if arguments.quick else [])
        if part == "exponents":
            line += ["--picture", str(arguments.out / "exponents.png")]
    return [sys.executable, str(HERE / line[0]), *line[1:]]


# -- what they found --------------------------------------------------------------------------


@dataclass
class Summary:
    """All that was found so far."""

    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    printed: dict[str, str] = field(default_factory=dict)
    minutes: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, part: str, line: list[str], minutes: float) -> None:
        """Run a part for so many minutes at most, and take note of each line that it prints."""
        environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
        if part in ALONE:
            environment |= {f"{k}_NUM_THREADS": "1" for k in ("OPENBLAS", "OMP", "NUMBA")}
        start, text = time.perf_counter(), ""
        with TemporaryFile("w+") as complaints:
            process = subprocess.Popen(
                line, env=environment, stdout=subprocess.PIPE, stderr=complaints, text=True,
                start_new_session=True,
            )  # fmt: skip
            late = Timer(60.0 * minutes, os.killpg, (process.pid, signal.SIGKILL))
            late.start()
            for said in process.stdout or ():
                text += self._note(said)
            failed = process.wait()
            late.cancel()
            complaints.seek(0)
            reasons = complaints.read().strip().splitlines()
        if failed:
            killed = failed == -signal.SIGKILL
            self.failed[part] = f"ended after {minutes:g} minutes" if killed else reasons[-1]
            print(f"  failed: {self.failed[part]}", flush=True)
        if text:
            self.printed[part] = text
        self.minutes[part] = (time.perf_counter() - start) / 60

    def _note(self, line: str) -> str:
        """Take note of what a line tells; returns it if that is nothing."""
        found = heard(line)
        if found is None:
            return line
        if isinstance(found, Row):
            self.rows.append(found)
            print(f"  {found.problem}: {found.ratio:.2f}", flush=True)
        else:
            self.figures.append(found)
            print(f"  {found.what}: {found.value:.3g} {found.unit}", flush=True)
        return ""

    def write(self, folder: Path) -> None:
        """Write it as Markdown and JSON, and draw it."""
        (folder / "summary.md").write_text(self.markdown())
        told = asdict(self)
        for row, shown in zip(self.rows, told["rows"], strict=True):
            shown |= {"ratio": row.ratio, "aim": aim(row)}
        for figure, shown in zip(self.figures, told["figures"], strict=True):
            shown["met"] = figure.met
        (folder / "summary.json").write_text(json.dumps(told, indent=1))
        if self.rows:
            picture(self.rows, folder / "summary.png")

    def markdown(self) -> str:
        """The tables, with the spread of the ratios, and what was printed below."""
        lines = [*self._compared(), *self._measured()]
        if self.failed:
            lines += ["Failed:", "", *(f"- {part}: {why}" for part, why in self.failed.items()), ""]
        taken = ", ".join(f"{part} {minutes:.1f}" for part, minutes in self.minutes.items())
        lines += [f"Minutes: {taken}", ""]
        for text in self.printed.values():
            lines += [f"    {line}".rstrip() for line in (*text.splitlines(), "")]
        return "\n".join(lines)

    def _compared(self) -> list[str]:
        """Times beside those of other libraries."""
        peers = sorted({name for row in self.rows for name in row.seconds} - {"atomcast"})
        names = ("atomcast", *peers)
        heads = ["problem", "size", *(f"{name} ms" for name in names), "ratio", "aim", ""]
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for row in self.rows:
            taken = (row.seconds.get(name) for name in names)
            times = ["" if seconds is None else f"{1e3 * seconds:.1f}" for seconds in taken]
            cells = [row.problem, str(row.size), *times, f"{row.ratio:.2f}", f"{aim(row):g}"]
            lines.append("| " + " | ".join([*cells, row.note]) + " |")
        ratios = [row.ratio for row in self.rows if np.isfinite(row.ratio)]
        if not ratios:
            return []
        within = sum(row.ratio <= aim(row) for row in self.rows)
        shares = f"{within} of {len(self.rows)} within their aim"
        return [*lines, "", f"atomcast / fastest other: {spread(ratios)}; {shares}", ""]

    def _measured(self) -> list[str]:
        """Figures beside the limits of the machine."""
        heads = ["", "measured", "", "aim", "", "beside"]
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for one in self.figures:
            met = ("met" if one.met else "missed") if one.aim else ""
            cells = [one.what, f"{one.value:.3g}", one.unit, one.aim, met, one.beside]
            lines.append("| " + " | ".join(cells) + " |")
        return [*lines, ""] if self.figures else []


def aim(row: Row) -> float:
    """The ratio that is aimed at."""
    return next((ratio for name, ratio in AIMS.items() if row.problem.startswith(name)), 1.0)


def picture(found: list[Row], path: Path) -> None:
    """Our time against that of the fastest other library, a dot for each row."""
    from matplotlib.figure import Figure as Drawing

    figure = Drawing(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    ours = np.array([row.seconds["atomcast"] for row in found])
    theirs = ours / np.array([row.ratio for row in found])
    kinds = np.array([row.problem.split(",")[0] for row in found])
    for kind in dict.fromkeys(kinds):
        axes.loglog(theirs[kinds == kind], ours[kinds == kind], "o", label=kind)
    ends = [np.nanmin([ours, theirs]), np.nanmax([ours, theirs])]
    axes.loglog(ends, ends, color="grey", linewidth=0.8)
    axes.set(xlabel="fastest other library, seconds", ylabel="atomcast, seconds")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = [*OWN, *SCRIPTS]
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one row of each part")
    parser.add_argument("--minutes", type=float, default=15.0, help="that a part may take")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--part", choices=OWN, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        warnings.simplefilter("ignore")
        found = OWN[arguments.part](arguments.seeds, arguments.repeats)
        for one in islice(found, 1 if arguments.quick else None):
            tell(one)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    summary, start = Summary(), time.perf_counter()
    for part in arguments.only:
        print(f"{(time.perf_counter() - start) / 60:5.1f} min  {part}", flush=True)
        summary.run(part, command(part, arguments), arguments.minutes)
        summary.write(arguments.out)
    print(summary.markdown())


if __name__ == "__main__":
    main()
