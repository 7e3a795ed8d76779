"""`atomcast fit ESTIMATOR PART...`: one command for every estimator, made from its options."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from atomcast.cluster.mpi.job import job_rank
from atomcast.commands.engines import ENGINES, chosen_engine, make_cluster, ranks, together
from atomcast.commands.errors import Debug, clear_errors
from atomcast.commands.estimators import ESTIMATORS, Recipe
from atomcast.commands.logs import Verbosity, log_on_stderr

fit_app = typer.Typer(
    help="Fit a model to data in files, one for each node.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

#: The exit code of a fit that Ctrl-C ended, also where a model was saved: 128 + SIGINT.
INTERRUPTED = 130
#: The steps, as `atomcast.steps.STEPS` has them; named here so that --help needs no NumPy.
STEP_NAMES = (
    "classic", "line-search", "away", "pairwise", "blended-pairwise", "corrective",
    "block-coordinate",
)  # fmt: skip

Parts = Annotated[
    list[Path],
    typer.Argument(
        metavar="PART",
        help="A file for each node, or a single file that is cut up among --nodes: .npy, .npz, "
        ".parquet, .csv, or svmlight (.svm, .libsvm, .txt), the texts also with .gz.",
        show_default=False,
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target", "-y", metavar="FILE", help="The target: a vector, or a table's FILE:COLUMN."
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(help="How many nodes; by default one for each file.", show_default=False),
]
Network = Annotated[
    str,
    typer.Option(
        "--topology",
        metavar="NETWORK",
        help="How local nodes are connected: star, tree, complete, or a file with a graph "
        "(GraphML, or an edge list).",
    ),
]
Broadcast = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="How things get to everybody. Star and tree: improved or plain; graph: "
        "spanning-tree or flooding. The first of each is the default.",
        show_default=False,
    ),
]
Loss = Annotated[
    float,
    typer.Option(metavar="PROBABILITY", help="Let local nodes lose messages, to see what happens."),
]
Recovery = Annotated[
    str,
    typer.Option(
        metavar="HOW", help="What nodes do about lost messages: log (repair them) or none."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help=f"Where the nodes run: {', '.join(ENGINES)}; by default local, or mpi if mpirun has "
        "started this command.",
        show_default=False,
    ),
]
MPIOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--mpi-option",
        metavar="OPTION",
        help="A word for the mpirun that --engine mpi starts; may be given several times: "
        "--mpi-option=--map-by --mpi-option=:OVERSUBSCRIBE.",
        show_default=False,
    ),
]
Deadline = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How long a node of --engine mpi or ray may take in a round; default: 600.",
        show_default=False,
    ),
]
StepName = Annotated[
    str, typer.Option("--step", metavar="STEP", help=f"One of {', '.join(STEP_NAMES)}.")
]
Tolerance = Annotated[float, typer.Option(help="The relative duality gap at which to stop.")]
MaxRounds = Annotated[int, typer.Option(help="Rounds after which to stop anyway.")]
TimeLimitSeconds = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", help="Stop after so long.", show_default=False),
]
RowIds = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of row ids, by which parts are checked to agree; default: row_id.",
        show_default=False,
    ),
]
Align = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="inner: put parts and target into one order by row ids, and drop, with a warning, "
        "rows that are not in all of them; by default, other rows are an error.",
        show_default=False,
    ),
]
Prefix = Annotated[
    bool,
    typer.Option(
        "--prefix", help="Put the party's name (its file's) and a dot before names of columns."
    ),
]
Columns = Annotated[
    int | None,
    typer.Option(
        "--n-features",
        metavar="COUNT",
        help="Columns of each svmlight file, which does not say it itself.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Save the model (.safetensors).", show_default=False
    ),
]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Save a row a round (.csv).", show_default=False),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw the network with the traffic on its edges (.png, .svg or .pdf).",
        show_default=False,
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep what is needed to go on after a crash in this file (.safetensors).",
        show_default=False,
    ),
]
CheckpointRounds = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        help="Write the checkpoint after so many rounds; by default, every 30 seconds.",
        show_default=False,
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Go on from a checkpoint of the same problem.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Talk = Annotated[
    bool | None,
    typer.Option(
        "--verbose/--quiet",
        help="Show the progress always, or print nothing; by default, the progress is shown on a "
        "terminal and the outcome everywhere.",
        show_default=False,
    ),
]


def run_fit(
    recipe: Recipe,
    make: Callable[[], Any],
    vectors: dict[str, str],
    parts: Parts,
    target: Target,
    nodes: Nodes = None,
    engine: Engine = None,
    mpi_options: MPIOptions = None,
    deadline: Deadline = None,
    topology: Network = "star",
    broadcast: Broadcast = None,
    loss: Loss = 0.0,
    recovery: Recovery = "log",
    step: StepName = "corrective",
    tol: Tolerance = 1e-4,
    max_rounds: MaxRounds = 10_000,
    time_limit: TimeLimitSeconds = None,
    row_ids: RowIds = None,
    align: Align = None,
    prefix: Prefix = False,
    columns: Columns = None,
    out: Out = None,
    trace: TraceFile = None,
    plot: Plot = None,
    checkpoint: CheckpointFile = None,
    checkpoint_rounds: CheckpointRounds = None,
    resume: Resume = None,
    as_json: AsJson = False,
    talk: Talk = None,
    verbosity: Verbosity = 0,
    debug: Debug = False,
) -> None:
    """Fit what `make` returns; the parameters from `parts` on are the options of every command."""
    if job_rank():  # rank 0 writes and speaks for all
        out = trace = plot = None
        talk = False
    with clear_errors(debug), log_on_stderr(verbosity):
        from atomcast.commands.inputs import (
            Reading,
            check_output,
            check_rows,
            check_target,
            read_data,
        )
        from atomcast.data.vectors import read_vector
        from atomcast.saving.model_file import save_model

        with together():
            check_output("--out", out, (".safetensors",))
            check_output("--trace", trace, (".csv",))
            check_output("--plot", plot, (".png", ".svg", ".pdf"))
            check_output("--checkpoint", checkpoint)
            engine = chosen_engine(engine)
            estimator = make()
            watchers = _watchers(time_limit, checkpoint, checkpoint_rounds)
            live = sys.stderr.isatty() and not verbosity if talk is None else talk
            solver = _solver(step, tol, max_rounds, watchers, resume, live)
            if len(parts) == 1 and nodes is None:
                nodes = ranks()
            reading = Reading(row_ids, columns, align, prefix)
            shards, y = read_data(parts, nodes, target, reading, recipe.axis)
            check_target(y, target, recipe.numeric_target)
            if ranks() is None:  # a rank opens its own file alone, and checks it with the others
                check_rows(shards, y, target, recipe.axis)
            network = (topology, broadcast, loss, recovery)
            cluster = make_cluster(engine, shards.nodes, network, mpi_options or [], deadline)
            estimator.set_params(cluster=cluster, solver=solver)
            beside = {name: read_vector(path) for name, path in vectors.items()}
        start = time.perf_counter()
        estimator.fit(shards, y, **beside)
        seconds = time.perf_counter() - start
        if out is not None:
            save_model(estimator, out)
        if trace is not None:
            estimator.result_.trace.to_csv(trace)
        if plot is not None:
            _draw(estimator.result_.ledger, plot)
        if talk is not False:
            files = {"model": out, "trace": trace, "plot": plot}
            _report(estimator, len(y), seconds, files, as_json)
        if estimator.result_.status == "interrupted":
            raise typer.Exit(INTERRUPTED)


def _draw(ledger: Any, path: Path) -> None:
    """Write the picture of a network, without a window."""
    from atomcast.network.picture import SIZE
    from atomcast.plots.curves import new_figure

    figure = new_figure(*SIZE)
    ledger.plot_network(ax=figure.subplots())
    figure.savefig(path, dpi=150)


def _watchers(
    time_limit: float | None, checkpoint: Path | None, checkpoint_rounds: int | None
) -> list[Any]:
    """The callbacks that the options ask for."""
    from atomcast import Checkpoint, TimeLimit

    if checkpoint is None and checkpoint_rounds is not None:
        raise ValueError(
            f"--checkpoint-rounds {checkpoint_rounds} needs --checkpoint FILE, to write to"
        )
    watchers: list[Any] = [] if time_limit is None else [TimeLimit(time_limit)]
    if checkpoint is not None:
        watchers.append(Checkpoint(checkpoint, rounds=checkpoint_rounds))
    return watchers


def _solver(
    step: str,
    tol: float,
    max_rounds: int,
    watchers: list[Any],
    resume: Path | None,
    verbose: bool,
) -> Any:
    from atomcast import Solver

    return Solver(
        step=step,
        tol=tol,
        max_rounds=max_rounds,
        callbacks=watchers,
        verbose=verbose,
        resume=resume,
    )


def _report(
    estimator: Any, rows: int, seconds: float, files: dict[str, Path | None], as_json: bool
) -> None:
    """Say what came out of the fit."""
    from atomcast.report.summary import outcome, outcome_rows
    from atomcast.report.tables import print_json, print_table
    from atomcast.saving.certificate import certificate_of

    summary = {
        "estimator": type(estimator).__name__,
        "rows": rows,
        **outcome(certificate_of(estimator)),
        **({"beta": estimator.beta_} if hasattr(estimator, "beta_") else {}),
        "atoms": len(estimator.result_.atom_ids),
        "atoms_available": estimator.result_.n,
        "seconds": seconds,
    }
    if as_json:
        print_json(summary | {key: str(path) if path else None for key, path in files.items()})
        return
    written = [(f"{key} saved as", str(path)) for key, path in files.items() if path]
    print_table(f"{summary['estimator']}", None, [*outcome_rows(summary), *written])


def _command(recipe: Recipe) -> Callable[..., None]:
    """A command whose options are those of an estimator and those of every fit."""
    own = inspect.signature(recipe.make, eval_str=True).parameters
    shared = dict(inspect.signature(run_fit, eval_str=True).parameters)
    del shared["recipe"], shared["make"], shared["vectors"]

    def command(**options: Any) -> None:
        named = {name: options.pop(name) for name in own}
        vectors = {name: named[name] for name in recipe.vectors if named[name] is not None}
        run_fit(recipe, partial(recipe.make, **named), vectors, **options)

    # The files first, then what is special, then what is the same everywhere.
    parts, target = shared.pop("parts"), shared.pop("target")
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (parts, target, *own.values(), *shared.values())
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = recipe.make.__doc__
    return command


for _name, _recipe in ESTIMATORS.items():
    fit_app.command(_name)(_command(_recipe))


@fit_app.callback()
def _group() -> None:
    """Fit a model to data in files, one for each node."""
