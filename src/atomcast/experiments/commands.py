"""`atomcast reproduce NAME`: every experiment under its name, imported when it is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atomcast.commands.errors import Debug, clear_errors

if TYPE_CHECKING:
    from atomcast.data.datasets import DataSet

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
Download = Annotated[bool, typer.Option("--download", help="Download real data if it is missing.")]


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


@app.command("topologies")
def topologies(
    quick: Quick = False, runs: Runs = None, out: Out = Path("out"), debug: Debug = False
) -> None:
    """Communication against N on star, tree and graph, measured and by formula (section 4.1)."""
    from atomcast.experiments import topologies as experiment
    from atomcast.report.tables import print_table

    with clear_errors(debug):
        sizes = (10, 20, 50, 100) if quick else (10, 20, 50, 100, 200, 500)
        rows = experiment.topologies(sizes, runs=_runs(runs, quick), out=out)
        columns = ("network", "step", "nodes", "edges", "rounds", "values", "formula", "hops")
        shown = [row for row in rows if row.run == 0]
        print_table(
            "Communication until the relative gap is 0.05 (run 0)",
            columns,
            [[_shown(getattr(row, name)) for name in columns] for row in shown],
            text_columns=(0, 1),
        )
        exact = [row for row in rows if row.step == "classic"]
        holds = all(row.values == row.formula for row in exact)
        typer.echo(
            f"measured = formula in all {len(exact)} runs of the classic step"
            if holds
            else "measured and formula DIFFER: see the table"
        )
        _say_written(out, "topologies")
        if not holds:
            raise typer.Exit(1)


@app.command("fig2b")
def fig2b(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = Path("out"),
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Figure 2(b): Lasso on Dorothea, dFW beside local FW and random subsets."""
    from atomcast.experiments import curves
    from atomcast.experiments import fig2b as experiment
    from atomcast.report.tables import print_table

    with clear_errors(debug):
        setting = experiment.QUICK if quick else experiment.Setting()
        data, runs = _dorothea(synthetic, download), _runs(runs, quick)
        note = f"{_name(synthetic)}, beta = {setting.beta:g}, N = {setting.nodes}, {_times(runs)}"
        note += f", {setting.rounds:,} rounds of the classic step"
        rows = experiment.fig2b(data, setting, runs, out, note)
        budgets = (1e5, 3e5, 1e6, 3e6)
        table = [
            [
                method,
                *(
                    _shown(
                        curves.reached_at(
                            rows, experiment.PANEL, method, "values", "objective", budget
                        )
                    )
                    for budget in budgets
                ),
            ]
            for method in experiment.METHODS
        ]
        header = ["method", *(f"{budget:,.0f}" for budget in budgets)]
        print_table(f"Objective after so many values sent ({note})", header, table)
        _say_written(out, "fig2b")


@app.command("fig3")
def fig3(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = Path("out"),
    atom_density: AtomDensity = None,
    debug: Debug = False,
) -> None:
    """Figure 3: dFW beside ADMM on synthetic data of nine densities (full size takes hours)."""
    from dataclasses import replace

    from atomcast.experiments import fig3 as experiment
    from atomcast.report.tables import print_table

    with clear_errors(debug):
        setting = experiment.QUICK if quick else experiment.Setting()
        if atom_density:
            setting = replace(setting, atom_densities=tuple(atom_density))
        runs = _runs(runs, quick)
        note = f"d = {setting.d:,}, n = {setting.n:,}, N = {setting.nodes}, {_times(runs)}"
        _, verdicts = experiment.fig3(setting, runs, out, note)
        header = ["s_A s_alpha n", "s_A", "s_alpha", "nonzeros", "classic", "corrective", "ADMM"]
        table = [
            [
                *(f"{number:g}" for number in (v.rule, v.atom_density, v.solution_density)),
                *map(_shown, (v.support, v.classic, v.corrective, v.admm)),
                v.parameters,
            ]
            for v in sorted(verdicts, key=lambda v: v.rule)
        ]
        title = f"Values sent for 95 % of the way to the optimum ({note})"
        print_table(title, [*header, "best ADMM"], table, text_columns=(7,))
        typer.echo("the paper expects dFW to win well below s_A s_alpha n = 100, ADMM well above")
        _say_written(out, "fig3")


@app.command("fig4")
def fig4(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = Path("out"),
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Figure 4: dFW beside ADMM on Dorothea, by communication, iterations and local time."""
    from atomcast.experiments import fig4 as experiment
    from atomcast.report.tables import print_table

    with clear_errors(debug):
        setting = experiment.QUICK if quick else experiment.Setting()
        data, runs = _dorothea(synthetic, download), _runs(runs, quick)
        note = f"{_name(synthetic)}, N = {setting.nodes}, {_times(runs)}, up to {setting.rounds:,} "
        note += f"rounds of the classic step and {setting.admm_rounds} of ADMM"
        _, costs = experiment.fig4(data, setting, runs, out, note)
        header = ["beta", "above the optimum", "method", "values", "iterations", "local seconds"]
        table = [
            [
                f"{cost.beta:g}",
                f"{cost.above:.0%}",
                cost.method,
                _shown(cost.values),
                _shown(cost.round),
                _shown(cost.seconds, ".3f"),
            ]
            for cost in costs
        ]
        print_table(f"What it takes to get close ({note})", header, table, text_columns=(0, 1, 2))
        _say_written(out, "fig4")


@app.command("all")
def everything(
    quick: Quick = False,
    runs: Runs = None,
    out: Out = Path("out"),
    synthetic: Synthetic = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Everything above, one after the other."""
    lower_bound(quick, out)
    topologies(quick, runs, out, debug)
    fig2b(quick, runs, out, synthetic, download, debug)
    fig4(quick, runs, out, synthetic, download, debug)
    fig3(quick, runs, out, None, debug)


def _runs(runs: int | None, quick: bool) -> int:
    return runs if runs is not None else 2 if quick else 5


def _times(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _dorothea(synthetic: bool, download: bool) -> DataSet:
    from atomcast.experiments.real_data import dorothea

    try:
        return dorothea(synthetic=synthetic, download=download)
    except FileNotFoundError as error:
        hint = "on this command line: --download, or --synthetic for a generated stand-in"
        raise FileNotFoundError(f"{error} ({hint})") from error


def _name(synthetic: bool) -> str:
    return "generated stand-in for Dorothea" if synthetic else "Dorothea"


def _say_written(out: Path, name: str) -> None:
    files: Sequence[Path] = sorted(path for path in out.glob(f"{name}*") if path.is_file())
    typer.echo(f"written: {', '.join(map(str, files))}")


def _shown(value: str | float, form: str = ",.0f") -> str:
    if isinstance(value, str):
        return value
    return format(value, form) if abs(value) < float("inf") else "-"  # also for NaN
