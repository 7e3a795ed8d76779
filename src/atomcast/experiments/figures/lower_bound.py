"""The lower bound of section 4.2: instances on which no algorithm can send less than so much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Found
from atomcast.experiments.page.findings import Finding, count, finding, spread, theorem
from atomcast.experiments.page.output import TableForm, plain
from atomcast.experiments.page.pictures import legend_below
from atomcast.experiments.runs.hard_runs import Form, HardRun, run
from atomcast.experiments.runs.jobs import Plan
from atomcast.plots.drawing import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

        figure = new_figure(12.0, 4.8)
        left, middle, right = figure.subplots(1, 3)
        pair = [row for row in found.rows if row.distance == 1]
        # The runs at several distances come last, and are all of one size.
        path = [r for r in found.rows if r.form == "simplex" and r.d == found.rows[-1].d]
        for ax, some, x, y, references, xlabel, ylabel in (
            (left, pair, lambda row: row.d / row.eps, "values",
             {"bound": "lower bound (Theorem 3)", "floor": "d/4 atoms cross"},
             r"$d\,/\,\epsilon$", "values sent"),
            (middle, pair, lambda row: row.d, "support", {"needed": "3d/4"},
             "$d$", r"atoms in the first solution within $\epsilon$"),
            (right, path, lambda row: row.distance, "values", {"bound": "bound times distance"},
             "distance of the two nodes", "values sent"),
        ):  # fmt: skip
            _draw(ax, some, x, y, references)
            ax.set(xlabel=xlabel, ylabel=ylabel)
        left.set(xscale="log", yscale="log")
        for ax in (left, middle, right):
            for axis in (ax.xaxis, ax.yaxis):  # else matplotlib labels what lies between as well
                axis.set_minor_formatter(NullFormatter())
            ax.grid(True, which="major", alpha=0.3)
            legend_below(ax)
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
#: Steps and forms; each has the same colour in every panel.
SERIES = [(step, form) for step in ("classic", "corrective") for form in ("l1", "simplex")]
#: By so much a cost may grow that is said not to.
STEADY = 1.1


def _draw(ax: Axes, rows: Sequence[HardRun], x: Any, y: str, references: Mapping[str, str]) -> None:
    """A line for each step and form, and grey ones for what they are compared with."""
    for step, form in sorted({(row.step, row.form) for row in rows}):
        k = SERIES.index((step, form))
        mine = [row for row in rows if (row.step, row.form) == (step, form)]
        points = sorted((x(row), getattr(row, y)) for row in mine)
        style = "os^v"[k % 4] + ("--" if form == "simplex" else "-")  # both forms nearly coincide
        look: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "markersize": 4, "linewidth": 1.2}
        label = f"{step}, {form}".replace("l1", r"$\ell_1$ ball")
        ax.plot(*zip(*points, strict=True), style, label=label, **look)
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
