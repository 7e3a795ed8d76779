"""`atomcast report MODEL`: a model file as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atomcast.commands.mistakes import Debug, clear_errors


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The page to write; default: MODEL.html.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a page that shows a saved model: its fit, its atoms, and who disclosed what."""
    with clear_errors(debug):
        from atomcast.commands.inspect import described
        from atomcast.plots.page.story import Story, preparation_tables
        from atomcast.report.summary import outcome_rows
        from atomcast.saving.certificate import certificate_in
        from atomcast.saving.model_file import making_sense
        from atomcast.storage.container import read_model_file

        file = read_model_file(model)
        with making_sense(str(model)):
            content, certificate = described(file), certificate_in(file)
        if certificate is None:
            raise ValueError(f"{model} is a model that was not fitted: there is no run to report")
        atoms = content["atoms"]
        story = Story(
            title=f"{content['estimator']}: {certificate.status}",
            figures={row[0]: row[1] for row in outcome_rows({**content, "atoms": len(atoms)})},
            atoms=[(atom["atom"], atom["name"], atom["weight"]) for atom in atoms],
            disclosures=certificate.disclosures,
            told=certificate.told,
            traffic=certificate.by_kind,
            parameters=content["parameters"],
            tables=preparation_tables(content["preparation"]),
        )
        print(story.write(out or model.with_suffix(".html")))
