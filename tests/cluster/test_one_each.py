"""Rounds of one proposal a node in plain numbers end as those of tables do."""

import numpy as np
import pytest

from atomcast.errors import FalseMessageError
from atomcast.messages.proposals import OneEach, agree, agree_on_one


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("partial", [True, False])
def test_plain_numbers_agree_as_tables_do(seed, partial):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 6))
    merit = rng.choice([1.0, 1.0 + 1e-13, 2.0, rng.random()], nodes)
    each = OneEach(
        tuple(rng.permutation(20)[:nodes].tolist()),
        tuple(rng.standard_normal(nodes).tolist()),
        tuple(merit.tolist()),
        tuple((merit + rng.random(nodes)).tolist()),
        tuple(rng.standard_normal(nodes).tolist()) if partial else None,
    )
    quick, plain = agree_on_one(each), agree(each.table(), 1)
    assert (quick.best, quick.inner) == (plain.best, plain.inner)
    for name in ("owner", "id", "score"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(plain, name))
        assert getattr(quick, name).dtype == getattr(plain, name).dtype


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_plain_numbers_that_are_none_name_their_node(wrong):
    each = OneEach((3, 4), (1.0, 2.0), (1.0, wrong), (1.0, wrong), None)
    with pytest.raises(FalseMessageError, match="node 1 "):
        agree_on_one(each)
