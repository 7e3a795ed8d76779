"""Run an experiment of the paper, keep what it found, and write the page of all that was found."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from atomcast.experiments.figures import EXPERIMENTS, find
from atomcast.experiments.figures.options import Options
from atomcast.experiments.page import claims, page, reports
from atomcast.experiments.page.reports import Report
from atomcast.loop.interrupting import all_or_nothing
from atomcast.plots.drawing import new_figure


def reproduce(name: str, options: Options, failures: Mapping[str, str]) -> Report:
    """Run one experiment; `failures` are those that could not be run just now, and why."""
    chosen = find(name)
    check_writable(options.out)
    new_figure()  # fail before hours of work, not after them, where no picture can be drawn
    began, start = time.time(), time.perf_counter()
    try:
        with all_or_nothing():
            report = chosen.asked(options).show(options)
    except BaseException:
        reports.discard_outdated(name, options.out, began)
        raise
    in_one_go = not (options.resume or options.finished)
    made = reports.circumstances(time.perf_counter() - start if in_one_go else None)
    reports.keep(reports.Kept(name, command_line(name, options), made, report), options.out)
    index = write_page(options.out, failures)
    if options.into is not None:
        claims.write_into(options.into, claims.in_order(options.out, EXPERIMENTS))
    files = sorted(path for path in options.out.glob(f"{name}*") if path.is_file())
    print(f"written: {', '.join(map(str, [*files, index]))}")
    return report


def write_page(out: Path, failures: Mapping[str, str]) -> Path:
    """Write the page of all that is kept in a folder."""
    return page.write(out, EXPERIMENTS, failures)


def check_writable(folder: Path) -> None:
    """Fail before the work where nothing can be written."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def command_line(name: str, options: Options) -> str:
    """The command that runs one experiment as it was run, into the usual folder."""
    words = ["atomcast", "reproduce", name]
    usual = {field.name: field.default for field in fields(Options)}
    for option in ("quick", *EXPERIMENTS[name].options.split()):
        value = getattr(options, option)
        if option in ("download", "into", "jobs", "resume", "finished") or value == usual[option]:
            continue  # these change nothing about the outcome
        flag = f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        else:
            for one in value if isinstance(value, list | tuple) else (value,):
                words += [flag, str(one)]
    return shlex.join(words)
