"""Several machines: coefficients as scikit-learn's SVC lays them out, and votes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomcast.known.kernels.labels import Machines
from atomcast.loop.result import Result

Floats = NDArray[np.float64]


def machine_coefficients(
    result: Result, machines: Machines
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
    """The ids of the support vectors, their order, their coefficients in it, and the intercepts.

    Support vectors, which come by id, stand class by class if no machine has all classes; each then
    has a coefficient for every machine in which its class has a side.
    """
    labels, (ids, place) = result.content.labels, np.divmod(result.atom_ids, machines.width)
    weights = np.zeros((len(labels), machines.width))
    used = np.zeros(result.n // machines.width, dtype=bool)
    used[ids] = True
    found = used.nonzero()[0]
    weights[np.searchsorted(found, ids), place] = result.atom_weights
    sides = machines.side[labels]
    signed, machine = weights * sides, machines.machine[labels] + 1
    sums = np.bincount(machine.ravel(), signed.ravel(), machines.count + 1)
    intercept = sums[1:].astype(np.float64)
    if (machines.side == 0.0).any():
        order = np.argsort(labels, kind="stable")
        signed, sides = signed[order], sides[order]
    else:
        order = np.arange(len(labels))
    coefficients = signed[sides != 0.0].reshape(len(order), -1)
    return found, order, np.ascontiguousarray(coefficients.T), intercept


def pair_values(kernel: NDArray[Any], dual_coef: Floats, n_support: NDArray[Any]) -> Floats:
    """What each machine says, but for its intercept, shape (n, T (T - 1) / 2).

    Parameters
    ----------
    kernel : array of shape (n, n_SV)
        Between examples and support vectors, which stand class by class.
    dual_coef : array of shape (T - 1, n_SV)
        The coefficients of a support vector in the machines of its class and each of the others.
    n_support : array of shape (T,)
    """
    classes = len(n_support)
    first, second = np.triu_indices(classes, 1)
    values = np.zeros((len(kernel), len(first)))
    for c, (start, stop) in enumerate(pairwise([0, *np.cumsum(n_support).tolist()])):
        ours = np.flatnonzero((first == c) | (second == c))
        rivals = first[ours] + second[ours] - c
        part = kernel[:, start:stop] @ dual_coef[:, start:stop].T
        values[:, ours] += part[:, rivals - (rivals > c)]
    return values


def votes(values: Floats, classes: int) -> Floats:
    """How many machines are for a class, shape (n, T); where votes tie, their margins decide.

    All margins together count less than a vote, as in scikit-learn's SVC.
    """
    first, second = np.eye(classes)[np.stack(np.triu_indices(classes, 1))]
    won, sure = values > 0, values @ (first - second)
    return won @ first + ~won @ second + sure / (3.0 * (np.abs(sure) + 1.0))
