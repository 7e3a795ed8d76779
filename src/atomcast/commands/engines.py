"""Where the nodes of `atomcast fit` run: one line an engine, each a function of their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def local(nodes: int) -> Any:
    """Nodes simulated in this process."""
    from atomcast import LocalCluster

    return LocalCluster(nodes)


def mpi(nodes: int) -> Any:
    """MPI ranks, started for this fit."""
    from atomcast import MPICluster

    return MPICluster.launch(nodes)


def ray(nodes: int) -> Any:
    """Ray actors, on the cluster that RAY_ADDRESS names or on this machine."""
    from atomcast import RayCluster

    return RayCluster(nodes)


#: Engines by the name that --engine takes.
ENGINES: dict[str, Callable[[int], Any]] = {"local": local, "mpi": mpi, "ray": ray}
