"""Every application on every topology: the same model, whatever the way the messages take."""

import pickle

import networkx
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from atomcast import (
    GroupLasso,
    GroupLogisticRegression,
    L1AdaBoost,
    LocalCluster,
    Shards,
    SparseLogisticRegression,
)
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.domains.group_ball import GroupBall, as_groups
from atomcast.estimators.base_classifiers import stump_problem
from atomcast.objectives import LogMeanExp, Multinomial, SquaredError
from atomcast.problems.features import group_problem, multiclass_problem

GROUPS = [[0, 3], [1, 2, 4, 5], list(range(6, 30))]


def estimators():
    cancer = load_breast_cancer(return_X_y=True)
    cancer = scale(cancer[0])[::3], cancer[1][::3]
    iris = load_iris(return_X_y=True)
    return {
        "binary": (SparseLogisticRegression(3.0), *cancer),
        "multinomial": (SparseLogisticRegression(5.0), *iris),
        "groups": (GroupLasso(1.0, groups=GROUPS), cancer[0], cancer[0][:, 1] + cancer[1]),
        "group classifier": (GroupLogisticRegression(4.0, groups=GROUPS), *cancer),
        "stumps": (L1AdaBoost(0.2), *cancer),
        "matrix": (L1AdaBoost(0.2, base="matrix"), np.sign(cancer[0]), cancer[1]),
    }


CLUSTERS = {
    "plain star": LocalCluster(4, broadcast="plain"),
    "tree": LocalCluster(7, "tree"),
    "complete": LocalCluster(5, "complete"),
    "spanning tree": LocalCluster(topology=networkx.petersen_graph()),
    "flooding": LocalCluster(topology=networkx.cycle_graph(6), broadcast="flooding"),
    "resending": LocalCluster(4, resend=True),
    "isolated": LocalCluster(4, isolated=True),
}


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("name", estimators())
def test_the_model_does_not_depend_on_the_network(name, cluster):
    model, X, y = estimators()[name]
    alone = model.set_params(cluster=1).fit(X, y).result_  # without a network, batches are larger
    result = model.set_params(cluster=CLUSTERS[cluster]).fit(X, y).result_
    assert result.status == alone.status == "optimal"
    assert result.rounds == alone.rounds
    np.testing.assert_array_equal(result.atom_ids, alone.atom_ids)
    np.testing.assert_allclose(result.atom_weights, alone.atom_weights, atol=1e-8)
    np.testing.assert_array_equal(result.atom_extras, alone.atom_extras)
    assert result.ledger.values > 0


def test_problems_can_be_sent_to_other_processes():
    shards = Shards.split(np.zeros((4, 30)), 1)
    problems = [
        stump_problem(LogMeanExp([1.0, -1.0], 0.5), Simplex()),
        multiclass_problem(Multinomial([0, 1, 2]), L1Ball(1.0)),
        group_problem(SquaredError(np.ones(4)), GroupBall(1.0, as_groups(GROUPS, None, shards))),
    ]
    for problem in problems:
        copy = pickle.loads(pickle.dumps(problem))
        assert copy.d == problem.d
        assert type(copy.make_active()) is type(problem.make_active())
        assert copy.make_atoms(shards.shard(0)).n == 30
