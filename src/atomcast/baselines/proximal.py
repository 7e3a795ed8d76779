"""The local Lasso problems of ADMM by a proximal gradient method, as the paper solved them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

Floats = NDArray[np.float64]


class ProximalGradient:
    """Steps of 1/L, where L is the largest curvature of a node's problem, found once for all."""

    def __init__(self, matrix: sparse.csc_array, bounds: Sequence[int]) -> None:
        self.bounds = bounds
        self.blocks = [sparse.csr_array(matrix[:, first:last]) for first, last in pairwise(bounds)]
        self.curvatures = [_curvature(block) for block in self.blocks]

    def solve(
        self, targets: Floats, weights: Floats, predictions: Floats, threshold: float, tol: float
    ) -> None:
        """Minimise 1/2 ||v_i - A_i x_i||^2 + threshold ||x_i||_1 for every node i, in place.

        From a warm start, until a step changes the prediction by no more than the tolerance,
        relative to the norm of v_i.
        """
        for i, (block, curvature) in enumerate(zip(self.blocks, self.curvatures, strict=True)):
            if not curvature:
                continue
            x, transposed = weights[self.bounds[i] : self.bounds[i + 1]], block.T
            prediction, enough = predictions[i], tol * float(np.linalg.norm(targets[i]))
            change = np.inf
            while change > enough:
                moved = x + transposed @ (targets[i] - prediction) / curvature
                x[:] = np.sign(moved) * np.maximum(np.abs(moved) - threshold / curvature, 0.0)
                before, prediction = prediction, block @ x
                change = float(np.linalg.norm(prediction - before))
            predictions[i] = prediction


def _curvature(block: sparse.csr_array) -> float:
    """The largest eigenvalue of A'A, a little rounded up; zero if there is nothing."""
    rows, columns = block.shape
    if not block.nnz:
        return 0.0
    if min(rows, columns) < 3:
        return float(np.linalg.norm(block.toarray(), 2)) ** 2
    start = np.ones(min(rows, columns))
    product = LinearOperator(block.shape, matvec=block.__matmul__, rmatvec=block.T.__matmul__)
    return 1.001 * float(svds(product, k=1, v0=start, return_singular_vectors=False)[0]) ** 2
