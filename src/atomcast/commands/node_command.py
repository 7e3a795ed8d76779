"""`atomcast node ...`: what a party does that guards data of its own."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from atomcast.commands.logs import Verbosity, log_on_stderr
from atomcast.commands.mistakes import Debug, clear_errors
from atomcast.federated import check_installed

node_app = typer.Typer(
    help="Take part in fits between organisations, and guard your own data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Config = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The settings of this node (.toml).")
]
#: Where `--config` is looked for if it is left out.
CONFIG = Path("node.toml")


@node_app.command()
def keys(
    name: Annotated[str, typer.Argument(help="The name of this party.")],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where keys and certificates are.")
    ] = Path("certificates"),
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A name or address of this machine; a coordinator needs those that nodes connect "
            "to. May be given several times.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Make the private keys of a party, and a request for its certificate."""
    with clear_errors(debug):
        check_installed()
        from atomcast.federated.keys import make_keys

        request = make_keys(name, out, host or ())
        typer.echo(
            f"{request} is the request: send it to the certificate authority, and put what comes "
            f"back beside it as {name}.pem, with the authority's own certificate as ca.pem. The "
            "keys stay here."
        )


@node_app.command()
def run(config: Config = CONFIG, verbosity: Verbosity = 0, debug: Debug = False) -> None:
    """Connect to the coordinator and answer what was approved, until Ctrl-C."""
    with clear_errors(debug), log_on_stderr(verbosity):
        import signal
        import threading

        check_installed()
        from atomcast.federated.attending import attend
        from atomcast.federated.identity import Credentials
        from atomcast.federated.party import Node
        from atomcast.federated.policy import read_config

        settings = read_config(config)
        node = Node(settings, Credentials(settings.certificates, settings.name))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        typer.echo(f"{settings.name} connects to {settings.coordinator} at {settings.address}")
        try:
            attend(node, stop)
        finally:
            node.close()


@node_app.command()
def approve(
    id: Annotated[
        str | None,
        typer.Argument(help="The offer to approve; without, those that wait are listed."),
    ] = None,
    config: Config = CONFIG,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who approves; by default, you.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="FILE",
            help="The target as you know it: approve only if the offer is about just that.",
        ),
    ] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take the approval of this offer back.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show what coordinators ask for, and approve it."""
    with clear_errors(debug):
        from atomcast.federated.consent import Consents
        from atomcast.federated.policy import read_config

        consents = Consents(read_config(config).state)
        if id is None:
            _show_offers(consents)
        elif withdraw:
            consents.withdraw(id)
            typer.echo(f"approval {id} is withdrawn")
        else:
            if target is not None:
                _check_target(consents, id, target)
            approval = consents.approve(id, by or getpass.getuser())
            typer.echo(f"offer {id} is approved by {approval.by}")


def _show_offers(consents: Any) -> None:
    import dataclasses
    from datetime import UTC, datetime

    from atomcast.report.printing import print_table

    offers = consents.offers()
    if not offers:
        typer.echo("no offer waits for approval")
    for offer in offers:
        rows = [[name, str(value)] for name, value in dataclasses.asdict(offer).items()]
        rows[-1][1] = str(datetime.fromtimestamp(offer.expires, UTC))
        print_table(f"offer {offer.id}", None, rows, text_columns=(0, 1))
        approved = [one.offer for one in (*consents.approvals(), *consents.withdrawn())]
        if any(one.alias == offer.alias and one.target != offer.target for one in approved):
            typer.echo(
                f"Another target was approved for {offer.alias!r}: scores against two targets tell "
                "inner products with their difference. Approve only if you know both targets."
            )


def _check_target(consents: Any, id: str, path: str) -> None:
    import numpy as np

    from atomcast.data import read_vector
    from atomcast.federated.consent import target_digest

    offer = next((one for one in consents.offers() if one.id == id), None)
    y = read_vector(path)
    if offer is not None and offer.objective == "logistic":
        y = np.where(y == np.unique(y)[-1], 1.0, -1.0)
    elif offer is not None and offer.objective == "multinomial":
        y = np.unique(y, return_inverse=True)[1]
    if offer is not None and target_digest(y) != offer.target:
        raise ValueError(f"offer {id} is about another target than {path}: do not approve it")


@node_app.command()
def audit(
    config: Config = CONFIG,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what has left (.html or .csv)."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="Check that the log has had this head, as the coordinator or a model tells.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Verify the audit log and print it, or make a report of all that has left."""
    with clear_errors(debug):
        from atomcast.commands.named_files import check_output
        from atomcast.federated.audit import check_head, read_log
        from atomcast.federated.disclosures import write_csv, write_html
        from atomcast.federated.policy import read_config

        check_output("--report", report, (".html", ".csv"))
        settings = read_config(config)
        path = settings.state / "audit.jsonl"
        entries = list(read_log(path))
        if head is not None:
            check_head(entries, head, path)
        if report is None:
            for entry in entries:
                typer.echo(_line(entry))
        elif report.suffix.lower() == ".csv":
            write_csv(report, entries)
        else:
            write_html(report, entries, settings.name)
        last = entries[-1]["hash"] if entries else "none"
        typer.echo(f"{len(entries)} lines, unbroken; head {last}")


def _line(entry: dict[str, Any]) -> str:
    from atomcast._checks import visible

    hidden = ("line", "time", "event", "before", "hash", "terms", "folds")
    told = ", ".join(f"{name}={value}" for name, value in entry.items() if name not in hidden)
    return visible(f"{entry['line']:>6} {entry['time']} {entry['event']:<12} {told}")
