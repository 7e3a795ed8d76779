"""Lemma 1 at a tiny size: what centers leave, and what bounds it."""

from __future__ import annotations

import numpy as np
import pytest

from atomcast.data.shards import Shards
from atomcast.domains.balls import L1Ball
from atomcast.experiments.figures.centers import (
    ALL,
    CLOSE,
    GROWING,
    Centers,
    Growing,
    regression,
)
from atomcast.experiments.page.verdicts import Verdict
from pictures import check_pictures
from problems import optimum

TINY = Centers(d=20, n=120, nodes=3, rounds=60, amounts=(3, 10, 120), weights=4)


def test_errors_are_those_of_the_best_weights_on_the_centers(tmp_path):
    found = TINY.run(runs=1, out=tmp_path)
    check_pictures(tmp_path, "centers")
    made = regression(CLOSE, 20, 120, 4, seed=0)
    best, _ = optimum(made.X, made.y, L1Ball(made.beta))
    by = {(one.data, one.centers): one for one in found.judged}
    # Every atom is a center.
    assert by[CLOSE, "120"].limit == pytest.approx(0.0, abs=1e-6)
    assert by[CLOSE, "120"].radius == by[CLOSE, ALL].radius == 0.0
    assert by[CLOSE, "120"].error == pytest.approx(by[CLOSE, ALL].error, rel=1e-9)
    # The best weights on three centers of each node, found another way.
    shards = Shards.split(made.X, 3, random_state=0)
    chosen = np.concatenate([first_centers(shards.shard(i), 3) for i in range(3)])
    theirs, _ = optimum(made.X[:, chosen], made.y, L1Ball(made.beta))
    assert by[CLOSE, "3"].limit == pytest.approx(theirs - best, rel=1e-3)
    assert by[CLOSE, "3"].limit > by[CLOSE, "10"].limit > 0
    assert all(0 < one.used <= 1 and one.error <= one.guarantee for one in found.judged)
    assert TINY.findings(found)[0].verdict is Verdict.HOLDS


def first_centers(shard, count):
    """Algorithm 4, written down."""
    X, centers = shard.matrix, [0]
    while len(centers) < count:
        distance = np.abs(X[:, :, None] - X[:, None, centers]).sum(axis=0).min(axis=1)
        centers.append(int(np.argmax(distance)))
    return shard.ids[centers]


def test_centers_grow_as_fast_as_the_lemma_wants():
    made = regression(CLOSE, 20, 120, 4, seed=0)
    shards = Shards.split(made.X, 3, random_state=0)
    grown = Growing(made, shards, by_radius=True)
    steepest = 2 * (made.beta * np.abs(made.X).max() + np.abs(made.y).max())
    counts = [grown(1, k) for k in (0, 2, 4, 10**9)]
    assert counts == sorted(counts)
    assert counts[0] < counts[2] < counts[3] == len(shards.shard(1).ids)
    X = shards.shard(1).matrix
    for k, count in zip((0, 2, 4), counts, strict=False):
        centers = np.searchsorted(shards.shard(1).ids, first_centers(shards.shard(1), count))
        radius = np.abs(X[:, :, None] - X[:, None, centers]).sum(axis=0).min(axis=1).max()
        assert radius <= 8 * made.beta / (steepest * (k + 2)) * (1 + 1e-9)


def test_a_bound_that_breaks_is_an_error():
    found = TINY.run(runs=1)
    broken = [one._replace(used=1.2) for one in found.judged]
    assert TINY.findings(found._replace(judged=broken))[0].broken
    worse = [one._replace(error=5.0) if one.centers == GROWING else one for one in found.judged]
    assert TINY.findings(found._replace(judged=worse))[-1].verdict is Verdict.FAILS
