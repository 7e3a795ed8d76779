"""One table of all comparisons with other libraries, and what the machine can do at all.

    python benchmarks/summary.py [--seeds 1] [--repeats 3] [--out out/bench]

Every row is a problem that atomcast and its peers solve to the same certified gap, on one core, in
one run, taking turns. Beside them stand the machine's limits, measured in the same run: how fast it
reads memory, how fast it multiplies, and how near to them kernel columns and rounds of MPI come.
Written as Markdown, JSON and a picture. Data sets are looked for in the folder ATOMCAST_DATA.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core for everybody

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import group_lasso
import kernel_svm_binary
import kernel_svm_classes
import lasso
import lasso_cv
import logistic
import multinomial
import numpy as np
from kinds import spread
from rows import Row, least_times

#: What is measured by itself, on all cores, and shown as it was printed.
OTHERS = (
    ("kernel_svm.py", "columns"),
    ("engines.py", "--only", "mpi"),
    ("engines.py", "--speedup"),
    ("exponents.py",),
)


def multinomial_rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Yield two `Row` for each problem: by radius and by C, both beside saga as it is certified."""
    for row in multinomial.comparisons(seeds, (0.01, 0.03, 0.1), repeats):
        others = {"scikit-learn": row.seconds["saga"]} if "saga" in row.seconds else {}
        for own, how in (("atomcast", "by radius"), ("atomcast, C", "by C")):
            seconds = {"atomcast": row.seconds[own], **others}
            yield Row(f"multinomial, {row.problem}, {how}", row.size, seconds)


def rows(seeds: int, repeats: int) -> Iterator[Row]:
    """Yield all rows. Kernel SVMs end by their own rule each, all others at the same gap."""
    yield from lasso.comparisons("all", seeds, repeats)
    yield from multinomial_rows(seeds, repeats)
    for row, *_ in chain(
        logistic.comparisons("kinds", seeds, (0.1, 0.02), repeats),
        group_lasso.comparisons(seeds, repeats),
        lasso_cv.comparisons(lasso_cv.PROBLEMS, repeats),
        kernel_svm_binary.comparisons(3_000, range(seeds), repeats),
        kernel_svm_classes.comparisons(repeats),
    ):
        yield row


def limits() -> dict[str, float]:
    """GB a second that one core reads, and GFLOP a second that it multiplies."""
    numbers, square = np.ones(1 << 25), np.ones((1_000, 1_000))
    seconds = least_times({"read": numbers.sum, "multiply": partial(np.dot, square, square)}, 5)
    return {
        "read GB/s": numbers.nbytes / seconds["read"] / 1e9,
        "multiply GFLOP/s": 2e9 / seconds["multiply"] / 1e9,
    }


def others() -> dict[str, str]:
    """What other benchmarks print, by command."""
    here = Path(__file__).parent
    environment = {name: v for name, v in os.environ.items() if not name.endswith("_NUM_THREADS")}
    printed = {}
    for script, *arguments in OTHERS:
        done = subprocess.run(
            [sys.executable, str(here / script), *arguments],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        command = " ".join(["python", f"benchmarks/{script}", *arguments])
        printed[command] = done.stdout + (done.stderr if done.returncode else "")
    return printed


def markdown(found: list[Row], machine: dict[str, float], printed: dict[str, str]) -> str:
    """The table, with the spread of the ratios, the limits and what was printed below."""
    peers = sorted({name for row in found for name in row.seconds} - {"atomcast"})
    heads = ["problem", "size", "atomcast ms", *(f"{peer} ms" for peer in peers), "ratio"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in found:
        taken = (row.seconds.get(name) for name in ("atomcast", *peers))
        cells = ["" if seconds is None else f"{1e3 * seconds:.1f}" for seconds in taken]
        lines.append(
            f"| {row.problem} | {row.size} | " + " | ".join(cells) + f" | {row.ratio:.2f} |"
        )
    measured = ", ".join(f"{name} {value:.1f}" for name, value in machine.items())
    ratios = [row.ratio for row in found]
    lines += ["", f"atomcast / fastest other: {spread(ratios)}", "", measured, ""]
    for command, text in printed.items():
        lines += [f"    {line}".rstrip() for line in (f"$ {command}", *text.splitlines(), "")]
    return "\n".join(lines)


def picture(found: list[Row], path: Path) -> None:
    """Our time against that of the fastest other library, a dot for each row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    ours = np.array([row.seconds["atomcast"] for row in found])
    theirs = ours / np.array([row.ratio for row in found])
    kinds = np.array([row.problem.split(",")[0] for row in found])
    for kind in dict.fromkeys(kinds):
        axes.loglog(theirs[kinds == kind], ours[kinds == kind], "o", label=kind)
    ends = [min(ours.min(), theirs.min()), max(ours.max(), theirs.max())]
    axes.loglog(ends, ends, color="grey", linewidth=0.8)
    axes.set(xlabel="fastest other library, seconds", ylabel="atomcast, seconds")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    machine, found, start = limits(), list[Row](), time.perf_counter()
    for row in rows(arguments.seeds, arguments.repeats):
        found.append(row)
        print(f"{time.perf_counter() - start:6.0f} s  {row.problem}: {row.ratio:.2f}", flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    printed = others()
    text = markdown(found, machine, printed)
    (arguments.out / "summary.md").write_text(text)
    told = {
        "limits": machine,
        "rows": [{**vars(row), "ratio": row.ratio} for row in found],
        "printed": printed,
    }
    (arguments.out / "summary.json").write_text(json.dumps(told, indent=1, default=int))
    picture(found, arguments.out / "summary.png")
    print(text)


if __name__ == "__main__":
    main()
