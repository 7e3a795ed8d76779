"""What a round takes, in atoms: where messages take their time, that says how large batches be."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Proposals
from atomcast.network.ledger import Ledger
from atomcast.network.topology import Topology
from atomcast.network.wire import codec as wire

#: The size of the atoms that are sent to see how long the network takes for them.
BYTES = 8000


class Prices:
    """The time of a round without atoms, and that of atoms, from a rehearsal on the network.

    Parameters
    ----------
    network : Topology
        Over which messages take the longer the larger they are; it is copied.
    size : int
        The bytes of an atom, as long as none was sent.
    """

    def __init__(self, network: Topology, size: int) -> None:
        self._network, self._first_size = network, size
        first, one, several = self._seconds(1, 1), self._seconds(1, BYTES), self._seconds(8, BYTES)
        # Atoms of several owners go up side by side, and down one after the other.
        self._byte = (several - one) / (7 * BYTES)
        self._round = first
        self._alone = max((one - first) / BYTES - self._byte, 0.0)
        self._atoms, self._bytes = 0, 0

    def _seconds(self, atoms: int, bytes: int) -> float:
        """How long a round with so many atoms of this size takes."""
        stage, ledger = deepcopy(self._network), Ledger(self._network.nodes)
        nodes, nothing = np.arange(stage.nodes), np.zeros(stage.nodes)
        stage.agree(Proposals(nodes, nodes, nothing, nothing, nothing), 1, ledger)
        owners = np.arange(atoms) % stage.nodes
        stage.broadcast(owners, np.ones_like(owners), np.full_like(owners, bytes), ledger)
        return ledger.seconds

    def saw(self, atoms: Sequence[Atom]) -> None:
        """Know how large the atoms are that were sent."""
        self._atoms += len(atoms)
        self._bytes += sum(map(wire.encoded_size, atoms))

    def round_in_atoms(self) -> float:
        """How many atoms more take as long as a round more, if they are as those so far."""
        size = self._bytes / self._atoms if self._atoms else self._first_size
        return (self._round + self._alone * size) / max(self._byte * size, 1e-300)
