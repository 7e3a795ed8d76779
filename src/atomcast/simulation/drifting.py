"""The paper's protocol on a network that loses messages (section 6.3): `recovery="none"`.

Every node has an iterate of its own. A proposal that is lost cannot win; a node that misses the
winner's atom skips the step. Nothing is repaired, so that the iterates drift apart, and a gap can
be certified for none of them before the closing round.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.node import Fleet
from atomcast.cluster.validation import WITH_FAULTS, refuse_balanced
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request, agree
from atomcast.network.faults import Faults
from atomcast.network.star import Star
from atomcast.network.wave import numbers
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Subset
from atomcast.simulation.drifting_replica import DriftingReplica
from atomcast.simulation.local_session import LocalSession

if TYPE_CHECKING:
    from atomcast.simulation.local import LocalCluster

#: Steps that a node can take by itself, whatever the others have.
SUPPORTED = ("classic", "line-search", "corrective")


def check_drifting(cluster: LocalCluster, faults: Faults) -> None:
    """Raise ValueError where the paper's protocol does not say what to do."""
    if not isinstance(cluster.network(), Star):
        raise ValueError(
            'recovery="none" is the experiment of the paper, on a star: use topology="star" with '
            'broadcast="improved", or recovery="log"'
        )
    for name in ("delay", "duplicates", "reorder", "slow", "outages"):
        if getattr(faults, name):
            raise ValueError(
                f'faults.{name}={getattr(faults, name)!r} needs recovery="log": with '
                'recovery="none", messages are lost (loss, partitions) and nothing else happens'
            )


class DriftingSession(LocalSession):
    """The nodes of a `LocalCluster`, each with an iterate of its own."""

    mixes = False

    def __init__(
        self, cluster: LocalCluster, problem: Problem, shards: Shards, faults: Faults
    ) -> None:
        isolated = copy.copy(cluster)
        isolated.isolated = True  # every node scores against an iterate of its own
        super().__init__(isolated, problem, shards)
        star = self._accountant.network
        assert isinstance(star, Star)  # the cluster has checked that
        self._star = star
        self._faults = faults
        self._random = random.Random(faults.seed)
        self._replica: DriftingReplica | None = None
        self._drifted = False

    @property
    def replica(self) -> DriftingReplica:
        """The states of all nodes; there once the run has begun."""
        assert self._replica is not None
        return self._replica

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Give every node a replica of its own, and the loop one that stands for all."""
        _check_run(replica, first=self._replica is None)
        self._replica = DriftingReplica(replica, self.nodes)
        return self._replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Every node scores against its own iterate; the best of the proposals that arrive wins."""
        round = replica.ledger_round
        if request.complete:
            self.ledger.round = round
            return self._close(request)
        parts = [
            fleet.propose(member, request if request.random else member.request())
            for fleet, member in zip(self._fleets, self.replica.members, strict=True)
        ]
        proposals = Proposals.merged(parts)
        self.replica.offers = bool(len(proposals.id))
        self._accountant.agree(proposals, request.count, round)  # sent, arrived or not
        # The sample before the first step is what the nodes begin with: it is not lost.
        arrived = np.ones(self.nodes, dtype=bool) if request.random else self._arrivals(replica)
        complete = bool(arrived.all()) and not self._drifted
        heard = agree(proposals.of(arrived), request.count)
        inner = heard.inner if complete else None
        # Scores are about iterates that their receivers do not know.
        version = np.full(len(heard.id), -1)
        return replace(heard, inner=inner, complete=complete, version=version)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the winners, also those that were broadcast before; some nodes miss them."""
        drifting = self.replica
        atoms = self._sent(agreement.new_to(()), replica.ledger_round)
        beginning = bool(replica.problem.sample) and not len(drifting.active)
        arrived = np.ones(self.nodes, dtype=bool) if beginning else self._arrivals(replica)
        by_link = self._faults.per == "link" and self.nodes > 1
        if by_link and not beginning and self._lost():
            arrived[:] = False  # lost on its way to the coordinator
        arrived[agreement.owner] = True
        self._drifted |= not arrived.all()
        drifting.receivers = {
            i: [atom for atom in atoms if atom.id not in drifting.members[i].active]
            for i in np.flatnonzero(arrived).tolist()
        }
        new = {atom.id for lacking in drifting.receivers.values() for atom in lacking}
        return [atom for atom in atoms if atom.id in new]

    def fingerprint(self) -> str:
        """Every node has an iterate of its own, which no checkpoint has."""
        raise ValueError(
            'recovery="none" can neither write nor resume checkpoints: use recovery="log"'
        )

    # -- faults -----------------------------------------------------------------------------

    def _lost(self) -> bool:
        return self._random.random() < self._faults.loss

    def _arrivals(self, replica: Replica) -> NDArray[np.bool_]:
        """Between which nodes and the coordinator a message gets through."""
        if self.nodes == 1:  # which sends nothing that could be lost
            return np.ones(1, dtype=bool)
        arrived = np.array([not self._lost() for _ in range(self.nodes)])
        for partition in self._faults.partitions:
            if partition.start <= replica.ledger_round < partition.end:
                arrived[list(partition.nodes)] = False
        return arrived

    # -- the closing round ------------------------------------------------------------------

    def _close(self, request: Request) -> Agreement:
        """Tell everybody the best node's iterate, without loss, and let all score against it."""
        drifting = self.replica
        drifting.choose()
        drifting.closed = True
        self._tell_iterate()
        fresh = [Fleet(f.atoms, f.ids, f.owner, self.nodes) for f in self._fleets]
        proposals = Proposals.merged([fleet.propose(drifting.chosen, request) for fleet in fresh])
        return self._accountant.agree(proposals, request.count, self.ledger.round)

    def _tell_iterate(self) -> None:
        """Count what it takes: objectives go up, the best node's atoms and weights to everybody."""
        if self.nodes == 1:
            return
        drifting, star, ledger = self.replica, self._star, self.ledger
        ends = star.links.ends
        ledger.deliver(ends, star.up, {"control": numbers(1)})
        active = drifting.chosen.active
        used = np.flatnonzero(active.weights)  # an atom may have more than one weight
        ids = np.unique(np.array(active.ids, dtype=np.int64)[used])
        owners = self.owners(ids)
        atoms = [self.atom(int(owner), int(id)) for owner, id in zip(owners, ids, strict=True)]
        values = np.full(self.nodes, len(used) + len(ids), dtype=np.int64)
        for i, member in enumerate(drifting.members):
            values[i] += sum(atom.count for atom in atoms if atom.id not in member.active)
        best = drifting.best
        ledger.deliver(ends, star.up[[best]], {"repair": numbers(values[best])})
        others = np.delete(np.arange(self.nodes), best)
        ledger.deliver(ends, star.down[others], {"repair": numbers(values[others])})


def _check_run(replica: Replica, first: bool) -> None:
    """Raise ValueError for runs that need nodes with the same state."""
    if not first:
        raise ValueError(
            'recovery="none" fits one problem at a time, not a path of them: its nodes have '
            'nothing in common to go on from; use recovery="log"'
        )
    if replica.step.name not in SUPPORTED:
        raise ValueError(
            f'step={replica.step.name!r} does not go with recovery="none": use one of '
            f'{", ".join(SUPPORTED)}, or recovery="log"'
        )
    refuse_balanced(replica, WITH_FAULTS)
    if isinstance(replica.selection, Subset):
        raise ValueError(
            f'selection={replica.selection!r} does not go with recovery="none": use '
            'selection="exact", or recovery="log"'
        )
