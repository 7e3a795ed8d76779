"""Step rules: how the weights move once the network has agreed on atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from atomcast.steps.away import Away, BlendedPairwise, Pairwise
from atomcast.steps.base import Step
from atomcast.steps.classic import Classic, LineSearch
from atomcast.steps.corrective import Corrective

#: The rules by the name that users give; each takes `atoms_per_round`.
STEPS: dict[str, Callable[[int | Literal["auto"]], Step]] = {
    Classic.name: lambda _: Classic(),
    LineSearch.name: lambda _: LineSearch(),
    Away.name: lambda _: Away(),
    Pairwise.name: lambda _: Pairwise(),
    BlendedPairwise.name: lambda _: BlendedPairwise(),
    Corrective.name: Corrective,
}

__all__ = [
    "STEPS",
    "Away",
    "BlendedPairwise",
    "Classic",
    "Corrective",
    "LineSearch",
    "Pairwise",
    "Step",
]
