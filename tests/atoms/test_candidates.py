"""A node that asks a few of many atoms to come forward finds those that sorting all would find."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atomcast.atoms.explicit import DenseAtoms
from atomcast.cluster import node
from atomcast.messages.proposals import TIE, Request, leaders

MERITS = st.lists(
    st.one_of(st.integers(0, 8).map(float), st.floats(0.0, 1e6), st.just(1.0 - TIE / 2)),
    min_size=1, max_size=200,
)  # fmt: skip


@settings(max_examples=60)
@given(MERITS, st.integers(1, 12), st.floats(0.0, 4.0), st.integers(0, 6))
@example([2.0] + [1.0] * 50, 3, 0.0, 0)  # the level of the first look is a tie
@example([0.0] * 50, 2, 0.0, 0)
def test_the_same_lead_as_if_all_were_sorted(merits, count, threshold, known):
    merit, n = np.array(merits), len(merits)
    fleet = node.Fleet(
        DenseAtoms(np.zeros((1, n))), np.arange(n), np.zeros(n, dtype=np.int64), nodes=1
    )
    fleet._known[: min(known, n)] = True
    fleet._log = min(known, n)
    request = Request(count=count, threshold=threshold, known_too=False)
    rows = fleet._candidates(merit, np.array([merit.max()]), request)
    able = np.flatnonzero((merit > threshold) & ~fleet._known)

    def first(rows):
        return rows[leaders(merit[rows], rows, np.zeros(len(rows), dtype=np.int64), count)]

    np.testing.assert_array_equal(first(rows), first(able))


@pytest.mark.parametrize("best", [0.0, -1.0])
def test_merits_that_are_not_positive_have_no_half(best):
    assert node._below_best(np.array([best, best - 1.0]), best, 1) == -np.inf
