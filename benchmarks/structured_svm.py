"""Structured SVM on words of handwritten-like letters: the gap against passes, and the accuracy.

Words are those of LICENSE, drawn by how often they occur there, and spelt with images of Letter
Recognition (the folder that ATOMCAST_DATA names), noise added; new words are spelt with images
that no word of the training set has. A pass decodes every word once. The gap of a round is
measured here, by decoding all words once more, which is not counted. From round to round of block
steps it rises and falls by a factor of two or three: the smallest so far is that of the weights
that a run returns, and rounding alone moves it, by a third on 16 nodes.

    python benchmarks/structured_svm.py [--words 400] [--passes 60] [--picture FILE]
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import re
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from atomcast import Solver, StructuredSVM
from atomcast.data import load_letter
from atomcast.plots.drawing import COLORS, new_figure

C = 0.3
NOISE = 0.05
#: What is compared: the step, whether corners are cached, and how many nodes.
RUNS = {
    "batch Frank-Wolfe (line search)": ("line-search", False, 1),
    "batch, corrective": ("corrective", False, 1),
    "blocks, 1 node": ("block-coordinate", False, 1),
    "blocks, 1 node, cached corners": ("block-coordinate", True, 1),
    "blocks, 4 nodes, cached corners": ("block-coordinate", True, 4),
    "blocks, 16 nodes, cached corners": ("block-coordinate", True, 16),
}


def spelt(words, images, letters, rng):
    """Words as sequences of images."""
    rows = {letter: np.flatnonzero(letters == letter) for letter in np.unique(letters)}
    X = [images[[rng.choice(rows[letter]) for letter in word]] for word in words]
    return [x + NOISE * rng.standard_normal(x.shape) for x in X], [np.array([*w]) for w in words]


def data(count: int):
    """Words to learn from, and as many new ones."""
    text = (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8")
    words, letter = re.findall(r"[A-Z]{2,}", text.upper()), load_letter()
    rng = np.random.default_rng(0)
    train, test = rng.choice(words, (2, count))
    return (
        *spelt(train, letter.X, letter.y, rng),
        *spelt(test, letter.X_test, letter.y_test, rng),
    )


class Measured:
    """A callback that keeps the true relative gap of every round, and ends after enough passes."""

    def __init__(self, X, y, passes: int) -> None:
        self.rows, self.lengths = np.concatenate(X), np.array([len(x) for x in X])
        self.codes = np.split(
            np.unique(np.concatenate(y), return_inverse=True)[1], np.cumsum(self.lengths)[:-1]
        )
        self.enough, self.curve = passes, []

    def __call__(self, state) -> bool:
        """Measure a round."""
        active, starts = state.replica.active, np.concatenate([[0], np.cumsum(self.lengths)])
        outputs = self.model.decode_all(
            active.objective.weights(active.image), self.rows, starts, self.codes
        )
        joint, loss = self.model.corner_sum(self.rows, starts, self.codes, outputs)
        gap = active.inner() - float(active.gradient @ np.append(joint, loss))
        together, single = active.content(np.zeros(0, dtype=np.int64))
        passes = together + single / len(self.codes)
        self.curve.append((passes, gap / max(abs(active.value()), 1e-12)))
        return passes < self.enough

    @property
    def model(self):
        """The chain that the words make up."""
        from atomcast.structures import Chain

        return Chain(int(max(code.max() for code in self.codes)) + 1, self.rows.shape[1])


def measured(X, y, step: str, cache: bool, nodes: int, passes: int):
    """A fitted model and its curve: passes, and the relative gap after them."""
    watch = Measured(X, y, passes)
    solver = Solver(step, tol=1e-4, callbacks=[watch])
    model = StructuredSVM("chain", C=C, cache=cache, cluster=nodes, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model, np.array(watch.curve[1:])


def passes_to(curve: np.ndarray, gap: float) -> str:
    """After how many passes the gap is so small."""
    there = np.flatnonzero(curve[:, 1] <= gap)
    return f"{curve[there[0], 0]:.1f}" if len(there) else "-"


def draw(curves: dict[str, np.ndarray], path: Path) -> None:
    """Write the picture of all curves."""
    figure = new_figure(6.4, 4.6)
    axes = figure.subplots()
    for (name, curve), color in zip(curves.items(), COLORS, strict=False):
        axes.plot(curve[:, 0], curve[:, 1], color=color, label=name)
    axes.set(yscale="log", xlabel="passes over the words", ylabel="relative gap")
    axes.grid(alpha=0.3)
    figure.legend(fontsize=8, frameon=False, loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print the tables, and draw the picture if a file is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    X, y, X_test, y_test = data(options.words)
    table = Table("", "passes to 1", "to 0.1", "to 0.01", "smallest gap", "values a round")
    curves = {}
    for name, (step, cache, nodes) in RUNS.items():
        model, curve = measured(X, y, step, cache, nodes, options.passes)
        curves[name] = curve
        ledger = model.result_.ledger
        table.add_row(
            name,
            *(passes_to(curve, gap) for gap in (1.0, 0.1, 0.01)),
            f"{curve[:, 1].min():.1e} ({curve[-1, 0]:.0f} passes)",
            f"{ledger.values / max(model.n_iter_, 1):,.0f}",
        )
    console = Console(width=120)
    console.print(table)
    alone = StructuredSVM(C=C, solver=Solver(tol=0.02)).fit(np.concatenate(X), np.concatenate(y))
    chain = StructuredSVM("chain", C=C, solver=Solver("block-coordinate", tol=0.02)).fit(X, y)
    one_by_one = alone.score(np.concatenate(X_test), np.concatenate(y_test))
    console.print(f"letters of new words that are right: {one_by_one:.3f} one by one,")
    console.print(f"{chain.score(X_test, y_test):.3f} in chains")
    if options.picture is not None:
        draw(curves, options.picture)


if __name__ == "__main__":
    main()
