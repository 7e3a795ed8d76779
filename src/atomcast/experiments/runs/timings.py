"""How long runs took on N nodes, and how much faster than on one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Timing(NamedTuple):
    """How long one run took: its rounds times the median of a round, in seconds.

    `work` is the part that is a node's own computation, `step` what every node does alike, and
    `network` the messages; of MPI ranks only the whole is known. Rounds of the corrective step
    differ: theirs are added up. `reached` is the time until the objective that the classic step has
    after all its rounds, with the first ones, and `objective` the one at the end.
    """

    how: str
    nodes: int
    run: int
    seconds: float
    speedup: float
    work: float
    step: float
    network: float
    reached: float = np.nan
    objective: float = np.nan


def median_round(seconds: Sequence[float]) -> float:
    """How long a round takes: the first ones, which also set up, do not weigh in."""
    return float(np.median(np.diff(seconds)[1:]))


def with_speedups(timings: Sequence[Timing]) -> list[Timing]:
    """Fill in how much faster each run was than one node, of the same kind and on the same data."""
    alone = {(row.how, row.run): row.seconds for row in timings if row.nodes == 1}
    return [
        row._replace(speedup=alone.get((row.how, row.run), np.nan) / row.seconds) for row in timings
    ]


def means(timings: Sequence[Timing]) -> list[Timing]:
    """The mean over the runs for each way of measuring and each N; `run` is their number."""
    groups: dict[tuple[str, int], list[Timing]] = {}
    for row in timings:
        groups.setdefault((row.how, row.nodes), []).append(row)
    return with_speedups([
        Timing(how, N, len(group), *map(float, np.mean([row[3:] for row in group], axis=0)))
        for (how, N), group in groups.items()
    ])  # fmt: skip
