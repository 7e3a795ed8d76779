"""The same baselines on the points of a kernel SVM, which travel with their labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from atomcast.atoms.kernel import LocalLabels
from atomcast.baselines.subsets import local_frank_wolfe, random_subsets, solve_on_subsets
from atomcast.data.shards import Shards
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.loop.solver import Solver
from atomcast.problems.examples import kernel_problem
from atomcast.simulation.local import LocalCluster

GAMMA, C = 0.3, 10.0


def make():
    """Two overlapping clouds: points, labels 0 and 1, shards, and the problem of section 3.3."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=60)
    X = rng.standard_normal((60, 3)) + 1.5 * codes[:, None]
    solver = Solver(step="line-search", tol=1e-6)
    problem = kernel_problem(
        KernelSpec("rbf", GAMMA), LabelCode(2, np.full(2, C)), LocalLabels(codes), solver, 2**20
    )
    return X, codes, Shards.split(X, 4, random_state=0), problem


def best_over(X, codes, chosen):
    """min alpha' K~ alpha over the simplex on some points, K~ = (k + 1) y y' + I/C, by CVXPY."""
    import cvxpy as cp

    sign = 2.0 * codes[chosen] - 1.0
    K = np.outer(sign, sign) * (rbf_kernel(X[chosen], gamma=GAMMA) + 1) + np.eye(len(chosen)) / C
    alpha = cp.Variable(len(chosen))
    root = np.linalg.cholesky(K).T
    task = cp.Problem(cp.Minimize(cp.sum_squares(root @ alpha)), [alpha >= 0, cp.sum(alpha) == 1])
    task.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value


@pytest.mark.parametrize("choose", [random_subsets, local_frank_wolfe])
def test_the_union_is_solved(choose):
    X, codes, shards, problem = make()
    chosen = choose(problem, shards, 6)
    owner = shards.assignment(0)
    assert all(len(ids) and np.all(owner[ids] == i) for i, ids in enumerate(chosen))
    trace, _ = solve_on_subsets(problem, shards, chosen, (3, 6), LocalCluster(4), tol=1e-6)
    for m, value in zip((3, 6), trace.objective, strict=True):
        union = np.concatenate([ids[:m] for ids in chosen])
        assert value == pytest.approx(best_over(X, codes, union), rel=1e-5)


def test_points_and_labels_are_charged():
    X, _, shards, problem = make()
    chosen = random_subsets(problem, shards, 2)
    trace, ledger = solve_on_subsets(problem, shards, chosen, (2,), LocalCluster(4))
    per_point = ledger.disclosures[0].values
    assert per_point >= X.shape[1] + 1  # the features and the label
    assert trace["values"][0] == 4 * 8 * per_point
