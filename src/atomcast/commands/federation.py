"""What `--engine federated --config coordinator.toml` means for `fit` and `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from atomcast.commands.fit_options import FitOptions
    from atomcast.federated.federated_cluster import FederatedCluster
    from atomcast.federated.party_shards import PartyShards

#: The settings of the coordinator, for --engine federated.
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="For --engine federated: the settings of the coordinator (.toml).",
    ),
]


class CoordinatorSettings(NamedTuple):
    """What coordinator.toml says.

    Attributes
    ----------
    cluster : FederatedCluster
    alias : str
        What the nodes call the data to fit to.
    order, secret : Path or None
        The order of rows, and the secret with which it was made; for a target with row ids.
    """

    cluster: FederatedCluster
    alias: str
    order: Path | None = None
    secret: Path | None = None


def read_coordinator(path: Path | None, **how: Any) -> CoordinatorSettings:
    """The coordinator that a file describes; `how` goes before what it says."""
    from atomcast.federated.federated_cluster import FederatedCluster
    from atomcast.federated.policy import read_toml

    if path is None:
        raise ValueError("--engine federated needs --config FILE, the settings of the coordinator")
    table, folder = read_toml(path), path.absolute().parent
    own = {name: folder / table.pop(name) for name in ("order", "secret") if name in table}
    alias = table.pop("alias", "cohort")
    table["certificates"] = folder / table.get("certificates", "certificates")
    try:
        cluster = FederatedCluster(**{**table, **how})
    except TypeError as error:
        raise ValueError(f"{path} is not what a coordinator needs: {error}") from None
    return CoordinatorSettings(cluster, alias, **own)


def federated_data(options: FitOptions) -> tuple[FederatedCluster, PartyShards, NDArray[Any]]:
    """The members, their shards once they have connected, and the target in the same order."""
    from atomcast.data.keyed_rows import keyed_hashes, read_hashes, read_secret, rows_in_order
    from atomcast.data.readers import read_row_ids
    from atomcast.data.vectors import read_vector

    _check_options(options)
    how = {} if options.deadline is None else {"deadline": options.deadline}
    coordinator = read_coordinator(options.config, **how)
    target, row_ids = options.target, options.row_ids
    y = read_vector(target, row_ids=row_ids)
    if coordinator.order is not None and coordinator.secret is not None:
        file = target if Path(target).exists() else target.rpartition(":")[0]
        ids = read_row_ids(file, row_ids=row_ids)
        if ids is None:
            raise ValueError(f"--target {target} has no row ids to put in order: see --row-ids")
        hashes = keyed_hashes(ids, read_secret(coordinator.secret), file)
        y = y[rows_in_order(hashes, read_hashes(coordinator.order), file)]
    return coordinator.cluster, coordinator.cluster.shards(coordinator.alias), y


def checked_parts(options: FitOptions) -> list[Path]:
    """The files of a fit that is not federated, or ValueError if there are none."""
    if options.config is not None:
        raise ValueError(f"--config {options.config} is for --engine federated: add that to it")
    if not options.parts:
        raise ValueError("PART is missing: a file for each node is needed")
    return options.parts


def _check_options(options: FitOptions) -> None:
    """Raise ValueError for options of which the members of a federated fit know nothing."""
    network = (options.topology, options.broadcast, options.loss, options.recovery)
    files = (options.parts, options.nodes, options.align, options.prefix, options.prepare)
    if network != ("star", None, 0.0, "log") or any((*files, options.mpi_options)):
        raise ValueError(
            "--engine federated takes data and network from its members: leave out files, --nodes, "
            "--align, --prefix, --prepare, --topology, --broadcast, --loss, --recovery and "
            "--mpi-option"
        )
