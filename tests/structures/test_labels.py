"""Models of labels: decoding finds the best of all labelings, and sums are sums."""

from itertools import product

import numpy as np
import pytest

from atomcast.structures import Chain, MultiClass, OutputModel, label_outputs
from atomcast.structures.structured_examples import Examples

KINDS = [MultiClass, Chain]


def best_of_all(model, w, x, y=None):
    """The best labeling, by trying all of them."""
    labelings = [np.array(labels) for labels in product(range(model.classes), repeat=len(x))]
    scores = [w @ model.joint_feature(x, labels) for labels in labelings]
    if y is not None:
        scores = [s + model.loss(y, o) for s, o in zip(scores, labelings, strict=True)]
    return labelings[int(np.argmax(scores))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_best_labels_are_found(kind, length):
    rng = np.random.default_rng(length)
    model = kind(3, 4)
    for _ in range(20):
        w, x = rng.standard_normal(model.d), rng.standard_normal((length, 4))
        y = rng.integers(3, size=length)
        np.testing.assert_array_equal(model.decode(w, x), best_of_all(model, w, x))
        np.testing.assert_array_equal(model.decode(w, x, y), best_of_all(model, w, x, y))


@pytest.mark.parametrize("kind", KINDS)
def test_all_at_once_is_one_by_one(kind):
    rng = np.random.default_rng(0)
    model, lengths = kind(3, 4), [1, 3, 2, 4]
    xs = [rng.standard_normal((size, 4)) for size in lengths]
    ys = [rng.integers(3, size=size) for size in lengths]
    starts, w = np.concatenate([[0], np.cumsum(lengths)]), rng.standard_normal(model.d)
    found = model.decode_all(w, np.concatenate(xs), starts, ys)
    for x, y, output in zip(xs, ys, found, strict=True):
        np.testing.assert_array_equal(output, model.decode(w, x, y))
    joint, loss = model.corner_sum(np.concatenate(xs), starts, ys, found)
    corners = [
        model.joint_feature(x, y) - model.joint_feature(x, output)
        for x, y, output in zip(xs, ys, found, strict=True)
    ]
    np.testing.assert_allclose(joint, np.sum(corners, axis=0), atol=1e-12)
    assert loss == sum(model.loss(y, output) for y, output in zip(ys, found, strict=True)) > 0


def test_of_equal_labelings_the_same_one_is_found():
    """At zero all labelings score alike: the answer must not hang on where they are decoded."""
    model = Chain(4, 2)
    assert model.decode(np.zeros(model.d), np.ones((3, 2))).tolist() == [0, 0, 0]
    assert model.decode(np.zeros(model.d), np.ones((2, 2)), np.array([0, 1])).tolist() == [1, 0]


def test_they_keep_the_contract():
    assert isinstance(MultiClass(2, 3), OutputModel)
    assert isinstance(Chain(2, 3), OutputModel)
    assert Chain(2, 3).d == MultiClass(2, 3).d + 4 == 12


def test_examples_in_one_piece_are_not_copied():
    rows = np.arange(1.0, 13.0).reshape(6, 2)
    examples = Examples(rows, np.ones(6, dtype=int), [np.zeros(1)] * 6, np.arange(6), "X")
    for at, shared in (([1, 2, 3], True), ([1, 3, 5], False), ([1, 3, 2], False), ([], False)):
        taken = examples.take(np.array(at, dtype=int)).rows
        np.testing.assert_array_equal(taken, rows[at])
        assert np.shares_memory(taken, rows) == shared


def test_a_sum_of_corners_may_be_made_in_parts(monkeypatch):
    rng, model = np.random.default_rng(0), MultiClass(3, 4)
    rows, starts = rng.standard_normal((11, 4)), np.arange(12)
    right, wrong = ([np.array([k]) for k in rng.integers(3, size=11)] for _ in range(2))
    whole, loss = model.corner_sum(rows, starts, right, wrong)
    monkeypatch.setattr(label_outputs, "VALUES", 8)
    parts, same = model.corner_sum(rows, starts, right, wrong)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
    assert same == loss
