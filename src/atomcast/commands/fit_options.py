"""The options that every `atomcast fit` has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from atomcast.commands.engines import ENGINES, FEDERATED
from atomcast.commands.federation import Config
from atomcast.commands.logs import Verbosity
from atomcast.commands.mistakes import Debug

#: The steps, as `atomcast.steps.STEPS` has them; named here so that --help needs no NumPy.
STEP_NAMES = (
    "classic", "line-search", "away", "pairwise", "blended-pairwise", "corrective",
    "compound", "auto", "block-coordinate",
)  # fmt: skip

Align = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="inner: put parts and target into one order by row ids, and drop, with a warning, "
        "rows that are not in all of them; by default, other rows are an error.",
    ),
]
RowIds = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of row ids, by which parts are checked to agree; default: row_id.",
    ),
]


@dataclass(frozen=True)
class FitOptions:
    """What a user says of a fit beside the parameters of its estimator; --help has this order."""

    target: Annotated[
        str,
        typer.Option(
            "--target", "-y", metavar="FILE", help="The target: a vector, or a table's FILE:COLUMN."
        ),
    ]
    parts: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PART",
            help="A file for each node, or a single file that is cut up among --nodes: .npy, .npz, "
            ".parquet, .csv, or svmlight (.svm, .libsvm, .txt), the texts also with .gz. None with "
            "--engine federated, whose members have their own.",
        ),
    ] = None
    nodes: Annotated[
        int | None, typer.Option(help="How many nodes; by default one for each file.")
    ] = None
    engine: Annotated[
        str | None,
        typer.Option(
            help=f"Where the nodes run: {', '.join((*ENGINES, FEDERATED))}; by default local, or "
            "mpi if mpirun has started this command.",
        ),
    ] = None
    config: Config = None
    mpi_options: Annotated[
        list[str] | None,
        typer.Option(
            "--mpi-option",
            metavar="OPTION",
            help="A word for the mpirun that --engine mpi starts; may be given several times: "
            "--mpi-option=--map-by --mpi-option=:OVERSUBSCRIBE.",
        ),
    ] = None
    deadline: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long a node may take in a round, but of --engine local; default: 600.",
        ),
    ] = None
    topology: Annotated[
        str,
        typer.Option(
            metavar="NETWORK",
            help="How local nodes are connected: star, tree, complete, or a file with a graph "
            "(GraphML, or an edge list).",
        ),
    ] = "star"
    broadcast: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How things get to everybody. Star and tree: improved or plain; graph: "
            "spanning-tree or flooding. The first of each is the default.",
        ),
    ] = None
    loss: Annotated[
        float,
        typer.Option(
            metavar="PROBABILITY", help="Let local nodes lose messages, to see what happens."
        ),
    ] = 0.0
    recovery: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="What nodes do about lost messages: log (repair them) or none."
        ),
    ] = "log"
    step: Annotated[str, typer.Option(metavar="STEP", help=f"One of {', '.join(STEP_NAMES)}.")] = (
        "corrective"
    )
    tol: Annotated[float, typer.Option(help="The relative duality gap at which to stop.")] = 1e-4
    max_rounds: Annotated[int, typer.Option(help="Rounds after which to stop anyway.")] = 10_000
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop after so long.")
    ] = None
    row_ids: RowIds = None
    align: Align = None
    prefix: Annotated[
        bool,
        typer.Option(
            "--prefix", help="Put the party's name (its file's) and a dot before names of columns."
        ),
    ] = False
    prepare: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How parties prepare their tables before they are numbers: missing values, "
            "categories, scales (the table prepare of a .toml file).",
        ),
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", help="Columns of each svmlight file, which does not say it itself."
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Save the model (.safetensors)."),
    ] = None
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save a row a round (.csv).")
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the network with the traffic on its edges (.png, .svg or .pdf).",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page on the fit that stands by itself (.html)."),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep what is needed to go on after a crash in this file (.safetensors).",
        ),
    ] = None
    checkpoint_rounds: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            help="Write the checkpoint after so many rounds; by default, every 30 seconds.",
        ),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Go on from a checkpoint of the same problem."),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False
    talk: Annotated[
        bool | None,
        typer.Option(
            "--verbose/--quiet",
            help="Show the progress always, or print nothing; by default, the progress is shown on "
            "a terminal and the outcome everywhere.",
        ),
    ] = None
    verbosity: Verbosity = 0
    debug: Debug = False
