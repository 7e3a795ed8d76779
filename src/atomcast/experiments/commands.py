"""`atomcast reproduce NAME`: every experiment under its name, imported when it is run."""

from __future__ import annotations

import shlex
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from atomcast.commands.errors import MISTAKES, clear_errors, one_line, say

if TYPE_CHECKING:
    from atomcast.experiments.options import Options, Show
    from atomcast.experiments.record import Record

app = typer.Typer(
    name="reproduce",
    help="Reproduce a figure or a claim of the paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


BROKEN = "what must hold does not; see above"


class Option(NamedTuple):
    """What can be told to several experiments; `--name` on the command line."""

    kind: Any
    help: str
    default: Any = False
    least: float | None = None


OPTIONS = {
    "quick": Option(bool, "Smaller instances: seconds or minutes."),
    "runs": Option(int | None, "Runs to average; default 5, --quick: 2.", None, least=1),
    "out": Option(Path, "Folder for the page, the CSV files and the pictures.", Path("out")),
    "n": Option(int | None, "Examples of the stand-in for speech data.", None, least=1000),
    "atom_density": Option(
        list[float] | None, "Only these s_A; may be repeated. Default: all.", None
    ),
    "synthetic": Option(bool, "Use a generated stand-in instead of real data."),
    "download": Option(bool, "Download real data if it is missing."),
    "jobs": Option(int, "Processes side by side, where no time is measured.", 1, least=1),
    "resume": Option(bool, "Go on where a call with this --out was stopped."),
    "debug": Option(bool, "Show the whole traceback of an error."),
}


class Experiment(NamedTuple):
    """A command: the module of this package with its function `show`, and what it can be told.

    All of them know --quick, --out and --debug.
    """

    module: str
    help: str
    options: str = ""


#: In the order in which `all` runs them.
EXPERIMENTS = {
    "lower-bound": Experiment(
        "lower_bound",
        "The communication lower bound of section 4.2, next to what dFW really sends.",
    ),
    "topologies": Experiment(
        "topologies",
        "Communication against N on star, tree and graph, measured and by formula (section 4.1).",
        "runs",
    ),
    "clustering-bound": Experiment(
        "clustering_bound",
        "The footnote of section 6.3 on clustering in kernel space: which pairs break its bound.",
        "runs synthetic download",
    ),
    "fig2a": Experiment(
        "fig2a",
        "Figure 2(a): kernel SVM on Adult, dFW beside local FW and random subsets.",
        "runs synthetic download jobs resume",
    ),
    "fig2b": Experiment(
        "fig2b",
        "Figure 2(b): Lasso on Dorothea, dFW beside local FW and random subsets.",
        "runs synthetic download jobs resume",
    ),
    "fig4": Experiment(
        "fig4",
        "Figure 4: dFW beside ADMM on Dorothea, by communication, iterations and local time.",
        "runs synthetic download resume",
    ),
    "fig3": Experiment(
        "fig3",
        "Figure 3: dFW beside ADMM on synthetic data of nine densities (full size takes hours).",
        "runs atom_density jobs resume",
    ),
    "fig5a": Experiment(
        "fig5a",
        "Figure 5(a): runtime against N, on MPI ranks and by the simulator's clock.",
        "runs n",
    ),
    "fig5b": Experiment(
        "fig5b",
        "Figure 5(b): unbalanced data, exact dFW beside m-centers and random subsets.",
        "runs n resume",
    ),
    "fig5c": Experiment(
        "fig5c",
        "Figure 5(c): kernel SVM on Adult where messages are lost, with and without a log.",
        "runs synthetic download jobs resume",
    ),
}


@app.callback()
def _group() -> None:
    """Reproduce a figure or a claim of the paper."""


def _add_command(name: str, help: str, options: str, run: Callable[..., None]) -> None:
    """Add a command whose options are those of the table with these names."""

    def command(**chosen: Any) -> None:
        run(**chosen)

    # typer reads options from the signature and from the annotations of a function.
    parameters = [_parameter(option) for option in ("quick", *options.split(), "out", "debug")]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    app.command(name, help=help)(command)


def _parameter(name: str) -> Parameter:
    option, flag = OPTIONS[name], f"--{name.replace('_', '-')}"
    described = typer.Option(flag, help=option.help, min=option.least)
    kind = Annotated[option.kind, described]  # type: ignore[name-defined]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option.default, annotation=kind)


def everything(debug: bool, **chosen: Any) -> None:
    """Run all experiments, one after the other; one that fails does not stop the others."""
    from atomcast.experiments import page
    from atomcast.experiments.options import Options

    options = Options(**chosen)
    broken: list[str] = []
    failures: dict[str, str] = {}
    with clear_errors(debug):
        for name in EXPERIMENTS:
            try:
                if not _shown(name, options, failures).holds:
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
                page.write(options.out, EXPERIMENTS, failures)
    for name in broken:
        say("error", f"{name}: {BROKEN}")
    if failures:
        say("error", f"not run: {', '.join(failures)}; see above, and {options.out / 'index.html'}")
    if failures or broken:
        raise typer.Exit(2 if failures else 1)


def _run(name: str, debug: bool, **chosen: Any) -> None:
    """Run one experiment; exit with 1 if what must hold does not."""
    from atomcast.experiments.options import Options

    with clear_errors(debug):
        record = _shown(name, Options(**chosen), {})
    if not record.holds:
        say("error", f"{name}: {BROKEN}")
        raise typer.Exit(1)


def _shown(name: str, options: Options, failures: Mapping[str, str]) -> Record:
    """Run one experiment, keep what it found, and write the page of all that was found."""
    from atomcast.experiments import page, store
    from atomcast.loop.interrupting import all_or_nothing

    show: Show = import_module(f"atomcast.experiments.{EXPERIMENTS[name].module}").show
    check_writable(options.out)
    check_plots()
    began, start = time.time(), time.perf_counter()
    try:
        with all_or_nothing():
            record = show(options)
    except BaseException:
        store.discard_outdated(name, options.out, began)
        raise
    made = store.circumstances(time.perf_counter() - start)
    store.keep(store.Kept(name, command_line(name, options), made, record), options.out)
    index = page.write(options.out, EXPERIMENTS, failures)
    files = sorted(path for path in options.out.glob(f"{name}*") if path.is_file())
    typer.echo(f"written: {', '.join(map(str, [*files, index]))}")
    return record


def check_writable(folder: Path) -> None:
    """Fail before hours of work, not after them, where nothing can be written."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def check_plots() -> None:
    """Likewise where no picture can be drawn."""
    from atomcast.plots.curves import new_figure

    new_figure()


def command_line(name: str, options: Options) -> str:
    """The command that runs one experiment as it was run, into the usual folder."""
    words = ["atomcast", "reproduce", name]
    for option in ("quick", *EXPERIMENTS[name].options.split()):
        value = getattr(options, option)
        if option in ("download", "jobs", "resume") or value == OPTIONS[option].default:
            continue  # these change nothing about the outcome
        flag = f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        else:
            for one in value if isinstance(value, list | tuple) else (value,):
                words += [flag, str(one)]
    return shlex.join(words)


for _name, _experiment in EXPERIMENTS.items():
    _add_command(_name, _experiment.help, _experiment.options, partial(_run, _name))
_add_command(
    "all",
    "Everything above, one after the other.",
    "runs synthetic download jobs resume",
    everything,
)
