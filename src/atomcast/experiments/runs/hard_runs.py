"""Runs on the hard instances of section 4.2, and the bound that holds for them.

The atoms are the columns of a d x d orthonormal matrix with two diagonal blocks, one on each of
two nodes, and d = 1/(6 eps). Every point of the simplex within eps of the optimum 1/d then has
more than 3d/4 atoms, so that more than d/4 atoms of d/2 values each must change sides.
"""

from __future__ import annotations

from math import lgamma, log
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from atomcast.data.generators import LowerBoundInstance, make_lower_bound
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.loop.callbacks import State
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.problems.problem import Problem
from atomcast.simulation.local import LocalCluster

Form = Literal["simplex", "l1"]

#: Bits that tell a real value, log2 of the paper's kappa: the significand of a float64.
BITS = 52


class HardRun(NamedTuple):
    """One run on a hard instance.

    `atoms` and `values` are those of the first iterate within eps of the optimum, `rounds` and
    `certified_values` those at which the duality gap is within eps as well. `support` is the
    number of atoms with a weight in that first iterate; `needed` is 3d/4, which it must exceed.
    """

    form: str
    step: str
    eps: float
    d: int
    distance: int
    rounds: int
    support: int
    needed: float
    atoms: int
    values: int
    certified_values: int
    bound: float
    floor: float


def hard_problem(instance: LowerBoundInstance, form: Form = "simplex") -> tuple[Problem, float]:
    """The problem of section 4.2 for an instance, and its optimum.

    "simplex" is min ||A alpha||^2 over the simplex. "l1" is its form with an l1 constraint: with
    y = A 1, ||y - A alpha||^2 = ||A alpha||^2 - 2 sum(alpha) + d is smallest on the l1 ball of
    radius 1 where alpha is on the simplex, and there it differs from the first by a constant.
    (The quotient ||A alpha||^2 / ||alpha||_1^2 in the paper has the same minimisers, but is not
    convex.)
    """
    d = instance.A.shape[1]
    if form == "simplex":
        return explicit_problem(SquaredError(np.zeros(d)), Simplex()), 1.0 / d
    return explicit_problem(SquaredError(instance.A.sum(axis=1)), L1Ball(1.0)), (d - 1.0) ** 2 / d


def ends_of_diameter(graph: Any) -> tuple[int, int, int]:
    """Two nodes of a connected graph that are farthest apart, and their distance (appendix B).

    Nodes are given by their place in the sorted order of labels, as clusters number them.
    """
    import networkx

    from atomcast.network.graphs import node_labels

    labels = node_labels(graph)
    distance = networkx.eccentricity(graph)
    first = next(label for label in labels if distance[label] == max(distance.values()))
    lengths = networkx.single_source_shortest_path_length(graph, first)
    last = next(label for label in labels if lengths[label] == distance[first])
    return labels.index(first), labels.index(last), int(distance[first])


def hard_shards(instance: LowerBoundInstance, nodes: int, ends: tuple[int, int]) -> Shards:
    """The two blocks of an instance on two of N nodes; the others hold nothing."""
    sizes = np.zeros(nodes, dtype=np.int64)
    sizes[sorted(ends)] = np.bincount(instance.owner)
    return Shards.split(sparse.csc_array(instance.A), nodes, by=sizes.tolist())


def bound_in_values(d: int, distance: int = 1) -> float:
    """Theorem 3 with its constants: real values that must travel, each of log2(kappa) = 52 bits.

    With N_D(t) = kappa^((2D-t-1)t/2) / t! the proof's T = N_{d/2}(d/2) / N_{d/2}(d/4) has
    log T = (d^2/32 - d/8) log kappa - log((d/2)! / (d/4)!), and d^2/32 = d / (192 eps).
    """
    repetitions = (lgamma(d / 2 + 1) - lgamma(d / 4 + 1)) / (BITS * log(2))
    return max(distance * (d * d / 32 - d / 8 - repetitions), 0.0)


class UntilCertified:
    """Notice the first iterate that is good enough, and stop once that is certified."""

    def __init__(self, eps: float, optimum: float) -> None:
        self.eps, self.optimum = eps, optimum
        self.support = self.atoms = self.values = 0

    def __call__(self, state: State) -> bool:
        """Stop when the duality gap is within eps."""
        active = state.replica.active
        if not self.atoms and state.objective < self.optimum + self.eps:
            self.support = int(np.count_nonzero(active.weights))
            self.atoms, self.values = len(active), state.ledger.values
        return not (self.atoms and state.gap <= self.eps)


def run(
    eps: float, step: str, form: Form = "simplex", graph: Any = None, random_state: int = 0
) -> HardRun:
    """Solve one hard instance to within eps, on two nodes or at the ends of a graph's diameter."""
    instance = make_lower_bound(eps, random_state)
    problem, optimum = hard_problem(instance, form)
    first, last, distance = (0, 1, 1) if graph is None else ends_of_diameter(graph)
    cluster = LocalCluster(2, "complete") if graph is None else LocalCluster(topology=graph)
    shards = hard_shards(instance, cluster.nodes, (first, last))
    watch = UntilCertified(eps, optimum)
    solver = Solver(step=step, tol=1e-15, max_rounds=1_000_000, callbacks=[watch])
    result = solver.solve(problem, shards, cluster)
    d = len(instance.owner)
    return HardRun(
        form, step, eps, d, distance, result.rounds, watch.support, 0.75 * d, watch.atoms,
        watch.values, result.ledger.values, bound_in_values(d, distance), distance * d * d / 8,
    )  # fmt: skip
