"""The same fit on different networks: what is learned is the same, what is sent is not.

A round of the classic step is the paper's Algorithm 3; compare its cost with the formulas in
docs/communication.md. Run it with: python examples/networks.py
"""

import warnings

import networkx as nx
import numpy as np

from atomcast import Lasso, LocalCluster, Solver
from atomcast.network.tree import Tree

N, d = 20, 50
rng = np.random.default_rng(0)
X = rng.standard_normal((d, 200))
y = X[:, ::40] @ np.ones(5) + 0.1 * rng.standard_normal(d)

graph = nx.connected_watts_strogatz_graph(N, 4, 0.3, seed=0)  # a small world of 40 edges
networks = {
    "star, improved": {"nodes": N, "topology": "star"},
    "star, plain": {"nodes": N, "topology": "star", "broadcast": "plain"},
    "binary tree": {"nodes": N, "topology": "tree"},
    "tree of arity 4": {"nodes": N, "topology": Tree(4)},
    "complete graph": {"nodes": N, "topology": "complete"},
    "small world, spanning tree": {"topology": graph},
    "small world, flooding": {"topology": graph, "broadcast": "flooding"},
}

warnings.simplefilter("ignore")  # the classic step stops early, on purpose
print(f"{'':28}|   a round of the classic step    | corrective step, whole run, gap 1e-4")
print(f"{'network':28}|{'values':>8}{'messages':>10}{'hops':>6}{'ms':>7}   ", end="")
print(f"|{'rounds':>7}{'atoms':>6}{'values':>9}{'bytes':>10}{'ms':>7}")
for name, network in networks.items():
    # A millisecond to cross an edge, and a megabyte a second over it.
    cluster = LocalCluster(**network, latency=1e-3, bandwidth=1e6, resend=True)
    classic = Lasso(5.0, cluster=cluster, solver=Solver("classic", max_rounds=3)).fit(X, y).result_
    sent = classic.ledger.by_round()[1]  # round 0 may include the building of a tree
    hops = classic.ledger.hops_by_round()[1]
    milliseconds = 1e3 * classic.ledger.seconds_by_round()[1]
    print(f"{name:28}|{sent.values:>8,}{sent.messages:>10,}{hops:>6}", end="")
    print(f"{milliseconds:>7.1f}   ", end="")

    result = Lasso(5.0, cluster=cluster).fit(X, y).result_
    ledger = result.ledger
    print(
        f"|{result.rounds:>7}{ledger.atoms_sent:>6}{ledger.values:>9,}{ledger.bytes:>10,}"
        f"{1e3 * ledger.seconds:>7.1f}"
    )

print("\nof the last run, by kind:")
for kind, count in ledger.by_kind().items():
    print(f"  {kind:12}{count.values:>9,} values {count.bytes:>10,} bytes", end="")
    print(f"{count.messages:>6,} messages")
# ledger.plot_network().figure.savefig("network.png") draws the traffic on the edges.
