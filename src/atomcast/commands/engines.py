"""Where the nodes of `atomcast fit` run: one line an engine, each a function of their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def local(nodes: int) -> Any:
    """Nodes simulated in this process."""
    from atomcast import LocalCluster

    return LocalCluster(nodes)


def mpi(nodes: int, **how: Any) -> Any:
    """MPI ranks: those that this command is one of, or else some that are started for this fit."""
    from atomcast import MPICluster
    from atomcast.cluster.mpi.job import job_rank

    return MPICluster.launch(nodes, **how) if job_rank() is None else MPICluster(**how)


def ray(nodes: int, **how: Any) -> Any:
    """Ray actors, on the cluster that RAY_ADDRESS names or on this machine."""
    from atomcast import RayCluster

    return RayCluster(nodes, **how)


#: Engines by the name that --engine takes.
ENGINES: dict[str, Callable[..., Any]] = {"local": local, "mpi": mpi, "ray": ray}
#: The engine whose nodes are in the settings of a coordinator.
FEDERATED = "federated"


def chosen_engine(name: str | None) -> str:
    """The engine that was asked for, or the one that fits how this command was started."""
    from atomcast._checks import check_choice
    from atomcast.cluster.mpi.job import job_rank

    if name is None:
        return "local" if job_rank() is None else "mpi"
    check_choice("--engine", name, (*ENGINES, FEDERATED))
    if name != "mpi" and job_rank() is not None:
        raise ValueError(
            f"--engine {name} would let every rank that mpirun has started fit by itself: use "
            "--engine mpi, which lets them work together, or do without mpirun"
        )
    return name


def make_cluster(
    engine: str,
    nodes: int,
    network: tuple[str, str | None, float, str],
    mpi_options: list[str],
    deadline: float | None,
) -> Any:
    """The cluster of an engine; only of local nodes is the network the user's to choose."""
    from atomcast.cluster.mpi.job import job_rank

    how: dict[str, Any] = {}
    if mpi_options:
        if engine != "mpi" or job_rank() is not None:
            raise ValueError(
                "--mpi-option is for the mpirun that --engine mpi starts: leave it out, or if you "
                "start mpirun yourself, give the option there"
            )
        how["options"] = mpi_options
    if deadline is not None:
        if engine == "local":
            raise ValueError(
                f"--deadline {deadline:g} is for --engine mpi and ray, whose nodes may stall"
            )
        how["deadline"] = deadline
    if network == ("star", None, 0.0, "log"):
        return ENGINES[engine](nodes, **how)
    if engine != "local":
        raise ValueError(
            f"--topology, --broadcast, --loss and --recovery are for --engine local, not {engine}"
        )
    from atomcast import Faults, LocalCluster

    topology, broadcast, loss, recovery = network
    faults = Faults(loss=loss) if loss or recovery != "log" else None
    return LocalCluster(nodes, topology, broadcast=broadcast, faults=faults, recovery=recovery)


# -- as a rank of an MPI job ----------------------------------------------------------------------


def ranks() -> int | None:
    """How many ranks mpirun has started this command on; None if it has not."""
    from atomcast.cluster.mpi.job import job_rank

    if job_rank() is None:
        return None
    from atomcast.cluster.mpi.failures import import_mpi

    return int(import_mpi().COMM_WORLD.Get_size())


@contextmanager
def together() -> Iterator[None]:
    """Let all ranks know of an error on one, before they wait for each other."""
    if ranks() is None:
        yield
        return
    from atomcast.cluster.mpi.failures import import_mpi
    from atomcast.cluster.mpi.watch import Pulse, by_all

    with by_all(import_mpi().COMM_WORLD, Pulse()):
        yield
