"""The lower bound of section 4.2: instances on which no algorithm can send less than so much.

The atoms are the columns of a d x d orthonormal matrix with two diagonal blocks, one on each of
two nodes, and d = 1/(6 eps). Every point of the simplex within eps of the optimum 1/d then has
more than 3d/4 atoms, so that more than d/4 atoms of d/2 values each must change sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lgamma, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from atomcast.data.generators import LowerBoundInstance, make_lower_bound
from atomcast.data.shards import Shards
from atomcast.domains.base import L1Ball, Simplex
from atomcast.experiments import claims_theory
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.record import Record
from atomcast.loop.callbacks import State
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Form = Literal["simplex", "l1"]

#: Bits that tell a real value, log2 of the paper's kappa: the significand of a float64.
BITS = 52


class Row(NamedTuple):
    """One run on a hard instance.

    `atoms` and `values` are those of the first iterate within eps of the optimum, `rounds` and
    `certified_values` those at which the duality gap is within eps as well. `support` is the
    number of atoms with a weight in that first iterate; `needed` is 3d/4, which it must exceed.
    """

    form: str
    step: str
    eps: float
    d: int
    distance: int
    rounds: int
    support: int
    needed: float
    atoms: int
    values: int
    certified_values: int
    bound: float
    floor: float


def hard_problem(instance: LowerBoundInstance, form: Form = "simplex") -> tuple[Problem, float]:
    """The problem of section 4.2 for an instance, and its optimum.

    "simplex" is min ||A alpha||^2 over the simplex. "l1" is its form with an l1 constraint: with
    y = A 1, ||y - A alpha||^2 = ||A alpha||^2 - 2 sum(alpha) + d is smallest on the l1 ball of
    radius 1 where alpha is on the simplex, and there it differs from the first by a constant.
    (The quotient ||A alpha||^2 / ||alpha||_1^2 in the paper has the same minimisers, but is not
    convex.)
    """
    d = instance.A.shape[1]
    if form == "simplex":
        return explicit_problem(SquaredError(np.zeros(d)), Simplex()), 1.0 / d
    return explicit_problem(SquaredError(instance.A.sum(axis=1)), L1Ball(1.0)), (d - 1.0) ** 2 / d


def ends_of_diameter(graph: Any) -> tuple[int, int, int]:
    """Two nodes of a connected graph that are farthest apart, and their distance (appendix B).

    Nodes are given by their place in the sorted order of labels, as clusters number them.
    """
    import networkx

    from atomcast.network.graphs import node_labels

    labels = node_labels(graph)
    distance = networkx.eccentricity(graph)
    first = next(label for label in labels if distance[label] == max(distance.values()))
    lengths = networkx.single_source_shortest_path_length(graph, first)
    last = next(label for label in labels if lengths[label] == distance[first])
    return labels.index(first), labels.index(last), int(distance[first])


def hard_shards(instance: LowerBoundInstance, nodes: int, ends: tuple[int, int]) -> Shards:
    """The two blocks of an instance on two of N nodes; the others hold nothing."""
    sizes = np.zeros(nodes, dtype=np.int64)
    sizes[sorted(ends)] = np.bincount(instance.owner)
    return Shards.split(sparse.csc_array(instance.A), nodes, by=sizes.tolist())


def bound_in_values(d: int, distance: int = 1) -> float:
    """Theorem 3 with its constants: real values that must travel, each of log2(kappa) = 52 bits.

    With N_D(t) = kappa^((2D-t-1)t/2) / t! the proof's T = N_{d/2}(d/2) / N_{d/2}(d/4) has
    log T = (d^2/32 - d/8) log kappa - log((d/2)! / (d/4)!), and d^2/32 = d / (192 eps).
    """
    repetitions = (lgamma(d / 2 + 1) - lgamma(d / 4 + 1)) / (BITS * log(2))
    return max(distance * (d * d / 32 - d / 8 - repetitions), 0.0)


class Watch:
    """Notice the first iterate that is good enough, and stop once that is certified."""

    def __init__(self, eps: float, optimum: float) -> None:
        self.eps, self.optimum = eps, optimum
        self.support = self.atoms = self.values = 0

    def __call__(self, state: State) -> bool:
        """Stop when the duality gap is within eps."""
        active = state.replica.active
        if not self.atoms and state.objective < self.optimum + self.eps:
            self.support = int(np.count_nonzero(active.weights))
            self.atoms, self.values = len(active), state.ledger.values
        return not (self.atoms and state.gap <= self.eps)


def run(
    eps: float, step: str, form: Form = "simplex", graph: Any = None, random_state: int = 0
) -> Row:
    """Solve one hard instance to within eps, on two nodes or at the ends of a graph's diameter."""
    instance = make_lower_bound(eps, random_state)
    problem, optimum = hard_problem(instance, form)
    first, last, distance = (0, 1, 1) if graph is None else ends_of_diameter(graph)
    cluster = LocalCluster(2, "complete") if graph is None else LocalCluster(topology=graph)
    shards = hard_shards(instance, cluster.nodes, (first, last))
    watch = Watch(eps, optimum)
    solver = Solver(step=step, tol=1e-15, max_rounds=1_000_000, callbacks=[watch])
    result = solver.solve(problem, shards, cluster)
    d = len(instance.owner)
    return Row(
        form=form,
        step=step,
        eps=eps,
        d=d,
        distance=distance,
        rounds=result.rounds,
        support=watch.support,
        needed=0.75 * d,
        atoms=watch.atoms,
        values=watch.values,
        certified_values=result.ledger.values,
        bound=bound_in_values(d, distance),
        floor=distance * d * d / 8,
    )


def lower_bound(
    sizes: Iterable[int] = (16, 32, 64, 128, 256),
    distances: Iterable[int] = (1, 2, 4, 8, 16),
    steps: Sequence[str] = ("classic", "corrective"),
    out: Path | None = None,
) -> list[Row]:
    """Run all hard instances: growing d = 1/(6 eps), and growing distance at one d.

    Parameters
    ----------
    sizes : iterable of int
        Numbers of atoms d, multiples of 4.
    distances : iterable of int
        Lengths of the paths at whose ends the two blocks are put, for one d in the middle.
    steps : sequence of str
    out : path of a folder, optional
        Write lower-bound.csv, lower-bound.png and lower-bound.svg there.

    Returns
    -------
    list of Row
    """
    import networkx

    sizes = list(sizes)
    rows = [
        run(1 / (6 * d), step, form) for form in ("simplex", "l1") for step in steps for d in sizes
    ]
    middle = sizes[len(sizes) // 2]
    rows += [
        run(1 / (6 * middle), step, graph=networkx.path_graph(length + 1))
        for step in steps
        for length in distances
    ]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "lower-bound.csv")
        write_figure(plot_lower_bound(rows), out / "lower-bound")
    return rows


def plot_lower_bound(rows: Sequence[Row]) -> Figure:
    """Values sent against d/eps, atoms used against d, values sent against the distance."""
    from matplotlib.ticker import NullFormatter

    from atomcast.plots.curves import new_figure

    figure = new_figure(12.0, 3.9)
    left, middle, right = figure.subplots(1, 3)
    pair = [row for row in rows if row.distance == 1]
    # The runs at several distances come last, and are all of one size.
    path = [row for row in rows if row.form == "simplex" and row.d == rows[-1].d]
    _lines(left, pair, lambda row: row.d / row.eps, lambda row: row.values)
    _reference(left, pair, lambda row: row.d / row.eps, "bound", "lower bound (Theorem 3)", "-")
    _reference(left, pair, lambda row: row.d / row.eps, "floor", "d/4 atoms cross", "--")
    left.set(xscale="log", yscale="log", xlabel="d / eps", ylabel="values sent")
    _lines(middle, pair, lambda row: row.d, lambda row: row.support)
    _reference(middle, pair, lambda row: row.d, "needed", "3d/4", "-")
    middle.set(xlabel="d", ylabel="atoms in the first solution within eps")
    _lines(right, path, lambda row: row.distance, lambda row: row.values)
    _reference(right, path, lambda row: row.distance, "bound", "lower bound x distance", "-")
    right.set(xlabel="distance of the two nodes", ylabel="values sent")
    for ax in (left, middle, right):
        for axis in (ax.xaxis, ax.yaxis):  # else matplotlib labels what lies between as well
            axis.set_minor_formatter(NullFormatter())
        ax.grid(True, which="major", alpha=0.3)
        ax.legend(frameon=False, fontsize=8)
    return figure


def _lines(ax: Axes, rows: Sequence[Row], x: Any, y: Any) -> None:
    from atomcast.plots.curves import COLORS

    series = sorted({(row.step, row.form) for row in rows})
    for k, (step, form) in enumerate(series):
        points = sorted((x(row), y(row)) for row in rows if (row.step, row.form) == (step, form))
        style: dict[str, Any] = {"marker": "os^v"[k % 4], "color": COLORS[k % len(COLORS)]}
        style |= {"markersize": 4, "linewidth": 1.2}
        ax.plot(*zip(*points, strict=True), label=f"{step}, {form}", **style)


def _reference(ax: Axes, rows: Sequence[Row], x: Any, name: str, label: str, style: str) -> None:
    points = sorted({(x(row), getattr(row, name)) for row in rows})
    ax.plot(*zip(*points, strict=True), style, color="0.35", linewidth=1.0, label=label)


def show(options: Options) -> Record:
    """Run it, print all runs, and judge whether one got below the bound."""
    quick = ((16, 32, 64), (1, 2, 4))
    sizes, distances = quick if options.quick else ((16, 32, 64, 128, 256), (2, 4, 8))
    rows = lower_bound(sizes, distances, out=options.out)
    columns = ("form", "step", "d", "distance", "rounds", "support", "needed", "values", "bound")
    table = print_rows("Lower bound", rows, columns, (0, 1))
    note = f"orthonormal atoms, d = 1/(6 eps) = {min(sizes)} to {max(sizes)}, on two nodes up to "
    note += f"{max(distances)} edges apart"
    title = "Section 4.2: the lower bound on communication"
    return Record(title, note, [table], claims_theory.lower_bound(rows)).printed()
