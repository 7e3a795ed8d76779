"""The bound behind clustering in kernel space: a footnote of section 6.3, looked at in numbers.

The footnote says, of the gradient f'(alpha) = 2 K~ alpha and any two examples i and j, that

    |f'_i - f'_j| <= 2 max_k |k~(z_i, z_k) - k~(z_j, z_k)| <= ||phi(z_i) - phi(z_j)||^2

in the augmented kernel space. The first step holds, for alpha is in the simplex. The second is an
equality if k = i or j gives the maximum, and wrong otherwise. For binary data it always does: there
squared distances are a metric, that of Hamming. Else close points break it: a kernel value near a
third point changes in proportion to their distance, not to its square. What always holds is
Cauchy-Schwarz, 2 ||phi(z_i) - phi(z_j)|| max_k ||phi(z_k)||.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.data.generators import make_speech_like
from atomcast.experiments.figures.options import Options
from atomcast.experiments.figures.shape import Experiment, Found
from atomcast.experiments.page.findings import Finding, finding, number, theorem
from atomcast.experiments.page.output import TableForm
from atomcast.experiments.page.pictures import legend_above
from atomcast.experiments.page.verdicts import without_exception
from atomcast.experiments.runs import real_data
from atomcast.experiments.runs.jobs import Plan
from atomcast.experiments.runs.kernel_runs import C, mean_distance_gamma
from atomcast.known.kernels.functions import KernelSpec
from atomcast.plots.drawing import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


class Pairs(NamedTuple):
    """Three numbers for every pair of different examples: what is bounded, and two bounds."""

    difference: Floats
    footnote: Floats
    cauchy_schwarz: Floats


class Sample(NamedTuple):
    """How many pairs break the footnote's bound and that of Cauchy-Schwarz, as shares of all.

    `nearest_break` is the share of examples that break the footnote's with their nearest
    neighbour, and `worst` the largest ratio of what is bounded to that bound.
    """

    data: str
    run: int
    examples: int
    pairs: int
    break_footnote: float
    nearest_break: float
    worst: float
    break_cauchy_schwarz: float


def augmented_kernel(X: Any, y: NDArray[Any], cost: float = C) -> Floats:
    """K~ of section 3.3, with the paper's gamma, shape (n, n)."""
    kernel = KernelSpec("rbf", mean_distance_gamma(X)).resolve(X)
    signs = np.where(np.asarray(y) > 0, 1.0, -1.0)
    block = np.asarray(kernel.block(X, X), dtype=np.float64)
    return np.outer(signs, signs) * (block + 1.0) + np.eye(len(signs)) / cost


def pairs_of(K: Floats) -> Pairs:
    """The numbers of all pairs, from the augmented kernel."""
    i, j = np.triu_indices(len(K), 1)
    difference = np.concatenate(
        [2.0 * np.abs(K[k] - K[k + 1 :]).max(axis=1) for k in range(len(K) - 1)]
    )
    lengths = np.diag(K)
    square = lengths[i] + lengths[j] - 2.0 * K[i, j]
    return Pairs(difference, square, 2.0 * np.sqrt(square * lengths.max()))


@dataclass(frozen=True, kw_only=True)
class ClusteringBound(Experiment):
    """How many examples a sample has."""

    examples: int = 1000

    name = "clustering-bound"
    title = "Section 6.3, footnote: the bound behind clustering"
    quick: ClassVar = {"examples": 300}
    table = TableForm(
        "Pairs of examples that break a bound on the difference of their gradients",
        {
            "data": "", "run": "", "examples": "", "pairs": "", "break_footnote": ".1%",
            "nearest_break": ".1%", "worst": ".2f", "break_cauchy_schwarz": ".1%",
        },
    )  # fmt: skip

    def prepare(self, options: Options) -> tuple[dict[str, Any], str]:
        """Examples and labels of three data sets, by name."""
        data: dict[str, Any] = {
            options.named("Adult"): real_data.adult(**options.source),
            options.named("Letter"): real_data.letter(**options.source),
            "generated stand-in for speech": make_speech_like(20_000),
        }
        sizes = f"samples of {self.examples} examples, C = {C:g}, {options.times}"
        return data, f"{', '.join(data)}; {sizes}"

    def measure(
        self, data: dict[str, Any], runs: int, out: Path | None, plan: Plan
    ) -> tuple[Any, Any]:
        """Count the pairs that break the bounds in random samples of each data set."""
        return [
            _judged(name, run, self.examples, self.pairs(its, run))
            for name, its in data.items()
            for run in range(runs)
        ], None

    def pairs(self, data: Any, run: int) -> Pairs:
        """The numbers of the pairs of a random sample."""
        chosen = np.random.default_rng(run).choice(data.X.shape[0], self.examples, replace=False)
        return pairs_of(augmented_kernel(data.X[chosen], data.y[chosen]))

    def plot(self, found: Found, note: str) -> Figure:
        """What is bounded by the footnote in units of its bound, a dot for a pair of run 0."""
        figure = new_figure(4.6 * len(found.data), 4.0)
        axes = figure.subplots(1, len(found.data), squeeze=False, sharey=True)[0]
        for ax, (name, data) in zip(axes, found.data.items(), strict=True):
            pairs = self.pairs(data, 0)
            some = slice(None, None, max(len(pairs.difference) // 4000, 1))
            ratio = pairs.difference / pairs.footnote
            ax.plot(pairs.footnote[some], ratio[some], ".", color=COLORS[0], markersize=3)
            ax.axhline(1.0, color=COLORS[1], label="by the footnote, nothing is above this line")
            labels = "squared distance in kernel space", r"$2\,\max\,|$difference$|$ / distance$^2$"
            ax.set(xlabel=labels[0], ylabel=labels[1])
            ax.set_title(name, fontsize=9)
        legend_above(figure, axes[0], note, 1)
        return figure

    def findings(self, found: Found) -> list[Finding]:
        """The bound of the footnote, and the one that always holds."""
        texts = []
        for name in dict.fromkeys(row.data for row in found.rows):
            mine = [row for row in found.rows if row.data == name]
            pairs = _counted("pairs", ((row.break_footnote, row.pairs) for row in mine))
            nearest = _counted(
                "nearest neighbours", ((row.nearest_break, row.examples) for row in mine)
            )
            broken = any(row.break_footnote for row in mine)
            worst = f", by up to {number(max(row.worst for row in mine))} times" if broken else ""
            texts.append(f"{name}: {pairs} and {nearest} break it{worst}")
        always = _counted("pairs", ((row.break_cauchy_schwarz, row.pairs) for row in found.rows))
        return [
            finding(
                "gradients of two examples differ by at most their squared distance in kernel "
                "space",
                "section 6.3, footnote",
                "no pair of examples breaks it, in any sample; a rounding error breaks nothing",
                "; ".join(texts),
                without_exception(row.break_footnote == 0 for row in found.rows),
            ),
            theorem(
                "they differ by at most twice the distance times the largest norm (Cauchy-Schwarz)",
                "not in the paper: what always holds",
                "no pair of examples breaks it, in any sample",
                f"{always} break it",
                (row.break_cauchy_schwarz == 0 for row in found.rows),
            ),
        ]


def _judged(name: str, run: int, examples: int, pairs: Pairs) -> Sample:
    slack = 1 + 1e-9  # rounding breaks no bound
    broken = pairs.difference > slack * pairs.footnote
    i, j = np.triu_indices(examples, 1)
    distance, breaks = np.full((examples, examples), np.inf), np.zeros((examples, examples), bool)
    distance[i, j] = distance[j, i] = pairs.footnote
    breaks[i, j] = breaks[j, i] = broken
    nearest = breaks[np.arange(examples), distance.argmin(axis=1)]
    worst = float(np.max(pairs.difference / pairs.footnote))
    always = float(np.mean(pairs.difference > slack * pairs.cauchy_schwarz))
    shares = float(broken.mean()), float(nearest.mean())
    return Sample(name, run, examples, len(broken), *shares, worst, always)


def _counted(what: str, shares: Iterable[tuple[float, int]]) -> str:
    """How many of how many, from shares of several samples."""
    counts = [(round(share * size), size) for share, size in shares]
    some, size = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    share = f" ({number(100 * some / size)} %)" if some > 1 else ""
    return f"{f'{some:,}' if some else 'none'} of {size:,} {what}{share}"
