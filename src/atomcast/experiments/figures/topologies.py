"""Section 4.1: what dFW sends on a star, a tree, a spanning tree and by flooding, as N grows.

The atoms are dense and are broadcast every time they win, as Algorithm 3 has it, so that the
formulas hold exactly; the corrective step sends every atom once, and has no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures import atom_counts
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Found
from atomcast.experiments.page.findings import Finding, theorem
from atomcast.experiments.page.output import TableForm, plain
from atomcast.experiments.page.pictures import finish
from atomcast.experiments.page.reports import PrintedTable
from atomcast.experiments.runs.jobs import Counter, Plan
from atomcast.loop.result import Result
from atomcast.loop.solver import Solver
from atomcast.network.picture import plot_network
from atomcast.objectives import SquaredError
from atomcast.plots.drawing import COLORS, new_figure
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = ("star", "star, plain", "tree", "graph, spanning tree", "graph, flooding")
STEPS = ("classic", "corrective")
DRAWN = ("star", "tree", "graph, spanning tree")
Floats = NDArray[np.float64]


class NetworkRun(NamedTuple):
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


def small_run(network: str, d: int, nodes: int = 13) -> Result:
    """A run on a network that is small enough for its nodes to be seen."""
    import networkx

    graph = networkx.connected_watts_strogatz_graph(nodes, 4, 0.3, seed=0)
    X, y = make_problem(d, 8 * nodes, np.random.default_rng(0))
    problem = explicit_problem(SquaredError(y), L1Ball(3.0))
    cluster = make_cluster(network, nodes, graph, resend=True)
    return Solver("classic", tol=0.05).solve(problem, Shards.split(X, nodes), cluster)


def make_problem(d: int, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Dense atoms and a target that ten of them explain."""
    X = rng.standard_normal((d, n))
    return X, X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(d)


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


@dataclass(frozen=True, kw_only=True)
class Topologies(Experiment):
    """One problem on every network and number of nodes; and problems of more and more atoms."""

    nodes: Sequence[int] = (10, 20, 50, 100, 200, 500)
    d: int = 50
    n: int = 2000
    tol: float = 0.05  # the relative gap at which runs stop
    atoms: Sequence[int] = (500, 2000, 8000, 32_000)  # on a star
    eps: float = 0.05  # the gap at which these runs stop

    name = "topologies"
    title = "Section 4.1: communication on networks"
    quick: ClassVar = {"nodes": (10, 20, 50, 100), "atoms": (500, 2000, 8000)}
    judged_as = "atoms"
    table = TableForm(
        "Communication until the relative gap is 0.05 (run 0)",
        plain("network step nodes edges rounds values formula hops"),
        (0, 1),
    )
    atoms_table = TableForm(
        "Communication on a star of 10 nodes until the gap is 0.05, by the number of atoms",
        dict.fromkeys(atom_counts.AtomCount._fields, ""),
        (),
    )

    def prepare(self, options: Options) -> tuple[None, str]:
        """Sizes and runs."""
        sizes = f"dense atoms of d = {self.d} values, N = {min(self.nodes)} to {max(self.nodes)}"
        return None, f"{sizes}, small worlds with M = 2N edges as graphs, {options.times}"

    def measure(self, data: None, runs: int, out: Path | None, plan: Plan) -> tuple[Any, Any]:
        """Solve one problem on every network, and problems with more atoms on a star.

        Run r has seed r, for the data, the graph (a small world) and nothing else: atoms are dealt
        out in blocks, so that every node has some.
        """
        import networkx

        tell = Counter(self.name, runs * len(self.nodes))
        rows = []
        for run in range(runs):
            rng = np.random.default_rng(run)
            X, y = make_problem(self.d, self.n, rng)
            problem = explicit_problem(SquaredError(y), L1Ball(3.0))
            for nodes in self.nodes:
                graph = networkx.connected_watts_strogatz_graph(nodes, 4, 0.3, seed=run)
                shards, edges = Shards.split(X, nodes, by="contiguous"), graph.number_of_edges()
                for network, step in ((network, step) for network in NETWORKS for step in STEPS):
                    classic = step == "classic"
                    cluster = make_cluster(network, nodes, graph, resend=classic)
                    result = Solver(step=step, tol=self.tol).solve(problem, shards, cluster)
                    rounds, ledger = result.rounds, result.ledger
                    expected = formula(network, nodes, edges, self.d, rounds)
                    rows.append(
                        NetworkRun(
                            network, step, run, nodes, edges, self.d, rounds, ledger.atoms_sent,
                            ledger.values, expected if classic else np.nan, ledger.hops,
                        )
                    )  # fmt: skip
                tell(f"run {run}: N = {nodes}")
        return rows, atom_counts.atom_counts(self.atoms, self.d, runs, self.eps)

    def plot(self, found: Found, note: str) -> Figure:
        """Figure 1 of the paper with the traffic on its edges; then values sent against N.

        Measured as marks, formulas as lines, one panel a step.
        """
        figure, rows = new_figure(11.0, 9.2), found.rows
        halves: Any = figure.subfigures(2, 1, height_ratios=(4, 5))
        above, below = halves
        for ax, network in zip(above.subplots(1, 3), DRAWN, strict=True):
            plot_network(small_run(network, self.d).ledger, ax=ax)
            ax.set_title(f"{network}\n{ax.get_title()}", fontsize=9)
        for ax, step in zip(below.subplots(1, 2, sharey=True), STEPS, strict=True):
            for color, network in zip(COLORS, NETWORKS, strict=False):
                chosen = [row for row in rows if (row.network, row.step) == (network, step)]
                sizes = sorted({row.nodes for row in chosen})
                groups = [[row.values for row in chosen if row.nodes == N] for N in sizes]
                formulas = [[row.formula for row in chosen if row.nodes == N] for N in sizes]
                means = [np.mean(group) for group in groups]
                low, high = ([end(group) for group in groups] for end in (min, max))
                ax.plot(sizes, means, "o", color=color, markersize=4, label=network)
                ax.vlines(sizes, low, high, color=color, linewidth=1.0)
                line = means if step == "corrective" else [np.mean(group) for group in formulas]
                ax.plot(sizes, line, "-" if step == "classic" else ":", color=color, linewidth=1.0)
            lines = "formulas of section 4.1" if step == "classic" else "no formula"
            title = f"{step} step (marks: measured, spread of runs; lines: {lines})"
            finish(ax, "nodes", "values", title, legend=True)
        runs = len({row.run for row in rows})
        said = (
            f"dense atoms of d = {self.d} values, {runs} runs; star, tree and spanning tree nearly"
        )
        below.suptitle(f"{said} coincide", fontsize=9)
        return figure

    def tables(self, found: Found, note: str) -> list[PrintedTable]:
        """Run 0 on networks, and all runs with more atoms."""
        first = [row for row in found.rows if row.run == 0]
        return [self.table.made(first), self.atoms_table.made(found.judged)]

    def findings(self, found: Found) -> list[Finding]:
        """What is sent, and what should be."""
        exact = [row for row in found.rows if row.step == "classic"]
        same = [row.values == row.formula for row in exact]
        networks = "; ".join(dict.fromkeys(row.network for row in exact))
        text = f"all {len(exact)}" if all(same) else f"only {sum(same)} of {len(exact)}"
        on_networks = theorem(
            "communication is O(Nd) a round on stars and trees, O(N(N + d)) on a star without "
            "aggregation and O(M(N + d)) on a graph without a spanning tree",
            "section 4.1",
            "the values sent are those of the formula with its constants, in every run",
            f"measured = formula in {text} runs of the classic step ({networks})",
            same,
        )
        return [on_networks, *atom_counts.findings(found.judged)]
