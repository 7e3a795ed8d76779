"""`atomcast coordinator ca`: certificates for a trial; organisations may use their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atomcast.commands.mistakes import Debug, clear_errors
from atomcast.federated import check_installed

coordinator_app = typer.Typer(
    help="Prepare fits between organisations (fit --engine federated runs them).",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@coordinator_app.command()
def ca(
    folder: Annotated[Path, typer.Argument(help="Where the authority's key and certificate are.")],
    requests: Annotated[
        list[Path] | None,
        typer.Argument(metavar="REQUEST", help="Requests (.csr) to sign."),
    ] = None,
    days: Annotated[int, typer.Option(help="For how long certificates are valid.")] = 365,
    revoke: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CERTIFICATE",
            help="A certificate that is no longer good; all parties need the new revoked.pem.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Be a certificate authority for a trial: made if it is not there, it signs requests."""
    with clear_errors(debug):
        from atomcast._checks import check_count

        check_installed()
        from atomcast.federated import keys

        check_count("--days", days, "for which certificates are valid")
        if not (folder / keys.CA).exists():
            keys.make_ca(folder, max(days, 365))
            typer.echo(f"made {folder / keys.CA}, which all parties need")
        for request in requests or ():
            typer.echo(f"signed {keys.sign_request(folder, request, days)}")
        if revoke:
            typer.echo(f"wrote {keys.revoke(folder, revoke)}, which all parties need")


@coordinator_app.callback()
def _group() -> None:
    """Prepare fits between organisations (fit --engine federated runs them)."""
