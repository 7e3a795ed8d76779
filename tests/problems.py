"""Problems and independent answers that many tests share.

The references here know nothing of atomcast: a plain NumPy Frank-Wolfe, and CVXPY with the solver
and its tolerances named.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster

STEPS = ("classic", "line-search", "away", "pairwise", "blended-pairwise", "corrective")
DOMAINS = ("l1", "simplex")


def make_domain(name, beta=1.0):
    return L1Ball(beta) if name == "l1" else Simplex()


def regression(seed=0, d=20, n=30, support=5, noise=0.5):
    """A dense regression problem with a sparse truth: X of shape (d, n), y of shape (d,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    truth = np.zeros(n)
    chosen = rng.choice(n, size=min(support, n), replace=False)
    truth[chosen] = rng.standard_normal(len(chosen))
    return X, X @ truth + noise * rng.standard_normal(d)


def mixture(seed=0, d=20, n=30, support=5, noise=0.1):
    """A dense problem whose target lies near a mixture of a few columns: one for the simplex."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    truth = np.zeros(n)
    truth[rng.choice(n, size=min(support, n), replace=False)] = 1.0 / min(support, n)
    return X, X @ truth + noise * rng.standard_normal(d)


def dense_problem(domain, seed=0, d=20, n=30):
    """A dense problem that is not trivial on the named domain."""
    return regression(seed, d, n) if domain == "l1" else mixture(seed, d, n)


def sparse_regression(seed=0, d=200, n=300, density=0.05, noise=0.1):
    """A sparse regression problem (CSC, sorted) with some empty columns."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((d, n), density=density, format="csc", rng=rng)
    X.data = rng.standard_normal(len(X.data))
    truth = np.where(rng.random(n) < 0.1, rng.standard_normal(n), 0.0)
    return X, X @ truth + noise * rng.standard_normal(d)


def solve(X, y, domain, *, nodes=1, by="random", seed=0, fit_intercept=False, cluster=None, **how):
    """Run the solver on an explicit least-squares problem; `how` goes to `Solver`."""
    problem = explicit_problem(SquaredError(y, fit_intercept), domain)
    shards = X if isinstance(X, Shards) else Shards.split(X, nodes, by=by, random_state=seed)
    cluster = LocalCluster(shards.nodes) if cluster is None else cluster
    return Solver(**how).solve(problem, shards, cluster)


def iterates(X, y, domain, **how):
    """Run the solver and also return, for every round, the weights (n,), objective and gap."""
    seen = []

    def watch(state):
        weights = np.zeros(X.shape[1])
        weights[state.replica.active.ids] = state.replica.active.weights
        seen.append((weights, state.objective, state.gap))

    return solve(X, y, domain, callbacks=[watch], **how), seen


def frank_wolfe(X, y, domain, rounds, exact):
    """Frank-Wolfe for ||y - Xw||^2, Algorithm 1, in plain NumPy: the iterates w_0, w_1, ..."""
    w, path = np.zeros(X.shape[1]), []
    for k in range(rounds):
        path.append(w.copy())
        gradient = 2 * X.T @ (X @ w - y)
        j = np.argmax(-gradient if domain == "simplex" else abs(gradient))
        vertex = np.zeros_like(w)
        vertex[j] = 1.0 if domain == "simplex" else -BETA * np.sign(gradient[j])
        direction = X @ (vertex - w)
        step = np.clip(direction @ (y - X @ w) / max(direction @ direction, 1e-300), 0, 1)
        w = w + (step if exact and (k or domain == "l1") else 2 / (k + 2)) * (vertex - w)
    return [*path, w]


#: The radius that `frank_wolfe` uses for the l1 ball.
BETA = 1.7


def optimum(X, y, domain, fit_intercept=False):
    """min ||y - Xw - b||^2 over the domain, and w, by CVXPY with Clarabel at tight tolerances.

    The data is scaled to a target of norm one first, for the solver's tolerances are absolute.
    """
    import cvxpy as cp  # slow to import, and most tests need it not

    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if fit_intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    unit = float(np.linalg.norm(y)) or 1.0
    w = cp.Variable(X.shape[1])
    if isinstance(domain, L1Ball):
        A, limits = X * (domain.beta / unit), [cp.norm1(w) <= 1]
    else:
        A, limits = X / unit, [w >= 0, cp.sum(w) == 1]
    task = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - y / unit)), limits)
    task.solve(
        solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-12, tol_feas=1e-12, max_iter=500
    )
    weights = np.asarray(w.value)
    if isinstance(domain, L1Ball):
        weights = weights / max(1.0, np.abs(weights).sum()) * domain.beta
    else:
        weights = np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum()
    # The value of a feasible point: never below the true optimum, whatever the solver rounds.
    return float(np.sum((y - X @ weights) ** 2)), weights
