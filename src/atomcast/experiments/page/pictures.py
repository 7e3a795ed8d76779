"""The pictures of the figures: mean curves with bands on logarithmic axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from atomcast.experiments.runs.curves import Average, Lines
from atomcast.plots.drawing import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = {
    "values": "values sent",
    "round": "iterations",
    "seconds": "seconds of local computation",
    "clock": "seconds by the simulator's clock",
    "objective": "objective",
    "mse": "mean squared error",
    "nodes": "nodes $N$",
}
#: Parameters, as pictures write them.
SYMBOLS = {
    "s_A": "$s_A$", "s_alpha": r"$s_\alpha$", "alpha": r"$\alpha$", "beta": r"$\beta$",
    "rho": r"$\rho$", "C": "$C$", "N": "$N$", "d": "$d$", "n": "$n$", "p": "$p$",
}  # fmt: skip
#: How a method is drawn: a colour by number, and a dash.
Styles = Mapping[str, tuple[int, str]]


def draw(ax: Axes, lines: Sequence[Average], label: str, color: int, style: str = "-") -> None:
    """A line for the mean and a band from the smallest to the largest, in a colour by number."""
    chosen = COLORS[color % len(COLORS)]
    x, mean = [line.x for line in lines], [line.mean for line in lines]
    ax.plot(x, mean, style, color=chosen, linewidth=1.5, label=in_symbols(label))
    low, high = [line.low for line in lines], [line.high for line in lines]
    ax.fill_between(x, low, high, color=chosen, alpha=0.2, linewidth=0)


def name_beside(ax: Axes, lines: Sequence[Average], name: str) -> None:
    """A grey line for one method more than a legend can hold, with its name where it ends."""
    ax.plot([line.x for line in lines], [line.mean for line in lines], color="0.45", linewidth=1)
    ax.annotate(
        name, (lines[-1].x, lines[-1].mean), (2, 20), textcoords="offset points",
        ha="right", va="bottom", fontsize=7, color="0.35",
    )  # fmt: skip


def finish(ax: Axes, x: str, y: str, title: str = "", *, legend: bool = False) -> None:
    """Logarithmic axes with their names, and a grid; the legend of a single panel is below it."""
    ax.set(xscale="log", yscale="log", xlabel=LABELS.get(x, x), ylabel=LABELS.get(y, y))
    ax.set_title(in_symbols(title), fontsize=9)
    ax.grid(True, which="major", alpha=0.3)
    if legend:
        legend_below(ax)


def legend_below(ax: Axes) -> None:
    """A legend of this panel alone."""
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)


def in_symbols(text: str) -> str:
    """Parameters as the paper writes them."""
    names = re.compile(rf"\b({'|'.join(SYMBOLS)})\b")
    return re.sub(" *= *", " = ", names.sub(lambda name: SYMBOLS[name[0]], text))


def panels_in_a_row(
    lines: Lines, styles: Styles, size: tuple[float, float], x: str, note: str, rows: int = 1
) -> Figure:
    """The objective of every method against something, on each problem; or in several rows."""
    figure, panels = new_figure(*size), list(dict.fromkeys(panel for panel, *_ in lines))
    grid = figure.subplots(rows, -(-len(panels) // rows), squeeze=False)
    axes = dict(zip(panels, grid.ravel(), strict=True))
    for (panel, method), line in lines.items():
        draw(axes[panel], line, method, *styles[method])
    for panel, ax in axes.items():
        finish(ax, x, "objective", panel)
    legend_above(figure, axes[panels[0]], note, 3 if size[0] > 9 else 2)
    return figure


def legend_above(figure: Figure, ax: Axes, title: str, columns: int, **more: Any) -> None:
    """One legend for all panels, with what was run as its title."""
    figure.legend(
        *ax.get_legend_handles_labels(), title=in_symbols(title), title_fontsize=9, frameon=False,
        loc="outside upper center", ncols=columns, **more,
    )  # fmt: skip
