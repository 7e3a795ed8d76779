"""What the simulated network costs: per message, at 10,000 nodes, and against a single node.

    python benchmarks/network.py                 all of it, a few minutes
    python benchmarks/network.py messages        seconds per message, for growing networks
    python benchmarks/network.py large           10,000 nodes: star, spanning tree, flooding
    python benchmarks/network.py overhead        100 and 1,000 nodes against one, on Dorothea

The last one reads the data set from the folder in ATOMCAST_DATA.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import time

import networkx as nx
import numpy as np

from atomcast import Lasso, LocalCluster, Solver
from atomcast.data import load_dorothea, make_sparse_regression
from atomcast.messages.proposals import Proposals
from atomcast.network.build import make_topology
from atomcast.network.ledger import Ledger


def random_graph(nodes, edges):
    """The first connected one of a sequence of random graphs of this size."""
    graphs = (nx.gnm_random_graph(nodes, edges, seed=seed) for seed in itertools.count())
    return next(graph for graph in graphs if nx.is_connected(graph))


def round_of(network, nodes, ledger):
    """One round of the classic step: N proposals with partial sums, and an atom."""
    merit = np.random.default_rng(0).random(nodes)
    everybody = np.arange(nodes)
    proposals = Proposals(everybody, everybody, merit, merit, merit, np.ones(nodes))
    winner = network.agree(proposals, 1, ledger)
    network.broadcast(winner.owner, [100], [800], ledger)


def messages():
    """Time of a round on growing networks; `records` counts each proposal on each link."""
    print(
        f"{'network':<28}{'nodes':>9}{'messages':>12}{'ms':>9}{'us/message':>12}{'ns/record':>11}"
    )
    for name in ("star", "tree", "spanning-tree", "flooding", "complete"):
        sizes = {"complete": (100, 300, 1000), "flooding": (100, 1000, 3000, 10_000)}
        for nodes in sizes.get(name, (100, 1000, 10_000, 100_000)):
            general = name in ("spanning-tree", "flooding")
            graph = random_graph(nodes, 5 * nodes) if nodes <= 10_000 and general else name
            if general and nodes > 10_000:
                continue
            network = make_topology(graph, nodes, name if general else None, 0.0, np.inf)
            network.prepare(Ledger(nodes))
            round_of(network, nodes, Ledger(nodes))
            repeats, start = 0, time.perf_counter()
            while repeats < 3 or (time.perf_counter() - start < 0.5 and repeats < 100):
                ledger = Ledger(nodes)
                round_of(network, nodes, ledger)
                repeats += 1
            seconds = (time.perf_counter() - start) / repeats
            records = ledger.by_kind()["proposal"].values + ledger.by_kind()["atom"].values / 100
            print(
                f"{name:<28}{nodes:>9,}{ledger.messages:>12,}{1e3 * seconds:>9.2f}"
                f"{1e6 * seconds / ledger.messages:>12.3f}{1e9 * seconds / records:>11.1f}"
            )


def large_run(broadcast):
    """n = 100,000 atoms on N = 10,000 nodes to a relative gap of 1e-3."""
    X, y, truth = make_sparse_regression(1000, 100_000, 0.01, 0.001)
    if broadcast == "star":
        cluster = LocalCluster(10_000)
    else:
        cluster = LocalCluster(topology=random_graph(10_000, 50_000), broadcast=broadcast)
    model = Lasso(beta=0.7 * float(np.abs(truth).sum()), cluster=cluster, solver=Solver(tol=1e-3))
    start = time.perf_counter()
    result = model.fit(X, y).result_
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{broadcast:<16}{result.status:>9}{result.relative_gap:>10.1e}{result.rounds:>7}"
        f"{result.ledger.atoms_sent:>7}{result.ledger.messages:>13,}{result.ledger.values:>17,}"
        f"{seconds:>9.1f}{peak:>9.2f}",
        flush=True,
    )


def large():
    """Each run in a process of its own, so that its peak memory is its own."""
    print("N = 10,000 nodes, n = 100,000 atoms, d = 1,000, tol = 1e-3; graph with 50,000 edges")
    print(
        f"{'network':<16}{'status':>9}{'gap':>10}{'rounds':>7}{'atoms':>7}{'messages':>13}"
        f"{'values':>17}{'seconds':>9}{'peak GB':>9}"
    )
    for broadcast in ("star", "spanning-tree", "flooding"):
        subprocess.run([sys.executable, __file__, "large-run", broadcast], check=True)


def overhead():
    """The best of several fits of Dorothea on 1, 100 and 1,000 nodes of a star."""
    dorothea = load_dorothea()
    X, y = dorothea.X, dorothea.y
    print(f"{'Dorothea':<26}{'nodes':>7}{'seconds':>9}{'against 1':>11}")
    cases = [(f"corrective, beta {beta:g}", beta, Solver(tol=1e-4)) for beta in (8.0, 16.0, 24.0)]
    cases.append(("classic, 300 rounds", 16.0, Solver(step="classic", tol=1e-9, max_rounds=300)))
    for name, beta, solver in cases:
        times = {nodes: [] for nodes in (1, 100, 1000)}
        for _ in range(9):  # in turn, so that all see the same state of the machine
            for nodes, seen in times.items():
                start = time.perf_counter()
                Lasso(beta=beta, cluster=LocalCluster(nodes), solver=solver).fit(X, y)
                seen.append(time.perf_counter() - start)
        for nodes, seen in times.items():
            print(f"{name:<26}{nodes:>7,}{min(seen):>9.3f}{min(seen) / min(times[1]):>11.2f}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # runs that end at a number of rounds
    if sys.argv[1:2] == ["large-run"]:
        large_run(sys.argv[2])
        sys.exit()
    chosen = sys.argv[1:] or ["messages", "large", "overhead"]
    for part in chosen:
        if part == "overhead" and "ATOMCAST_DATA" not in os.environ:
            print("overhead: set ATOMCAST_DATA to the folder that holds dorothea/")
            continue
        {"messages": messages, "large": large, "overhead": overhead}[part]()
        print()
