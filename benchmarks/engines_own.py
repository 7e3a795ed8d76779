"""What atomcast itself does in a round of MPI or Ray, part by part, with nobody to wait for."""

from __future__ import annotations

import time

import numpy as np
from engines_rounds import Scored, session_rounds, tiny_problem

from atomcast import Solver
from atomcast.cluster.consistency import check_digests, state_digest
from atomcast.network.star import star_accountant
from atomcast.network.wire import codec as wire


class Echo:
    """A communicator whose other ranks answer at once, with what this rank says.

    But what they propose has less merit, which is the last number of a row: ties are rare.
    """

    def __init__(self, size):
        self._size, self._answer = size, None

    def Get_rank(self):
        return 0

    def Get_size(self):
        return self._size

    def Allgather(self, sent, received):
        if isinstance(sent, np.ndarray):
            received.reshape(self._size, -1)[:] = sent
        else:  # in place
            if self._answer is None:
                self._answer = received[0].copy()
                self._answer[-1] *= 0.5
            received[1:] = self._answer

    def Allgatherv(self, sent, received):
        received[0].reshape(self._size, -1)[:] = sent

    def Allreduce(self, sent, received):
        received[:] = 1

    def Bcast(self, block, owner):
        pass


class Stamps:
    """The time between one mark and the next, in rounds that are alike."""

    def __init__(self):
        self._rounds = []

    def start(self):
        self._rounds.append([("", time.perf_counter_ns())])

    def mark(self, name):
        self._rounds[-1].append((name, time.perf_counter_ns()))

    def least(self):
        """The least time of each part in microseconds, of all rounds."""
        times = np.array([[stamp for _, stamp in marks] for marks in self._rounds])
        names = [name for name, _ in self._rounds[0][1:]]
        return dict(zip(names, np.diff(times, axis=1).min(axis=0) / 1e3, strict=True))


def mpi_parts(d, nodes=2, rounds=3000):
    """A round of MPI: all that its ranks do one after the other, in the order of a round.

    The rank that sends the atom does all but the last part, which is for those that receive it.
    """
    from atomcast.cluster.mpi.mpi_session import MPISession

    problem, shards, replica = tiny_problem(d, nodes)
    session = MPISession(Echo(nodes), problem, shards)
    session.begin(replica, Solver().spec())
    session._fleet = fleet = Scored(session._fleet, replica)
    stamps, request = Stamps(), replica.request()
    for _ in range(rounds):
        own = fleet.propose_one(replica, request)
        stamps.start()
        digest = state_digest(replica)
        stamps.mark("hash of the state")
        each = session._table.one_each(own, digest, 0)
        stamps.mark("row of proposals")
        agreement = session._account.agree_on_one(each, replica.ledger_round)
        stamps.mark("agreement and ledger")
        owner, id = agreement.new_to(replica.active)[0]
        atom = fleet.atom(id)
        stamps.mark("taking the atom out")
        message = wire.encode(atom)
        stamps.mark("encoding")
        heard = session._broadcaster.from_one(owner, message)
        stamps.mark("block to broadcast")
        session._account.cast_one(owner, atom, len(heard))
        stamps.mark("ledger of the atom")
        wire.decode(heard, d)
        stamps.mark("decoding")
    return stamps.least() | {"a sender's round": _round(session, replica)}


def ray_parts(d, nodes=2, rounds=3000):
    """A round of Ray: what a node does and what the program does, in turn."""
    from atomcast import LocalCluster
    from atomcast.cluster.ray.actor import as_news, from_rows, in_order, to_row

    problem, shards, replica = tiny_problem(d, nodes)
    fleet = LocalCluster(nodes).open(problem, shards)._fleets[0]
    own, account = fleet.propose(replica, replica.request()), star_accountant(nodes)
    stamps = Stamps()
    for _ in range(rounds):
        stamps.start()
        digest = state_digest(replica)
        stamps.mark("node: hash of the state")
        row = to_row(own, 0, digest)
        stamps.mark("node: row")
        proposals, digests, _ = from_rows([row] * nodes)
        check_digests([*digests, digest], 0)
        stamps.mark("program: rows of all")
        agreement = account.agree(proposals, 1, replica.ledger_round)
        stamps.mark("program: agreement and ledger")
        owner, id = agreement.new_to(replica.active)[0]
        message = wire.encode(fleet.atom(id))
        stamps.mark("node: taking out and encoding")
        as_news(agreement, [owner])
        messages = in_order([owner], [[message]])
        account.receive([owner], messages, [d])
        stamps.mark("program: decoding and ledger")
    return stamps.least()


def _round(session, replica, repeats=3000):
    run, times = session_rounds(session, replica), []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        run(1)
        times.append(time.perf_counter_ns() - start)
    return min(times) / 1e3
