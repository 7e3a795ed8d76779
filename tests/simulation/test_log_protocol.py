"""The machines of the log protocol under any schedule: messages in any order, lost, repeated."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from atomcast import LocalCluster
from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Agreement
from atomcast.network.ledger import Ledger
from atomcast.network.tree import Tree
from atomcast.simulation.log_messages import Deliver, LogEntry, MissedEntries, News, Offer
from atomcast.simulation.places import make_vertices
from atomcast.simulation.vertex import CHUNK, Root

NETWORKS = {
    "star": lambda: LocalCluster(3),
    "two": lambda: LocalCluster(2, "tree"),
    "path": lambda: LocalCluster(4, Tree(1)),
    "tree": lambda: LocalCluster(6, "tree"),
    "cycle": lambda: LocalCluster(topology=nx.cycle_graph(5)),
}


def agreement(owner, id):
    return Agreement(1.0, np.array([owner]), np.array([id]), np.array([1.0]))


class LogProtocol(RuleBasedStateMachine):
    """Hypothesis is the network: it chooses what arrives, when, how often, and who dies."""

    @initialize(name=st.sampled_from(sorted(NETWORKS)))
    def begin(self, name):
        tree = NETWORKS[name]().network()
        tree.prepare(Ledger(tree.nodes))
        self.nodes = tree.nodes
        self.vertices = make_vertices(tree)
        (self.root,) = [v for v in self.vertices if isinstance(v, Root)]
        self.flying, self.dead = [], set()
        self.truth: list[LogEntry] = []
        self.pending = None
        #: What a vertex really has of the atoms of others, and how far it has ever come.
        self.has = [set() for _ in self.vertices]
        self.reached = [0 for _ in self.vertices]
        for vertex in self.vertices:
            self.post(vertex.start())

    # -- what happens ------------------------------------------------------------------------

    def post(self, messages):
        for message in messages:
            source = self.vertices[message.source]
            if isinstance(message, Offer):
                self.check_offer(message, source)
            if isinstance(message, News):
                self.check_has(message.source, message.entry, message.carried)
            if isinstance(message, MissedEntries):
                for entry in message.entries:
                    others = [a.id for a, o in self.pairs(entry) if o != message.target]
                    self.check_has(message.source, entry, others)
            if isinstance(message, Deliver) and message.owner != message.source:
                assert set(message.ids) <= self.has[message.source]
            self.flying.append(message)

    def arrive(self, message):
        target = message.target
        if target in self.dead:
            return
        if isinstance(message, News):
            self.has[target] |= set(message.carried)
        if isinstance(message, MissedEntries):
            for entry in message.entries:
                self.has[target] |= {a.id for a, o in self.pairs(entry) if o != target}
        if isinstance(message, Deliver):
            self.has[target] |= set(message.ids)
        out = self.vertices[target].on_message(message)
        self.reached[target] = max(self.reached[target], self.vertices[target].version)
        self.post(out)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def deliver(self, data):
        self.arrive(self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1))))

    @precondition(lambda self: self.flying)
    @rule()
    def deliver_all_in_order(self):
        now, self.flying = self.flying, []
        for message in now:
            self.arrive(message)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def drop(self, data):
        self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def duplicate(self, data):
        self.arrive(data.draw(st.sampled_from(self.flying)))

    @rule(data=st.data())
    def time_out(self, data):
        self.tick(data.draw(st.sampled_from(self.vertices)))

    def tick(self, vertex):
        if vertex.waiting and vertex.place.number not in self.dead:
            self.post(vertex.on_timeout())

    @rule(data=st.data())
    def crash(self, data):
        self.dead.add(data.draw(st.sampled_from(self.mortal())))

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def come_back(self, data):
        self.revive(data.draw(st.sampled_from(sorted(self.dead))))

    @rule(data=st.data())
    def lose_the_memory(self, data):
        self.revive(data.draw(st.sampled_from(self.mortal())))

    def revive(self, number):
        self.dead.discard(number)
        self.has[number] = set()
        self.post(self.vertices[number].restart())

    def mortal(self):
        return [i for i in range(self.nodes) if i != self.root.place.number]

    @precondition(lambda self: self.pending is None and self.root.heard and not self.root.idle)
    @rule(data=st.data(), new=st.booleans())
    def agree(self, data, new):
        heard = [i for i in range(self.nodes) if self.root.heard >> i & 1]
        owner = data.draw(st.sampled_from(heard))
        id = 10 * len(self.truth) + owner
        self.pending = owner, id, new
        self.post(self.root.fetch([(owner, id)] if new else []))

    @precondition(lambda self: self.pending is not None and not self.root.missing)
    @rule()
    def append(self):
        (owner, id, new), self.pending = self.pending, None
        atoms = (Atom(id, 1, np.ones(1)),) if new else ()
        owners = (owner,) if new else ()
        self.write(LogEntry(len(self.truth), 0, agreement(owner, id), atoms, owners))

    @precondition(lambda self: self.pending is None and self.root.heard and not self.root.idle)
    @rule()
    def end_and_begin_again(self):
        self.write(LogEntry(len(self.truth), 0, agreement(0, 0), final=True))
        for vertex in self.vertices:
            out = vertex.start()
            self.post(out if vertex.place.number not in self.dead else [])

    def write(self, entry):
        self.truth.append(entry)
        self.post(self.root.append(entry))
        self.reached[self.root.place.number] = len(self.truth)

    # -- what must hold ----------------------------------------------------------------------

    @staticmethod
    def pairs(entry):
        return zip(entry.atoms, entry.owners, strict=True)

    def check_has(self, source, entry, ids):
        """Nobody sends an atom that it does not have."""
        for atom, owner in self.pairs(entry):
            assert atom.id not in ids or owner == source or atom.id in self.has[source]

    def check_offer(self, offer, source):
        """Only vertices at the newest version they know of propose, for nodes that got there."""
        assert offer.version == source.version
        assert not source.behind
        for i in range(self.nodes):
            if offer.heard >> i & 1:
                assert self.reached[i] >= offer.version

    @invariant()
    def every_log_is_a_prefix_of_the_same_log(self):
        for vertex in getattr(self, "vertices", []):
            assert len(vertex.log) <= len(self.truth)
            assert all(a is b for a, b in zip(vertex.log, self.truth, strict=False))

    @invariant()
    def no_atom_is_applied_twice_or_lost(self):
        for vertex in getattr(self, "vertices", []):
            applied = [(a.id, o) for entry in vertex.log for a, o in self.pairs(entry)]
            assert len(set(applied)) == len(applied)
            number = vertex.place.number
            if number not in self.dead:
                assert all(o == number or id in self.has[number] for id, o in applied)

    @invariant()
    def whom_the_root_has_heard_was_at_the_head(self):
        root = getattr(self, "root", None)
        if root is not None:
            for i in range(self.nodes):
                assert not root.heard >> i & 1 or self.reached[i] >= root.version

    def teardown(self):
        """Once the faults end, everybody gets to the head of the log and is heard there."""
        if not hasattr(self, "vertices"):
            return
        for number in sorted(self.dead):
            self.revive(number)
        for _ in range(12 * len(self.vertices)):
            while self.flying:
                self.arrive(self.flying.pop(0))
            for vertex in self.vertices:
                self.tick(vertex)
        assert not self.flying
        assert not self.root.missing
        assert self.root.heard == self.root.everyone == (1 << self.nodes) - 1
        assert all(vertex.version == len(self.truth) for vertex in self.vertices)


LogProtocol.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
TestLogProtocol = LogProtocol.TestCase


def machines(cluster):
    tree = cluster.network()
    tree.prepare(Ledger(tree.nodes))
    vertices = make_vertices(tree)
    for vertex in vertices:
        vertex.start()
    return vertices


def test_a_relay_that_forgets_an_atom_it_has_passed_on_asks_for_it():
    root, relay, owner = machines(LocalCluster(3, Tree(1)))
    (fetch,) = root.fetch([(2, 7)])
    (fetch,) = relay.on_message(fetch)
    (deliver,) = owner.on_message(fetch)
    (deliver,) = relay.on_message(deliver)
    assert root.on_message(deliver) == []
    relay.restart()
    entry = LogEntry(0, 0, agreement(2, 7), (Atom(7, 1, np.ones(1)),), (2,))
    (news,) = root.append(entry)
    assert news.carried == ()  # it came from there
    relay.on_message(news)
    assert relay.log == []
    (ask,) = relay.on_timeout()
    (answer,) = root.on_message(ask)
    relay.on_message(answer)
    assert relay.log == [entry]


def test_a_relay_is_asked_again_until_its_whole_subtree_was_heard():
    root, relay, _ = machines(LocalCluster(3, Tree(1)))
    offers = relay.on_timeout()  # the leaf has said nothing so far
    (partial,) = [offer for offer in offers if isinstance(offer, Offer)]
    assert root.on_message(partial) == []
    assert root.heard == 0b011
    (lost,) = relay.on_message(Offer(2, 1, version=0, heard=0b100))
    assert lost.heard == 0b110
    assert not relay.waiting  # it has said all that it knows, but that was lost
    assert root.waiting
    (nudge,) = root.on_timeout()
    (again,) = relay.on_message(nudge)
    root.on_message(again)
    assert root.heard == 0b111


def test_a_node_that_comes_back_asks_until_it_has_all_of_a_long_log():
    vertices = machines(LocalCluster(2))
    root, node = vertices[2], vertices[1]
    length = 3 * CHUNK + 5
    for version in range(length):
        root.append(LogEntry(version, version, agreement(0, version)))
    messages, answers = node.restart(), 0
    while messages:
        message = messages.pop(0)
        answers += isinstance(message, MissedEntries)
        messages += vertices[message.target].on_message(message)
    assert node.log == root.log
    assert answers == 4  # CHUNK entries each
    assert root.heard >> 1 & 1
