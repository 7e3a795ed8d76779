"""`atomcast reproduce NAME`: every experiment under its name, imported when it is run."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atomcast.commands.errors import Debug, clear_errors

if TYPE_CHECKING:
    from atomcast.experiments.options import Show

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
Jobs = Annotated[
    int, typer.Option("--jobs", min=1, help="Processes side by side, where no time is measured.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where an earlier call with this --out was stopped.")
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
    jobs: Jobs = 1,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Figure 2(a): kernel SVM on Adult, dFW beside local FW and random subsets."""
    chosen = {"quick": quick, "runs": runs, "out": out, "jobs": jobs, "resume": resume}
    _run("fig2a", debug, **chosen, synthetic=synthetic, download=download)


@app.command("fig2b")
def fig2b(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    jobs: Jobs = 1,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Figure 2(b): Lasso on Dorothea, dFW beside local FW and random subsets."""
    chosen = {"quick": quick, "runs": runs, "out": out, "jobs": jobs, "resume": resume}
    _run("fig2b", debug, **chosen, synthetic=synthetic, download=download)


@app.command("fig3")
def fig3(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    atom_density: AtomDensity = None,
    jobs: Jobs = 1,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Figure 3: dFW beside ADMM on synthetic data of nine densities (full size takes hours)."""
    chosen = {"quick": quick, "runs": runs, "out": out, "jobs": jobs, "resume": resume}
    _run("fig3", debug, **chosen, atom_density=tuple(atom_density or ()))


@app.command("fig4")
def fig4(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Figure 4: dFW beside ADMM on Dorothea, by communication, iterations and local time."""
    chosen = {"quick": quick, "runs": runs, "out": out, "resume": resume}
    _run("fig4", debug, **chosen, synthetic=synthetic, download=download)


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
    jobs: Jobs = 1,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Figure 5(c): kernel SVM on Adult where messages are lost, with and without a log."""
    chosen = {"quick": quick, "runs": runs, "out": out, "jobs": jobs, "resume": resume}
    _run("fig5c", debug, **chosen, synthetic=synthetic, download=download)


@app.command("all")
def everything(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = OUT,
    synthetic: Synthetic = False,
    download: Download = False,
    jobs: Jobs = 1,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Everything above, one after the other."""
    chosen = {"quick": quick, "runs": runs, "out": out, "jobs": jobs, "resume": resume}
    for name in EXPERIMENTS:
        _run(name, debug, **chosen, synthetic=synthetic, download=download)


def _run(name: str, debug: bool, **chosen: object) -> None:
    """Run one experiment; exit with 1 if what must hold does not."""
    from atomcast.experiments.options import Options

    options = Options(**chosen)  # type: ignore[arg-type]
    show: Show = import_module(f"atomcast.experiments.{EXPERIMENTS[name]}").show
    with clear_errors(debug):
        holds = show(options)
        files = sorted(path for path in options.out.glob(f"{name}*") if path.is_file())
        typer.echo(f"written: {', '.join(map(str, files))}")
    if not holds:
        raise typer.Exit(1)
