"""The local Lasso problems of ADMM, node after node, by coordinate descent; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger]


@njit(cache=True)
def solve_locally(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    squares: Floats,
    bounds: Ints,
    targets: Floats,
    weights: Floats,
    predictions: Floats,
    threshold: float,
    tol: float,
    max_passes: int,
) -> None:
    """Minimise 1/2 ||v_i - A_i x_i||^2 + threshold ||x_i||_1 for every node i, from a warm start.

    Passes over all coordinates alternate with passes over the nonzero ones until a pass over all
    changes nothing by more than the tolerance.

    Parameters
    ----------
    indptr, indices, data : arrays
        The columns of all nodes as CSC, those of a node side by side.
    squares : array of shape (n,)
        The squared norm of each column.
    bounds : array of shape (N + 1,)
        Where the columns of each node begin and end.
    targets : array of shape (N, d)
        The v_i.
    weights : array of shape (n,)
        Changed: where to start, then the solution.
    predictions : array of shape (N, d)
        Changed: A_i x_i of the weights.
    threshold : float
    tol : float
        Largest change of a prediction by one coordinate, relative to the norm of v_i.
    max_passes : int
    """
    for i in range(len(bounds) - 1):
        residual = targets[i] - predictions[i]
        enough = tol * np.sqrt(np.sum(targets[i] * targets[i]))
        everything = True
        for _ in range(max_passes):
            largest = 0.0
            for j in range(bounds[i], bounds[i + 1]):
                old = weights[j]
                if squares[j] == 0.0 or (old == 0.0 and not everything):
                    continue
                product = squares[j] * old
                for k in range(indptr[j], indptr[j + 1]):
                    product += data[k] * residual[indices[k]]
                new = 0.0
                if product > threshold:
                    new = (product - threshold) / squares[j]
                elif product < -threshold:
                    new = (product + threshold) / squares[j]
                if new != old:
                    for k in range(indptr[j], indptr[j + 1]):
                        residual[indices[k]] -= (new - old) * data[k]
                    weights[j] = new
                    largest = max(largest, abs(new - old) * np.sqrt(squares[j]))
            if largest <= enough:
                if everything:
                    break
                everything = True
            else:
                everything = False
        # Not targets - residual: rounding would leave something where there is nothing to send.
        predictions[i] = 0.0
        for j in range(bounds[i], bounds[i + 1]):
            if weights[j] != 0.0:
                for k in range(indptr[j], indptr[j + 1]):
                    predictions[i, indices[k]] += weights[j] * data[k]
