"""How long a round takes on each engine, beside a bare loop of the same messages.

    python benchmarks/engines.py                 all engines, N = 1, 2, 4, 8, d = 1,000 and 10,000
    python benchmarks/engines.py --only mpi      one of them (local, mpi, ray)
    python benchmarks/engines.py --own           what of a round of MPI is atomcast's own work
    python benchmarks/engines.py --speedup       dense Lasso, 2,000 x 200,000, on 1 and 2 ranks

A round here is: propose, agree, vote, broadcast one new atom of d float64; scoring and stepping
are taken out (Ray's nodes still score their eight atoms). "bare" is the same messages in a loop
written directly for the engine: Allgather of a row and Bcast of d numbers for MPI; a call to every
actor that brings the last atom, and a call for the next one, for Ray. "exchange" is what atomcast
does to carry finished messages, "session" adds the wire format and the ledger; "ratio" is session
to bare. Microseconds, median of batches that take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import time
import timeit
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

SIZES, LENGTHS = (1, 2, 4, 8), (1_000, 10_000)
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def compared(runs, rounds, repeats=15):
    """The median time of a round of each kind, in microseconds.

    The kinds take turns, batch by batch, so that other work on the machine hits all of them.
    """
    times = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run(rounds)
            if repeat:  # the first batch warms up
                times[name].append((time.perf_counter() - start) / rounds)
    return {name: float(np.median(found) * 1e6) for name, found in times.items()}


def tiny_problem(d, nodes):
    """A least-squares problem with eight atoms a node, and a state to start from."""
    from atomcast import Shards
    from atomcast.domains import L1Ball
    from atomcast.objectives import SquaredError
    from atomcast.problem import explicit_problem
    from atomcast.replica import Replica
    from atomcast.steps import STEPS

    rng = np.random.default_rng(0)
    problem = explicit_problem(SquaredError(rng.standard_normal(d)), L1Ball(1.0))
    shards = Shards.split(rng.standard_normal((d, 8 * nodes)), nodes, by="contiguous")
    return problem, shards, Replica(problem, STEPS["classic"]("auto"), 1e-9)


class Scored:
    """A fleet that has scored its atoms already: what is left of a round is talking."""

    def __init__(self, fleet, replica):
        self._fleet = fleet
        self._proposals = fleet.propose(replica, replica.request())

    def propose(self, replica, request):
        return self._proposals

    def __getattr__(self, name):
        return getattr(self._fleet, name)


def session_rounds(session, replica):
    request = replica.request()

    def run(rounds):
        for _ in range(rounds):
            agreement = session.propose(replica, request)
            session.vote(None)
            session.cast(replica, agreement)

    return run


def local_times(d, nodes):
    from atomcast import LocalCluster

    problem, shards, replica = tiny_problem(d, nodes)
    session = LocalCluster(nodes).open(problem, shards)
    session._fleets = [Scored(fleet, replica) for fleet in session._fleets]
    return compared({"session": session_rounds(session, replica)}, 200)


# -- MPI: the functions below run on every rank -----------------------------------------------


def mpi_rank():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for d in LENGTHS:
        found = mpi_times(comm, d)
        if comm.Get_rank() == 0:
            print(json.dumps({"d": d, "nodes": comm.Get_size(), **found}), flush=True)


def mpi_times(comm, d):
    from atomcast import MPICluster
    from atomcast.network import wire

    nodes = comm.Get_size()
    problem, shards, replica = tiny_problem(d, nodes)
    session = MPICluster(comm).open(problem, shards)
    session.begin(replica, {})
    session._fleet = Scored(session._fleet, replica)
    own = session._fleet.propose(replica, None)
    agreement = session.propose(replica, replica.request())
    owner, id = int(agreement.owner[0]), int(agreement.id[0])
    mine = [wire.encode(session._fleet.atom(id))] if comm.Get_rank() == owner else []
    row, rows, atom = np.zeros(8), np.zeros((nodes, 8)), np.zeros(d)

    def bare(rounds):
        for _ in range(rounds):
            comm.Allgather(row, rows)
            comm.Bcast(atom, owner)

    def exchange(rounds):
        for _ in range(rounds):
            session._table.gathered(own, 0, 0)
            if nodes > 1:
                session._broadcaster.messages([owner], mine)

    runs = {"bare": bare, "exchange": exchange, "session": session_rounds(session, replica)}
    return compared(runs, 200)


def mpirun(ranks, *arguments):
    command = [str(Path(sysconfig.get_path("scripts"), "mpirun")), "-n", str(ranks)]
    done = subprocess.run(
        [*command, "--bind-to", "none", sys.executable, __file__, *arguments],
        **{"env": {**os.environ, **MPI_ENVIRONMENT}, "timeout": 300, "check": True},
        **{"capture_output": True, "text": True},
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


from mpi4py.MPI import IN_PLACE
class Echo:
    """A communicator whose other ranks answer at once, with what this rank says."""

    def __init__(self, size):
        self._size = size

    def Get_rank(self):
        return 0

    def Get_size(self):
        return self._size

    def Allgather(self, sent, received):
        received.reshape(self._size, -1)[:] = received[0] if sent is IN_PLACE else sent

    def Allgatherv(self, sent, received):
        received[0].reshape(self._size, -1)[:] = sent

    def Allreduce(self, sent, received):
        received[:] = 1

    def Bcast(self, block, owner):
        pass


def own_work(d):
    """What atomcast itself does in a round of MPI, without any waiting: where the rest goes."""
    from atomcast.cluster.agreeing import state_digest
    from atomcast.cluster.mpi_session import MPISession
    from atomcast.network import wire
    from atomcast.protocol import agree

    problem, shards, replica = tiny_problem(d, 2)
    session = MPISession(Echo(2), problem, shards)
    session.begin(replica, {})
    session._fleet = Scored(session._fleet, replica)
    own = session._fleet.propose(replica, None)
    proposals = session._table.gathered(own, 0, 0)
    atom = session._fleet.atom(int(agree(proposals, 1).id[0]))
    message, whole_round = wire.encode(atom), session_rounds(session, replica)
    parts = {
        "all": lambda: whole_round(1),
        "row": lambda: session._table.gathered(own, 0, 0),
        "digest": lambda: state_digest(replica),
        "agreement": lambda: agree(proposals, 1),
        "agreement and ledger": lambda: session._account.agree(replica, proposals, 1),
        "encode": lambda: wire.encode(atom),
        "block": lambda: session._broadcaster.messages([0], [message]),
        "decode": lambda: wire.decode(message),
        "decode and ledger": lambda: session._account.receive([0], [message]),
    }
    found = {name: min(timeit.repeat(f, number=50, repeat=200)) * 2e4 for name, f in parts.items()}
    print(f"d = {d}: " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()))


# -- Ray --------------------------------------------------------------------------------------


def ray_times(d, nodes, rounds=40):
    from atomcast import RayCluster

    cluster = RayCluster(nodes, cpus=0.1)
    ray = cluster.connect()

    class Bare:
        def __init__(self):
            self.values = np.zeros(d)

        def turn(self, round, atom):
            return bytes(72)

        def atom(self):
            return self.values.tobytes()

    actors = [ray.remote(Bare).options(num_cpus=0.1).remote() for _ in range(nodes)]

    def bare(rounds):
        atom = None
        for k in range(rounds):
            ray.get([actor.turn.remote(k, atom) for actor in actors])
            atom = actors[0].atom.remote()
            ray.get(atom)

    problem, shards, replica = tiny_problem(d, nodes)
    session = cluster.open(problem, shards)
    session.begin(replica, {})
    # One real round; after that, nodes that are asked for the same round again only propose.
    agreement = session.propose(replica, replica.request())
    replica.advance(agreement, session.cast(replica, agreement))
    found = compared({"bare": bare, "session": session_rounds(session, replica)}, rounds, 7)
    for actor in actors:
        ray.kill(actor)
    session.__exit__(None, None, None)
    cluster.close()
    return found


# -- dense Lasso on one and two ranks ---------------------------------------------------------


def speedup_rank(d=2_000, n=200_000, rounds=12):
    from mpi4py import MPI

    from atomcast import Lasso, MPICluster, Shards, Solver

    comm = MPI.COMM_WORLD
    share = n // comm.Get_size()
    rng = np.random.default_rng(comm.Get_rank())
    X = rng.standard_normal((share, d)).T
    y = np.random.default_rng(99).standard_normal(d)
    solver = Solver(step="away", tol=1e-9, max_rounds=rounds)
    import warnings

    warnings.simplefilter("ignore")
    result = Lasso(1.0, cluster=MPICluster(comm), solver=solver).fit(Shards.mine(X), y).result_
    if comm.Get_rank() == 0:
        steps = np.diff(result.trace.seconds)
        found = {"ranks": comm.Get_size(), "ms": float(np.median(steps) * 1e3)}
        print(json.dumps(found), flush=True)


def speedup():
    """What a second rank brings on dense Lasso, with one BLAS thread each."""
    one, two = (mpirun(ranks, "--speedup-rank")[0]["ms"] for ranks in (1, 2))
    print("dense Lasso, d = 2,000, n = 200,000, float64, one BLAS thread a rank, time of a round")
    print(f"1 rank {one:.1f} ms, 2 ranks {two:.1f} ms: {one / two:.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("local", "mpi", "ray"))
    parser.add_argument("--speedup", action="store_true")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--mpi-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--speedup-rank", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.mpi_rank:
        return mpi_rank()
    if chosen.speedup_rank:
        return speedup_rank()
    if chosen.speedup:
        return speedup()
    if chosen.own:
        print("own work of a rank in a round, N = 2, microseconds, least of 30 batches")
        for d in LENGTHS:
            own_work(d)
        return None
    print(f"{'engine':<7}{'N':>3}{'d':>8}{'bare':>10}{'exchange':>10}{'session':>10}{'ratio':>8}")
    for nodes in SIZES:
        if chosen.only in (None, "local"):
            for d in LENGTHS:
                show("local", nodes, d, local_times(d, nodes))
        if chosen.only in (None, "mpi"):
            for found in mpirun(nodes, "--mpi-rank"):
                show("mpi", found.pop("nodes"), found.pop("d"), found)
        if chosen.only in (None, "ray"):
            for d in LENGTHS:
                show("ray", nodes, d, ray_times(d, nodes))
    return None


def show(engine, nodes, d, found):
    cells = [f"{found[k]:>10.0f}" if k in found else f"{'-':>10}" for k in ("bare", "exchange")]
    ratio = f"{found['session'] / found['bare']:>8.2f}" if "bare" in found else f"{'-':>8}"
    print(
        f"{engine:<7}{nodes:>3}{d:>8}{''.join(cells)}{found['session']:>10.0f}{ratio}", flush=True
    )


if __name__ == "__main__":
    main()
