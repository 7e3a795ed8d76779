"""What a round takes in atoms, beside plain sums, and batches that follow from it."""

import numpy as np
import pytest

from atomcast import Lasso, LocalCluster, Solver
from atomcast.messages.atom import Atom
from atomcast.network.prices import Prices
from atomcast.network.wire import codec as wire
from problems import regression

LATENCY, BANDWIDTH, N = 1e-2, 1e5, 10


def atom(d=200):
    return Atom(0, d, np.random.default_rng(0).standard_normal(d))


def test_a_star_by_the_formula():
    network = LocalCluster(N, latency=LATENCY, bandwidth=BANDWIDTH).network()
    prices = Prices(network, 10**9)
    assert prices.round_in_atoms() == pytest.approx(1.0, abs=1e-3)  # what is so large
    prices.saw([atom(), atom()])
    size = wire.encoded_size(atom()) / BANDWIDTH
    # Four hops; up and down a score and an index; and an atom up and down, of which every
    # further one of another node adds one way.
    messages = 4 * LATENCY + (2 + 2) * 8 / BANDWIDTH
    expected = (messages + size) / size
    assert prices.round_in_atoms() == pytest.approx(expected, rel=1e-3)
    assert not network.links.clock.any()  # it was a rehearsal


def test_atoms_that_take_no_time_have_no_price():
    X, y = regression(seed=0, d=60, n=600, support=20)
    plain, slow = (Lasso(8.0, cluster=LocalCluster(N, latency=s)).fit(X, y) for s in (0.0, 9.0))
    assert plain.result_.ledger.disclosures == slow.result_.ledger.disclosures


def run(latency, **how):
    X, y = regression(seed=0, d=60, n=600, support=20)
    cluster = LocalCluster(N, latency=latency, bandwidth=1e5)
    return Lasso(8.0, cluster=cluster, solver=Solver(**how)).fit(X, y).result_


@pytest.mark.parametrize("thin", [False, True])
def test_the_slower_messages_are_the_fewer_rounds_there_are(thin):
    slow, fast = run(10.0, thin=thin), run(1e-4, thin=thin)
    assert slow.rounds < fast.rounds
    assert slow.ledger.values > fast.ledger.values
    assert slow.objective == pytest.approx(fast.objective, rel=2e-4)
    assert slow.status == fast.status == "optimal"


def test_the_whole_takes_about_as_long_as_with_the_best_of_fixed_batches():
    for latency in (1e-3, 1.0):
        fixed = [run(latency, atoms_per_round=b).ledger.seconds for b in (1, 3, 10, 30, 100)]
        assert run(latency).ledger.seconds <= 1.5 * min(fixed)
