"""The search for the best stump: exact, linear, the same compiled or not, with missing values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from atomcast.atoms import stump_scan
from atomcast.atoms.stumps import Stump, StumpAtoms
from atomcast.network.wire import codec as wire
from atomcast.objectives import LogMeanExp


class Holder:
    """As much of a replica as stumps look at."""

    def __init__(self, objective, z):
        from atomcast.known.active_set import ExplicitActiveSet

        self.active = ExplicitActiveSet(objective)
        self.active.image = z


def all_stumps(column):
    """Every prediction that a stump on this feature can make, by brute force."""
    missing = np.isnan(column)
    values = np.unique(column[~missing])
    for threshold in [-np.inf, *values[:-1]]:
        for polarity in (1.0, -1.0):
            for said in (1.0, -1.0):
                h = np.where(column > threshold, polarity, -polarity)
                h[missing] = said
                yield h


def random_features(seed, d, n, missing=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (d, n)) * 0.5
    X[:, 0] = rng.standard_normal(d)
    if missing:
        X[rng.random((d, n)) < 0.2] = np.nan
    X[:, -1] = np.nan if missing else 1.0
    return X, rng


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.booleans())
def test_every_feature_puts_its_best_stump_forward(seed, d, missing):
    X, rng = random_features(seed, d, 4, missing)
    y = rng.choice([-1.0, 1.0], d)
    holder = Holder(LogMeanExp(y, 0.5), rng.standard_normal(d))
    atoms = StumpAtoms(X, np.arange(10, 14))
    scores, members = atoms.scores(holder), atoms.members()
    gradient = holder.active.gradient
    for j in range(4):
        best = min(h @ gradient for h in all_stumps(X[:, j]))
        assert scores[j] == pytest.approx(best, rel=1e-9, abs=1e-12)
        atom = atoms.atom(j, (10 + j) * atoms.stride + int(members[j]))
        assert atom.values @ gradient == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert set(np.abs(atom.values)) == {1.0}
        feature, threshold, polarity, said = atom.extras
        again = Stump(int(feature), threshold, polarity, said).predict(X[:, j])
        np.testing.assert_array_equal(again, atom.values)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans())
def test_sparse_and_compiled_agree_with_dense(seed, d, missing):
    X, rng = random_features(seed, d, 5, missing)
    X[rng.random(X.shape) < 0.4] = 0.0
    values = rng.integers(-4, 5, d) * 0.25  # many ties, exact in binary
    dense = stump_scan.sort_dense(X)
    listed = stump_scan.sort_sparse(sparse.csc_array(X))
    plain = stump_scan._best_splits_small(dense, values)
    kernel = stump_scan._kernel()
    for features in (dense, listed):
        compiled = stump_scan.Splits(
            *kernel(
                features.starts,
                features.present,
                features.entries,
                values,
                float(values.sum()),
                stump_scan.TIE,
            )
        )
        np.testing.assert_array_equal(compiled.rank, plain.rank)
        np.testing.assert_allclose(compiled.contrast, plain.contrast, atol=1e-12)
        np.testing.assert_allclose(compiled.missing, plain.missing, atol=1e-12)


def test_large_data_takes_the_compiled_way(monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 4))
    values = np.random.default_rng(1).standard_normal(300)
    features = stump_scan.sort_dense(X)
    small = stump_scan.best_splits(features, values)
    monkeypatch.setattr(stump_scan, "LARGE", 1)
    monkeypatch.setattr(stump_scan, "_best_splits_small", None)
    large = stump_scan.best_splits(features, values)
    np.testing.assert_array_equal(small.rank, large.rank)


@pytest.mark.parametrize("d", [2**15 - 1, 2**15])
def test_entries_take_few_bytes_and_hold_every_example(d):
    X = np.random.default_rng(0).standard_normal((d, 1))
    for features in (stump_scan.sort_dense(X), stump_scan.sort_sparse(sparse.csc_array(X))):
        assert features.entries.itemsize == (2 if d < 2**15 else 4)
        np.testing.assert_array_equal(features.rows, np.argsort(X[:, 0]))
    mostly_zero = sparse.csc_array(([2.0], ([d - 1], [0])), shape=(d, 1))
    assert stump_scan.sort_sparse(mostly_zero).rows.tolist() == [d, d - 1]


def test_a_stump_travels_in_bits():
    X = np.random.default_rng(0).standard_normal((8_000, 1))
    atoms = StumpAtoms(X, np.array([3]))
    atom = atoms.atom(0, 3 * atoms.stride + 4 * 4_000)
    message = wire.encode(atom)
    assert len(message) < 8_000 / 8 + 80
    back = wire.decode(message, atom.d)
    np.testing.assert_array_equal(back.values, atom.values)
    np.testing.assert_array_equal(back.extras, atom.extras)
    assert atom.values.sum() == 0.0  # half of the examples on either side


def test_without_missing_values_a_new_one_sides_with_the_majority():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    atoms = StumpAtoms(X, np.array([0]))
    said = [atoms.atom(0, 4 * rank).extras[3] for rank in (0, 1, 3)]
    assert said == [1.0, 1.0, -1.0]


def test_a_threshold_between_neighbouring_numbers():
    low = 1.0
    high = np.nextafter(low, 2.0)
    atoms = StumpAtoms(np.array([[low], [high]]), np.array([0]))
    np.testing.assert_array_equal(atoms.atom(0, 4).values, [-1.0, 1.0])


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_several_stumps_at_a_time_are_those_that_come_one_by_one(form):
    X, rng = random_features(5, 30, 6, missing=False)
    X[rng.random(X.shape) < 0.5] = 0.0
    names = tuple("abcdef")
    atoms = StumpAtoms(form(X), np.arange(6) + 10, names)
    places = np.array([4, 0, 3])
    ids = [(int(atoms.feature_ids[j]) * atoms.stride) + 4 + k for k, j in enumerate(places)]
    for place, id, one in zip(places, ids, atoms.batch(places, ids), strict=True):
        own = atoms.atom(int(place), id)
        assert (one.id, one.d, one.name) == (own.id, own.d, own.name)
        assert wire.encode(one) == wire.encode(own)
