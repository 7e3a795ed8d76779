"""The dual of the structured SVM as a problem for the solver."""

from __future__ import annotations

from functools import partial

from atomcast.atoms.corners import corner_atoms
from atomcast.domains.balls import SolidSimplex
from atomcast.known.corner_sums import CornerSums
from atomcast.objectives import StructuredDual
from atomcast.problems.problem import Problem
from atomcast.structures.output_model import OutputModel
from atomcast.structures.structured_examples import Outputs


def structured_problem(model: OutputModel, C: float, outputs: Outputs, cache: bool) -> Problem:
    """Minimise minus the dual over a product of simplices, one for each example.

    The image of that product is the hull of sums of corners, of which every round finds one: so
    the domain of the solver is that hull, and the origin, where all outputs are right.
    """
    return Problem(
        SolidSimplex(),
        partial(CornerSums, StructuredDual(model.d, C)),
        partial(corner_atoms, model=model, outputs=outputs, cache=cache),
        axis=0,
        summed=True,
    )
