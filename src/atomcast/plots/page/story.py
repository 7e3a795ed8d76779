"""The report of a run: how it went, what is in the model, and what left whom."""

from __future__ import annotations

import io
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from atomcast._replacing import replacing
from atomcast.plots.drawing import column, new_figure, plot_trace
from atomcast.plots.page.html_tables import HtmlTable, whole_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from atomcast.loop.trace import Trace
    from atomcast.network.disclosure import Disclosure
    from atomcast.network.ledger import Ledger
    from atomcast.network.wave import Count


@dataclass(frozen=True)
class Story:
    """All that a report tells.

    Parameters
    ----------
    title : str
    figures : mapping of str to str
        The few numbers that matter, as they are shown.
    atoms : sequence of tuples (id, name, weight)
    disclosures, told : sequences of Disclosure
    traffic : mapping of str to Count
        By kind of message.
    trace, ledger : optional
        Of a run that was made just now; model files do not have them.
    parameters : mapping
    tables : sequence of HtmlTable
        What else there is, such as the folds of a cross-validation.
    owned : bool
        Whether atoms have the numbers that disclosures call them by.
    """

    title: str
    figures: Mapping[str, str]
    atoms: Sequence[tuple[int, str, Any]]
    disclosures: Sequence[Disclosure]
    told: Sequence[Disclosure]
    traffic: Mapping[str, Count]
    trace: Trace | None = None
    ledger: Ledger | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[HtmlTable] = ()
    owned: bool = True

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the page; an older one is replaced once the new one is complete."""
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"a report is a page of HTML, but path is {str(path)!r}: use .html")
        with replacing(path, encoding="utf-8") as file:
            file.write(self.html())
        return Path(path)

    def summary(self) -> str:
        """The few numbers that matter as a table, for notebooks."""
        rows = [(name, value) for name, value in self.figures.items()]
        return HtmlTable(self.title, ("", ""), rows).html()

    def html(self) -> str:
        """The page."""
        figures = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in self.figures.items()
        )
        parts = [f'<dl class="figures">{figures}</dl>']
        if self.trace is not None and len(self.trace) > 1:
            parts += ["<h2>How it went</h2>", self._chart(_progress(self.trace), PROGRESS)]
        parts += ["<h2>What is in the model</h2>", self._atoms().html()]
        parts += [table.html() for table in self.tables]
        parts += ["<h2>What left whom</h2>", *(table.html() for table in self._left())]
        if self.ledger is not None and self.ledger.values:
            parts += ["<h2>The network</h2>", self._chart(_network(self.ledger), NETWORK)]
        if self.parameters:
            rows = [(name, str(value)) for name, value in self.parameters.items()]
            parts.append(HtmlTable("Parameters", ("parameter", "value"), rows).html())
        parts.append(f"<footer><p>{escape(_made())}</p></footer>")
        return whole_page(self.title, parts)

    def _chart(self, figure: Figure, caption: str) -> str:
        image = f'<div role="img" aria-label="{escape(caption)}">{_svg(figure)}</div>'
        return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"

    def _atoms(self) -> HtmlTable:
        owner = {one.atom: one.who for one in self.disclosures} if self.owned else {}
        rows = [(atom, name, owner.get(atom, ""), weight) for atom, name, weight in self.atoms]
        title = f"{len(rows):,} weights that are not zero"
        return HtmlTable(title, ("atom", "name", "sent by", "weight"), rows, "atoms.csv")

    def _left(self) -> list[HtmlTable]:
        kinds = [(k, c.messages, c.values, c.bytes) for k, c in self.traffic.items()]
        entries = [
            (
                one.when,
                one.who,
                one.kind,
                one.atom if one.atom >= 0 else "",
                one.name,
                one.values,
            )
            for one in (*self.told, *self.disclosures)
        ]
        header = ("when", "who", "kind", "atom", "name", "values")
        return [
            HtmlTable("Disclosures", header, entries, "disclosures.csv"),
            HtmlTable("Messages by kind", ("kind", "messages", "values", "bytes"), kinds),
        ]


PROGRESS = (
    "Objective (above) and certified duality gap (below) against rounds, seconds and values sent. "
    "The gap bounds how far the objective is above the best possible one."
)
NETWORK = (
    "The network; the busier an edge, the wider and darker. Nodes that sent an atom are filled."
)


def fold_tables(model: Any) -> list[HtmlTable]:
    """The folds of a cross-validation, a row a radius."""
    for name, what in (("mse_path_", "mean squared error"), ("loss_path_", "loss")):
        folds = getattr(model, name, None)
        if folds is not None:
            header = ("radius", *(f"fold {k + 1}" for k in range(folds.shape[1])), "mean")
            rows = [
                (float(beta), *map(float, row), float(np.mean(row)))
                for beta, row in zip(model.betas_, folds, strict=True)
            ]
            return [HtmlTable(f"Cross-validation: {what}", header, rows, "folds.csv")]
    return []


def preparation_tables(rows: Sequence[tuple[str, str]]) -> list[HtmlTable]:
    """How parties prepared their tables, a row a column; none if none did."""
    header = ("column", "becomes")
    return [HtmlTable("How tables were prepared", header, rows, "preparation.csv")] if rows else []


def _progress(trace: Trace) -> Figure:
    """Objective and gap against rounds, seconds and values sent."""
    axes = [name for name in ("round", "seconds", "values") if np.any(column(trace, name) > 0)]
    figure = new_figure(3.6 * len(axes), 5.0)
    grid = figure.subplots(2, len(axes), squeeze=False, sharex="col", sharey="row")
    for y, row in zip(("objective", "gap"), grid, strict=True):
        for x, ax in zip(axes, row, strict=True):
            plot_trace(trace, x, y, ax).label_outer()
            if ax.get_xscale() == "linear":
                ax.locator_params(axis="x", nbins=4)  # or the numbers of two panels touch
    return figure


def _network(ledger: Ledger) -> Figure:
    figure = new_figure(6.4, 5.2)
    ledger.plot_network(ax=figure.subplots())
    return figure


def _svg(figure: Figure) -> str:
    """A picture as an element, with texts that can be searched and nothing but shapes."""
    import matplotlib as mpl

    written = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "atomcast"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", written.getvalue(), flags=re.DOTALL)


def _made() -> str:
    from importlib.metadata import version

    versions = ", ".join(
        f"{name} {version(name)}" for name in ("atomcast", "numpy", "scikit-learn")
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Written {now} with {versions}, Python {platform.python_version()}."
