"""Where nodes run and what they hold, as an operator wants to see it in the log."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atomcast.cluster.validation import ShardReport


def machine() -> str:
    """The host of this process, its number, and the cores that it may use."""
    if hasattr(os, "sched_getaffinity"):
        cores = f"cores {ranges(os.sched_getaffinity(0))} of {os.cpu_count()}"
    else:  # only Linux binds processes to cores
        cores = f"{os.cpu_count()} cores"
    return f"{socket.gethostname()} (process {os.getpid()}, {cores})"


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers as a text such as "0-3,8"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def log_nodes(logger: logging.Logger, reports: Sequence[ShardReport], threads: int) -> None:
    """Say of every node where it runs and what it has loaded."""
    for node, report in enumerate(reports):
        logger.info(
            "node %d of %d on %s, threads: %d; loaded %s: %d atoms of length %d",
            node,
            len(reports),
            report.machine,
            threads,
            report.source,
            report.atoms,
            report.length,
        )
