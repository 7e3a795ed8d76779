"""The command line. What a command needs is imported when it runs, so that --help is quick."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from atomcast.commands.align import align_app
from atomcast.commands.coordinator_command import coordinator_app
from atomcast.commands.demo import demo
from atomcast.commands.export import export
from atomcast.commands.fit import fit_app
from atomcast.commands.inspect import inspect
from atomcast.commands.node_command import node_app
from atomcast.commands.predict import predict
from atomcast.commands.report import report
from atomcast.commands.reproduce import reproduce_app

#: Commands that stand before the others, in the order of use.
FIRST = ("demo", "fit", "predict", "inspect", "report", "export")


class InOrder(TyperGroup):
    """Commands in the order of use; typer would list groups, such as fit, after the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        order = {name: k for k, name in enumerate(FIRST)}
        return sorted(super().list_commands(ctx), key=lambda name: order.get(name, len(order)))


# Tracebacks with local variables would print the user's data.
app = typer.Typer(
    name="atomcast",
    cls=InOrder,
    help="Fit sparse models whose atoms are spread over a network, sending only what they need.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.add_typer(fit_app, name="fit")
app.command()(predict)
app.command()(inspect)
app.command()(report)
app.command()(export)
app.add_typer(node_app, name="node")
app.add_typer(coordinator_app, name="coordinator")
app.add_typer(align_app, name="align")
app.add_typer(
    reproduce_app,
    name="reproduce",
    short_help="Reproduce a figure or a claim of the paper (reproduce --help lists them).",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from atomcast import __version__

        typer.echo(f"atomcast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app(prog_name="atomcast")


if __name__ == "__main__":
    main()
