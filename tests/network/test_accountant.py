"""The account of a star: that of messages which are carried over it one by one."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast.messages.atom import Atom
from atomcast.messages.proposals import Proposals, leaders
from atomcast.network.ledger import Count, Ledger
from atomcast.network.rooted import RootedTree
from atomcast.network.star import Star, star_accountant, star_links
from atomcast.network.wire import codec as wire


@st.composite
def rounds(draw):
    """A few rounds: the number of nodes, and for each the proposals and the atoms' owners."""
    nodes = draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    said = []
    for _ in range(draw(st.integers(1, 4))):
        offered = rng.integers(0, draw(st.integers(1, 4)), nodes)
        node = np.repeat(np.arange(nodes), offered)
        id, merit = rng.permutation(1000)[: len(node)], rng.standard_normal(len(node))
        rows = leaders(merit, id, node, 4)
        partial = rng.standard_normal(nodes) if draw(st.booleans()) else None
        best = rng.standard_normal(nodes) + 9
        table = Proposals(node[rows], id[rows], -merit[rows], merit[rows], best, partial)
        owners = rng.integers(0, nodes, draw(st.integers(0, 3))).tolist()
        said.append((table, owners))
    return nodes, said


def some_atom(k):
    """An atom of k + 1 nonzeros."""
    return Atom(k, 50, np.linspace(0.1, 0.7, k + 1), np.arange(k + 1))


def views(ledger):
    """All that a ledger tells, without what only real clusters send along."""
    kinds = [kind for kind in ledger.by_kind() if kind != "control"]
    return (
        {kind: ledger.by_kind()[kind] for kind in kinds},
        [ledger.by_kind(round=0)[kind] for kind in kinds],
        [ledger.by_link(kind) for kind in kinds],
        [ledger.by_node(kind) for kind in kinds],
        ledger.hops_by_round(),
        ledger.disclosures,
        ledger.messages,
        ledger.values,
    )


@settings(max_examples=60, deadline=None)
@given(rounds(), st.booleans())
def test_the_account_is_that_of_a_tree_with_the_coordinator_as_its_root(case, look_often):
    nodes, said = case
    account, simulated = star_accountant(nodes), Ledger(nodes)
    star = RootedTree(nodes, np.append(np.full(nodes, nodes), -1), star_links(nodes))
    star.prepare(simulated)
    for k, (table, owners) in enumerate(said):
        simulated.round = k
        expected = star.agree(table, 3, simulated)
        agreement = account.agree(table, 3, k)
        assert agreement.id.tolist() == expected.id.tolist()
        assert agreement.owner.tolist() == expected.owner.tolist()
        assert agreement.best == expected.best
        atoms = [some_atom(j) for j, _ in enumerate(owners)]
        messages = [wire.encode(atom) for atom in atoms]
        account.receive(owners, messages, [atom.d for atom in atoms])
        if owners:
            sizes = [len(message) for message in messages]
            star.broadcast(owners, [atom.count for atom in atoms], sizes, simulated)
        for owner, atom in zip(owners, atoms, strict=True):
            simulated.disclose(owner, atom.id, atom.name, atom.count)
        if look_often:  # filing in between changes nothing
            account.ledger.hops_by_round()
    ledger = account.ledger
    # The totals were known before any wave was worked out, and are those of the waves.
    total = ledger.total
    assert total == sum(ledger.by_kind().values(), Count())
    assert total == sum(ledger.by_link().values(), Count())
    assert total == sum(ledger.by_round(), Count())
    assert views(ledger) == views(simulated)
    assert ledger.bytes - simulated.bytes == 24 * nodes * len(said)


@settings(max_examples=20, deadline=None)
@given(rounds())
def test_messages_that_take_time_are_the_same(case):
    nodes, said = case
    stars = [Star(nodes), Star(nodes, latency=0.5, bandwidth=1e3)]
    ledgers = [Ledger(nodes), Ledger(nodes)]
    for k, (table, owners) in enumerate(said):
        for star, ledger in zip(stars, ledgers, strict=True):
            ledger.round = k
            star.agree(table, 3, ledger)
            star.broadcast(owners, [5] * len(owners), [44] * len(owners), ledger)
    assert views(ledgers[0]) == views(ledgers[1])
    assert ledgers[0].seconds == 0.0 < ledgers[1].seconds


def test_traffic_that_nobody_has_looked_at_survives_pickling():
    account = star_accountant(3)
    account.receive([2], [wire.encode(some_atom(4))], [some_atom(4).d])
    before = account.ledger.total
    restored = pickle.loads(pickle.dumps(account.ledger))
    assert restored.total == before == sum(restored.by_kind().values(), Count())
    assert restored.by_link() == account.ledger.by_link() != {}


@pytest.mark.parametrize("owners", [[], [0]])
def test_a_single_node_sends_nothing(owners):
    account = star_accountant(1)
    account.receive(
        owners, [wire.encode(some_atom(1)) for _ in owners], [some_atom(1).d for _ in owners]
    )
    assert account.ledger.total == Count()
    assert account.ledger.disclosures == []
