"""What a second rank brings, beside what it brings at plain reading and at plain arithmetic."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np

#: What is shared out, and what bounds its gain: plain reading of the same memory, or arithmetic.
CEILINGS = {
    "dense Lasso, columns read": "reading",
    "dense Lasso, columns bounded": "arithmetic",
    "a kernel column": "reading",
    "16 kernel columns at once": "arithmetic",
}
REPEATS = 12


def speedup_rank(d=2_000, n=100_000, examples=400_000):
    """On as many ranks as there are, each with its share; rank 0 prints milliseconds as JSON."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = dense_columns(comm, n // comm.Get_size(), d)
    found |= kernel_columns(comm, examples // comm.Get_size())
    if comm.Get_rank() == 0:
        print(json.dumps({name: [np.median(ms), min(ms)] for name, ms in found.items()}))


def dense_columns(comm, n, d):
    """Plain reading of this rank's columns, as many matrix products, and rounds of the Lasso."""
    columns = np.random.default_rng(comm.Get_rank()).standard_normal((n, d))
    square, times = columns[:500, :500].copy(), 24 // comm.Get_size()
    flat = columns.ravel()
    found = {
        "reading": together(comm, lambda: np.dot(flat, flat)),
        "arithmetic": together(comm, lambda: [square @ square for _ in range(times)]),
    }
    steps = lasso_rounds(comm, columns.T)
    found["dense Lasso, columns read"] = steps[1:6]
    found["dense Lasso, columns bounded"] = steps[-REPEATS:]
    return found


def together(comm, work):
    """How long all ranks take for work that they do at the same time, in ms, every repeat."""
    work()
    times = []
    for _ in range(REPEATS):
        comm.Barrier()
        start = time.perf_counter()
        work()
        comm.Barrier()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def lasso_rounds(comm, X, rounds=30):
    """Every round of the away step, in ms: columns are read at first, and bounded later."""
    from atomcast import Lasso, MPICluster, Shards, Solver

    y = np.random.default_rng(99).standard_normal(len(X))
    solver = Solver(step="away", tol=1e-9, max_rounds=rounds)
    warnings.simplefilter("ignore")
    result = Lasso(1.0, cluster=MPICluster(comm), solver=solver).fit(Shards.mine(X), y).result_
    return (1e3 * np.diff(result.trace.seconds)).tolist()


def kernel_columns(comm, n, d=120):
    """Kernel columns over this rank's examples, one in a pass and 16 of them."""
    from atomcast.known.kernels.functions import RBF
    from atomcast.known.kernels.labels import LabelCode
    from atomcast.known.kernels.sums import DenseSums

    points = np.random.default_rng(comm.Get_rank()).standard_normal((n, d), dtype=np.float32)
    sums = DenseSums(points, RBF(0.01), LabelCode(2, np.ones(2)), np.zeros(n, dtype=np.uint8))
    total, times = np.zeros(n), {}
    for name, m in (("a kernel column", 1), ("16 kernel columns at once", 16)):
        others = (points[:m], sums.labels[:m], np.ones(m))
        times[name] = together(comm, lambda o=others: sums.add(total, 0.5, *o))
    return times


def show_speedup(one, two):
    """The table of what was found on one rank and on two; the gains by name."""
    print("1 and 2 ranks, one thread each; least (median) time in ms of the same work in all")
    print(f"{'':<30}{'1 rank':>16}{'2 ranks':>16}{'gain':>7}  of the ceiling")
    gains = {name: one[name][1] / two[name][1] for name in one}
    for name in ("reading", "arithmetic", *CEILINGS):
        times = [f"{least:.1f} ({median:.1f})" for median, least in (one[name], two[name])]
        cells = "".join(f"{time:>16}" for time in times)
        ceiling = CEILINGS.get(name)
        share = f"  {gains[name] / gains[ceiling]:.0%} of {ceiling}'s" if ceiling else ""
        print(f"{name:<30}{cells}{gains[name]:>6.2f}x{share}")
    return gains
