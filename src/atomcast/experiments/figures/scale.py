"""Figure 5(a) with as many examples as the paper has, by the same ways of measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from atomcast.experiments.figures.fig5a import Fig5a


@dataclass(frozen=True, kw_only=True)
class Scale(Fig5a):
    """Fewer rounds, and one run: 4.2 GB are read in each round, and once more by the ranks."""

    n: int = 8_700_000
    nodes: Sequence[int] = (1, 10, 50)
    rounds: int = 60
    corrective_rounds: int = 0

    name = "scale"
    title = "Figure 5(a), 8.7 million examples: runtime against the number of nodes"
    quick: ClassVar = {"n": 200_000, "ranks": (), "nodes": (1, 10)}
    usual_runs = 1
