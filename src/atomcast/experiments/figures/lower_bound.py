"""The lower bound of section 4.2: instances on which no algorithm can send less than so much.

The atoms are the columns of a d x d orthonormal matrix with two diagonal blocks, one on each of
two nodes, and d = 1/(6 eps). Every point of the simplex within eps of the optimum 1/d then has
more than 3d/4 atoms, so that more than d/4 atoms of d/2 values each must change sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lgamma, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from scipy import sparse

from atomcast.callbacks import State
from atomcast.cluster.local import LocalCluster
from atomcast.data.generators import LowerBoundInstance, make_lower_bound
from atomcast.data.shards import Shards
from atomcast.domains import L1Ball, Simplex
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Found
from atomcast.experiments.page.findings import Finding, count, finding, spread, theorem
from atomcast.experiments.page.output import TableForm, plain
from atomcast.experiments.runs.jobs import Plan
from atomcast.objectives import SquaredError
from atomcast.problem import Problem, explicit_problem
from atomcast.report.plots import COLORS, new_figure
from atomcast.solver import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Form = Literal["simplex", "l1"]

#: Bits that tell a real value, log2 of the paper's kappa: the significand of a float64.
BITS = 52


class HardRun(NamedTuple):
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


class UntilCertified:
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
) -> HardRun:
    """Solve one hard instance to within eps, on two nodes or at the ends of a graph's diameter."""
    instance = make_lower_bound(eps, random_state)
    problem, optimum = hard_problem(instance, form)
    first, last, distance = (0, 1, 1) if graph is None else ends_of_diameter(graph)
    cluster = LocalCluster(2, "complete") if graph is None else LocalCluster(topology=graph)
    shards = hard_shards(instance, cluster.nodes, (first, last))
    watch = UntilCertified(eps, optimum)
    solver = Solver(step=step, tol=1e-15, max_rounds=1_000_000, callbacks=[watch])
    result = solver.solve(problem, shards, cluster)
    d = len(instance.owner)
    return HardRun(
        form, step, eps, d, distance, result.rounds, watch.support, 0.75 * d, watch.atoms,
        watch.values, result.ledger.values, bound_in_values(d, distance), distance * d * d / 8,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LowerBound(Experiment):
    """Hard instances: growing d = 1/(6 eps), and growing distance at one d."""

    atoms: Sequence[int] = (16, 32, 64, 128, 256)  # multiples of 4
    distances: Sequence[int] = (2, 4, 8)  # of the two blocks, on paths; for the d in the middle
    steps: Sequence[str] = ("classic", "corrective")

    name = "lower-bound"
    title = "Section 4.2: the lower bound on communication"
    quick: ClassVar = {"atoms": (16, 32, 64), "distances": (1, 2, 4)}
    table = TableForm(
        "Lower bound",
        plain("form step d distance rounds support needed values bound"),
        (0, 1),
    )

    def prepare(self, options: Options) -> tuple[None, str]:
        """Sizes and distances."""
        sizes = f"d = 1/(6 eps) = {min(self.atoms)} to {max(self.atoms)}"
        note = f"orthonormal atoms, {sizes}, on two nodes up to {max(self.distances)} edges apart"
        return None, note

    def measure(self, data: None, runs: int, out: Path | None, plan: Plan) -> tuple[Any, Any]:
        """Run all hard instances; nothing about them is random but the data."""
        import networkx

        middle, forms = self.atoms[len(self.atoms) // 2], get_args(Form)
        rows = [run(1 / (6 * d), s, form) for form in forms for s in self.steps for d in self.atoms]
        rows += [
            run(1 / (6 * middle), step, graph=networkx.path_graph(length + 1))
            for step in self.steps
            for length in self.distances
        ]
        return rows, None

    def plot(self, found: Found, note: str) -> Figure:
        """Values sent against d/eps, atoms used against d, values sent against the distance."""
        from matplotlib.ticker import NullFormatter

        figure = new_figure(12.0, 3.9)
        left, middle, right = figure.subplots(1, 3)
        pair = [row for row in found.rows if row.distance == 1]
        # The runs at several distances come last, and are all of one size.
        path = [r for r in found.rows if r.form == "simplex" and r.d == found.rows[-1].d]
        for ax, some, x, y, references, xlabel, ylabel in (
            (left, pair, lambda row: row.d / row.eps, "values",
             {"bound": "lower bound (Theorem 3)", "floor": "d/4 atoms cross"},
             "d / eps", "values sent"),
            (middle, pair, lambda row: row.d, "support", {"needed": "3d/4"},
             "d", "atoms in the first solution within eps"),
            (right, path, lambda row: row.distance, "values", {"bound": "lower bound x distance"},
             "distance of the two nodes", "values sent"),
        ):  # fmt: skip
            _draw(ax, some, x, y, references)
            ax.set(xlabel=xlabel, ylabel=ylabel)
        left.set(xscale="log", yscale="log")
        for ax in (left, middle, right):
            for axis in (ax.xaxis, ax.yaxis):  # else matplotlib labels what lies between as well
                axis.set_minor_formatter(NullFormatter())
            ax.grid(True, which="major", alpha=0.3)
            ax.legend(frameon=False, fontsize=8)
        return figure

    def findings(self, found: Found) -> list[Finding]:
        """Nobody gets below the bound, and dFW is a constant above it."""
        rows: Sequence[HardRun] = found.rows
        over, paid = [r.support > r.needed for r in rows], [r.values > r.bound for r in rows]
        classic, runs = [row for row in rows if row.step == "classic"], count(len(rows), "run")
        allowed = [ITERATIONS * CURVATURE[row.form] / row.eps for row in classic]
        rounds, nonzeros = (
            [getattr(row, name) / most for row, most in zip(classic, allowed, strict=True)]
            for name in ("rounds", "support")
        )
        return [
            theorem(
                "every solution within eps has more than 3d/4 atoms",
                "section 4.2, Claim 1",
                "in every run",
                f"{'every' if all(over) else 'NOT every'} solution within eps has more than 3d/4 "
                f"atoms: {spread(row.support / row.d for row in rows)} d, in {runs}",
                over,
            ),
            theorem(
                "no deterministic algorithm after which a node has all selected atoms sends fewer "
                "than Omega(d/eps) bits, times the distance of the nodes",
                "Theorem 3; appendix B",
                "every run sends more than the bound with its constants, counted in float64 values",
                f"{spread(row.values / row.bound for row in rows if row.bound)} times the bound, "
                f"in {runs}" + ("" if all(paid) else ": the bound is VIOLATED"),
                paid,
            ),
            _optimal(rows),
            within_theorem1(
                "dFW ends with a gap within eps after O(1/eps) rounds",
                "Theorems 1 and 2",
                "rounds",
                rounds,
            ),
            within_theorem1(
                "a solution within eps has O(1/eps) nonzeros", "section 2", "nonzeros", nonzeros
            ),
        ]


#: Theorem 1: the gap is within eps after so many times C_f / eps iterations.
ITERATIONS = 6.75
#: C_f of ||A alpha||^2 with orthonormal A is twice the squared diameter of the domain.
CURVATURE = {"simplex": 4.0, "l1": 8.0}
#: By so much a cost may grow that is said not to.
STEADY = 1.1


def _draw(ax: Axes, rows: Sequence[HardRun], x: Any, y: str, references: Mapping[str, str]) -> None:
    """A line for each step and form, and grey ones for what they are compared with."""
    for k, (step, form) in enumerate(sorted({(row.step, row.form) for row in rows})):
        mine = [row for row in rows if (row.step, row.form) == (step, form)]
        points, style = sorted((x(row), getattr(row, y)) for row in mine), "os^v"[k % 4] + "-"
        look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "markersize": 4, "linewidth": 1.2}
        ax.plot(*zip(*points, strict=True), style, label=f"{step}, {form}", **look)
    for (name, label), dash in zip(references.items(), ("-", "--"), strict=False):
        points = sorted({(x(row), getattr(row, name)) for row in rows})
        ax.plot(*zip(*points, strict=True), dash, color="0.35", linewidth=1.0, label=label)


def _optimal(rows: Sequence[HardRun]) -> Finding:
    """From the smallest instance of two nodes to the largest, by step and form."""
    series: dict[tuple[str, str], list[HardRun]] = {}
    for row in rows:
        if row.distance == 1:
            series.setdefault((row.step, row.form), []).append(row)
    cases, texts = [], []
    for (step, form), mine in series.items():
        first, last = min(mine, key=lambda row: row.d), max(mine, key=lambda row: row.d)
        if first.d < last.d:
            before, after = (row.values * row.eps / row.d for row in (first, last))
            cases.append(after <= STEADY * before)
            texts.append(f"{step}, {form}: {before:.3f} at d = {first.d}, {after:.3f} at {last.d}")
    return finding(
        "dFW's communication matches the bound in its dependency on d and eps",
        "abstract; section 4.2",
        "values sent, divided by d/eps, grow by no more than 10 % from the smallest instance to "
        "the largest: for all steps and forms, for some, for none",
        "; ".join(texts),
        cases,
    )


def within_theorem1(claim: str, where: str, what: str, shares: Sequence[float]) -> Finding:
    """Something is no more than Theorem 1 allows, of which it is a share in every run."""
    return theorem(
        claim,
        where,
        f"the classic step needs at most 6.75 C_f / eps {what}, in every run",
        f"{spread(shares)} of what the theorem allows, in {count(len(shares), 'run')}",
        [share <= 1 for share in shares],
    )
