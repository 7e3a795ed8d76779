"""Models of labels: decoding finds the best of all labelings, and sums are sums."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from atomcast.atoms.corners import CornerAtoms
from atomcast.structures import Chain, MultiClass, OutputModel, structured_examples
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


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_examples_that_are_taken_are_not_copied(make):
    rows = np.arange(1.0, 13.0).reshape(6, 2)
    held = make(rows)
    examples = Examples(held, np.ones(6, dtype=int), [np.zeros(1)] * 6, np.arange(6), "X")
    memory = (lambda one: one.data) if sparse.issparse(held) else np.asarray
    for at in ([1, 2, 3], [1, 3, 5], []):
        taken = examples.take(np.array(at, dtype=int))
        assert np.shares_memory(memory(taken.rows), memory(held)) == bool(at)
        assert taken.numbers.tolist() == at
        again = taken.take(np.arange(0, len(at), 2))  # of those that were taken
        assert [again.x(i).tolist() for i in range(len(again))] == rows[at][::2, None].tolist()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", KINDS)
def test_examples_in_parts_have_the_same_outputs_and_sums(kind, make, monkeypatch):
    rng, model = np.random.default_rng(0), kind(3, 4)
    lengths = np.ones(9, dtype=int) if kind is MultiClass else np.array([1, 3, 2, 4, 1, 2, 3, 2, 5])
    rows, mine = rng.standard_normal((lengths.sum(), 4)), np.array([0, 2, 3, 5, 8])
    right, w = [rng.integers(3, size=size) for size in lengths], rng.standard_normal(model.d)
    weights = rng.uniform(size=9)
    places = np.flatnonzero(np.isin(np.repeat(np.arange(9), lengths), mine))
    every = Examples(make(rows), lengths, right, np.arange(9), "X", weights)
    some = every.take(places)
    monkeypatch.setattr(structured_examples, "VALUES", 16)  # four rows at a time
    parts = list(some.parts())
    assert sum(len(part) for part in parts) == 5 > len(parts) > 1
    found = some.decoded(model, w, with_loss=True)
    assert len(found) == 5
    for number, output in zip(mine, found, strict=True):
        np.testing.assert_array_equal(output, model.decode(w, every.x(number), right[number]))
    starts = np.concatenate([[0], np.cumsum(lengths[mine])])
    told = [right[number] for number in mine]
    joint, loss = model.corner_sum(rows[places], starts, told, found, weights[mine])
    total = CornerAtoms(some, places, model, cache=False)._worst(w)[1]
    np.testing.assert_allclose(total, np.append(joint, loss), rtol=1e-12)
