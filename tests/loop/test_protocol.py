"""Ranking and agreement: equal to a plain reference, and the same for every partition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atomcast.errors import FalseMessageError
from atomcast.messages import proposals as protocol
from atomcast.messages.proposals import Agreement, Proposals, agree, leaders, rank_in_group, ranking

NOISE = 1e-15  # what rounding does to scores that should be equal


@st.composite
def tables(draw, max_rows=40, max_nodes=6):
    """Merits with many ties (up to rounding), ids in any order, nodes."""
    p = draw(st.integers(0, max_rows))
    level = st.sampled_from([-3.0, -1.0, -1e-9, 0.0, 1e-30, 0.5, 1.0, 1.0 + 1e-9, 2.0, 1e12])
    levels = np.array(draw(st.lists(level, min_size=p, max_size=p)), dtype=float)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    merit = levels * (1 + NOISE * rng.integers(-3, 4, p))
    id = rng.permutation(3 * p)[:p].astype(np.int64)
    node = rng.integers(0, draw(st.integers(1, max_nodes)), p)
    return levels, merit, id, node


def plain_order(levels, id, rows):
    return sorted(rows, key=lambda j: (-levels[j], id[j]))


@settings(max_examples=150, deadline=None)
@given(tables())
def test_ranking_sorts_by_merit_and_ties_by_id(table):
    levels, merit, id, _ = table
    assert ranking(merit, id).tolist() == plain_order(levels, id, range(len(id)))


@settings(max_examples=150, deadline=None)
@given(tables())
def test_ranking_within_nodes(table):
    levels, merit, id, node = table
    expected = []
    for i in sorted(set(node.tolist())):
        expected += plain_order(levels, id, np.flatnonzero(node == i).tolist())
    assert ranking(merit, id, node).tolist() == expected


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 12))
def test_leaders_are_the_best_of_every_node(table, count):
    levels, merit, id, node = table
    expected = []
    for i in sorted(set(node.tolist())):
        expected += plain_order(levels, id, np.flatnonzero(node == i).tolist())[:count]
    assert leaders(merit, id, node, count).tolist() == expected


def proposals(merit, id, node, count, nodes, partial=None):
    rows = leaders(merit, id, node, count)
    best = np.full(nodes, -np.inf)
    np.maximum.at(best, node, merit)
    return Proposals(node[rows], id[rows], 2 * merit[rows], merit[rows], best, partial)


@settings(max_examples=200, deadline=None)
@given(tables(), st.integers(1, 12), st.integers(0, 2**32))
def test_the_agreement_does_not_depend_on_the_partition(table, count, seed):
    levels, _, id, _ = table
    p = len(id)
    expected = id[plain_order(levels, id, range(p))[:count]]
    rng = np.random.default_rng(seed)
    for nodes in (1, 2, 5, 17):
        node = rng.integers(0, nodes, p)
        # Every node rounds in its own way.
        rounded = levels * (1 + NOISE * rng.integers(-3, 4, p))
        table_of_all = proposals(rounded, id, node, count, nodes)
        agreement = agree(table_of_all, count)
        np.testing.assert_array_equal(agreement.id, expected)
        place = {int(j): k for k, j in enumerate(id)}
        owners = [node[place[int(j)]] for j in expected]
        assert agreement.owner.tolist() == owners
        assert agreement.best == max(rounded, default=-np.inf)


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(1, 8), st.integers(0, 2**32))
def test_tables_of_several_processes_merge_into_the_table_of_one(table, count, seed):
    _, merit, id, node = table
    nodes = 6
    rng = np.random.default_rng(seed)
    partial = rng.standard_normal(nodes)
    whole = proposals(merit, id, node, count, nodes, partial)
    process = rng.integers(0, 3, nodes)  # each node lives in one of three processes
    parts = []
    for k in range(3):
        here = process[node] == k
        own = np.where(process == k, partial, 0.0)
        parts.append(proposals(merit[here], id[here], node[here], count, nodes, own))
    merged = Proposals.merged(parts)
    for name in ("node", "id", "score", "merit", "best", "per_node"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    np.testing.assert_allclose(merged.partial, whole.partial)
    np.testing.assert_array_equal(agree(merged, count).id, agree(whole, count).id)
    assert agree(merged, count).inner == pytest.approx(partial.sum())


def test_rank_in_group():
    assert rank_in_group(np.array([3, 3, 3, 1, 1, 3])).tolist() == [0, 1, 2, 0, 1, 0]
    assert rank_in_group(np.array([], dtype=np.int64)).tolist() == []


def test_the_first_of_an_agreement():
    agreement = Agreement(2.0, np.array([1, 0]), np.array([7, 3]), np.array([2.0, -1.0]), 0.5)
    none = agreement.first(0)
    assert len(none.id) == len(none.owner) == len(none.score) == 0
    assert (none.best, none.inner) == (2.0, 0.5)
    assert agreement.first(1).id.tolist() == [7]


def test_many_nodes_do_not_overflow_the_short_sort_key():
    node = np.array([70_000, 1, 65_536, 70_000, 0])
    merit = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert leaders(merit, np.arange(5), node, 1).tolist() == [4, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:invalid value")
@settings(max_examples=150, deadline=None)
@given(tables(max_rows=protocol.FEW), st.integers(1, 6), st.data())
def test_few_rows_are_ranked_as_many_are(table, count, data):
    _, merit, id, node = table
    odd = st.sampled_from([np.inf, -np.inf, np.nan])
    for row in data.draw(st.lists(st.integers(0, max(len(merit) - 1, 0)), max_size=2)):
        if len(merit):
            merit[row] = data.draw(odd)
    partial = merit[:3].copy()
    table = Proposals(node, id, merit, merit, merit[:3], partial)

    def agreed():
        try:
            return agree(table, count)
        except FalseMessageError as error:  # some best merit is no number
            assert not np.all(table.best < np.inf)
            return str(error)

    few = ranking(merit, id), leaders(merit, id, node, count), agreed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "FEW", -1)
        if len(merit):
            many = ranking(merit, id), leaders(merit, id, node, count), agreed()
            np.testing.assert_array_equal(few[0], many[0])
            np.testing.assert_array_equal(few[1], many[1])
            if isinstance(few[2], str):
                assert few[2] == many[2]
                return
            for name in ("best", "owner", "id", "score", "inner"):
                np.testing.assert_array_equal(getattr(few[2], name), getattr(many[2], name))


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("tied", [False, True])
def test_the_best_of_few_and_of_many_wins_and_the_smallest_id_in_a_tie(count, tied):
    merit, id = np.arange(1.0, count + 1), np.arange(count)[::-1].copy()
    if tied:
        merit[0] = merit[-1] * (1 + 5e-13)
    proposals = Proposals(np.arange(count), id, -merit, merit, merit)
    # Of two that tie, the one with the larger merit has the larger id.
    assert agree(proposals, 1).owner.tolist() == [count - 1]
