"""Nodes that lie or are broken: an error names them, whatever they send and wherever they run."""

from dataclasses import replace
from functools import partial

import networkx
import numpy as np
import pytest
from scipy import sparse

from atomcast import Faults, LocalCluster, Shards, Solver
from atomcast.atoms.kernel import LocalLabels
from atomcast.atoms.stumps import stump_atoms
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.domains.group_ball import GroupBall, as_groups
from atomcast.errors import FalseMessageError
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.labels import LabelCode
from atomcast.known.kernels.view_kernels import KernelPlan, ViewKernel
from atomcast.messages.atom import least_rounding, rounding
from atomcast.objectives import LogMeanExp, Multinomial, SquaredError
from atomcast.problems.examples import kernel_problem
from atomcast.problems.features import explicit_problem, group_problem, multiclass_problem
from atomcast.problems.problem import Problem
from atomcast.problems.views import view_problem
from liars import LIES, Liar, lying
from problems import regression

NODES = 3


def data(seed=0, d=24, n=18):
    """A problem in which the last node holds the best atoms."""
    X, _ = regression(seed, d, n)
    rng = np.random.default_rng(seed)
    return X, X[:, -3:] @ np.array([3.0, -2.0, 1.0]) + 0.1 * rng.standard_normal(d)


def split(X):
    return Shards.split(X, NODES, by="contiguous")


def columns(X, y, storage=np.asarray):
    return explicit_problem(SquaredError(y), L1Ball(4.0)), split(storage(X))


def groups(X, y):
    shards = split(X)
    found = as_groups([[2 * k, 2 * k + 1] for k in range(X.shape[1] // 2)], None, shards)
    return group_problem(SquaredError(y), GroupBall(4.0, found)), shards


def classes(X, y):
    numbers = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return multiclass_problem(Multinomial(numbers), L1Ball(4.0)), split(X)


def stumps(X, y):
    objective = LogMeanExp(np.where(X[:, -1] > 0, 1.0, -1.0), 0.2)
    problem = Problem(Simplex(), partial(ExplicitActiveSet, objective), stump_atoms, objective.d)
    return problem, split(X)


def votes(X, y):
    objective = LogMeanExp(np.where(X[:, -1] > 0, 1.0, -1.0), 0.2)
    return explicit_problem(objective, Simplex()), split(np.sign(X))


def points(X, y, dtype=np.float64):
    labels = (y > np.median(y)).astype(np.uint8)
    solver = Solver(step="line-search")
    spec, code = KernelSpec(gamma=0.1), LabelCode(2, np.full(2, 10.0))
    problem = kernel_problem(spec, code, LocalLabels(labels), solver, 1 << 24, len(y))
    return problem, split(X.astype(dtype))


def kernels(X, y, send="directions"):
    views = tuple(np.array([2 * k, 2 * k + 1]) for k in range(X.shape[1] // 2))
    own = (ViewKernel(KernelSpec("linear")), ViewKernel(KernelSpec(gamma=0.1)))
    plan = KernelPlan(views, (own,) * len(views), tuple(f"view {k}" for k in range(len(views))))
    return view_problem(SquaredError(y), plan, send, 1 << 24, 4.0), split(X)


KINDS = {
    "columns": columns,
    "float32 columns": partial(columns, storage=lambda X: X.astype(np.float32)),
    "sparse columns": partial(columns, storage=sparse.csc_array),
    "groups": groups,
    "kernels": kernels,
    "classes": classes,
    "stumps": stumps,
    "votes": votes,
    "points": points,
}


def run(kind, lie, cluster=None, **how):
    X, y = data()
    problem, shards = KINDS[kind](X, y)
    last = shards.count(problem.axis) - 1
    if lie is not None:
        problem = lying(problem, lie, y, last)
    solver = Solver(**{"max_rounds": 12, "tol": 1e-6, **how})
    return solver.solve(problem, shards, cluster or LocalCluster(NODES, isolated=True))


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", ["classic", "corrective"])
def test_the_error_names_the_node(kind, lie, step):
    if kind == "votes" and lie == "target":
        pytest.skip("the target is what votes look like")
    with pytest.raises(FalseMessageError, match=f"node {NODES - 1} "):
        run(kind, lie, step=step)


CLUSTERS = {
    "together": lambda: LocalCluster(NODES),
    "tree": lambda: LocalCluster(NODES, "tree", isolated=True),
    "complete": lambda: LocalCluster(NODES, "complete", isolated=True),
    "flooding": lambda: LocalCluster(
        topology=networkx.path_graph(NODES), broadcast="flooding", isolated=True
    ),
    "plain": lambda: LocalCluster(NODES, broadcast="plain", isolated=True),
    "log": lambda: LocalCluster(NODES, faults=Faults(loss=0.1, seed=1), isolated=True),
    "asynchronous": lambda: LocalCluster(NODES, asynchronous=True, compute=1e-3),
    "uneven": lambda: LocalCluster(
        NODES, asynchronous=True, compute=1e-3, faults=Faults(slow={0: 7.0})
    ),
    "drifting": lambda: LocalCluster(
        NODES, faults=Faults(loss=0.1, seed=1), recovery="none", isolated=True
    ),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_on_every_cluster(cluster, lie):
    if cluster == "drifting" and lie in ("another", "million", "target"):
        pytest.skip("without a common iterate, nobody can tell what a score is about")
    X, y = data()
    problem, shards = columns(X, y)
    # Where nodes share a matrix, they lie together.
    blamed = r"\d" if cluster == "together" else str(NODES - 1)
    with pytest.raises(FalseMessageError, match=f"node {blamed} "):
        Solver(max_rounds=12, tol=1e-6).solve(
            lying(problem, lie, y, X.shape[1] - 1), shards, CLUSTERS[cluster]()
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cluster", ["asynchronous", "uneven", "log"])
def test_an_old_score_is_compared_with_an_old_iterate(kind, cluster):
    result = run(kind, None, CLUSTERS[cluster](), max_rounds=60, tol=1e-3)
    assert result.status == "optimal"


def test_a_lie_about_an_atom_that_is_known_already():
    """Where an atom wins again, its id is all that is sent: what is said of it must be true."""
    X, y = data()
    problem, shards = columns(X, y)

    class Exaggerating(Liar):
        def scores(self, replica):
            known = np.isin(np.arange(12, 18), replica.active.ids)
            return np.where(known, 1.5, 1.0) * self.honest.scores(replica)

    def atoms(shard):
        honest = problem.make_atoms(shard)
        return Exaggerating(honest, "", y) if 17 in shard.ids else honest

    with pytest.raises(FalseMessageError, match=r"node 2 said that atom \d+ has the score"):
        Solver(step="classic").solve(
            replace(problem, make_atoms=atoms), shards, LocalCluster(NODES, isolated=True)
        )


@pytest.mark.parametrize("seed", range(20))
def test_what_a_score_alone_allows_is_never_more_than_lengths_do(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 200))
    gradient = rng.standard_normal(d) * 10.0 ** rng.uniform(-8, 8)
    for atom in (rng.standard_normal(d), gradient, -1e3 * gradient):  # along it, both are equal
        allowed = rounding(float(np.linalg.norm(atom)), gradient)
        assert least_rounding(float(atom @ gradient), d) <= allowed * (1 + 1e-12)
