"""How much memory a rank takes for a kernel SVM on a matrix in a file that every rank can map.

    python benchmarks/mpi_memory.py                  n = 2,004,000 x 120, float32, 2 ranks
    python benchmarks/mpi_memory.py --n 200000 --ranks 4

plain      KernelSVC(cluster=MPICluster()).fit(X, y), where X is the whole matrix, memory-mapped
mine       the same of `Shards.mine`: every rank maps its own rows
copy       copying a rank's rows out of the map at once, as NumPy does, beside block by block, which
           is what a shard does: seconds

Peaks are those of the whole process (VmHWM), interpreter and libraries included.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from atomcast import KernelSVC, MPICluster, Shards, Solver
from atomcast.cluster.mpi.processes import find_mpirun, rank_environment
from atomcast.data.matrices import take

FEATURES = 120


def write(folder, n):
    """A matrix of n examples and their labels."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, FEATURES))
    rng = np.random.default_rng(0)
    weights, y = rng.standard_normal(FEATURES), np.empty(n, dtype=np.int8)
    for start in range(0, n, 100_000):
        part = slice(start, start + 100_000)
        X[part] = rng.standard_normal(X[part].shape, dtype=np.float32)
        y[part] = X[part] @ weights > 0
    np.save(folder / "y.npy", y)


def fit(way, folder):
    """Runs on every rank."""
    warnings.simplefilter("ignore")
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    cluster = MPICluster()
    model = KernelSVC(cluster=cluster, solver=Solver(step="classic", max_rounds=3, tol=1e-3))
    if way == "plain":
        model.fit(X, y)
    else:
        bounds = np.linspace(0, len(y), cluster.nodes + 1).astype(int)
        own = slice(*bounds[cluster.rank : cluster.rank + 2])
        model.fit(Shards.mine(X[own]), y[own], classes=[0, 1])
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]
    print(f"{way:5}  rank {cluster.rank}: peak {int(peak) / 1e6:.2f} GB", flush=True)


def copy(folder):
    """Seconds to copy half of the rows, drawn at random, out of the map, in either way."""
    X = np.load(folder / "X.npy", mmap_mode="r")
    ids = np.flatnonzero(np.random.default_rng(0).integers(2, size=len(X)))
    for name, cut in (("at once", lambda: X[ids]), ("in blocks", lambda: take(X, ids, 0))):
        times = []
        for _ in range(3):
            start = time.perf_counter()
            cut()
            times.append(time.perf_counter() - start)
        print(f"copy   {name}: {min(times):.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=2_004_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        return fit(given.rank[0], Path(given.rank[1]))
    with tempfile.TemporaryDirectory(prefix="atomcast-") as name:
        folder = Path(name)
        write(folder, given.n)
        print(f"matrix of {(folder / 'X.npy').stat().st_size / 1e6:,.0f} MB, {given.ranks} ranks")
        for way in ("plain", "mine"):
            command = [find_mpirun(), "-n", str(given.ranks), "--bind-to", "none", sys.executable]
            command += [os.path.abspath(__file__), "--rank", way, name]
            subprocess.run(command, env=rank_environment(threads=1), check=True)
        copy(folder)


if __name__ == "__main__":
    main()
