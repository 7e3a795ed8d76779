"""What left a node to be read by others: an atom, a mixture, the target, predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from atomcast.data.party_names import COORDINATOR_NAME

#: The number of a star's coordinator, which holds no atoms.
COORDINATOR = -1
#: The round of what is told before the first one.
BEFORE = -1

Disclosed = Literal["atom", "target", "prediction", "candidate", "mixture"]


@dataclass(frozen=True)
class Disclosure:
    """Something that a node told all others: what, when, and how much of it there was.

    A candidate is an atom that was told to the coordinator of a star alone.

    Parameters
    ----------
    round : int
        The round of its phase; -1: before the first.
    node : int
        Who told it; -1 is the coordinator of a star.
    atom : int
        The global id of an atom or candidate; -1 for anything else.
    name : str
        The name of the atom, if it has one, or what else it is.
    values : int
        How many numbers.
    phase : str
        Which part of a fit, where it has several, such as "fold 2, radius 0.5".
    party : str
        The name of the node, if it has one.
    kind : {"atom", "target", "prediction", "candidate", "mixture"}
        A mixture goes to the coordinator alone, which tells the others what it is part of.
    """

    round: int
    node: int
    atom: int
    name: str
    values: int
    phase: str = ""
    party: str = ""
    kind: Disclosed = "atom"

    @property
    def when(self) -> str:
        """The round in words, with its phase if there are several: "fold 2, round 7"."""
        round = "before round 0" if self.round == BEFORE else f"round {self.round}"
        return f"{self.phase}, {round}" if self.phase else round

    @property
    def who(self) -> str:
        """The name of the node, or its number."""
        return self.party or (COORDINATOR_NAME if self.node == COORDINATOR else str(self.node))
