"""The paper's protocol on a network that loses messages (section 6.3): `recovery="none"`.

Every node has an iterate of its own. A proposal that is lost cannot win; a node that misses the
winner's atom skips the step. Nothing is repaired, so that the iterates drift apart, and a gap can
be certified for none of them before the closing round.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
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
from atomcast.network.complete import Complete
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
    if not isinstance(cluster.network(), Star | Complete):
        raise ValueError(
            'recovery="none" is the experiment of the paper, on a star or a complete graph: use '
            'topology="star" with broadcast="improved", topology="complete", or recovery="log"'
        )
    for name in ("delay", "duplicates", "reorder", "slow", "outages"):
        if getattr(faults, name):
            raise ValueError(
                f'faults.{name}={getattr(faults, name)!r} needs recovery="log": with '
                'recovery="none", messages are lost (loss, partitions) and nothing else happens'
            )


class DriftingSession(LocalSession):
    """The nodes of a `LocalCluster` on a star, each with an iterate of its own."""

    mixes = False

    def __init__(
        self, cluster: LocalCluster, problem: Problem, shards: Shards, faults: Faults
    ) -> None:
        isolated = copy.copy(cluster)
        isolated.isolated = True  # every node scores against an iterate of its own
        super().__init__(isolated, problem, shards)
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
        heard, by_all = self._heard(replica, proposals, request)
        complete = by_all and not self._drifted
        inner = heard.inner if complete else None
        # Scores are about iterates that their receivers do not know.
        version = np.full(len(heard.id), -1)
        return heard._replace(inner=inner, complete=complete, version=version)

    def _heard(
        self, replica: Replica, proposals: Proposals, request: Request
    ) -> tuple[Agreement, bool]:
        """The winners among the proposals that arrive, and whether all of them do.

        The sample before the first step is what the nodes begin with: it is not lost.
        """
        arrived = np.ones(self.nodes, dtype=bool) if request.random else self._arrivals(replica)
        return agree(proposals.of(arrived), request.count), bool(arrived.all())

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the winners, also those that were broadcast before; some nodes miss them."""
        drifting = self.replica
        atoms = self._sent(agreement.new_to(()), replica.ledger_round)
        drifting.receivers = {}
        new: set[int] = set()
        for i, got in self._received(replica, agreement).items():
            ids, active = set(got.id.tolist()), drifting.members[i].active
            lacking = [atom for atom in atoms if atom.id in ids and atom.id not in active]
            drifting.receivers[i] = got, lacking
            new.update(atom.id for atom in lacking)
        return [atom for atom in atoms if atom.id in new]

    def _beginning(self, replica: Replica) -> bool:
        """Whether what is broadcast is the sample that nodes begin with."""
        return bool(replica.problem.sample) and not len(self.replica.active)

    def _received(self, replica: Replica, agreement: Agreement) -> dict[int, Agreement]:
        """Who gets winners' atoms, and which of them it steps towards."""
        beginning = self._beginning(replica)
        arrived = np.ones(self.nodes, dtype=bool) if beginning else self._arrivals(replica)
        by_link = self._faults.per == "link" and self.nodes > 1
        if by_link and not beginning and self._lost():
            arrived[:] = False  # lost on its way to the coordinator
        arrived[agreement.owner] = True
        self._drifted |= not arrived.all()
        return dict.fromkeys(np.flatnonzero(arrived).tolist(), agreement)

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
        for nodes in self._cut_off(replica):
            arrived[nodes] = False
        return arrived

    def _cut_off(self, replica: Replica) -> list[list[int]]:
        """The nodes that are cut off from the rest in this round, by partition."""
        now = replica.ledger_round
        return [list(one.nodes) for one in self._faults.partitions if one.start <= now < one.end]

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
        drifting, active = self.replica, self.replica.chosen.active
        used = np.flatnonzero(active.weights)  # an atom may have more than one weight
        ids = np.unique(np.array(active.ids, dtype=np.int64)[used])
        owners = self.owners(ids)
        atoms = [self.atom(int(owner), int(id)) for owner, id in zip(owners, ids, strict=True)]
        values = np.full(self.nodes, len(used) + len(ids), dtype=np.int64)
        for i, member in enumerate(drifting.members):
            values[i] += sum(atom.count for atom in atoms if atom.id not in member.active)
        self._deliver_iterate(values)

    def _deliver_iterate(self, values: NDArray[np.int64]) -> None:
        """Enter what it takes: objectives, then so many values from the best node to each other."""
        star, best, ledger = self._accountant.network, self.replica.best, self.ledger
        assert isinstance(star, Star)  # the cluster has checked that
        ends, others = star.links.ends, np.delete(np.arange(self.nodes), best)
        ledger.deliver(ends, star.up, {"control": numbers(1)})
        ledger.deliver(ends, star.up[[best]], {"repair": numbers(values[best])})
        ledger.deliver(ends, star.down[others], {"repair": numbers(values[others])})


class MeshSession(DriftingSession):
    """The same on a complete graph, where every message goes from one node to one other.

    A node broadcasts its atom unless it has heard of a better one, so that several may; it steps
    towards the best atom that it receives.
    """

    def _heard(
        self, replica: Replica, proposals: Proposals, request: Request
    ) -> tuple[Agreement, bool]:
        """The proposals that their owners take for the winners, the best ones first."""
        self._count, reach = request.count, self._reach(replica, request.random)
        rows = np.zeros(len(proposals.id), dtype=bool)
        for i in range(self.nodes):
            own = proposals.node == i
            rows |= own & np.isin(proposals.id, agree(proposals.of(reach[:, i]), self._count).id)
        winners = {
            name: getattr(proposals, name)[rows] for name in ("node", "id", "score", "merit")
        }
        return agree(proposals._replace(**winners), int(rows.sum())), bool(reach.all())

    def _received(self, replica: Replica, agreement: Agreement) -> dict[int, Agreement]:
        """By node, the best atoms that it gets."""
        reach = self._reach(replica, self._beginning(replica))
        got = {
            i: np.flatnonzero(reach[agreement.owner, i])[: self._count] for i in range(self.nodes)
        }
        best = np.arange(min(self._count, len(agreement.id)))
        self._drifted |= not all(np.array_equal(rows, best) for rows in got.values())
        return {i: agreement.of(rows) for i, rows in got.items() if len(rows)}

    def _reach(self, replica: Replica, everybody: bool) -> NDArray[np.bool_]:
        """Whether a message from each node gets to each other, shape (N, N)."""
        reach = np.ones((self.nodes, self.nodes), dtype=bool)
        if everybody:
            return reach
        for i, j in np.ndindex(*reach.shape):
            reach[i, j] = i == j or not self._lost()
        for nodes in self._cut_off(replica):
            inside = np.isin(np.arange(self.nodes), nodes)
            reach &= inside[:, None] == inside
        return reach

    def _deliver_iterate(self, values: NDArray[np.int64]) -> None:
        """Every node to every other, then the best one to the others."""
        links, ledger = self._accountant.network.links, self.ledger
        ledger.deliver(links.ends, np.arange(len(links.source)), {"control": numbers(1)})
        from_best = np.flatnonzero(links.source == self.replica.best)
        told = numbers(values[links.target[from_best]])
        ledger.deliver(links.ends, from_best, {"repair": told})


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
