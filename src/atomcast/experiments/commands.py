"""`atomcast reproduce NAME`: every experiment under its name, imported when it is run."""

from __future__ import annotations

import inspect
import shlex
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atomcast.commands.errors import MISTAKES, Debug, clear_errors, one_line, say

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

#: The modules of this package, each with a function `show`, by the names of their experiments; in
#: the order in which `all` runs them.
EXPERIMENTS = {
    "lower-bound": "lower_bound",
    "topologies": "topologies",
    "clustering-bound": "clustering_bound",
    "fig2a": "fig2a",
    "fig2b": "fig2b",
    "fig4": "fig4",
    "fig3": "fig3",
    "fig5a": "fig5a",
    "fig5b": "fig5b",
    "fig5c": "fig5c",
}

Quick = Annotated[bool, typer.Option("--quick", help="Smaller instances: seconds or minutes.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the CSV files and the pictures.")]
Runs = Annotated[
    int | None, typer.Option("--runs", min=1, help="Runs to average; default 5, --quick: 2.")
]
AtomDensity = Annotated[
    list[float] | None,
    typer.Option("--atom-density", help="Only these s_A; may be repeated. Default: all three."),
]
Synthetic = Annotated[
    bool, typer.Option("--synthetic", help="Use a generated stand-in instead of real data.")
]
Examples = Annotated[
    int | None, typer.Option("--n", min=1000, help="Examples of the stand-in for speech data.")
]
Download = Annotated[bool, typer.Option("--download", help="Download real data if it is missing.")]
OUT = Path("out")


@app.callback()
def _group() -> None:
    """Reproduce a figure or a claim of the paper."""


@app.command("lower-bound")
def lower_bound(quick: Quick = False, out: Out = OUT, debug: Debug = False) -> None:
    """The communication lower bound of section 4.2, next to what dFW really sends."""
    _run("lower-bound", debug, quick=quick, out=out)


@app.command("topologies")
def topologies(
    quick: Quick = False, runs: Runs = None, out: Out = OUT, debug: Debug = False
) -> None:
    """Communication against N on star, tree and graph, measured and by formula (section 4.1)."""
    _run("topologies", debug, quick=quick, runs=runs, out=out)


@app.command("clustering-bound")
def clustering_bound(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """The footnote of section 6.3 on clustering in kernel space: which pairs break its bound."""
    chosen = {"quick": quick, "runs": runs, "out": out}
    _run("clustering-bound", debug, **chosen, synthetic=synthetic, download=download)


@app.command("fig2a")
def fig2a(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Figure 2(a): kernel SVM on Adult, dFW beside local FW and random subsets."""
    _run("fig2a", debug, quick=quick, runs=runs, out=out, synthetic=synthetic, download=download)


@app.command("fig2b")
def fig2b(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Figure 2(b): Lasso on Dorothea, dFW beside local FW and random subsets."""
    _run("fig2b", debug, quick=quick, runs=runs, out=out, synthetic=synthetic, download=download)


@app.command("fig3")
def fig3(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    atom_density: AtomDensity = None,
    debug: Debug = False,
) -> None:
    """Figure 3: dFW beside ADMM on synthetic data of nine densities (full size takes hours)."""
    _run("fig3", debug, quick=quick, runs=runs, out=out, atom_density=tuple(atom_density or ()))


@app.command("fig4")
def fig4(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Figure 4: dFW beside ADMM on Dorothea, by communication, iterations and local time."""
    _run("fig4", debug, quick=quick, runs=runs, out=out, synthetic=synthetic, download=download)


@app.command("fig5a")
def fig5a(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    n: Examples = None,
    debug: Debug = False,
) -> None:
    """Figure 5(a): runtime against N, on MPI ranks and by the simulator's clock."""
    _run("fig5a", debug, quick=quick, runs=runs, out=out, n=n)


@app.command("fig5b")
def fig5b(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    n: Examples = None,
    debug: Debug = False,
) -> None:
    """Figure 5(b): unbalanced data, exact dFW beside m-centers and random subsets."""
    _run("fig5b", debug, quick=quick, runs=runs, out=out, n=n)


@app.command("fig5c")
def fig5c(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Figure 5(c): kernel SVM on Adult where messages are lost, with and without a log."""
    _run("fig5c", debug, quick=quick, runs=runs, out=out, synthetic=synthetic, download=download)


@app.command("all")
def everything(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Everything above, one after the other; what fails does not keep the rest from running."""
    from atomcast.experiments import page
    from atomcast.experiments.options import Options

    options = Options(quick, runs, out, synthetic, download)
    broken: list[str] = []
    failures: dict[str, str] = {}
    with clear_errors(debug):
        for name in EXPERIMENTS:
            try:
                if not _shown(name, options, failures).holds:
                    broken.append(name)
            except BrokenPipeError:
                raise
            except MISTAKES as error:
                if debug:
                    raise
                failures[name] = one_line(error)
                say("error", f"{name}: {failures[name]}")
                page.write(out, EXPERIMENTS, failures)
    for name in broken:
        say("error", f"{name}: what must hold does not; see above")
    if failures:
        say("error", f"not run: {', '.join(failures)}; see above, and {out / 'index.html'}")
    if failures or broken:
        raise typer.Exit(2 if failures else 1)


def _run(name: str, debug: bool, **chosen: object) -> None:
    """Run one experiment; exit with 1 if what must hold does not."""
    from atomcast.experiments.options import Options

    with clear_errors(debug):
        record = _shown(name, Options(**chosen), {})  # type: ignore[arg-type]
    if not record.holds:
        raise typer.Exit(1)


def _shown(name: str, options: Options, failures: Mapping[str, str]) -> Record:
    """Run one experiment, keep what it found, and write the page of all that was found."""
    from atomcast.experiments import page, store

    show: Show = import_module(f"atomcast.experiments.{EXPERIMENTS[name]}").show
    start = time.perf_counter()
    record = show(options)
    made = store.circumstances(time.perf_counter() - start)
    store.keep(store.Kept(name, command_line(name, options), made, record), options.out)
    index = page.write(options.out, EXPERIMENTS, failures)
    files = sorted(path for path in options.out.glob(f"{name}*") if path.is_file())
    typer.echo(f"written: {', '.join(map(str, [*files, index]))}")
    return record


def command_line(name: str, options: Options) -> str:
    """The command that runs one experiment as it was run, into the usual folder."""
    command = next(info.callback for info in app.registered_commands if info.name == name)
    assert command is not None
    words = ["atomcast", "reproduce", name]
    for option in ("quick", "runs", "synthetic", "n", "atom_density"):
        value = getattr(options, option)
        if option in inspect.signature(command).parameters and value is not None:
            flag = f"--{option.replace('_', '-')}"
            if isinstance(value, bool):
                words += [flag] * value
            else:
                for one in value if isinstance(value, tuple) else (value,):
                    words += [flag, str(one)]
    return shlex.join(words)
