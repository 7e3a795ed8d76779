"""`atomcast fit ESTIMATOR PART...`: one command for every estimator, made from its options."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atomcast.cluster.mpi.job import job_rank
from atomcast.commands.engines import FEDERATED, chosen_engine, make_cluster, ranks, together
from atomcast.commands.estimators import ESTIMATORS, Recipe
from atomcast.commands.federation import checked_parts, federated_data
from atomcast.commands.fit_options import FitOptions
from atomcast.commands.logs import log_on_stderr
from atomcast.commands.mistakes import clear_errors
from atomcast.commands.run_file import read_preparation, run_from

if TYPE_CHECKING:
    from atomcast.data.shards import Shards

fit_app = typer.Typer(
    help="Fit a model to data in files, one for each node.",
    no_args_is_help=True,
    invoke_without_command=True,
    rich_markup_mode=None,
)

#: The exit code of a fit that Ctrl-C ended, also where a model was saved: 128 + SIGINT.
INTERRUPTED = 130


def run_fit(recipe: Recipe, parameters: dict[str, Any], options: FitOptions) -> None:
    """Fit the estimator that a recipe makes of parameters."""
    if job_rank():  # rank 0 writes and speaks for all
        options = replace(options, out=None, trace=None, plot=None, report=None, talk=False)
    # A federated fit waits for people: show for whom.
    waits = int(options.engine == FEDERATED and options.talk is not False)
    with clear_errors(options.debug), log_on_stderr(options.verbosity or waits):
        from atomcast.data.vectors import read_vector

        files = {name: parameters.pop(name) for name in recipe.vectors}
        with together():
            estimator, shards, y = _prepared(recipe, parameters, options)
            beside = {name: read_vector(file) for name, file in files.items() if file is not None}
        start = time.perf_counter()
        try:
            if recipe.signals:
                from atomcast.commands.signal_files import fit_signals

                fit_signals(recipe, estimator, shards, y, save=options.out is not None)
            else:
                estimator.fit(shards, y, **beside)
        finally:
            if options.engine == FEDERATED:
                estimator.cluster.close()
        seconds = time.perf_counter() - start
        _write(estimator, options)
        if options.talk is not False:
            _report(estimator, len(y), seconds, options)
        if estimator.result_.status == "interrupted":
            raise typer.Exit(INTERRUPTED)


def _prepared(
    recipe: Recipe, parameters: dict[str, Any], options: FitOptions
) -> tuple[Any, Shards, Any]:
    """The estimator with its cluster and solver, the data and the target, all of them checked."""
    from atomcast.commands.named_files import Reading, check_rows, check_target, read_data
    from atomcast.data.party_names import names_of_files

    _check_outputs(options)
    engine = chosen_engine(options.engine)
    estimator = recipe.make(**parameters)
    estimator.set_params(solver=_solver(options))
    if engine == FEDERATED:
        cluster, members, y = federated_data(options)
        check_target(y, options.target, recipe.numeric_target)
        check_rows(members, y, options.target, recipe.axis)
        return estimator.set_params(cluster=cluster), members, y
    parts, target = checked_parts(options), options.target
    nodes = ranks() if len(parts) == 1 and options.nodes is None else options.nodes
    reading = Reading(options.row_ids, options.n_features, options.align, options.prefix)
    if options.prepare is not None:
        names = names_of_files(parts)
        reading = reading._replace(prepare=read_preparation(options.prepare, names))
    if recipe.signals:
        from atomcast.commands.signal_files import read_signals

        shards, y = read_signals(recipe, parts, nodes, target, reading)
    else:
        shards, y = read_data(parts, nodes, target, reading, recipe.axis)
        check_target(y, target, recipe.numeric_target)
        if ranks() is None:  # a rank opens its own file alone, and checks it with the others
            check_rows(shards, y, target, recipe.axis)
    network = (options.topology, options.broadcast, options.loss, options.recovery)
    mpi_options = options.mpi_options or []
    cluster = make_cluster(engine, shards.nodes, network, mpi_options, options.deadline)
    return estimator.set_params(cluster=cluster), shards, y


def _check_outputs(options: FitOptions) -> None:
    from atomcast.commands.named_files import check_output

    check_output("--out", options.out, (".safetensors",))
    check_output("--trace", options.trace, (".csv",))
    check_output("--plot", options.plot, (".png", ".svg", ".pdf"))
    check_output("--report", options.report, (".html",))
    check_output("--checkpoint", options.checkpoint)
    if options.checkpoint is None and options.checkpoint_rounds is not None:
        raise ValueError(
            f"--checkpoint-rounds {options.checkpoint_rounds} needs --checkpoint FILE, to write to"
        )


def _solver(options: FitOptions) -> Any:
    """The solver that the options ask for, with its callbacks."""
    from atomcast import Checkpoint, Solver, TimeLimit

    watchers: list[Any] = []
    if options.time_limit is not None:
        watchers.append(TimeLimit(options.time_limit))
    if options.checkpoint is not None:
        watchers.append(Checkpoint(options.checkpoint, rounds=options.checkpoint_rounds))
    live = sys.stderr.isatty() and not options.verbosity
    return Solver(
        step=options.step,
        tol=options.tol,
        max_rounds=options.max_rounds,
        callbacks=watchers,
        verbose=live if options.talk is None else options.talk,
        resume=options.resume,
    )


def _write(estimator: Any, options: FitOptions) -> None:
    """Write the files that the options name."""
    from atomcast.saving.model_file import save_model

    if options.out is not None:
        save_model(estimator, options.out)
    if options.trace is not None:
        estimator.result_.trace.to_csv(options.trace)
    if options.plot is not None:
        _draw(estimator.result_.ledger, options.plot)
    if options.report is not None:
        estimator.result_.report(options.report, estimator)


def _draw(ledger: Any, path: Path) -> None:
    """Write the picture of a network, without a window."""
    from atomcast.network.picture import SIZE
    from atomcast.plots.drawing import new_figure

    figure = new_figure(*SIZE)
    ledger.plot_network(ax=figure.subplots())
    figure.savefig(path, dpi=150)


def _report(estimator: Any, rows: int, seconds: float, options: FitOptions) -> None:
    """Say what came out of the fit."""
    from atomcast.report.printing import print_json, print_table
    from atomcast.report.summary import outcome, outcome_rows
    from atomcast.saving.certificate import certificate_of

    summary = {
        "estimator": type(estimator).__name__,
        "rows": rows,
        **outcome(certificate_of(estimator)),
        **{name[:-1]: getattr(estimator, name, None) for name in ("beta_", "alpha_", "C_")},
        "atoms": len(estimator.result_.atom_ids),
        "atoms_available": estimator.result_.n,
        "seconds": seconds,
    }
    files = {name: getattr(options, name) for name in ("trace", "plot", "report")}
    files = {"model": options.out, **files}
    if options.as_json:
        print_json(summary | {key: str(path) if path else None for key, path in files.items()})
        return
    written = [(f"{key} saved as", str(path)) for key, path in files.items() if path]
    print_table(f"{summary['estimator']}", None, [*outcome_rows(summary), *written])


def _command(recipe: Recipe) -> Callable[..., None]:
    """A command whose options are those of an estimator and those of every fit."""
    own = inspect.signature(recipe.make, eval_str=True).parameters
    shared = inspect.signature(FitOptions, eval_str=True).parameters

    def command(**given: Any) -> None:
        parameters = {name: given.pop(name) for name in own}
        run_fit(recipe, parameters, FitOptions(**{"target": "", **given}))

    # The files first, then what is special, then what is the same everywhere.
    options = {name: shared[name] for name in ("parts", "target")} | {**own} | {**shared}
    if recipe.signals == "parts":
        del options["target"]
    signature = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options.values()]
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    command.__doc__ = recipe.make.__doc__
    return command


for _name, _recipe in ESTIMATORS.items():
    fit_app.command(_name)(_command(_recipe))


@fit_app.callback()
def _group(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Fit what a file says (.toml), instead of ESTIMATOR."),
    ] = None,
) -> None:
    """Fit a model to data in files, one for each node."""
    if config is None:
        return
    with clear_errors(debug=False):
        if context.invoked_subcommand is not None:
            raise ValueError(
                f"--config {config} before {context.invoked_subcommand} says which model to fit: "
                "leave out one of them"
            )
        run_from(config, context)
