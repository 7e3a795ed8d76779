"""Simulated nodes on an unreliable network, which keep one log: `recovery="log"`.

The loop holds the state at the head of the log. A node whose log is a shorter prefix is being
repaired, and neither heard nor scored: what it would propose is about another iterate.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomcast.cluster.mixing import Said, combined, mixers_of
from atomcast.cluster.validation import WITH_FAULTS, refuse_balanced, refuse_some_heard
from atomcast.data.shards import Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec
from atomcast.messages.atom import Atom, check_form
from atomcast.messages.proposals import Agreement, Proposals, Request, agree
from atomcast.messages.status import Status
from atomcast.network.faults import Faults
from atomcast.network.wave import Kind
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.simulation.local_session import LocalSession
from atomcast.simulation.log_messages import LogEntry, Nodes
from atomcast.simulation.log_traffic import LogTraffic
from atomcast.simulation.places import make_vertices, rooted
from atomcast.simulation.simulator import Simulator
from atomcast.simulation.stalling import stall, turns

if TYPE_CHECKING:
    from atomcast.simulation.local import LocalCluster

logger = logging.getLogger(__name__)

#: In a usual round, the root gives missing nodes time for so many repetitions, then goes on.
REPETITIONS = 20


class LogSession(LocalSession):
    """The nodes of a `LocalCluster` with faults, and the log that they share.

    Attributes
    ----------
    simulator : Simulator
        The vertices with their logs, and the messages between them.
    """

    asks = False

    def __init__(
        self, cluster: LocalCluster, problem: Problem, shards: Shards, faults: Faults
    ) -> None:
        super().__init__(cluster, problem, shards)
        self._faults = faults
        tree = rooted(self._accountant.network)
        vertices = make_vertices(tree)
        links = tree.all_links
        below = [vertex.everyone for vertex in vertices]
        self._traffic = LogTraffic(self.ledger, links, tree.depth, below)
        latency = float(links.latency.max(initial=0.0))
        self._timed = bool(links.timed or faults.delay)
        self.simulator = Simulator(vertices, faults, latency, self._traffic.enter)
        self._root = self.simulator.root
        self._clock = 0  # of the faults: the round, and every turn that is spent on waiting
        self._open: Agreement | None = None  # what was agreed, but is not in the log
        self._silent = 0  # nodes of which nothing was heard in the last round
        self._unnamed = 0  # mixtures and points so far, whose ids are below zero

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """All nodes share this process: there is nothing to tell them."""
        refuse_balanced(replica, WITH_FAULTS)
        refuse_some_heard(replica)
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Let the nodes at the head of the log propose; those heard in time agree."""
        self.ledger.round = replica.ledger_round
        self._close()
        proposals = self.proposals(replica, request)
        self._traffic.begin(proposals, request)
        self._clock = max(self._clock, replica.ledger_round)
        self.simulator.turn(self._clock)
        if self._root.idle:
            self._begin()
        if not self._wait(self._enough_heard):
            self._root.since = self._root.version + 1  # older offers come from before this wait
        agreement = self._agreed(proposals, request)
        needed = request.complete or request.random  # a sample that does not depend on the loss
        if not agreement.complete and (needed or self._needs_all(replica, agreement)):
            self._insist(self._all_heard, self._unheard, replica)
            agreement = self._agreed(proposals, request)
        before = self._silent
        self._silent = self._root.everyone & ~(self._root.heard | self._root.spoken)
        if self._silent != before:
            self._log_changes(before, replica.round)
        self._root.spoken = 0
        self._flush()
        self._open = agreement
        return agreement

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Get the winners that are not known yet from their owners, and add them to the log."""
        self.ledger.round = replica.ledger_round
        if agreement.mixed:
            return [self._mixed_point(replica, agreement)]
        winners = agreement.new_to(replica.active)
        owners = [owner for owner, _ in winners]
        atoms = [self.atom(owner, id) for owner, id in winners]
        check_form(replica.active, atoms, winners)  # what is sent is known by its id from here on
        self._traffic.know(atoms)
        self.simulator.send(self._root.fetch(winners))
        self._insist(self._all_here, self._owners_of_missing, replica)
        self._append(agreement, atoms, owners)
        self._accountant.disclose(owners, atoms)
        return atoms

    def _mixed_point(self, replica: Replica, agreement: Agreement) -> Atom:
        """Get what the nodes heard have to send, and add what the root makes of it to the log.

        Where a run is resumed nobody was heard yet, and everybody has something to say.
        """
        heard = self._heard() | (agreement.best == -np.inf)
        mixers = [mixer for fleet in self._fleets for mixer in mixers_of(fleet, replica)]
        mixers = [mixer for mixer in mixers if heard[mixer.node]]
        sent = [one for mixer in mixers for one in mixer.said(replica, agreement.best)]
        said = [Said.of(one) for one in sent]
        ids = [self._named("mixture" if s.mixed else "atom", s.values, s.bytes) for s in said]
        pairs = [(one.node, id) for one, id in zip(sent, ids, strict=True)]
        self.simulator.send(self._root.fetch(pairs))
        self._insist(self._all_here, self._owners_of_missing, replica)
        self._accountant.disclose_mixed(said)
        point = combined(self._accountant, replica, agreement.best, sent)
        id = self._named("image", point.count, wire.encoded_size(point))
        entry, root = replace(point, id=id), self._root.place.number
        senders = sum({1 << one.node for one in sent})
        self._append(agreement, [entry], [root], senders)
        return entry

    def _named(self, kind: Kind, values: int, size: int) -> int:
        """An id for something that is no atom."""
        self._unnamed -= 1
        self._traffic.know_size(self._unnamed, kind, values, size)
        return self._unnamed

    def vote(self, status: Status | None) -> Status | None:
        """There is one clock and one set of callbacks; a run that ends is closed in the log."""
        if status is not None:
            self._close()
        return status

    # -- the log ----------------------------------------------------------------------------

    def _append(
        self,
        agreement: Agreement,
        atoms: Sequence[Atom] = (),
        owners: Sequence[int] = (),
        senders: Nodes = 0,
        final: bool = False,
    ) -> None:
        version, round = self._root.version, self.ledger.round
        entry = LogEntry(version, round, agreement, tuple(atoms), tuple(owners), senders, final)
        self.simulator.send(self._root.append(entry))
        self.simulator.arm()
        self._open = None
        self._flush()

    def _close(self) -> None:
        """What was agreed on last goes to everybody, though no step follows from it."""
        if self._open is not None:
            self._append(self._open, final=True)
            height = self._root.place.height
            self.simulator.run(lambda: False, height * self.simulator.hop)
            self._flush()

    def _begin(self) -> None:
        """Everybody knows that a run begins, or that a round follows in which all must be heard."""
        for vertex in self.simulator.vertices:
            out = vertex.start()
            if self.simulator.alive(vertex.place.number):
                self.simulator.send(out)
        self.simulator.arm()

    def _agreed(self, proposals: Proposals, request: Request) -> Agreement:
        """What follows from the proposals of the nodes that the root has heard."""
        heard = self._heard()
        if heard.all():
            return agree(proposals, request.count)
        return agree(proposals.of(heard), request.count)._replace(complete=False)

    # -- waiting ----------------------------------------------------------------------------

    def _needs_all(self, replica: Replica, agreement: Agreement) -> bool:
        """Whether it depends on the missing nodes how the run goes on.

        It does where those heard have nothing to offer, and where the run could end: their best
        atom is a lower bound on the best of all, and so is the gap that follows from it.
        """
        if not len(agreement.id):
            return True
        if not replica.feasible:
            return False
        gap = replica.domain.gap(replica.active.inner(), agreement.best)
        return replica.certified(gap) <= replica.target

    def _wait(self, done: Callable[[], bool]) -> bool:
        """Give everybody the time of a usual round."""
        patience = self.simulator.patience(self._root.place.number)
        return self.simulator.run(done, (REPETITIONS + 0.5) * patience)

    def _insist(
        self, done: Callable[[], bool], missing: Callable[[], Sequence[int]], replica: Replica
    ) -> None:
        """Wait for as long as it takes, within reason; meanwhile nodes may die and come back."""
        waits = turns(self._faults, missing(), self._clock)
        self.simulator.arm()
        for _ in range(waits):
            if self._wait(done):
                return
            self._clock += 1
            self.simulator.turn(self._clock)
        self._flush()
        raise stall(self._faults, missing(), self._clock, replica.round, waits)

    def _enough_heard(self) -> bool:
        """Nodes that were silent all through the last round are not waited for in this one.

        Somebody must be heard, though: who hears nobody would go on in no time at all, and not
        notice when the others are back.
        """
        root = self._root
        alone = root.heard == root.place.own != root.everyone
        return root.heard | self._silent == root.everyone and not alone

    def _all_heard(self) -> bool:
        return self._root.heard == self._root.everyone

    def _all_here(self) -> bool:
        return not self._root.missing

    def _owners_of_missing(self) -> list[int]:
        return sorted({owner for _, owner in self._root.missing.values()})

    def _log_changes(self, before: int, round: int) -> None:
        lost, back = self._silent & ~before, before & ~self._silent
        for what, nodes in (("is lost", lost), ("is back", back)):
            if nodes:
                numbers = ", ".join(str(i) for i in range(self.nodes) if nodes >> i & 1)
                logger.info("round %d: node %s %s", round, numbers, what)

    def _heard(self) -> NDArray[np.bool_]:
        heard = self._root.heard
        return np.array([bool(heard >> i & 1) for i in range(self.nodes)])

    def _unheard(self) -> list[int]:
        return np.flatnonzero(~self._heard()).tolist()

    def _flush(self) -> None:
        self._traffic.flush(self.simulator.now if self._timed else 0.0)
