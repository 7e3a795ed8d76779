"""`atomcast reproduce NAME`: every experiment under its name, imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="reproduce",
    help="Reproduce a figure or a claim of the paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Quick = Annotated[bool, typer.Option("--quick", help="Smaller instances, a few seconds.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the CSV file and the pictures.")]


@app.callback()
def _group() -> None:
    """Reproduce a figure or a claim of the paper."""


@app.command("lower-bound")
def lower_bound(quick: Quick = False, out: Out = Path("out")) -> None:
    """The communication lower bound of section 4.2, next to what dFW really sends."""
    from atomcast.experiments import lower_bound as experiment
    from atomcast.report.tables import print_table

    sizes, distances = ((16, 32, 64), (1, 2, 4)) if quick else ((16, 32, 64, 128, 256), (2, 4, 8))
    rows = experiment.lower_bound(sizes, distances, out=out)
    columns = ("form", "step", "d", "distance", "rounds", "support", "needed", "values", "bound")
    print_table(
        "Lower bound",
        columns,
        [[_shown(getattr(row, name)) for name in columns] for row in rows],
    )
    holds = all(row.support > row.needed and row.values > row.bound for row in rows)
    typer.echo(
        "every solution within eps has more than 3d/4 atoms, and cost more than the bound"
        if holds
        else "the bound is VIOLATED: see the table"
    )
    typer.echo(
        f"written: {', '.join(str(out / f'lower-bound.{s}') for s in ('csv', 'png', 'svg'))}"
    )
    if not holds:
        raise typer.Exit(1)


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}"
