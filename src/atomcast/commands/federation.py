"""What `--engine federated --config coordinator.toml` means for `fit` and `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from atomcast.federated.cluster import FederatedCluster
    from atomcast.federated.party_shards import PartyShards

#: The settings of the coordinator, for --engine federated.
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="For --engine federated: the settings of the coordinator (.toml).",
        show_default=False,
    ),
]


class Coordinator(NamedTuple):
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


def read_coordinator(path: Path | None, **how: Any) -> Coordinator:
    """The coordinator that a file describes; `how` goes before what it says."""
    from atomcast.federated.cluster import FederatedCluster
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
    return Coordinator(cluster, alias, **own)


def federated_data(
    coordinator: Coordinator, target: str, row_ids: str | None
) -> tuple[PartyShards, NDArray[Any]]:
    """The shards of all members, once they have connected, and the target in their order."""
    from atomcast.data.keyed_rows import keyed_hashes, read_hashes, read_secret, rows_in_order
    from atomcast.data.readers import read_row_ids
    from atomcast.data.vectors import read_vector

    y = read_vector(target, row_ids=row_ids)
    if coordinator.order is not None and coordinator.secret is not None:
        file = target if Path(target).exists() else target.rpartition(":")[0]
        ids = read_row_ids(file, row_ids=row_ids)
        if ids is None:
            raise ValueError(f"--target {target} has no row ids to put in order: see --row-ids")
        hashes = keyed_hashes(ids, read_secret(coordinator.secret), file)
        y = y[rows_in_order(hashes, read_hashes(coordinator.order), file)]
    return coordinator.cluster.shards(coordinator.alias), y


def check_parts(parts: list[Path] | None, config: Path | None) -> None:
    """Raise ValueError unless there are files, and no settings of a coordinator."""
    if config is not None:
        raise ValueError(f"--config {config} is for --engine federated: add that, or leave it out")
    if not parts:
        raise ValueError("PART is missing: a file for each node is needed")


def check_federated(
    parts: list[Path] | None, nodes: int | None, network: tuple[Any, ...], mpi: list[str] | None
) -> None:
    """Raise ValueError for options of which the members of a federated fit know nothing."""
    if parts or nodes is not None or network != ("star", None, 0.0, "log") or mpi:
        raise ValueError(
            "--engine federated takes data and network from its members: leave out files, --nodes, "
            "--topology, --broadcast, --loss, --recovery and --mpi-option"
        )
