"""The duals of L2-loss kernel machines as problems for the solver (problem (4) of the paper)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from atomcast.atoms.kernel import LocalLabels, kernel_atoms
from atomcast.atoms.machines import MachineAtoms
from atomcast.atoms.targets import TargetAtoms
from atomcast.domains.balls import Nonnegative, Simplex, WholeSpace
from atomcast.known.kernels.functions import SAMPLE, KernelSpec
from atomcast.known.kernels.labels import LabelCode, Machines, Targets, Unsigned
from atomcast.known.kernels.machine_set import MachineActiveSet
from atomcast.known.kernels.point_set import KernelActiveSet
from atomcast.known.kernels.storage import Storage
from atomcast.known.kernels.target_set import TargetActiveSet
from atomcast.problems.problem import Problem
from atomcast.steps.batches import Batches, BoundedBatches, GrowingBatches

if TYPE_CHECKING:
    from atomcast.loop.solver import Solver

#: The number of examples that batches are made for where nobody knows it.
USUAL_N = 4096
#: Gaps down to this can be certified with kernel values kept in single precision.
SINGLE_PRECISION_TOL = 1e-3


def batches(n: int, code: LabelCode) -> Batches:
    """How many of n examples may join in a round of the corrective step.

    Where errors are cheap (a small C), nearly every violator stays a support vector, so that
    batches may grow fast; where they are not, the worst violators of today are often none
    tomorrow. Bounds in proportion to n keep the number of rounds the same for all sizes.
    """
    share = min(max(1.0 / float(code.costs.mean()), 0.06), 1.0)
    largest = max(int((1 + share) * n) // 16, 64)
    # The objective, and with it violations, can fall several times in a round: keep many.
    return BoundedBatches(share, max(n // 64, 16), min(largest, int((1 + share) * 2048)), kept=0.1)


def machine_batches(n: int) -> Batches:
    """How many of n examples may join in a round if they serve several machines.

    There are violators of one machine or another, so that batches are large from the start.
    """
    return BoundedBatches(0.5, max(n // 16, 64), max(n // 8, 64), kept=0.1)


def target_batches(n: int) -> Batches:
    """How many of n examples may join in a round of a regression.

    Those that are known say how many stay outside the tube, whatever errors cost: with a wide tube
    few do, and with a narrow one all.
    """
    return GrowingBatches(max(n // 64, 16), n, kept=0.1)


def _sample(spec: KernelSpec, code: LabelCode, solver: Solver) -> int:
    """How many points to start with: those drawn at random are mostly sent in vain."""
    if spec.needs_sample:
        return SAMPLE
    few = 2 * code.classes if solver.thin else SAMPLE
    return few if solver.step == "corrective" else 1


def _precision(tol: float) -> Any:
    """How kernel values are kept where a problem is solved to a tolerance."""
    return np.float32 if tol >= SINGLE_PRECISION_TOL else np.float64


def kernel_problem(
    spec: KernelSpec,
    code: LabelCode,
    labels: LocalLabels,
    solver: Solver,
    cache_bytes: int,
    n: int = USUAL_N,
    machines: Machines | None = None,
) -> Problem:
    """Minimise alpha' K~ alpha over the simplex, where the rows of the data are the points.

    Parameters
    ----------
    spec, code, labels : the kernel, the classes, and the class of each point
    solver : Solver
    cache_bytes : int
    n : int
        How many points there are in all, as far as everybody knows.
    machines : Machines, optional
        Solve such a problem for each of these machines, over points that they share, instead of
        one in which classes are as the code has them.
    """
    storage, sample = Storage(cache_bytes, _precision(solver.tol)), _sample(spec, code, solver)
    numbered = spec.kernel == "precomputed"
    atoms = partial(kernel_atoms, labels=labels, storage=storage, numbered=numbered)
    if machines is not None:
        return Problem(
            Nonnegative(),
            partial(MachineActiveSet, spec, Unsigned(**vars(code)), storage, machines),
            partial(atoms, kind=MachineAtoms),
            axis=0,
            batches=machine_batches(n),
            sample=sample,
        )
    return Problem(
        Simplex(),
        partial(KernelActiveSet, spec, code, storage),
        atoms,
        axis=0,
        batches=batches(n, code),
        sample=sample,
    )


def target_problem(
    spec: KernelSpec,
    code: Targets,
    epsilon: float,
    labels: LocalLabels,
    n: int,
    cache_bytes: int,
    tol: float,
) -> Problem:
    """Minimise the dual of regression within a tube, where the rows of the data are the points.

    Parameters
    ----------
    spec, code, labels : the kernel, what errors cost, and the target of each point
    epsilon : float
        How far a prediction may be off at no cost.
    n : int
        How many points there are in all, which the gap depends on.
    cache_bytes : int
    tol : float
        To which the problem will be solved.
    """
    storage = Storage(cache_bytes, _precision(tol))
    # Nodes sum in double precision: only what is known to all can be computed anew if it must be.
    atoms = partial(kernel_atoms, labels=labels, storage=Storage(cache_bytes), kind=TargetAtoms)
    return Problem(
        WholeSpace(n),
        partial(TargetActiveSet, spec, code, storage, epsilon),
        partial(atoms, numbered=spec.kernel == "precomputed"),
        axis=0,
        batches=target_batches(n),
        sample=SAMPLE,
    )
