"""Where the nodes of `atomcast fit` run: one line an engine, each a function of their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def local(nodes: int) -> Any:
    """Nodes simulated in this process."""
    from atomcast import LocalCluster

    return LocalCluster(nodes)


#: Engines by the name that --engine takes.
ENGINES: dict[str, Callable[[int], Any]] = {"local": local}
