"""What `engines.py` times: rounds of each engine, bare loops of the same messages, single parts."""

from __future__ import annotations

import json
import time
from functools import wraps

import numpy as np

LENGTHS = (1_000, 10_000)
ROUNDS = 40  # of a whole run; few enough that nearly every one of them brings a new atom


def compared(runs, same=lambda number: number, repeats=15):
    """The time of a round of each kind in microseconds: [median, least] of several batches.

    The kinds take turns, batch by batch, so that other work on the machine hits all of them.
    `same` lets all processes use the number of rounds that the first one has found.
    """
    rounds, times = {}, {name: [] for name in runs}
    for name, run in runs.items():  # also warms up
        run(10)
        start = time.perf_counter()
        run(10)
        rounds[name] = same(int(np.clip(0.2 / (time.perf_counter() - start), 5, 200)))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run(rounds[name])
            times[name].append((time.perf_counter() - start) / rounds[name])
    return {name: summary(found) for name, found in times.items()}


def summary(seconds):
    return [float(np.median(seconds) * 1e6), float(np.min(seconds) * 1e6)]


def tiny_problem(d, nodes, per_node=8):
    """A least-squares problem with a few atoms a node, and a state to start from."""
    from atomcast import Shards
    from atomcast.domains.balls import L1Ball
    from atomcast.loop.replica import Replica, Tolerance
    from atomcast.objectives import SquaredError
    from atomcast.problems.features import explicit_problem
    from atomcast.steps import STEPS

    rng = np.random.default_rng(0)
    X = rng.standard_normal((d, per_node * nodes))
    y = X @ rng.choice([-1.0, 1.0], per_node * nodes)
    problem = explicit_problem(SquaredError(y), L1Ball(0.5 * per_node * nodes))
    shards = Shards.split(X, nodes, by="contiguous")
    return problem, shards, Replica(problem, STEPS["classic"]("auto"), Tolerance(1e-9))


class Scored:
    """A fleet that has scored its atoms already: what is left of a round is talking."""

    unread = 0

    def __init__(self, fleet, replica):
        self._fleet = fleet
        self._one = fleet.propose_one(replica, replica.request())
        self._all = fleet.propose(replica, replica.request())

    def propose_one(self, replica, request):
        return self._one

    def propose(self, replica, request):
        return self._all

    def __getattr__(self, name):
        return getattr(self._fleet, name)


def session_rounds(session, replica):
    """Rounds of talking: propose, agree, vote, broadcast one new atom."""
    request = replica.request()

    def run(rounds):
        for _ in range(rounds):
            agreement = session.propose(replica, request)
            session.vote(None)
            session.cast(replica, agreement)

    return run


# -- whole rounds of the solver ---------------------------------------------------------------


class Stopwatch:
    """Adds up the time spent in some functions, each of which may call others of them."""

    def __init__(self):
        self.seconds, self._inside = 0.0, False

    def timed(self, function):
        @wraps(function)
        def run(*arguments, **options):
            if self._inside:
                return function(*arguments, **options)
            self._inside, start = True, time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self._inside = False
                self.seconds += time.perf_counter() - start

        return run


def solver_times(cluster, d, nodes, repeats=8):
    """A whole round of the solver, and how much of it is arithmetic: scores, objective, step."""
    from atomcast import Solver
    from atomcast.atoms.explicit import DenseAtoms
    from atomcast.known.active_set import ExplicitActiveSet
    from atomcast.steps.classic import LineSearch

    watch, kept = Stopwatch(), []
    methods = [(DenseAtoms, "scores"), (LineSearch, "advance")]
    methods += [(ExplicitActiveSet, name) for name in ("value", "inner", "scores", "append")]
    for owner, name in methods:
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, watch.timed(getattr(owner, name)))
    problem, shards, _ = tiny_problem(d, nodes, per_node=64)
    marks = []

    def mark(state):
        marks.append((time.perf_counter(), watch.seconds, state.replica.active.atoms))

    solver = Solver(step="line-search", tol=1e-12, max_rounds=ROUNDS, callbacks=[mark])
    rounds = []
    try:
        for repeat in range(repeats + 1):
            marks.clear()
            solver.solve(problem, shards, cluster)
            if repeat:  # the first run warms up
                rounds.append(np.diff(marks, axis=0))
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)
    run, work, new = np.concatenate(rounds).T
    times = {"run": run, "work": work, "library": run - work}
    return {name: summary(seconds) for name, seconds in times.items()} | {"new": new.mean()}


# -- one process ------------------------------------------------------------------------------


def local_times(d, nodes):
    from atomcast import LocalCluster

    problem, shards, replica = tiny_problem(d, nodes)
    session = LocalCluster(nodes).open(problem, shards)
    session._fleets = [Scored(fleet, replica) for fleet in session._fleets]
    found = compared({"session": session_rounds(session, replica)})
    return found | solver_times(LocalCluster(nodes), d, nodes)


# -- MPI: these functions run on every rank ---------------------------------------------------


def mpi_rank():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for d in LENGTHS:
        found = mpi_times(comm, d)
        if comm.Get_rank() == 0:
            print(json.dumps({"d": d, "nodes": comm.Get_size(), **found}), flush=True)


def mpi_times(comm, d):
    from atomcast import MPICluster, Solver
    from atomcast.network.wire import codec as wire

    nodes = comm.Get_size()
    problem, shards, replica = tiny_problem(d, nodes)
    session = MPICluster(comm).open(problem, shards)
    session.begin(replica, Solver().spec())
    session._fleet = Scored(session._fleet, replica)
    own = session._fleet.propose_one(replica, None)
    agreement = session.propose(replica, replica.request())
    owner, id = int(agreement.owner[0]), int(agreement.id[0])
    mine = wire.encode(session._fleet.atom(id)) if comm.Get_rank() == owner else None
    row, rows, atom = np.zeros(9), np.zeros((nodes, 9)), np.zeros(d)

    def bare(rounds):
        for _ in range(rounds):
            comm.Allgather(row, rows)
            comm.Bcast(atom, owner)

    def exchange(rounds):
        for _ in range(rounds):
            session._table.one_each(own, 0, 0)
            if nodes > 1:
                session._broadcaster.from_one(owner, mine)

    runs = {"bare": bare, "exchange": exchange, "session": session_rounds(session, replica)}
    found = compared(runs, comm.bcast)
    return found | solver_times(MPICluster(comm), d, nodes)


# -- Ray --------------------------------------------------------------------------------------


def ray_times(nodes):
    """The times for each length, on one cluster."""
    from atomcast import RayCluster

    cluster = RayCluster(nodes, cpus=0.1)
    ray = cluster.connect()
    for d in LENGTHS:
        yield d, _ray_rounds(ray, cluster, d, nodes) | solver_times(cluster, d, nodes, repeats=2)
    cluster.close()


def _ray_rounds(ray, cluster, d, nodes):
    from atomcast import Solver

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
    session.begin(replica, Solver().spec())
    # One real round; after that, nodes that are asked for the same round again only propose.
    agreement = session.propose(replica, replica.request())
    replica.advance(agreement, session.cast(replica, agreement))
    found = compared({"bare": bare, "session": session_rounds(session, replica)}, repeats=7)
    for actor in actors:
        ray.kill(actor)
    session.__exit__(None, None, None)
    return found
