"""Lemma 1 and Algorithm 5: what it costs to choose among m centers of each node's atoms.

No atom is farther than r from a center, in l1 distance, so that its score is at most r times the
largest entry of the gradient away from the center's. What is known of the centers then bounds the
distance to the optimum over all atoms, in every round:

    f(alpha) - f* <= gap over the centers + beta r ||grad g(A alpha)||_inf

Where centers are added so that r <= 8 beta / (G (k + 2)), with G no less than any entry of a
gradient, Jaggi's analysis gives f - f* <= 32 beta^2 / (k + 2) after k rounds of the classic step,
for atoms of length one: twice what it gives if all atoms may be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.atoms.explicit import DenseAtoms, gradient_of
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Facts, Found
from atomcast.experiments.page.findings import Finding, finding, number, spread, theorem
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.pictures import draw, finish, legend_above
from atomcast.experiments.page.verdicts import CLEARLY, Verdict
from atomcast.experiments.runs import curves
from atomcast.experiments.runs.curves import Lines, Point
from atomcast.experiments.runs.jobs import Done
from atomcast.loop.callbacks import State
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.plots.drawing import COLORS, new_figure
from atomcast.problems.features import explicit_problem
from atomcast.selection.m_centers import GreedyCenters
from atomcast.selection.rules import EXACT, MCenters
from atomcast.simulation.local import LocalCluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

#: How atoms lie, and how they are chosen.
CLOSE, APART = "pulses", "independent"
ALL, GROWING, SLOWLY = "all atoms", "as the lemma needs", "3, slowly more"
#: Those that do not stay the same.
CHANGING = (SLOWLY, GROWING, ALL)


class Regression(NamedTuple):
    """Atoms of length one as columns, a target, and the radius of the ball."""

    X: Floats
    y: Floats
    beta: float


class Chosen(NamedTuple):
    """What one choice of centers led to.

    `share` of all atoms are centers, in the mean of the rounds; in the end no atom is farther than
    `radius` from one.
    `error` is what is left after all rounds of the classic step, `limit` what no number of rounds
    would take away, and `guarantee` the bound on `error`. `used` is the largest share of the
    guarantee that the error of any round takes, and `rate` that of 32 beta^2 / (k + 2).
    """

    data: str
    centers: str
    share: float
    radius: float
    error: float
    limit: float
    guarantee: float
    used: float
    rate: float


@dataclass(frozen=True, kw_only=True)
class Centers(Experiment):
    """The sizes of the experiment."""

    name = "centers"
    title = "Lemma 1: dFW on centers (Algorithm 5)"

    d: int = 100
    n: int = 10_000
    nodes: int = 10
    rounds: int = 1000
    amounts: Sequence[int] = (3, 10, 30, 100, 300)  # centers of each node
    weights: int = 10  # atoms that make the target

    quick: ClassVar = {"n": 2000, "rounds": 300, "amounts": (3, 10, 30, 100)}
    judged_as = "outcome"
    table = TableForm(
        "Distance to the optimum over all atoms ({note})",
        {
            "data": "", "centers": "", "share": ".1%", "radius": ".3f", "error": ".3e",
            "limit": ".3e", "guarantee": ".3e", "used": ".1%",
        },
        (0, 1),
        {
            "centers": "centers a node", "share": "of all atoms (mean of the rounds)",
            "error": "after all rounds", "limit": "in the limit", "used": "most of it in any round",
        },
    )  # fmt: skip

    def prepare(self, options: Options) -> tuple[None, str]:
        """Sizes, nodes and runs."""
        return None, (
            f"generated Lasso problems, d = {self.d}, n = {self.n:,}, N = {self.nodes}, "
            f"{options.times}, {self.rounds:,} rounds of the classic step"
        )

    def cases(self) -> dict[str, tuple[str, str]]:
        """Data and centers."""
        choices = (*map(str, self.amounts), *CHANGING)
        return {f"{data} {m}": (data, m) for data in (CLOSE, APART) for m in choices}

    def given(self, data: None, case: tuple[str, str]) -> str:
        """Sizes alone: data is generated."""
        return self.sizes

    def one_run(self, data: None, label: str, case: tuple[str, str], run: int) -> Done:
        """The classic step and, for the limit, the corrective one, on the same choice."""
        kind, centers = case
        made = regression(kind, self.d, self.n, self.weights, run)
        problem = explicit_problem(SquaredError(made.y), L1Ball(made.beta))
        shards = Shards.split(made.X, self.nodes, random_state=run)
        cluster = LocalCluster(self.nodes)
        best = Solver(tol=1e-9).solve(problem, shards, cluster)
        optimum = best.objective - (best.gap or 0.0)
        seen: list[tuple[float, float]] = []

        def look(state: State) -> None:
            radius = max(state.replica.radius.values(), default=0.0)
            slack = made.beta * radius * float(np.abs(gradient_of(state.replica)).max())
            seen.append((radius, state.gap + slack))

        fixed, grown = centers not in CHANGING, Growing(made, shards, by_radius=centers == GROWING)
        choice = MCenters(m=int(centers) if fixed else grown)
        solver = Solver("classic", tol=1e-12, selection=EXACT if centers == ALL else choice)
        classic = replace(solver, max_rounds=self.rounds, callbacks=[look])
        trace = classic.solve(problem, shards, cluster).trace
        radius, guarantee = np.transpose(seen)
        error = trace.objective - optimum
        allowed = 32 * made.beta**2 / (trace.round + 2.0)
        share, limit = 1.0, 0.0
        if centers in (GROWING, SLOWLY):
            share = grown.share
        elif fixed:
            best = replace(solver, step="corrective", tol=1e-7).solve(problem, shards, cluster)
            held = np.bincount(shards.assignment())
            share = float(np.minimum(held, int(centers)).sum()) / self.n
            limit = best.objective - optimum
        facts = (share, radius[-1], error[-1], limit, guarantee[-1])
        ratios = float(np.max(error / guarantee)), float(np.max(error[1:] / allowed[1:]))
        rows = curves.points(kind, centers, run, trace)
        shown = [
            row._replace(objective=off, gap=bound)
            for row, off, bound in zip(rows, error.tolist(), guarantee.tolist(), strict=True)
        ]
        return Done(shown, (*map(float, facts), *ratios))

    def judge(self, rows: Sequence[Point], facts: Facts) -> list[Chosen]:
        """Means over the runs, and the largest of the shares of bounds."""
        judged = []
        for label, its in facts.items():
            *means, used, rate = np.transpose(its)
            numbers = [float(np.mean(one)) for one in means]
            largest = float(np.max(used)), float(np.max(rate))
            judged.append(Chosen._make((*self.cases()[label], *numbers, *largest)))
        return judged

    def lines(self, rows: Sequence[Point], judged: Sequence[Chosen]) -> Lines:
        """The error by round, of each choice."""
        return {
            (data, centers): curves.average(rows, data, centers, "round", "objective")
            for data, centers in self.cases().values()
        }

    def plot(self, found: Found, note: str) -> Figure:
        """Error and guarantee against number and radius of centers, and the error by round."""
        figure = new_figure(12.0, 7.0)
        for row, data in zip(figure.subplots(2, 3), (CLOSE, APART), strict=True):
            its = [one for one in found.judged if one.data == data]
            fixed = [one for one in its if one.centers not in CHANGING]
            across = [self.n / self.nodes * one.share for one in fixed], [o.radius for o in fixed]
            names = "centers m of each node", "radius r ($\\ell_1$)"
            for ax, x, name in zip(row, across, names, strict=False):
                for k, field in enumerate(("guarantee", "error", "limit")):
                    y = [getattr(one, field) for one in fixed]
                    ax.plot(x, y, MARKS[k], color=COLORS[k], label=WORDS[field])
                finish(ax, name, "$f - f^*$", data)
            row[1].set_xscale("linear")
            for k, centers in enumerate((*map(str, self.amounts[::2]), *CHANGING)):
                label = centers if centers in (GROWING, ALL) else f"m = {centers}"
                dash = {GROWING: "--", ALL: ":"}.get(centers, "-")  # these two may coincide
                draw(row[2], found.lines[data, centers], label, k, dash)
            finish(row[2], "round", "$f - f^*$", data)
            row[2].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        legend_above(figure, figure.axes[0], note, 3)
        return figure

    def findings(self, found: Found) -> list[Finding]:
        """Both claims of the lemma, and that the error is small."""
        judged: Sequence[Chosen] = found.judged
        by = {(one.data, one.centers): one for one in judged}
        grown = [(by[data, GROWING], by[data, ALL], by[data, str(self.amounts[0])])
                 for data in (CLOSE, APART)]  # fmt: skip
        left = [one.error / exact.error for one, exact, _ in grown]
        no_worse = [times <= CLEARLY for times in left]
        better = [one.error < few.error for one, _, few in grown]
        verdict = (
            Verdict.HOLDS if all(no_worse) else Verdict.PARTLY if all(better) else Verdict.FAILS
        )
        fixed = [one for one in judged if one.centers not in CHANGING]
        slowly = [(one.error / by[one.data, ALL].error, one.share)
                  for one in judged if one.centers == SLOWLY]  # fmt: skip
        with_few = ", ".join(f"{number(off)} times with {share:.1%}" for off, share in slowly)
        small = {
            data: [f"{one.limit:.2g} (r = {one.radius:.2g})" for one in fixed if one.data == data]
            for data in (CLOSE, APART)
        }
        return [
            theorem(
                "on centers dFW ends within eps + O(G r) of the optimum",
                WHERE,
                "in every round of every run, f - f* is at most the gap over the centers plus "
                "beta r times the largest entry of the gradient",
                f"at most {spread(100 * one.used for one in fixed)} % of that",
                [one.used <= 1 + 1e-6 for one in judged],
            ),
            finding(
                "each atom has a nearby center, so that choosing among them leads to a small error",
                "section 3.2",
                "where atoms are close to each other, what centers leave in the limit is less than "
                "1 % of the objective at zero: for every m, for some, for none",
                "; ".join(
                    f"{data}: f - f* in the limit {', '.join(x)}" for data, x in small.items()
                ),
                [one.limit <= 0.01 for one in fixed if one.data == CLOSE],
            ),
            theorem(
                "with as many centers as r = O(1/(G k)) needs, the error after k rounds is O(1/k)",
                f"{WHERE}, second claim",
                "f - f* is at most 32 beta^2 / (k + 2) in every round of every run",
                f"at most {spread(100 * one.rate for one, *_ in grown)} % of that",
                [one.rate <= 1 for one, *_ in grown],
            ),
            finding(
                "no error is left then: it does not affect the quality of the final solution",
                f"{WHERE}; section 3.2",
                "after all rounds, f - f* is at most 1.1 times that of exact dFW; less than with "
                "the fewest centers; more",
                f"{spread(left)} times that of exact dFW, with "
                f"{spread(100 * one.share for one, *_ in grown)} % of all atoms as centers in the "
                f"mean of the rounds; with 3 + k/10 centers a node, {with_few}",
                verdict,
            ),
        ]


class Growing:
    """As many centers of a node as its radius needs in a round of Algorithm 5, or 3 + k/10."""

    def __init__(self, made: Regression, shards: Shards, by_radius: bool) -> None:
        parts = [shards.shard(i).matrix for i in range(shards.nodes)]
        self._own = [GreedyCenters(DenseAtoms(X).space(), np.arange(X.shape[1])) for X in parts]
        self._counts, self._said = [0] * shards.nodes, list[float]()
        steepest = 2 * (made.beta * np.abs(made.X).max() + np.abs(made.y).max())
        self._scale = 8 * made.beta / float(steepest) if by_radius else np.inf
        self._mean = made.X.shape[1] / shards.nodes

    def __call__(self, node: int, round: int) -> int:
        """How many centers the node has in the round."""
        if self._scale == np.inf:
            self._counts[node] = 3 + round // 10
        while self._own[node].radius > self._scale / (round + 2):
            self._counts[node] += 1
            self._own[node].grow(self._counts[node])
        self._said.append(self._counts[node])
        return self._counts[node]

    @property
    def share(self) -> float:
        """How many of all atoms were centers, in the mean of the rounds."""
        return float(np.mean(self._said)) / self._mean


WHERE = "Lemma 1"
MARKS = ("o-", "s-", "x--")
WORDS = {
    "guarantee": "guarantee", "error": "after all rounds of the classic step",
    "limit": "in the limit of many rounds",
}  # fmt: skip


def regression(kind: str, d: int, n: int, weights: int, seed: int) -> Regression:
    """Pulses of any place and width, of which many are close to each other; or random vectors.

    The target is made of a few of them, and noise; its length is one.
    """
    rng = np.random.default_rng(seed)
    if kind == CLOSE:
        place, width = rng.random(n), np.exp(rng.uniform(np.log(0.02), np.log(0.1), n))
        X = np.exp(-(((np.linspace(0, 1, d)[:, None] - place) / width) ** 2) / 2)
    else:
        X = rng.standard_normal((d, n))
    X /= np.linalg.norm(X, axis=0)
    alpha = rng.choice([-1.0, 1.0], weights) * rng.uniform(0.5, 1.5, weights)
    y = X[:, rng.choice(n, weights, replace=False)] @ alpha
    length = float(np.linalg.norm(y))
    noise = rng.standard_normal(d)
    y = y / length + 0.05 * noise / np.linalg.norm(noise)
    return Regression(X, y, 0.8 * float(np.abs(alpha).sum()) / length)
