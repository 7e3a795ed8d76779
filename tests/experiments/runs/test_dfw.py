"""Runs of dFW for the figures: what they send once, and scores that follow the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomcast.atoms.explicit import SparseAtoms
from atomcast.data.generators import make_sparse_regression
from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.runs import dfw, real_data
from atomcast.experiments.runs.followed import FollowedAtoms
from atomcast.experiments.runs.kernel_runs import svm_problem
from atomcast.loop.solver import Solver
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.simulation.local import LocalCluster


def problems():
    dorothea = real_data.dorothea(synthetic=True, n=300)
    yield explicit_problem(SquaredError(dorothea.y), L1Ball(4.0)), dorothea.X
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 60))
    yield explicit_problem(SquaredError(X @ rng.standard_normal(60)), L1Ball(3.0)), X
    adult = real_data.adult(synthetic=True, n=150)
    yield svm_problem(adult.y, 0.1, "classic", 1e-2, 10.0), adult.X


@pytest.mark.parametrize("which", [0, 1, 2], ids=["sparse", "dense", "kernel"])
def test_sent_once_is_what_a_cluster_that_keeps_atoms_sends(which):
    problem, X = list(problems())[which]
    shards = Shards.split(X, 5, random_state=0)
    done = dfw.run(problem, shards, "classic", 1e-9, 80)
    kept = Solver("classic", tol=1e-9, max_rounds=80).solve(problem, shards, LocalCluster(5))
    for column in ("round", "objective", "values", "bytes"):
        np.testing.assert_array_equal(done.once[column], kept.trace[column])
    again = Solver("classic", tol=1e-9, max_rounds=80).solve(
        problem, shards, LocalCluster(5, resend=True)
    )
    assert done.trace["values"].tolist() == again.trace["values"].tolist()
    assert done.trace["values"][-1] > done.once["values"][-1]  # some atom has won twice


def test_a_run_ends_once_there_is_enough():
    problem, X = next(problems())
    shards = Shards.split(X, 5, random_state=0)
    done = dfw.run(problem, shards, "classic", 1e-9, 80, enough=dfw.sent_as_much(2000))
    sent = done.trace["values"]
    assert sent[-1] >= 2000 > sent[-2]
    assert len(done.spent) == len(sent)
    assert np.all(np.diff(done.spent) >= 0)


def test_a_node_that_is_alone_sends_nothing_twice():
    problem, X = next(problems())
    done = dfw.run(problem, Shards.split(X, 1), "classic", 1e-9, 5)
    assert done.once["values"].tolist() == done.trace["values"].tolist() == [0] * 6


@pytest.mark.parametrize("step", ["classic", "line-search"])
def test_scores_that_follow_the_weights_are_those_of_a_pass_over_all_data(step):
    made = make_sparse_regression(60, 300, 0.1, 0.05, random_state=0)
    beta = 0.5 * float(np.abs(made.alpha).sum())
    plain = explicit_problem(SquaredError(made.y), L1Ball(beta))
    rows, shards = made.X.tocsr(), Shards.split(made.X, 5, random_state=0)
    followed = replace(
        plain, make_atoms=lambda shard: FollowedAtoms(SparseAtoms(shard.matrix), rows)
    )
    # Weights change their signs in the first rounds of the classic step.
    ours, theirs = (dfw.run(problem, shards, step, 1e-9, 150) for problem in (followed, plain))
    assert ours.result.ledger.disclosures == theirs.result.ledger.disclosures
    np.testing.assert_allclose(ours.trace["gap"], theirs.trace["gap"], rtol=1e-9)
