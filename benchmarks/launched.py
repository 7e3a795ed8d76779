"""What a second rank gains for a kernel SVM: under mpirun alone, and with a program beside it.

    python benchmarks/launched.py                n = 500,000 x 120, 1 and 2 ranks, 3 repeats
    python benchmarks/launched.py --n 100000 --repeats 1

Rows, in milliseconds (the median round of every repeat; the ways take turns):

columns    a kernel column over all examples, and nothing else: what the machine lets N gain
mpirun     a round of ranks that run the loop by themselves, each on a core of its own
launch     a round of `MPICluster.launch`, whose ranks the system may move between cores
bound      the same, each rank bound to a core: options=["--bind-to", "core"]

"shared" is how often both ranks of a launched cluster were on one core when somebody looked, every
10 ms. Figures of two ranks mean something only while both cores are free.
"""

from __future__ import annotations

import argparse
import os
import threading
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import psutil

from atomcast import MPICluster, Shards
from atomcast.experiments.runs.clocked_runs import CLASSIC, speech_problem
from atomcast.experiments.runs.mpi_runs import mpi_run
from atomcast.experiments.runs.timings import median_round
from atomcast.loop.solver import Solver

BOUND = ["--bind-to", "core"]


class Lookout:
    """A thread that looks on which cores the ranks are."""

    def __init__(self):
        self.looked = self.shared = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        """End the thread; how often the ranks shared a core."""
        self._end.set()
        self._thread.join()
        return self.shared / max(self.looked, 1)

    def _look(self):
        ranks = []
        while not self._end.wait(0.01):
            if len(ranks) < 2:
                children = psutil.Process().children(recursive=True)
                ranks = [child for child in children if is_rank(child)]
            try:
                cores = [rank.cpu_num() for rank in ranks]
            except psutil.Error:
                return
            if len(cores) == 2:
                self.looked += 1
                self.shared += cores[0] == cores[1]


def is_rank(process):
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return "atomcast.cluster.mpi.worker" in command and "prterun" not in process.name()


def launched_round(problem, shards, rounds, options):
    """The median round of a launched cluster in ms, and how often its two ranks shared a core."""
    cluster = MPICluster.launch(shards.nodes, options=options)
    seconds, lookout = [], Lookout()

    def look(state):
        seconds.append(state.seconds)
        if len(seconds) == 2:  # the ranks are there
            lookout.start()

    solver = Solver("classic", tol=CLASSIC.tol, max_rounds=rounds, callbacks=[look])
    solver.solve(problem, shards, cluster)
    return 1e3 * median_round(seconds), lookout.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    data, problem = speech_problem(chosen.n, 0)
    found: dict[tuple[str, int], list[float]] = {}
    shared: dict[str, list[float]] = {}
    start = time.perf_counter()
    for _ in range(chosen.repeats):
        for ranks in (1, 2):
            shards = Shards.split(data.X, ranks, by="contiguous")
            trace, alone = mpi_run(problem, shards, chosen.rounds)
            found.setdefault(("columns", ranks), []).append(1e3 * float(np.median(alone)))
            found.setdefault(("mpirun", ranks), []).append(1e3 * median_round(trace.seconds))
            for way, options in (("launch", []), ("bound", BOUND)):
                ms, share = launched_round(problem, shards, chosen.rounds, options)
                found.setdefault((way, ranks), []).append(ms)
                if ranks == 2:
                    shared.setdefault(way, []).append(share)
    print(f"kernel SVM, n = {chosen.n:,} x 120, {chosen.rounds} rounds; ms, every repeat")
    for way in ("columns", "mpirun", "launch", "bound"):
        one, two = found[way, 1], found[way, 2]
        cells = "  ".join(
            f"{k} ranks " + " ".join(f"{ms:6.2f}" for ms in mine)
            for k, mine in ((1, one), (2, two))
        )
        both = "".join(f" {share:.0%}" for share in shared.get(way, []))
        gain = np.median(one) / np.median(two)
        print(f"{way:<8} {cells}  {gain:.2f}x" + (f"  shared{both}" if both else ""))
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
