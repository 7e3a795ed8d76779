"""Multiple kernel learning as a problem for the solver."""

from __future__ import annotations

from functools import partial

from atomcast.atoms.view_atoms import PORTION, ViewAtoms, check_kernels
from atomcast.domains.group_ball import PER_KERNEL, KernelBall
from atomcast.known.kernels.directions import DirectionSet
from atomcast.known.kernels.view_kernels import KernelPlan
from atomcast.objectives import Objective
from atomcast.problems.problem import Problem
from atomcast.steps.batches import BoundedBatches

#: A kernel may win again and again, with a new direction each time: few at a time go furthest.
BATCHES = BoundedBatches(share=0.2, smallest=4, largest=16)


def view_problem(
    objective: Objective,
    plan: KernelPlan,
    send: str,
    cache_bytes: int,
    beta: float,
    enough: float | None = None,
    lossless: bool = True,
) -> Problem:
    """Minimise an objective of sum_k f_k(x_i) subject to sum_k ||f_k|| <= beta.

    Parameters
    ----------
    objective : Objective
        Of the values at the examples.
    plan : KernelPlan
    send : {"directions", "columns"}
        What owners broadcast of kernels that win.
    cache_bytes : int
        The memory that kernel matrices may take in each process.
    beta : float
    enough, lossless : as for `DirectionSet`
    """
    width = 1 if send == "directions" else PORTION
    return Problem(
        KernelBall(beta),
        partial(DirectionSet, objective, width, enough, lossless),
        partial(ViewAtoms, plan=plan, width=width, cache_bytes=cache_bytes),
        objective.d,
        batches=BATCHES,
        adopt=partial(DirectionSet.adopted, lossless=lossless),
        family=plan.per_column * PER_KERNEL,
        check=partial(check_kernels, plan),
    )
