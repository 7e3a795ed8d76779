"""`atomcast predict MODEL DATA...`: apply a saved model to new data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from atomcast.commands.fit_options import Align, RowIds
from atomcast.commands.mistakes import Debug, clear_errors


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA",
            help="One file with all columns, or the parts in the order of the fit.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the predictions to a .npy or .csv file instead of printing them.",
        ),
    ] = None,
    row_ids: RowIds = None,
    align: Align = None,
    debug: Debug = False,
) -> None:
    """Predict with a saved model: a number for each row of the data."""
    with clear_errors(debug):
        import warnings

        from atomcast import load_model
        from atomcast.commands.named_files import Reading, check_output, features_for

        check_output("--out", out, (".npy", ".csv"))
        estimator = load_model(model)
        X, ids = features_for(estimator, data, Reading(row_ids, align=align))
        # Columns without names are taken in the order of the file, as the user knows.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        _write(estimator.predict(X), ids, out)


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
