"""`atomcast reproduce NAME`: every experiment under its name, imported when it is run."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer

from atomcast.commands.mistakes import MISTAKES, Debug, clear_errors, one_line, say
from atomcast.experiments.figures import EXPERIMENTS
from atomcast.experiments.figures.options import Options

reproduce_app = typer.Typer(
    help="Reproduce a figure or a claim of the paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
BROKEN = "what must hold does not; see above"


def run_one(name: str, debug: bool, **chosen: Any) -> None:
    """Run one experiment; exit with 1 if what must hold does not."""
    from atomcast.experiments.reproducing import reproduce

    with clear_errors(debug):
        report = reproduce(name, Options(**chosen), {})
    if not report.holds:
        say("error", f"{name}: {BROKEN}")
        raise typer.Exit(1)


def run_all(debug: bool, **chosen: Any) -> None:
    """Run all experiments, one after the other; one that fails does not stop the others."""
    from atomcast.experiments.reproducing import reproduce, write_page

    options = Options(**chosen)
    broken: list[str] = []
    failures: dict[str, str] = {}
    with clear_errors(debug):
        for name in EXPERIMENTS:
            try:
                if not reproduce(name, options, failures).holds:
                    broken.append(name)
            except BrokenPipeError:
                raise
            except Exception as error:  # hours of other experiments do not depend on it
                if debug:
                    raise
                if not isinstance(error, MISTAKES):
                    traceback.print_exc()
                failures[name] = one_line(error)
                say("error", f"{name}: {failures[name]}")
                write_page(options.out, failures)
    for name in broken:
        say("error", f"{name}: {BROKEN}")
    if failures:
        say("error", f"not run: {', '.join(failures)}; see above, and {options.out / 'index.html'}")
    if failures or broken:
        raise typer.Exit(2 if failures else 1)


def add_command(name: str, help: str, options: str, run: Callable[..., None]) -> None:
    """Add a command that takes these of the options, and a few that all take."""

    def command(**chosen: Any) -> None:
        run(**chosen)

    # typer reads options from the signature and from the annotations of a function.
    kinds = get_type_hints(Options) | {"atom_density": list[float] | None}
    by_name = {field.name: field for field in fields(Options)}
    parameters = []
    for one in ("quick", *options.split(), "out", "into"):
        said = typer.Option(f"--{one.replace('_', '-')}", **by_name[one].metadata)
        kind = Annotated[kinds[one], said]  # type: ignore[valid-type]
        default = by_name[one].default
        parameters.append(Parameter(one, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    parameters.append(Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug))
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    reproduce_app.command(name, help=help)(command)


for _name, _listed in EXPERIMENTS.items():
    add_command(_name, _listed.help, _listed.options, partial(run_one, _name))
add_command(
    "all",
    "Everything above, one after the other.",
    "runs synthetic download jobs resume",
    run_all,
)
