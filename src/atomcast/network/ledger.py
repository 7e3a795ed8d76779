"""The ledger: every value and byte that crossed an edge, and every atom that left its node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["proposal", "partial sum", "index", "atom", "control"]
KINDS: tuple[Kind, ...] = ("proposal", "partial sum", "index", "atom", "control")
Counts = NDArray[np.int64]

#: The name of the node that a star's coordinator has in the ledger.
COORDINATOR = -1


@dataclass(frozen=True)
class Count:
    """An amount of traffic: real values, bytes on the wire, messages."""

    values: int = 0
    bytes: int = 0
    messages: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.values + other.values, self.bytes + other.bytes, self.messages + other.messages
        )


@dataclass(frozen=True)
class Disclosure:
    """One atom that left its node: who sent it, when, and how much of it there was."""

    round: int
    node: int
    atom: int
    name: str
    values: int


@dataclass(frozen=True)
class Wave:
    """Messages of one kind that cross their edges at the same time.

    Parameters
    ----------
    source, target : arrays of shape (m,)
        The nodes at the two ends of each message's edge.
    values, bytes : arrays of shape (m,)
        Its size; arrays of one element where all messages are equal.
    """

    round: int
    kind: Kind
    source: Counts
    target: Counts
    values: Counts
    bytes: Counts

    @property
    def total(self) -> Count:
        """The traffic of the whole wave."""
        m = len(self.source)
        repeat = m if len(self.values) == 1 else 1
        return Count(int(self.values.sum()) * repeat, int(self.bytes.sum()) * repeat, m)


class Ledger:
    """An account of all communication, kept message by message as it is delivered."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.round = 0
        self.disclosures: list[Disclosure] = []
        self._waves: list[Wave] = []
        self._total = Count()

    # -- totals -----------------------------------------------------------------------------

    @property
    def values(self) -> int:
        """Real values sent, summed over every edge crossed (the paper's measure)."""
        return self._total.values

    @property
    def bytes(self) -> int:
        """Bytes sent, summed over every edge crossed."""
        return self._total.bytes

    @property
    def messages(self) -> int:
        """Messages delivered, each hop counting as one."""
        return self._total.messages

    @property
    def atoms_sent(self) -> int:
        """How many times an atom was broadcast by its owner."""
        return len(self.disclosures)

    # -- breakdowns -------------------------------------------------------------------------

    def by_kind(self) -> dict[Kind, Count]:
        """The traffic of each kind of message."""
        totals: dict[Kind, Count] = {kind: Count() for kind in KINDS}
        for wave in self._waves:
            totals[wave.kind] += wave.total
        return totals

    def by_round(self) -> list[Count]:
        """The traffic of each round."""
        totals = [Count()] * (1 + max((wave.round for wave in self._waves), default=-1))
        for wave in self._waves:
            totals[wave.round] += wave.total
        return totals

    def by_node(self) -> dict[int, Count]:
        """What each node sent, forwarding included; -1 is the coordinator of a star."""
        return {
            ends[0]: count
            for ends, count in self._grouped([wave.source for wave in self._waves]).items()
        }

    def by_edge(self) -> dict[tuple[int, int], Count]:
        """The traffic of each edge, both directions together; -1 is the coordinator."""
        low = [np.minimum(wave.source, wave.target) for wave in self._waves]
        high = [np.maximum(wave.source, wave.target) for wave in self._waves]
        return {(ends[0], ends[1]): c for ends, c in self._grouped(low, high).items()}

    def _grouped(self, *ends: Sequence[Counts]) -> dict[tuple[int, ...], Count]:
        """Sum all messages by the given ends, one list of arrays for each part of the key."""
        if not self._waves:
            return {}
        keys = np.stack([np.concatenate(end) for end in ends])
        unique, which = np.unique(keys, axis=1, return_inverse=True)
        which = which.ravel()
        sizes = [
            np.concatenate(
                [np.broadcast_to(getattr(wave, name), len(wave.source)) for wave in self._waves]
            )
            for name in ("values", "bytes")
        ]
        values, size = (np.bincount(which, column, unique.shape[1]) for column in sizes)
        messages = np.bincount(which, minlength=unique.shape[1])
        return {
            tuple(int(end) for end in unique[:, k]): Count(
                int(values[k]), int(size[k]), int(messages[k])
            )
            for k in range(unique.shape[1])
        }

    # -- writing ----------------------------------------------------------------------------

    def record(
        self, kind: Kind, source: Counts, target: Counts, values: Counts, bytes: Counts
    ) -> None:
        """Enter messages that were delivered; called by the network for every hop."""
        if not len(source):
            return
        wave = Wave(self.round, kind, source, target, values, bytes)
        self._waves.append(wave)
        self._total += wave.total

    def disclose(self, node: int, atom: int, name: str, values: int) -> None:
        """Enter an atom that left its node."""
        self.disclosures.append(Disclosure(self.round, node, atom, name, values))

    def __repr__(self) -> str:
        return (
            f"Ledger({self.atoms_sent} atoms sent, {self.values:,} values, "
            f"{self.bytes:,} bytes, {self.messages:,} messages)"
        )
