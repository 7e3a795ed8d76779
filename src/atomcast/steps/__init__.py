"""Step rules: how the weights move once the network has agreed on atoms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal

from atomcast.steps.auto import Auto
from atomcast.steps.away import Away, BlendedPairwise, Pairwise
from atomcast.steps.block_coordinate import BlockCoordinate
from atomcast.steps.classic import Classic, LineSearch
from atomcast.steps.compound import Compound
from atomcast.steps.corrective import Corrective
from atomcast.steps.step import Step

#: The rules by the name that users give; each takes `atoms_per_round` and `thin`.
STEPS: dict[str, Callable[..., Step]] = {
    Classic.name: lambda *_: Classic(),
    LineSearch.name: lambda *_: LineSearch(),
    Away.name: lambda *_: Away(),
    Pairwise.name: lambda *_: Pairwise(),
    BlendedPairwise.name: lambda *_: BlendedPairwise(),
    Corrective.name: Corrective,
    Compound.name: lambda *_: Compound(),
    Auto.name: Auto,
    BlockCoordinate.name: lambda *_: BlockCoordinate(),
}


def check_step(step: Any) -> None:
    """Raise ValueError unless this is the name of a step, a step, or something that makes steps."""
    if (
        step not in STEPS
        if isinstance(step, str)
        else not (isinstance(step, Step) or callable(step))
    ):
        raise ValueError(
            f"step must be one of {', '.join(map(repr, STEPS))}, or an atomcast.steps.Step of your "
            f"own or a function that makes one, got {step!r}"
        )


def make_step(step: Any, atoms_per_round: int | Literal["auto"], thin: bool = False) -> Step:
    """A step with a fresh workspace, of what users give as `step`; one for each run.

    A step of a user's own is copied, and what makes steps is called without arguments.
    """
    if isinstance(step, str):
        return STEPS[step](atoms_per_round, thin)
    made = copy.deepcopy(step) if isinstance(step, Step) else step()
    if not isinstance(made, Step):
        raise ValueError(f"step={step!r} makes {made!r}, which is no atomcast.steps.Step")
    return made


__all__ = [
    "STEPS",
    "Auto",
    "Away",
    "BlendedPairwise",
    "BlockCoordinate",
    "Classic",
    "Compound",
    "Corrective",
    "LineSearch",
    "Pairwise",
    "Step",
    "check_step",
    "make_step",
]
