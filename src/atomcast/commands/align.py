"""`atomcast align ...`: bring the rows of several parties into one order without showing ids."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atomcast.commands.mistakes import Debug, clear_errors

align_app = typer.Typer(
    help="Bring the rows of several parties into one order, by keyed hashes of their ids.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")]


@align_app.command()
def hash(
    data: Annotated[Path, typer.Argument(help="This party's data, or a target, with row ids.")],
    secret: Annotated[
        Path, typer.Option(metavar="FILE", help="The secret that all parties share.")
    ],
    out: Out,
    row_ids: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of row ids; default: row_id."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the keyed hashes of this party's row ids, sorted, for the others."""
    with clear_errors(debug):
        from atomcast.data.keyed_rows import keyed_hashes, read_secret, write_hashes
        from atomcast.data.readers import read_row_ids

        ids = read_row_ids(data, row_ids=row_ids)
        if ids is None:
            raise ValueError(f"{data} has no row ids: name their column with --row-ids")
        # Sorted: the order of a party's own file is nobody else's business.
        hashes = sorted(keyed_hashes(ids, read_secret(secret), data.name))
        write_hashes(out, hashes)
        typer.echo(f"{len(hashes)} rows; {out} goes to the other parties, the secret another way")


@align_app.command()
def order(
    hashes: Annotated[list[Path], typer.Argument(help="The files of all parties.")],
    out: Out,
    debug: Debug = False,
) -> None:
    """Intersect the hashes of all parties, and write the order of the rows that all have."""
    with clear_errors(debug):
        from atomcast.data.keyed_rows import common_order, read_hashes, write_hashes

        if len(hashes) < 2:
            raise ValueError("the files of two or more parties are needed")
        parties = [read_hashes(path) for path in hashes]
        common = common_order(parties)
        write_hashes(out, common)
        sizes = ", ".join(str(len(one)) for one in parties)
        typer.echo(f"{len(common)} rows are common to all ({sizes})")
