"""The dual of the L2-loss kernel SVM as a problem for the solver (problem (4) of the paper)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from atomcast.atoms.kernel import LocalLabels, kernel_atoms
from atomcast.domains import Simplex
from atomcast.kernels.active_set import KernelActiveSet
from atomcast.kernels.functions import KernelSpec
from atomcast.kernels.labels import LabelCode
from atomcast.problem import Batches, Problem
from atomcast.solver import Solver

#: Points from which gamma is estimated, and with which the corrective step starts.
SAMPLE = 256
#: Half of all examples may end up in the solution, so that batches grow fast.
BATCHES = Batches(share=0.5, smallest=64, largest=2048)
#: Gaps down to this can be certified with kernel values kept in single precision.
SINGLE_PRECISION_TOL = 1e-3


def kernel_problem(
    spec: KernelSpec, code: LabelCode, labels: LocalLabels, solver: Solver, cache_bytes: int
) -> Problem:
    """Minimise alpha' K~ alpha over the simplex, where the rows of the data are the points."""
    dtype: Any = np.float32 if solver.tol >= SINGLE_PRECISION_TOL else np.float64
    batch = solver.step == "corrective" or spec.needs_sample
    return Problem(
        Simplex(),
        partial(KernelActiveSet, spec, code, cache_bytes, dtype),
        partial(kernel_atoms, labels=labels, code=code, cache_bytes=cache_bytes, dtype=dtype),
        axis=0,
        batches=BATCHES,
        sample=SAMPLE if batch else 1,
    )
