"""`atomcast export MODEL`: a model file as ONNX, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atomcast.commands.mistakes import Debug, clear_errors


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; default: MODEL.onnx.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a saved linear model, or one of stumps, as ONNX, which other programs read."""
    with clear_errors(debug):
        from atomcast import load_model
        from atomcast.commands.named_files import check_output
        from atomcast.saving.onnx_file import save_onnx

        out = out or model.with_suffix(".onnx")
        check_output("--out", out, (".onnx",))
        save_onnx(load_model(model), out)
        print(out)
