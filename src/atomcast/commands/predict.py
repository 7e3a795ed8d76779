"""`atomcast predict MODEL DATA...`: apply a saved model to new data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from atomcast.commands.estimators import Lengths
from atomcast.commands.federation import Config, read_coordinator
from atomcast.commands.fit_options import Align, RowIds
from atomcast.commands.mistakes import Debug, clear_errors


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DATA",
            help="One file with all columns, or the parts in the order of the fit; none with "
            "--config, where each member computes its own part.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the predictions to a .npy or .csv file, or codes to a .npz file, instead "
            "of printing them.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="The probability of each class, not the class.")
    ] = False,
    row_ids: RowIds = None,
    align: Align = None,
    lengths: Lengths = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Predict with a saved model: for each row its target or class, or the codes of signals."""
    with clear_errors(debug):
        import warnings

        from atomcast import load_model
        from atomcast.commands.named_files import Reading, check_output, features_for
        from atomcast.data.vectors import read_vector

        if not data and config is None:
            raise ValueError("DATA is missing: the files to predict for, or --config FILE")
        estimator = load_model(model)
        if lengths is not None and type(estimator).__name__ != "StructuredSVM":
            raise ValueError(f"--lengths {lengths} is for sequences, which {model} knows none of")
        if proba and not hasattr(estimator, "predict_proba"):
            raise ValueError(f"--proba: the {type(estimator).__name__} in {model} tells none")
        codes = not hasattr(estimator, "predict")
        said: Any = getattr(estimator, "predict_proba" if proba else "predict", None)
        names = [str(label) for label in estimator.classes_] if proba else ["prediction"]
        check_output("--out", out, (".npz",) if codes else (".npy", ".csv"))
        if config is not None:
            with read_coordinator(config).cluster as members:
                predictions = said(members.shards(members.terms.predict))
            _write(predictions, names, None, out)
            return
        X, ids = features_for(estimator, data or (), Reading(row_ids, align=align))
        # Columns without names are taken in the order of the file, as the user knows.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if codes:
            _write_codes(estimator.transform(X), out)
        else:
            beside = {} if lengths is None else {"lengths": read_vector(lengths)}
            _write(said(X, **beside), names, ids, out)


def _write_codes(codes: Any, out: Path | None) -> None:
    """The atoms of a signal and their weights in a line, or a sparse matrix in a file."""
    from scipy import sparse

    from atomcast._replacing import replacing

    if out is not None:
        with replacing(out) as file:
            sparse.save_npz(file, codes)
        return
    for row in (codes[[k]] for k in range(codes.shape[0])):
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        print(" ".join(f"{atom}:{weight!r}" for atom, weight in pairs))


def _write(predictions: Any, names: list[str], ids: Any, out: Path | None) -> None:
    """What is said of a row in a line, or a file of that; a table has names of columns."""
    from atomcast._replacing import replacing

    if out is None:
        for prediction in predictions.tolist():
            print(*(prediction if predictions.ndim > 1 else [prediction]))
    elif out.suffix.lower() == ".npy":
        import numpy as np

        with replacing(out) as file:  # numpy.save would add a suffix to a name like "a.NPY"
            np.save(file, predictions, allow_pickle=False)
    else:
        import csv

        with replacing(out, newline="", encoding="utf-8") as table:
            writer = csv.writer(table)
            rows = predictions.reshape(len(predictions), -1).tolist()
            if ids is None:
                writer.writerows([names, *rows])
            else:
                writer.writerow(["row_id", *names])
                writer.writerows([id, *row] for id, row in zip(ids.tolist(), rows, strict=True))
