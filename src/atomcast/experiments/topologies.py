"""Section 4.1: what dFW sends on a star, a tree, a spanning tree and by flooding, as N grows.

The atoms are dense and are broadcast every time they win, as Algorithm 3 has it, so that the
formulas hold exactly; the corrective step sends every atom once, and has no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from atomcast.data.shards import Shards
from atomcast.domains.base import L1Ball
from atomcast.experiments import atom_counts, claims_theory
from atomcast.experiments.curves import Counter
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.record import Record
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = ("star", "star, plain", "tree", "graph, spanning tree", "graph, flooding")
STEPS = ("classic", "corrective")


class Row(NamedTuple):
    """One run: what was sent until the relative gap was small enough, and what the formula says.

    `values` is everything, `formula` the same by section 4.1 (NaN for the corrective step).
    """

    network: str
    step: str
    run: int
    nodes: int
    edges: int
    d: int
    rounds: int
    atoms_sent: int
    values: int
    formula: float
    hops: int


def make_cluster(network: str, nodes: int, graph: Any, resend: bool) -> LocalCluster:
    """The cluster that a name stands for; graphs are given."""
    if network.startswith("graph"):
        broadcast = network.removeprefix("graph, ").replace(" ", "-")
        return LocalCluster(topology=graph, broadcast=broadcast, resend=resend)
    topology, _, broadcast = network.partition(", ")
    return LocalCluster(nodes, topology, broadcast=broadcast or None, resend=resend)


def formula(network: str, nodes: int, edges: int, d: int, rounds: int) -> int:
    """Values that so many rounds of Algorithm 3 send; every node has atoms.

    A round is an agreement (a score, an index and a partial sum a node) and an atom. The last
    agreement, which certifies the gap, is followed by no atom.
    """
    N, M = nodes, edges
    cost = {
        "star": (6 * N, N),
        "star, plain": (3 * N * N, N),
        "tree": (6 * (N - 1), N - 1),
        "graph, spanning tree": (6 * (N - 1), N - 1),
        "graph, flooding": (4 * N * (2 * M - N + 1), 2 * M - N + 1),
    }
    agreement, broadcast = cost[network]
    building = 2 * M if network == "graph, spanning tree" else 0
    return building + (rounds + 1) * agreement + rounds * d * broadcast


def topologies(
    sizes: Sequence[int] = (10, 20, 50, 100, 200, 500),
    d: int = 50,
    n: int = 2000,
    runs: int = 5,
    tol: float = 0.05,
    out: Path | None = None,
) -> list[Row]:
    """Solve one problem on every network and every number of nodes.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of nodes N.
    d, n : int
        Length and number of atoms.
    runs : int
        Run r has seed r, for the data, the graph (a small world) and nothing else: atoms are
        dealt out in blocks, so that every node has some.
    tol : float
        The relative gap at which runs stop.
    out : path of a folder, optional
        Write topologies.csv, topologies.png and topologies.svg there.
    """
    import networkx

    tell = Counter("topologies", runs * len(sizes))
    rows = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        X = rng.standard_normal((d, n))
        y = X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(d)
        problem = explicit_problem(SquaredError(y), L1Ball(3.0))
        for nodes in sizes:
            graph = networkx.connected_watts_strogatz_graph(nodes, 4, 0.3, seed=run)
            shards = Shards.split(X, nodes, by="contiguous")
            for network in NETWORKS:
                for step in STEPS:
                    cluster = make_cluster(network, nodes, graph, resend=step == "classic")
                    result = Solver(step=step, tol=tol).solve(problem, shards, cluster)
                    edges, rounds = graph.number_of_edges(), result.rounds
                    expected = formula(network, nodes, edges, d, rounds)
                    ledger = result.ledger
                    rows.append(
                        Row(
                            network, step, run, nodes, edges, d, rounds, ledger.atoms_sent,
                            ledger.values, expected if step == "classic" else np.nan, ledger.hops,
                        )
                    )  # fmt: skip
            tell(f"run {run}: N = {nodes}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "topologies.csv")
        write_figure(plot(rows), out / "topologies")
    return rows


def plot(rows: Sequence[Row]) -> Figure:
    """Values sent against N: measured as marks, formulas as lines, one panel a step."""
    from atomcast.plots.curves import COLORS, new_figure

    figure = new_figure(11.0, 4.6)
    for ax, step in zip(figure.subplots(1, 2, sharey=True), STEPS, strict=True):
        for color, network in zip(COLORS, NETWORKS, strict=False):
            chosen = [row for row in rows if (row.network, row.step) == (network, step)]
            sizes = sorted({row.nodes for row in chosen})
            groups = [[row for row in chosen if row.nodes == nodes] for nodes in sizes]
            means = [np.mean([row.values for row in group]) for group in groups]
            low = [min(row.values for row in group) for group in groups]
            high = [max(row.values for row in group) for group in groups]
            ax.plot(sizes, means, "o", color=color, markersize=4, label=network)
            ax.vlines(sizes, low, high, color=color, linewidth=1.0)
            line = means if step == "corrective" else [_mean_formula(group) for group in groups]
            ax.plot(sizes, line, "-" if step == "classic" else ":", color=color, linewidth=1.0)
        lines = "formulas of section 4.1" if step == "classic" else "no formula"
        ax.set_title(f"{step} step (marks: measured, spread of runs; lines: {lines})", fontsize=9)
        ax.set(xscale="log", yscale="log", xlabel="nodes N", ylabel="values sent")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend(frameon=False, fontsize=8)
    runs = len({row.run for row in rows})
    figure.suptitle(f"dense atoms of d = {rows[0].d} values, {runs} runs", fontsize=10)
    return figure


def _mean_formula(group: Sequence[Row]) -> float:
    return float(np.mean([row.formula for row in group]))


def show(options: Options) -> Record:
    """Run it, print run 0, and judge whether measured and formula agree in all of them."""
    sizes = (10, 20, 50, 100) if options.quick else (10, 20, 50, 100, 200, 500)
    rows = topologies(sizes, runs=options.run_count, out=options.out)
    columns = ("network", "step", "nodes", "edges", "rounds", "values", "formula", "hops")
    title = "Communication until the relative gap is 0.05 (run 0)"
    table = print_rows(title, [row for row in rows if row.run == 0], columns, (0, 1))
    note = f"dense atoms of d = {rows[0].d} values, N = {min(sizes)} to {max(sizes)}, "
    note += f"small worlds with M = 2N edges as graphs, {options.times}"
    atoms = (500, 2000, 8000) if options.quick else (500, 2000, 8000, 32_000)
    counts = atom_counts.atom_counts(atoms, runs=options.run_count, out=options.out)
    title = "Communication on a star of 10 nodes until the gap is 0.05, by the number of atoms"
    more = print_rows(title, counts, atom_counts.Row._fields, ())
    found = claims_theory.topologies(rows) + claims_theory.atoms(counts)
    heading = "Section 4.1: communication on networks"
    return Record(heading, note, [table, more], found).printed()
