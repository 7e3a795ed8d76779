"""The simulated network does to messages what its faults say, as often as they say."""

from __future__ import annotations

import math

import pytest

from atomcast import Faults, LocalCluster, Outage, Partition
from atomcast.network.ledger import Ledger
from atomcast.network.tree import Tree
from atomcast.simulation.log_messages import Ask, Offer
from atomcast.simulation.places import make_vertices
from atomcast.simulation.simulator import Simulator


class Listener:
    """A network whose vertices only note what arrives, and when."""

    def __init__(self, faults, nodes=3, latency=1.0, cluster=None):
        tree = (cluster or LocalCluster(nodes)).network()
        tree.prepare(Ledger(tree.nodes))
        vertices = make_vertices(tree)
        self.sent = 0
        self.simulator = Simulator(vertices, faults, latency, self.count)
        self.arrived = []
        for vertex in vertices:
            vertex.recovering = False
            vertex.on_message = self.note

    def count(self, message):
        self.sent += 1
        return 0.0

    def note(self, message):
        self.arrived.append((self.simulator.now, message))
        return []

    def send(self, *messages):
        self.simulator.send(messages)
        self.simulator.run(lambda: False, 100.0)
        return [message for _, message in self.arrived]


def questions(count):
    return [Ask(0, 3, version) for version in range(count)]


@pytest.mark.parametrize("loss", [0.1, 0.4])
def test_messages_are_lost_as_often_as_said(loss):
    listener = Listener(Faults(loss=loss, seed=3))
    arrived = listener.send(*questions(4000))
    assert listener.sent == 4000
    assert len(arrived) + listener.simulator.lost == 4000
    spread = math.sqrt(4000 * loss * (1 - loss))
    assert abs(listener.simulator.lost - 4000 * loss) < 4 * spread


def test_delays_are_exponential_on_top_of_the_latency():
    listener = Listener(Faults(delay=0.5, seed=1))
    listener.send(*questions(4000))
    waits = [time - 1.0 for time, _ in listener.arrived]
    assert min(waits) >= 0
    assert sum(waits) / 4000 == pytest.approx(0.5, rel=0.1)
    assert sum(wait > 0.5 for wait in waits) / 4000 == pytest.approx(math.exp(-1), abs=0.04)


def test_messages_come_twice_and_overtake_each_other():
    twice = Listener(Faults(duplicates=0.25, seed=1)).send(*questions(2000))
    assert len(twice) == pytest.approx(2500, abs=80)
    assert {message.version for message in twice} == set(range(2000))
    mixed = Listener(Faults(reorder=0.25, seed=1)).send(*questions(2000))
    versions = [message.version for message in mixed]
    assert sorted(versions) == list(range(2000))
    assert versions != sorted(versions)
    straight = Listener(Faults()).send(*questions(100))
    assert [message.version for message in straight] == list(range(100))


def test_a_slow_node_answers_late():
    listener = Listener(Faults(slow={1: 10.0}))
    listener.send(Offer(0, 3, 0, 1), Offer(1, 3, 0, 2), Ask(1, 3, 0))
    assert [(time, m.source) for time, m in listener.arrived] == [(1.0, 0), (1.0, 1), (10.0, 1)]


def test_no_message_crosses_a_partition_while_it_lasts():
    listener = Listener(
        Faults(partitions=[Partition((0, 1), 2, 4)]), cluster=LocalCluster(3, Tree(1))
    )
    crossing, inside = Ask(2, 1, 0), Ask(1, 0, 0)
    for clock, passes in ((1, True), (2, False), (3, False), (4, True)):
        listener.arrived.clear()
        listener.simulator.turn(clock)
        assert (crossing in listener.send(crossing)) == passes
        assert inside in listener.send(inside)


def test_the_dead_hear_nothing_and_ask_when_they_are_back():
    listener = Listener(Faults(outages=[Outage(0, 1, 3), Outage(1, 2)]))
    listener.simulator.turn(1)
    assert listener.send(Ask(3, 0, 5)) == []
    listener.simulator.turn(3)
    assert Ask(0, 3, 0) in listener.send()
    assert not any(message.source == 1 for _, message in listener.arrived)
    assert not listener.simulator.alive(1)
