"""Nodes in this process with their shards loaded: what every simulated cluster is made of."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import thread_count
from atomcast.atoms.explicit import explicit_atoms
from atomcast.cluster.balance import Balance
from atomcast.cluster.keeping import Counted, cones_of, keep_own
from atomcast.cluster.machine import machine
from atomcast.cluster.mixing import cast_point, mixers_of
from atomcast.cluster.node import Fleet
from atomcast.cluster.pace import Pace
from atomcast.cluster.rounding import rounded
from atomcast.cluster.summing import agree_on_sum
from atomcast.cluster.validation import checked_shard as _checked
from atomcast.data._split import SplitShards
from atomcast.data.alignment import check_any
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.messages.status import Status
from atomcast.network.ledger import Accountant
from atomcast.network.prices import Prices
from atomcast.network.rooted import RootedTree
from atomcast.network.star import Star
from atomcast.network.wave import NUMBER
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.selection.rules import Balanced
from atomcast.simulation.weighing import Weighing
from atomcast.storage.fingerprint import data_fingerprint, shard_fingerprint

if TYPE_CHECKING:
    from atomcast.simulation.local import LocalCluster

logger = logging.getLogger(__name__)


class LocalSession(Session):
    """The nodes of a `LocalCluster` with their shards loaded."""

    speaks = True
    asks = True
    #: What becomes of a node's atoms.
    fleet_type = Fleet

    def __init__(self, cluster: LocalCluster, problem: Problem, shards: Shards) -> None:
        if shards.nodes != cluster.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but the cluster has "
                f"{cluster.nodes} nodes; use LocalCluster(nodes={shards.nodes})"
            )
        self.nodes, self.alone = cluster.nodes, cluster.alone
        self.recalls = type(self) is LocalSession  # whose messages all come at once
        self._fingerprint: str | None = None
        self._cast = cluster.cast
        slow = {} if cluster.faults is None else cluster.faults.slow
        self._pace = Pace(self.nodes, cluster.compute or 0.0, slow)
        self._balance = Balance(self._pace)
        self._resend = cluster.resend
        self._shards, self._axis = shards, problem.axis
        shards.validate(problem.axis)
        self.n = shards.count(problem.axis)
        check_any(self.n, problem.axis)
        together = shards.kind == "split" and not (cluster.isolated or cluster.asynchronous)
        self._fleets = (
            self._one_fleet(problem, shards) if together else self._fleet_each(problem, shards)
        )
        self._accountant = Accountant(cluster.network(), shards.party_names, problem.told)
        self.ledger = self._accountant.ledger
        if len(self._fleets) == 1 and self.recalls:
            self._fleets[0].choose = isinstance(self._accountant.network, Star)
        self._weighing: Weighing | None = None
        self._prices: Prices | None = None
        if logger.isEnabledFor(logging.INFO):
            logger.info("%d nodes on %s, threads: %d", self.nodes, machine(), thread_count())
            logger.info("loaded %d atoms in %d shards (%s)", self.n, self.nodes, shards.kind)

    @property
    def mixes(self) -> bool:  # type: ignore[override]  # nobody sets it
        """Whether the network has somebody whom all can reach, and who can reach all."""
        return isinstance(self._accountant.network, RootedTree)

    def _one_fleet(self, problem: Problem, shards: Shards) -> list[Fleet]:
        """All nodes over the user's own matrix, which is neither copied nor cut."""
        whole = shards
        if self.nodes > 1:
            matrix = shards.matrix
            if isinstance(shards, SplitShards):  # sparse data is turned once for all runs
                matrix = shards.oriented(problem.axis)
            whole = SplitShards(matrix, nodes=1, by="contiguous", names=shards.names)
            whole.finite = getattr(shards, "finite", False)
            whole.kept = getattr(shards, "kept", None)
        try:
            assert isinstance(whole, SplitShards)
            # Who hands out columns can do without an order of the others.
            falling = problem.make_atoms is explicit_atoms
            shard = _checked(problem, whole.shard(0, problem.axis, falling))
        except ValueError:
            for i in range(self.nodes):  # say which of the shards is to blame
                _checked(problem, shards.shard(i, problem.axis))
            raise
        owner = shards.assignment(problem.axis)
        self.usual_size = shard.stored / self.n
        atoms = problem.make_atoms(rounded(shard, self._cast))
        return [self.fleet_type(atoms, shard.ids, owner, self.nodes)]

    def _fleet_each(self, problem: Problem, shards: Shards) -> list[Fleet]:
        """A fleet of one for each node, with a shard that no other node refers to."""
        fleets = []
        sizes = np.bincount(shards.assignment(problem.axis), minlength=self.nodes)
        for i in range(self.nodes):
            shard = _checked(problem, shards.shard(i, problem.axis))
            self.usual_size += shard.stored / self.n
            owner = np.full(len(shard.ids), i, dtype=np.int64)
            atoms = problem.make_atoms(rounded(shard, self._cast))
            fleets.append(self.fleet_type(atoms, shard.ids, owner, self.nodes, sizes))
        return fleets

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """All nodes share this process: there is nothing to tell them."""
        self._balance.resumed = spec.resume
        network = self._accountant.network
        if replica.step.thin and self._weighing is None and isinstance(network, RootedTree):
            self._weighing = Weighing(self._accountant, network, self.atom)
        # Where computing takes simulated time, too, batches stay those of asynchronous runs.
        priced = not self._pace.compute and self.nodes > 1
        priced = priced and bool(np.any(np.isfinite(network.links.bandwidth)))
        if self._prices is None and priced:
            self._prices = Prices(network, NUMBER * self._fleets[0].atoms.d)
        if self._prices is not None:
            replica.round_in_atoms = self._prices.round_in_atoms
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let every node score its own atoms and propose; the network finds the winners."""
        if replica.has_all:
            return replica.found()
        if not isinstance(replica.selection, Balanced):
            return self._agree(replica, request)
        return self._balance.agree(replica, request, self._agree, self._fleets)

    def _agree(self, replica: Replica, request: Request) -> Agreement:
        """One round of proposals."""
        proposals = self.proposals(replica, request)
        if self._pace.compute:
            scored = np.sum([fleet.scored for fleet in self._fleets], axis=0)
            self.ledger.round = replica.ledger_round
            self._accountant.work(self._pace.seconds(scored))
        if self._weighing is not None and request.candidates and not request.random:
            return self._weighing.agree(replica, request, proposals)
        if proposals.sum is not None:
            return agree_on_sum(self._accountant, proposals.sum, replica)
        return self._accountant.agree(proposals, request.count, replica.ledger_round)

    def proposals(self, replica: Replica, request: Request) -> Proposals:
        """What every node would propose from this state."""
        if self._weighing is not None and request.candidates:  # it knows better than a node alone
            request = replace(request, count=request.candidates, candidates=0)
        parts = [fleet.propose(replica, request) for fleet in self._fleets]
        self.unread = sum(fleet.unread for fleet in self._fleets)
        return parts[0] if len(parts) == 1 else Proposals.merged(parts)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Broadcast the winners that are not known yet, as bytes on the simulated wire."""
        if agreement.sum is not None:
            return agreement.summed
        if agreement.mixed:
            return [self._mixed(replica, agreement.best)]
        winners = agreement.new_to(() if self._resend else replica.active.position)
        atoms = self._sent(winners, replica.ledger_round)
        if self._prices is not None:
            self._prices.saw(atoms)
        if not self._resend:
            return atoms
        return [atom for atom in atoms if atom.id not in replica.active]

    def own(self) -> Fleet | None:
        """The one node there is, unless a column stands for several atoms."""
        fleet = self._fleets[0]
        return fleet if fleet.columns_are_atoms else None

    def _mixed(self, replica: Replica, best: float) -> Atom:
        """Where the mixtures of all nodes lead to."""
        mixers = [mixer for fleet in self._fleets for mixer in mixers_of(fleet, replica)]
        sent = [said for mixer in mixers for said in mixer.said(replica, best)]
        if replica.step.reveals:
            return cast_point(self._accountant, replica, best, sent)

        def asked(nodes: Sequence[int], width: int) -> Counted:
            own = [mixer for mixer in mixers if mixer.node in nodes]
            return Counted(cones_of(own, replica, width), self._accountant, nodes)

        point = cast_point(self._accountant, replica, best, sent, asked)
        keep_own(mixers, replica, point)
        return point

    def atom(self, owner: int, id: int) -> Atom:
        """An atom as its owner would send it."""
        fleet = self._fleets[owner if len(self._fleets) > 1 else 0]
        return wire.as_sent(fleet.atom(id), self._cast)

    def _atoms(self, winners: Sequence[tuple[int, int]]) -> Sequence[Atom]:
        """Atoms by owner and id, as their owners would send them."""
        if len(self._fleets) > 1:
            return [self.atom(owner, id) for owner, id in winners]
        atoms = self._fleets[0].atoms_of([id for _, id in winners])
        return atoms if self._cast is None else [wire.as_sent(a, self._cast) for a in atoms]

    def _sent(self, winners: Sequence[tuple[int, int]], round: int) -> Sequence[Atom]:
        """Atoms by owner and id, carried from their owners to everybody."""
        self.ledger.round = round
        weighed = None if self._weighing is None else self._weighing.cast(winners)
        if weighed is not None:
            return weighed
        atoms = self._atoms(winners)
        if self.nodes > 1:
            # What arrives is bit for bit what was sent, so that its length is all we need.
            sizes = [wire.encoded_size(atom) for atom in atoms]
            self._accountant.cast([owner for owner, _ in winners], atoms, sizes)
        return atoms

    def vote(self, status: Status | None) -> Status | None:
        """There is one clock and one set of callbacks: nothing to agree on."""
        return status

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The node that holds each of these atoms, shape (k,); -1 where there is none."""
        return np.max([fleet.owners(ids) for fleet in self._fleets], axis=0)

    def fingerprint(self) -> str:
        """What tells these atoms from others; the same however they are spread over nodes."""
        if self._fingerprint is None:
            shards = (self._shards.shard(i, self._axis).cut_out() for i in range(self.nodes))
            parts = [shard_fingerprint(rounded(shard, self._cast), self._axis) for shard in shards]
            self._fingerprint = data_fingerprint(self.n, parts)
        return self._fingerprint

    def close(self, error: BaseException | None) -> None:
        """Let go of the shards."""
        self._fleets = []
