"""The coordinator of asynchronous runs, without any engine."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast.cluster.coordinator import Answer, Coordinator
from atomcast.domains.balls import L1Ball
from atomcast.loop.replica import Replica, Tolerance
from atomcast.messages.proposals import Proposals, Request
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.steps import STEPS
from problems import regression

REQUEST = Request(count=8, threshold=1.0, known_too=False)


@pytest.fixture
def replica():
    _, y = regression(0)
    return Replica(
        explicit_problem(SquaredError(y), L1Ball(1.0)), STEPS["corrective"]("auto"), Tolerance(0.1)
    )


def answer(node, version, merits=(), task="scan", best=5.0, nodes=4, checkable=True):
    merit, bests = np.array(merits, dtype=float), np.full(nodes, -np.inf)
    bests[node] = best
    ids = 100 * node + np.arange(len(merit))
    owner = np.full(len(merit), node)
    return Answer(node, version, task, Proposals(owner, ids, -merit, merit, bests), checkable)


def test_everybody_scans_the_first_version(replica):
    coordinator = Coordinator(4, staleness=2)
    assert coordinator.tasks(0, REQUEST) == [(node, "scan") for node in range(4)]
    assert coordinator.tasks(0, REQUEST) == []  # they are busy


def test_a_few_nodes_fill_their_share_of_a_batch(replica):
    coordinator = Coordinator(4, staleness=2)
    coordinator.tasks(0, REQUEST)
    coordinator.hear(answer(2, 0, merits=[9, 8, 7, 6, 0.5]), replica, REQUEST)
    agreement = coordinator.agreement(replica, REQUEST)
    assert not agreement.complete
    assert agreement.id.tolist() == [200, 201]  # 8 / 4
    assert agreement.best == 9.0
    assert coordinator.agreement(replica, REQUEST) is None  # nothing has come since


def test_nothing_is_certified_before_all_have_scanned_the_same_version(replica):
    coordinator = Coordinator(4, staleness=2)
    replica.round = 1
    for node in range(4):
        coordinator.hear(answer(node, 0, best=2.0), replica, REQUEST)
    for node in range(4):
        assert coordinator.agreement(replica, REQUEST) is None
        coordinator.hear(answer(node, 1, best=float(node)), replica, REQUEST)
    agreement = coordinator.agreement(replica, REQUEST)
    assert agreement.complete
    assert agreement.best == 3.0
    assert len(agreement.id) == 0


def test_a_check_certifies_nothing(replica):
    coordinator = Coordinator(2, staleness=2)
    coordinator.hear(answer(0, 0, nodes=2), replica, REQUEST)
    coordinator.hear(answer(1, 0, task="check", nodes=2), replica, REQUEST)
    assert coordinator.agreement(replica, REQUEST) is None


def test_a_stale_answer_is_checked_before_it_counts(replica):
    coordinator = Coordinator(4, staleness=2)
    coordinator.tasks(0, REQUEST)
    replica.round = 3
    coordinator.hear(answer(1, 0, merits=[9, 8]), replica, REQUEST)
    assert coordinator.agreement(replica, REQUEST) is None
    assert coordinator.tasks(3, REQUEST) == [(1, "check")]
    coordinator.hear(answer(1, 3, merits=[4, 3], task="check"), replica, REQUEST)
    agreement = coordinator.agreement(replica, REQUEST)
    assert agreement.id.tolist() == [100, 101]  # who is heard rarely may fill a batch
    replica.round = 4
    assert coordinator.tasks(4, REQUEST) == [(1, "check")]  # as long as that is of use
    coordinator.hear(answer(1, 4, task="check"), replica, REQUEST)
    assert coordinator.tasks(4, REQUEST) == [(1, "scan")]


def test_a_node_without_a_shortlist_scans_again(replica):
    coordinator = Coordinator(4, staleness=0)
    coordinator.tasks(0, REQUEST)
    replica.round = 1
    coordinator.hear(answer(1, 0, merits=[9], checkable=False), replica, REQUEST)
    assert coordinator.tasks(1, REQUEST) == [(1, "scan")]


def test_the_closing_round_waits_for_everybody(replica):
    coordinator = Coordinator(2, staleness=2)
    closing = Request(count=1, complete=True)
    coordinator.hear(answer(0, 0, merits=[9], nodes=2), replica, closing)
    assert coordinator.agreement(replica, closing) is None
    coordinator.hear(answer(1, 0, merits=[8], best=8.0, nodes=2), replica, closing)
    agreement = coordinator.agreement(replica, closing)
    assert agreement.complete
    assert agreement.best == 8.0


def test_the_closing_round_takes_no_check_for_an_answer(replica):
    coordinator = Coordinator(2, staleness=0)
    coordinator.tasks(0, REQUEST)
    replica.round = 1
    coordinator.hear(answer(1, 0, merits=[9], nodes=2), replica, REQUEST)
    assert coordinator.tasks(1, Request(count=1, complete=True)) == [(1, "scan")]
