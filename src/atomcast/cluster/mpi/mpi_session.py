"""An open MPI cluster, as one of its ranks sees it.

Every rank runs the loop on its own copy of the state, with a fleet of one node. A round takes one
collective for the proposals (plus one if they are many) and one for the atom, unless it is known.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from atomcast._threads import thread_count
from atomcast.cluster.consistency import check_digests, check_same_facts, state_digest
from atomcast.cluster.machine import log_nodes
from atomcast.cluster.mpi.buffers import (
    Broadcaster,
    bytes_of_rank_0,
    gather_bytes,
    gather_json,
    sum_of_all,
)
from atomcast.cluster.mpi.failures import (
    abort,
    import_mpi,
    raise_failure,
    raise_no_atom,
    told_by_all,
)
from atomcast.cluster.mpi.mixed import mixed_point
from atomcast.cluster.mpi.rank_shards import place
from atomcast.cluster.mpi.table import FAILED, Said, Table
from atomcast.cluster.mpi.watch import (
    ATOMS,
    LOADING,
    NO_ROUND,
    OUTSIDE,
    PROPOSALS,
    SCORING,
    STARTING,
    STEPPING,
    Pulse,
    by_all,
    read_by_rank_0,
)
from atomcast.cluster.node import Fleet
from atomcast.cluster.summing import agree_on_sum
from atomcast.cluster.validation import (
    ShardReport,
    check_owners,
    check_reports,
    inspect,
    refuse_balanced,
)
from atomcast.data.shards import Shard, Shards
from atomcast.loop.replica import Replica
from atomcast.loop.session import RunSpec, Session
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement, Proposals, Request
from atomcast.messages.status import Status
from atomcast.network.star import star_accountant
from atomcast.network.wire import codec as wire
from atomcast.problems.problem import Problem
from atomcast.storage.facts import facts
from atomcast.storage.fingerprint import data_fingerprint, shard_fingerprint

logger = logging.getLogger(__name__)

#: What a run can end with, by the number that stands for it in a message; 0 means "go on".
STATUSES: tuple[Status, ...] = get_args(Status)


class MPISession(Session):
    """A rank with its shard loaded; made by `MPICluster.open`."""

    mixes = asks = True

    def __init__(
        self, comm: Any, problem: Problem, shards: Shards, pulse: Pulse | None = None
    ) -> None:
        self._comm = comm
        self._pulse = pulse or Pulse()
        self._pulse.at = (NO_ROUND, LOADING)
        self.rank, self.nodes = comm.Get_rank(), comm.Get_size()
        self.apart = self.nodes > 1
        self.speaks = self.rank == 0
        self._broadcaster = Broadcaster(comm)
        self._table = Table(comm)
        with told_by_all():
            shards = place(comm, shards, self._pulse)
            shard, sizes = self._loaded(problem, shards)
            with by_all(comm, self._pulse):
                atoms = problem.make_atoms(shard)
        self._pulse.at = (NO_ROUND, LOADING)
        self._account = star_accountant(self.nodes, shards.party_names, problem.told)
        self.ledger = self._account.ledger  # of the logical star, the same on every rank
        owner = np.full(len(shard.ids), self.rank, dtype=np.int64)
        self._fleet = Fleet(atoms, shard.ids, owner, self.nodes, sizes)
        self._fingerprint: str | None = None
        self._reload, self._axis = partial(shards.shard, self.rank, problem.axis), problem.axis
        self._due: Literal["nothing", "proposals", "atoms"] = "nothing"
        self._leaving = self._together = False
        self._last: tuple[Replica, Agreement] | None = None
        self._wish = 0
        self._stop = 0

    def _loaded(self, problem: Problem, shards: Shards) -> tuple[Shard, NDArray[np.int64]]:
        """The shard of this rank, if all shards are sound and fit together, and all their sizes."""
        axis = problem.axis
        if shards.nodes != self.nodes:
            raise ValueError(
                f"the data is cut into {shards.nodes} shards, but there are {self.nodes} ranks; "
                f"start the program with mpirun -n {shards.nodes}, or cut it into {self.nodes}"
            )
        shard, report = inspect(
            problem, lambda: shards.shard(self.rank, axis), lambda: shards.count(axis), self.rank
        )
        self._pulse.at = (NO_ROUND, STARTING)
        reports = [ShardReport.from_json(m) for m in gather_bytes(self._comm, report.to_json())]
        check_reports(reports, axis)
        self.reports = reports
        if self.speaks:
            log_nodes(logger, reports, thread_count())
        assert shard is not None
        shards.validate(axis)
        self.n, self.d = report.total, report.length
        self.usual_size = sum(one.stored for one in reports) / self.n
        owners = np.zeros(self.n, dtype=np.int32)
        owners[shard.ids] = 1
        everywhere = np.empty_like(owners)
        self._comm.Allreduce(owners, everywhere)
        check_owners(everywhere)
        self._pulse.at = (NO_ROUND, LOADING)
        return shard, np.array([report.atoms for report in reports])

    # -- the verbs of a session -------------------------------------------------------------

    def begin(self, replica: Replica, spec: RunSpec) -> Replica:
        """Check that all ranks start the same run from the same state."""
        refuse_balanced(replica)
        told = {**spec.common, "resume": spec.resume, "problem": replica.problem}
        told["weights"] = replica.active.weights
        self._pulse.at = (NO_ROUND, STARTING)
        self._together = True
        with told_by_all():
            said = gather_json(self._comm, [facts(told, passing="private"), spec.checkpoint])
            check_same_facts([known for known, _ in said])
            if any(wants for _, wants in said):  # a single rank may want to write one
                self.fingerprint()
        self._pulse.at = (NO_ROUND, STEPPING)
        self._table.width = replica.request().count
        self._wish = self._stop = 0
        self._due, self._leaving = "proposals", False
        return replica

    def propose(self, replica: Replica, request: Request) -> Agreement:
        """Score this rank's atoms, exchange proposals, and agree."""
        self._pulse.at = (replica.round, SCORING)
        self._together = self.nodes == 1
        try:
            one = self._fleet.propose_one(replica, request)
            own = self._fleet.propose(replica, request) if one is None else one
        except Exception as error:
            self._tell(error)
            raise
        self._due = "nothing"
        self._pulse.at = (replica.round, PROPOSALS)
        agreement = self._agreed(replica, request, own)
        self._pulse.at = (replica.round, STEPPING)
        if request.complete:  # no step follows
            replica.radius.update(self._radii(replica))
            return agreement
        self._last = replica, agreement
        self._due = "nothing" if self._stop else "atoms"  # if a rank wished to stop, all will
        return agreement

    def _agreed(self, replica: Replica, request: Request, own: Said) -> Agreement:
        """What all ranks agree on, after checking that all are at the same point."""
        table = self._table
        each = table.one_each(own, state_digest(replica), self._wish, self._fleet.unread)
        self._stop = 0
        if any(table.votes):
            if FAILED in table.votes:
                raise_failure(self._comm, None)
            self._stop = next(filter(None, table.votes))
        if table.digests.count(table.digests[0]) != self.nodes:
            with told_by_all():
                check_digests(table.digests, replica.round)
        self.unread = sum(table.unread)
        if each is not None and request.count == 1:
            return self._account.agree_on_one(each, replica.ledger_round)
        if isinstance(own, Proposals) and own.sum is not None:
            return agree_on_sum(self._account, sum_of_all(self._comm, own.sum), replica)
        proposals = self._table.proposals(own)
        return self._account.agree(proposals, request.count, replica.ledger_round)

    def cast(self, replica: Replica, agreement: Agreement) -> Sequence[Atom]:
        """Let the owners broadcast the winners that are not known yet."""
        if agreement.sum is not None:
            self._due = "proposals"
            return agreement.summed
        if agreement.mixed:
            return [self._mixed(replica, agreement.best)]
        new = agreement.new_to(replica.active.position)
        if self.nodes == 1:
            return self._fleet.atoms_of([id for _, id in new])
        self._due = "nothing"
        if len(new) == 1:
            return [self._cast_one(replica, *new[0])]
        owners, atoms, mine = [owner for owner, _ in new], {}, []
        failure: Exception | None = None
        try:
            for owner, id in new:
                if owner == self.rank:
                    atoms[id] = own = self._fleet.atom(id)
                    mine.append(wire.encode(own))
        except Exception as error:
            failure = error  # the others are in the collective already: they hear of it there
        self._pulse.at = (replica.round, ATOMS)
        said = mine if failure is None else None
        messages = self._broadcaster.messages(owners, said) if new else []
        if messages is None:
            raise_no_atom(self._comm, replica.round, failure)
        self._pulse.at = (replica.round, STEPPING)
        self._due = "proposals"
        # What an owner sent comes back bit for bit: it need not read it.
        received = []
        for (_, id), message in zip(new, messages, strict=True):
            atom = atoms.get(id)
            if atom is None:
                atom = wire.decode(message, replica.active.length_of(id, self.d))
            received.append(atom)
        self._account.cast(owners, received, list(map(len, messages)))
        return received

    def _cast_one(self, replica: Replica, owner: int, id: int) -> Atom:
        """The same of a single winner, as in every round of the classic step: it must be quick."""
        atom = message = failure = None
        if owner == self.rank:
            try:
                atom = self._fleet.atom(id)
                message = wire.encode(atom)
            except Exception as error:
                failure = error
        self._pulse.at = (replica.round, ATOMS)
        heard = self._broadcaster.from_one(owner, message)
        if heard is None:
            raise_no_atom(self._comm, replica.round, failure)
        self._pulse.at = (replica.round, STEPPING)
        self._due = "proposals"
        if atom is None:
            atom = wire.decode(heard, replica.active.length_of(id, self.d))
        self._account.cast_one(owner, atom, len(heard))
        return atom

    def _mixed(self, replica: Replica, best: float) -> Atom:
        """Where the mixtures of all ranks lead to."""
        self._due = "nothing"
        point = mixed_point(self._comm, self._pulse, self._fleet, replica, best, self._account)
        self._pulse.at = (replica.round, STEPPING)
        self._due = "proposals"
        return point

    def put_together(
        self, ids: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The weights that rank 0 knows, on every rank."""
        known = bytes_of_rank_0(self._comm, ids.tobytes() + weights.tobytes())
        half = len(known) // 2
        return np.frombuffer(known[:half], np.int64), np.frombuffer(known[half:], np.float64)

    def leave(self) -> None:
        """From here on, no other rank waits for this one: an error of a callback is its own."""
        self._leaving, self._due = True, "nothing"

    def vote(self, status: Status | None) -> Status | None:
        """Agree on whether to stop.

        What all ranks find by themselves needs no vote. Clocks and callbacks differ: their wish to
        stop travels with the next proposals, at no cost, and ends the run one round later.
        """
        if self.nodes > 1 and not self._leaving:
            if not self._stop:
                self._wish = 0 if status is None else 1 + STATUSES.index(status)
                return None
            status = STATUSES[self._stop - 1]
        self._due = "proposals" if status is None else "nothing"
        return status

    # -- resuming ---------------------------------------------------------------------------

    def shared(self, read: Callable[[], bytes]) -> bytes:
        """What `read` returns on rank 0, on every rank."""
        content = read_by_rank_0(self._comm, self._pulse, read)
        self._pulse.at = (NO_ROUND, STEPPING)
        return content

    def fingerprint(self) -> str:
        """What tells the atoms from others; the first time, all ranks must ask for it."""
        if self._fingerprint is None and not self._together:
            raise ValueError(
                "a snapshot needs something of every rank that was not asked for in time: put "
                "Checkpoint(path) among the callbacks, or use the same callbacks on every rank"
            )
        return self._common_fingerprint()

    def _common_fingerprint(self) -> str:
        if self._fingerprint is None:
            self._pulse.at = (NO_ROUND, LOADING)
            with by_all(self._comm, self._pulse, "shard"):
                own = shard_fingerprint(self._reload(), self._axis)
            told = gather_json(self._comm, str(own))
            self._fingerprint = data_fingerprint(self.n, map(int, told))
            self._pulse.at = (NO_ROUND, STEPPING)
        return self._fingerprint

    def owners(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank that holds each of these atoms, shape (k,); -1 where there is none."""
        own = self._fleet.owners(ids)
        self._pulse.at = (NO_ROUND, STARTING)
        owners = np.empty_like(own)
        self._comm.Allreduce(np.ascontiguousarray(own), owners, import_mpi().MAX)
        return owners

    def _radii(self, replica: Replica) -> dict[int, float]:
        """How far the atoms of each rank are from those that it might propose."""
        told = gather_json(self._comm, replica.radius.get(self.rank))
        return {rank: radius for rank, radius in enumerate(told) if radius is not None}

    def close(self, error: BaseException | None) -> None:
        """Let the other ranks know of an error that they would wait for in vain."""
        try:
            if error is not None and self.nodes > 1 and self._due != "nothing":
                self._tell(error)
        finally:
            self._pulse.at = (NO_ROUND, OUTSIDE)

    # -- failures ---------------------------------------------------------------------------

    def _tell(self, error: BaseException) -> None:
        """Let the other ranks know that this one cannot go on, in the collective they are in."""
        if self.nodes == 1:
            return
        try:
            if self._due == "atoms" and self._last is not None:
                replica, agreement = self._last
                self.cast(replica, replica.wanted(agreement))
            self._due = "nothing"
            self._pulse.at = (self._pulse.at[0], PROPOSALS)
            self._table.gathered(None, 0, FAILED)
        except BaseException as met:
            if not getattr(met, "raised_by_all", False):
                abort(error)
            return  # the others are gone as well: another rank had no atom for them
        raise_failure(self._comm, error)
