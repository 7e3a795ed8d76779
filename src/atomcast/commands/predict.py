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
    row_ids: RowIds = None,
    align: Align = None,
    lengths: Lengths = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Predict with a saved model: a number for each row of the data, or the codes of signals."""
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
        codes = not hasattr(estimator, "predict")
        check_output("--out", out, (".npz",) if codes else (".npy", ".csv"))
        if config is not None:
            with read_coordinator(config).cluster as members:
                predictions = estimator.predict(members.shards(members.terms.predict))
            _write(predictions, None, out)
            return
        X, ids = features_for(estimator, data or (), Reading(row_ids, align=align))
        # Columns without names are taken in the order of the file, as the user knows.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if codes:
            _write_codes(estimator.transform(X), out)
        else:
            beside = {} if lengths is None else {"lengths": read_vector(lengths)}
            _write(estimator.predict(X, **beside), ids, out)


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


def _write(predictions: Any, ids: Any, out: Path | None) -> None:
    """One prediction a line, or a file of them."""
    from atomcast._replacing import replacing

    if out is None:
        for prediction in predictions.tolist():
            print(prediction)
    elif out.suffix.lower() == ".npy":
        import numpy as np

        with replacing(out) as file:  # numpy.save would add a suffix to a name like "a.NPY"
            np.save(file, predictions, allow_pickle=False)
    else:
        import csv

        with replacing(out, newline="", encoding="utf-8") as table:
            writer = csv.writer(table)
            if ids is None:
                writer.writerow(["prediction"])
                writer.writerows([value] for value in predictions.tolist())
            else:
                writer.writerow(["row_id", "prediction"])
                writer.writerows(zip(ids.tolist(), predictions.tolist(), strict=True))
