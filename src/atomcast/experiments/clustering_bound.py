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

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomcast.data.generators import make_speech_like
from atomcast.experiments import claims_theory, real_data
from atomcast.experiments.kernel_runs import C, mean_distance_gamma
from atomcast.experiments.options import Options, print_rows
from atomcast.experiments.output import write_figure, write_rows
from atomcast.experiments.record import Record
from atomcast.known.kernels.functions import KernelSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


class Pairs(NamedTuple):
    """Three numbers for every pair of different examples: what is bounded, and two bounds."""

    difference: Floats
    footnote: Floats
    cauchy_schwarz: Floats


class Row(NamedTuple):
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


def clustering_bound(
    data: dict[str, tuple[Any, NDArray[Any]]],
    examples: int = 500,
    runs: int = 5,
    out: Path | None = None,
) -> list[Row]:
    """Count the pairs that break the bounds in random samples of each data set.

    Parameters
    ----------
    data : dict
        Examples and labels, by name.
    examples : int
        Size of a sample.
    runs : int
        Run r has seed r, for the sample.
    out : path of a folder, optional
        Write clustering-bound.csv, clustering-bound.png and clustering-bound.svg there.
    """
    rows: list[Row] = []
    drawn: dict[str, Pairs] = {}
    for name, (X, y) in data.items():
        for run in range(runs):
            chosen = np.random.default_rng(run).choice(X.shape[0], examples, replace=False)
            pairs = pairs_of(augmented_kernel(X[chosen], y[chosen]))
            drawn.setdefault(name, pairs)
            rows.append(_judged(name, run, examples, pairs))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_rows(rows, out / "clustering-bound.csv")
        write_figure(plot(drawn, examples), out / "clustering-bound")
    return rows


def _judged(name: str, run: int, examples: int, pairs: Pairs) -> Row:
    slack = 1 + 1e-9  # rounding breaks no bound
    broken = pairs.difference > slack * pairs.footnote
    i, j = np.triu_indices(examples, 1)
    distance, breaks = np.full((examples, examples), np.inf), np.zeros((examples, examples), bool)
    distance[i, j] = distance[j, i] = pairs.footnote
    breaks[i, j] = breaks[j, i] = broken
    nearest = breaks[np.arange(examples), distance.argmin(axis=1)]
    return Row(
        name,
        run,
        examples,
        len(broken),
        float(broken.mean()),
        float(nearest.mean()),
        float(np.max(pairs.difference / pairs.footnote)),
        float(np.mean(pairs.difference > slack * pairs.cauchy_schwarz)),
    )


def plot(drawn: dict[str, Pairs], examples: int) -> Figure:
    """What is bounded by the footnote in units of its bound, a dot for a pair."""
    from atomcast.plots.curves import COLORS, new_figure

    figure = new_figure(4.6 * len(drawn), 4.0)
    axes: Sequence[Any] = figure.subplots(1, len(drawn), squeeze=False, sharey=True)[0]
    for ax, (name, pairs) in zip(axes, drawn.items(), strict=True):
        some = slice(None, None, max(len(pairs.difference) // 4000, 1))
        ratio = pairs.difference / pairs.footnote
        ax.plot(pairs.footnote[some], ratio[some], ".", color=COLORS[0], markersize=3)
        ax.axhline(1.0, color=COLORS[1], label="by the footnote, nothing is above this line")
        ax.set(xlabel="squared distance in kernel space", ylabel="2 max |difference| / distance^2")
        ax.set_title(f"{name}, {examples} examples, C = {C:g}", fontsize=9)
        ax.legend(frameon=False, fontsize=8)
    return figure


def show(options: Options) -> Record:
    """Run it and print the shares; Cauchy-Schwarz must hold."""
    sets = {"Adult": real_data.adult, "Letter": real_data.letter}
    data: dict[str, tuple[Any, NDArray[Any]]] = {}
    for name, load in sets.items():
        loaded = load(synthetic=options.synthetic, download=options.download)
        data[real_data.name(name, options.synthetic)] = loaded.X, loaded.y
    speech = make_speech_like(20_000)
    data[real_data.name("speech", synthetic=True)] = speech.X, speech.y
    examples = 300 if options.quick else 1000
    rows = clustering_bound(data, examples, options.run_count, options.out)
    table = print_rows(
        "Pairs of examples that break a bound on the difference of their gradients", rows,
        Row._fields, break_footnote=".1%", nearest_break=".1%", worst=".2f",
        break_cauchy_schwarz=".1%",
    )  # fmt: skip
    note = f"{', '.join(data)}; samples of {examples} examples, C = {C:g}, {options.times}"
    title = "Section 6.3, footnote: the bound behind clustering"
    return Record(title, note, [table], claims_theory.clustering(rows)).printed()
