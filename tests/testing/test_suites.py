"""The public suites: our own parts pass them, and parts that break a promise do not."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from atomcast import LocalCluster, Shards
from atomcast.atoms.explicit import DenseAtoms
from atomcast.atoms.stumps import family_size, stump_atoms
from atomcast.domains import Domain, GroupBall, L1Ball, Simplex, SolidSimplex
from atomcast.domains.group_ball import PER_KERNEL, Groups, KernelBall
from atomcast.experiments.runs.kernel_runs import svm_problem
from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.kernels.functions import KernelSpec
from atomcast.known.kernels.view_kernels import KernelPlan, ViewKernel
from atomcast.objectives import (
    Logistic,
    LogMeanExp,
    Multinomial,
    SquaredError,
    SquaredHingeLoss,
    StructuredDual,
)
from atomcast.problems.features import explicit_problem, group_problem, multiclass_problem
from atomcast.problems.problem import Problem
from atomcast.problems.views import view_problem
from atomcast.simulation.local_session import LocalSession
from atomcast.steps import STEPS, Step
from atomcast.steps.classic import LineSearch
from atomcast.steps.step import winner_vertex
from atomcast.testing import (
    check_atoms,
    check_cluster,
    check_domain,
    check_objective,
    check_step,
)
from problems import regression

RNG = np.random.default_rng(0)
LABELS = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
TARGET = RNG.standard_normal(7)
MEMBERSHIP = np.array([0, 0, 1, 1, 1, 2, 3, 3])
VIEWS = KernelPlan(
    (np.arange(5), np.arange(5, 8)),
    ((ViewKernel(KernelSpec("linear")), ViewKernel(KernelSpec())),) * 2,
    ("left", "right"),
)
SENT = ("directions", "columns")
GROUPS = Groups(MEMBERSHIP, np.array([1.0, 2.0, 0.5, 1.5]), np.array([0, 2, 5, 6]))


@pytest.mark.parametrize(
    "objective",
    [
        SquaredError(TARGET),
        StructuredDual(5, 0.7),
        SquaredError(TARGET, True),
        Logistic(LABELS),
        Logistic(LABELS, True, np.arange(1.0, 8.0)),
        LogMeanExp(LABELS, 0.5),
        Multinomial([0, 1, 2, 0, 1, 2, 2], True),
        SquaredHingeLoss().bind(LABELS),
        SquaredHingeLoss(fit_intercept=False).bind(LABELS),
    ],
    ids=lambda objective: type(objective).__name__,
)
def test_our_objectives(objective):
    shape = (7, 3) if isinstance(objective, Multinomial) else None
    check_objective(objective, shape)


class Spoilt(SquaredError):  # noqa: N818  # an error to be minimised
    """An objective with something wrong."""

    def __init__(self, wrong):
        super().__init__(TARGET)
        setattr(self, *wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("gradient", lambda z: z - TARGET), "gradient must be that of the value"),
        (("lower_bound", 5000.0), "is above a value"),
        (("line_search", lambda z, direction, top: 0.5 * top), "must find the best step"),
        (("value", lambda z: -float((z - TARGET) @ (z - TARGET))), "lower_bound|convex"),
        (("curvature", lambda z: Logistic(LABELS).curvature(z)), "curvature must be that of"),
    ],
)
def test_objectives_that_break_a_promise(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_objective(Spoilt(wrong))


@pytest.mark.parametrize(
    "domain", [L1Ball(2.5), Simplex(), SolidSimplex(), L1Ball(1e-3), L1Ball(1e4)]
)
def test_our_domains(domain):
    check_domain(domain)


def test_the_ball_of_groups():
    check_domain(GroupBall(1.7, GROUPS), ids=GROUPS.leaders[GROUPS.labels])
    check_domain(
        KernelBall(1.7), ids=PER_KERNEL * np.array([2, 0, 1, 2, 0, 2, 2, 1]) + np.arange(8)
    )


@dataclass(frozen=True)
class Wrong(L1Ball):
    """The l1 ball with something wrong."""

    part: str = ""

    def signs(self, scores):
        return -super().signs(scores) if self.part == "signs" else super().signs(scores)

    def gap(self, inner, best):
        return (0.5 if self.part == "gap" else 1.0) * super().gap(inner, best)

    def project(self, ids, weights):
        if self.part == "project":
            return weights / max(1.0, np.abs(weights).sum() / self.beta)
        return super().project(ids, weights)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("signs", "the merit of an atom must be minus the linear cost"),
        ("gap", "the largest linear decrease"),
        ("project", "nearest point"),
    ],
)
def test_domains_that_break_a_promise(part, message):
    check_domain(Wrong(2.0))
    with pytest.raises(AssertionError, match=message):
        check_domain(Wrong(2.0, part))


X, Y = regression(4, d=20, n=8)


def stumps(y):
    objective = LogMeanExp(y, 0.5)
    make, family = partial(ExplicitActiveSet, objective), family_size(objective.d)
    return Problem(Simplex(), make, stump_atoms, objective.d, family=family)


@pytest.mark.parametrize(
    ("problem", "data"),
    [
        (explicit_problem(SquaredError(Y, True), L1Ball(2.0)), X),
        (explicit_problem(SquaredError(Y), Simplex()), sparse.csc_array(np.where(X > 0, X, 0.0))),
        (group_problem(SquaredError(Y), GroupBall(2.0, GROUPS)), X),
        (multiclass_problem(Multinomial(np.arange(20) % 3, True), L1Ball(2.0)), X),
        (stumps(np.where(Y > 0, 1.0, -1.0)), X),
        *((view_problem(SquaredError(Y), VIEWS, send, 1 << 20, 2.0), X) for send in SENT),
        (svm_problem(np.arange(8) % 2, 0.5, "classic", 1e-6), X.T),
    ],
    ids=["dense", "sparse", "groups", "classes", "stumps", "directions", "kernels", "points"],
)
def test_our_atoms(problem, data):
    check_atoms(problem, Shards.split(data, 2, by=[5, 3]))


class Doubled(DenseAtoms):
    """Atoms that do not have the scores they state."""

    def scores(self, replica):
        return 2.0 * super().scores(replica)


class Shuffled(DenseAtoms):
    """Atoms that are handed out in another order than they are scored in."""

    def atom(self, j, id):
        return super().atom((j + 1) % self.n, id)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Doubled, "some of the atoms must have the scores"),
        (Shuffled, "scores must be those of the atoms handed out"),
    ],
)
def test_atoms_that_break_a_promise(kind, message):
    objective = SquaredError(Y)
    make = partial(ExplicitActiveSet, objective)
    problem = Problem(L1Ball(2.0), make, lambda shard: kind(shard.matrix), objective.d)
    with pytest.raises(AssertionError, match=message):
        check_atoms(problem, Shards.split(X, 2, by="contiguous"))


#: Steps that need another problem, or that end within the tolerance and no nearer.
SPECIAL = ("block-coordinate", "compound")


@pytest.mark.parametrize("step", [name for name in STEPS if name not in SPECIAL])
def test_our_steps(step):
    check_step(step)


class Overshooting(LineSearch):
    def advance(self, replica, agreement):
        super().advance(replica, agreement)
        replica.active.set_weights(1.01 * replica.active.weights)


class Forgetful(Step):
    """What it carries from round to round is nowhere in its memory."""

    def __init__(self):
        self.calls = 0

    def advance(self, replica, agreement):
        self.calls += 1
        toward = winner_vertex(replica, agreement)
        replica.active.move(toward - replica.active.weights, 1.0 / self.calls)


class Idle(Step):
    def advance(self, replica, agreement):
        pass


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Overshooting, "must belong to"),
        (Forgetful, r"must be in its memory\(\)"),
        (Idle, "must make progress"),
    ],
)
def test_steps_that_break_a_promise(step, message):
    with pytest.raises(AssertionError, match=message):
        check_step(step)


@pytest.mark.parametrize(
    "cluster",
    [LocalCluster(1), LocalCluster(3), LocalCluster(4, isolated=True), LocalCluster(4, "complete")],
    ids=repr,
)
def test_our_clusters(cluster):
    check_cluster(cluster)


def test_clusters_that_break_a_promise():
    class Forgetting(LocalCluster):
        """A cluster that forgets to enter what was sent."""

        def open(self, problem, shards):
            session = LocalSession(self, problem, shards)
            session.ledger.disclose = lambda *told: None
            return session

    with pytest.raises(AssertionError, match="which atom left which node"):
        check_cluster(Forgetting(2))
    with pytest.raises(AssertionError, match="no Cluster"):
        check_cluster(3)
    with pytest.raises(AssertionError, match="no Domain"):
        check_domain("ball")
    assert issubclass(L1Ball, Domain)
