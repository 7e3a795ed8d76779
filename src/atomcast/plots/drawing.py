"""Pictures of how runs went. matplotlib is imported when a picture is drawn.

What users draw goes to pyplot's current axes unless they give others, as they expect of
matplotlib; that needs no display. What commands draw goes to figures of their own, without pyplot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from atomcast.loop.trace import Trace

Floats = NDArray[np.float64]

#: What can be drawn, and how an axis calls it.
LABELS = {
    "round": "round",
    "seconds": "seconds",
    "objective": "objective",
    "gap": "duality gap",
    "relative_gap": "relative duality gap",
    "atoms": "atoms known to all",
    "values": "values sent",
    "bytes": "bytes sent",
    "simulated_seconds": "simulated seconds",
    "unread": "atoms not read",
}
#: Distinguishable with any kind of colour vision (Okabe and Ito).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def new_figure(width: float = 6.4, height: float = 4.0) -> Figure:
    """An empty figure that belongs to no window."""
    with _matplotlib_needed():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def pyplot_figure(width: float = 6.4, height: float = 4.0) -> Figure:
    """An empty figure, which becomes pyplot's current one."""
    with _matplotlib_needed():
        from matplotlib import pyplot
    return pyplot.figure(figsize=(width, height), layout="constrained")


def current_axes(width: float = 6.4, height: float = 4.0, *, empty: bool = False) -> Axes:
    """The current axes of pyplot; new ones if there are none, or if `empty` ones are needed."""
    with _matplotlib_needed():
        from matplotlib import pyplot
    if not pyplot.get_fignums() or (empty and pyplot.gca().has_data()):
        return pyplot_figure(width, height).subplots()
    return pyplot.gca()


@contextmanager
def _matplotlib_needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib, which is not installed: pip install "atomcast[plot]"'
        ) from error


def column(trace: Trace, name: str) -> Floats:
    """A column of a trace as floats, "relative_gap" included."""
    if name == "relative_gap":
        size = np.maximum(np.abs(trace["objective"]), np.finfo(float).tiny)
        return np.asarray(trace["gap"] / size, dtype=np.float64)
    if name not in LABELS:
        raise ValueError(f"a trace has no column {name!r}; it has {', '.join(LABELS)}")
    return np.asarray(trace[name], dtype=np.float64)


def plot_trace(trace: Trace, x: str = "values", y: str = "gap", ax: Axes | None = None) -> Axes:
    """Draw one column of a trace against another.

    Parameters
    ----------
    trace : Trace
    x, y : str
        Columns of the trace, or "relative_gap". An axis is logarithmic if its positive values
        span more than a factor of ten.
    ax : matplotlib axes, optional
        Where to draw; by default on the current ones of pyplot.

    Returns
    -------
    matplotlib axes
    """
    horizontal, vertical = column(trace, x), column(trace, y)
    if ax is None:
        ax = current_axes()
    drawn = np.isfinite(horizontal) & np.isfinite(vertical)
    color = COLORS[len(ax.get_lines()) % len(COLORS)]
    ax.plot(horizontal[drawn], vertical[drawn], color=color, linewidth=1.5)
    ax.set_xlabel(LABELS[x])
    ax.set_ylabel(LABELS[y])
    _logarithmic(ax, "x", horizontal[drawn])
    _logarithmic(ax, "y", vertical[drawn])
    ax.grid(True, which="major", alpha=0.3)
    return ax


def plot_convergence(
    traces: Mapping[str, Trace],
    path: str | PathLike[str] | None = None,
    *,
    tol: float | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the relative gap of several runs, against rounds and against the values sent.

    Runs on a single node send nothing: they are drawn against seconds instead.

    Parameters
    ----------
    traces : mapping of str to Trace
        The runs, by the label that each gets.
    path : path, optional
        Where to write the picture; the suffix tells the format. Without it, the figure becomes
        pyplot's current one.
    tol : float, optional
        Mark this relative gap, and end the axis a little below it: what is better is good enough.
    title : str, optional

    Returns
    -------
    matplotlib figure
    """
    if not traces:
        raise ValueError("traces is empty: give at least one, as {label: trace}")
    figure = pyplot_figure(9.0, 3.8) if path is None else new_figure(9.0, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    sent = any(column(trace, "values").any() for trace in traces.values())
    for ax, x in zip(panels, ("round", "values" if sent else "seconds"), strict=True):
        for k, (label, trace) in enumerate(traces.items()):
            color = COLORS[k % len(COLORS)]
            _draw_run(ax, column(trace, x), column(trace, "relative_gap"), label, color, tol)
        _finish_panel(ax, x, tol)
    panels[0].set_ylabel(LABELS["relative_gap"])
    # The title goes with the legend, because matplotlib would draw the one over the other.
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        title=title,
        title_fontsize=11,
        frameon=False,
        loc="outside upper center",
        ncols=min(len(traces), 4),
    )
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _draw_run(ax: Axes, x: Floats, gap: Floats, label: str, color: str, tol: float | None) -> None:
    """The best certified gap so far as a line, and the gap of every round faintly behind it."""
    drawn = np.isfinite(gap)
    x, gap = x[drawn], gap[drawn]
    best = np.minimum.accumulate(gap) if len(gap) else gap
    # A gap of exactly zero would leave a logarithmic axis; so far down it makes no difference.
    low = tol / 10 if tol else 1e-16
    ax.plot(x, np.maximum(gap, low), color=color, linewidth=0.6, alpha=0.35)
    ax.plot(x, np.maximum(best, low), color=color, linewidth=1.8, label=label)
    reached = np.flatnonzero(best <= tol) if tol else np.zeros(0, dtype=np.int64)
    if len(reached):
        first = reached[0]
        ax.plot(x[first], max(best[first], low), "o", color=color, markersize=5, clip_on=False)


def _finish_panel(ax: Axes, x: str, tol: float | None) -> None:
    if x == "round":
        ax.set_xscale("symlog", linthresh=1.0)  # linear between rounds 0 and 1
        ax.set_xlim(left=0)
    else:
        ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(LABELS[x])
    ax.grid(True, which="major", alpha=0.3)
    if tol is None:
        return
    ax.set_ylim(bottom=tol / 10)
    ax.axhline(tol, color="0.4", linewidth=0.9, linestyle="--")
    ax.annotate(
        f"tolerance {tol:g}",
        (0.01, tol),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color="0.35",
    )


def _logarithmic(ax: Any, which: str, values: Floats) -> None:
    """A logarithmic axis if that shows more; one that begins at zero if there are zeros."""
    positive = values[values > 0]
    if np.any(values < 0) or not len(positive) or positive.max() <= 10 * positive.min():
        return
    set_scale = getattr(ax, f"set_{which}scale")
    if len(positive) == len(values):
        set_scale("log")
    else:
        set_scale("symlog", linthresh=float(positive.min()))
        getattr(ax, f"set_{which}lim")(0)
