"""A picture of a network, with the traffic on its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from atomcast._checks import check_choice
from atomcast.network import breakdown
from atomcast.network.disclosure import COORDINATOR
from atomcast.plots.drawing import current_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from atomcast.network.ledger import Ledger

Floats = NDArray[np.float64]

#: Nodes are named in pictures of at most this many,
NAMED = 40
#: inside their circles if they are no longer than this,
FITTING = 4
#: and laid out by their distances up to this many (which takes seconds), else on a circle.
LAID_OUT = 400
#: Width and height of a new figure, in inches.
SIZE = (6.4, 5.6)


def plot_network(ledger: Ledger, weight: str = "values", ax: Axes | None = None) -> Axes:
    """Draw the nodes and edges of a network; the busier an edge, the wider and darker it is.

    Parameters
    ----------
    ledger : Ledger
    weight : {"values", "bytes", "messages"}
        What the width and colour of an edge show, both directions together.
    ax : matplotlib axes, optional
        Where to draw; by default on the current ones of pyplot if they are empty, or else on a
        new figure.

    Returns
    -------
    matplotlib axes
    """
    check_choice("weight", weight, ("values", "bytes", "messages"))
    counts = breakdown.sums(ledger.waves(), ledger.nodes, breakdown.edges)
    traffic = {ends: getattr(count, weight) for ends, count in counts.items()}
    every = [] if ledger.edges is None else [(int(u), int(v)) for u, v in ledger.edges]
    edges = sorted(set(every) | set(traffic))
    amount = np.array([traffic.get(edge, 0) for edge in edges], dtype=np.float64)
    place = _places(ledger.nodes, edges)
    if ax is None:
        ax = current_axes(*SIZE, empty=True)
    _draw_edges(ax, [(place[u], place[v]) for u, v in edges], amount, weight)
    _draw_nodes(ax, ledger, place)
    busiest = max(traffic, key=lambda edge: traffic[edge], default=None)
    title = f"{ledger.nodes:,} nodes, {len(edges):,} edges: {sum(traffic.values()):,} {weight}"
    if busiest is not None:
        title += f"\nbusiest edge {_name(ledger, busiest[0])} – {_name(ledger, busiest[1])}: "
        title += f"{traffic[busiest]:,}"
    ax.set_title(title, fontsize=10)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _places(nodes: int, edges: list[tuple[int, int]]) -> dict[int, Floats]:
    """Where each node is drawn: a star around its coordinator, the rest by their distances."""
    import networkx

    graph = networkx.empty_graph(nodes)
    graph.add_edges_from(edges)
    if COORDINATOR in graph:
        ring = networkx.circular_layout(graph.subgraph(range(nodes)))
        return {**ring, COORDINATOR: np.zeros(2)}
    if nodes > LAID_OUT or nodes < 3:
        return dict(networkx.circular_layout(graph))
    if networkx.is_tree(graph):
        return dict(networkx.bfs_layout(graph, 0, align="horizontal", scale=-1))
    return dict(networkx.kamada_kawai_layout(graph))


def _draw_edges(ax: Axes, lines: list[Any], amount: Floats, weight: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm, Normalize

    thin = min(1.0, 12.0 / max(len(lines), 1) ** 0.5)
    idle = [line for line, x in zip(lines, amount, strict=True) if not x]
    ax.add_collection(
        LineCollection(idle, colors="0.8", linewidths=0.6 * thin, linestyles="dotted", zorder=1)
    )
    busy = np.flatnonzero(amount)
    if not len(busy):
        return
    shown = amount[busy]
    wide = shown.max() > 10 * shown.min()
    norm = LogNorm(shown.min(), shown.max()) if wide else Normalize(0.0, shown.max())
    # Widths run from 0.8 to 5 points; the busiest edges are drawn last, on top.
    width = (0.8 + 4.2 * np.sqrt(shown / shown.max())) * thin
    order = np.argsort(shown, kind="stable")
    collection = LineCollection(
        [lines[i] for i in busy[order]],
        linewidths=width[order],
        array=shown[order],
        cmap="viridis_r",
        norm=norm,
        zorder=2,
    )
    ax.add_collection(collection)
    ax.figure.colorbar(ScalarMappable(norm, "viridis_r"), ax=ax, shrink=0.7, label=f"{weight} sent")


def _draw_nodes(ax: Axes, ledger: Ledger, place: dict[int, Floats]) -> None:
    from matplotlib.transforms import ScaledTranslation

    atoms = dict.fromkeys(place, 0)
    for entry in ledger.disclosures:
        atoms[entry.node] += 1
    hub = [node for node in place if node == COORDINATOR]
    named = ledger.nodes <= NAMED
    size = 170.0 if named else max(4.0, 4000.0 / ledger.nodes)
    for group, marker, color in (
        ([node for node in place if node not in hub and atoms[node]], "o", "#E69F00"),
        ([node for node in place if node not in hub and not atoms[node]], "o", "#FFFFFF"),
        (hub, "s", "#BBBBBB"),
    ):
        if group:
            x, y = np.array([place[node] for node in group]).T
            ax.scatter(x, y, s=size, c=color, marker=marker, edgecolors="0.2", lw=0.7, zorder=3)
    if named:
        for node, (x, y) in place.items():
            name = _name(ledger, node)
            how: dict[str, Any] = {}
            if len(name) > FITTING:  # below the circle then, thirteen points
                offset = ScaledTranslation(0, -13 / 72, ax.figure.dpi_scale_trans)
                box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}
                how = {"transform": ax.transData + offset, "bbox": box}
            ax.text(x, y, name, ha="center", va="center", fontsize=7, zorder=4, **how)
    ax.margins(0.08)


def _name(ledger: Ledger, node: int) -> str:
    """What the user calls a node."""
    if node == COORDINATOR:
        return "hub"
    names = ledger.parties or ledger.labels
    return str(node if names is None else names[node])
