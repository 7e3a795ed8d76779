"""The inverse that gains and loses rows, against numpy.linalg; dependent rows are refused."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atomcast.known.active_set import ExplicitActiveSet
from atomcast.known.gram import Gram, Inverse, independent_rows, inverted, solved
from atomcast.messages.atom import Atom
from atomcast.objectives import SquaredError


class Mirror:
    """An `Inverse` beside the list of vectors whose Gram matrix it should invert."""

    def __init__(self, d):
        self.inverse = Inverse()
        self.rows = np.zeros((0, d))

    def append(self, vectors):
        across, corner = self.rows @ vectors.T, vectors @ vectors.T
        kept = self.inverse.append(across, corner, lambda: self.rows @ self.rows.T)
        self.rows = np.vstack([self.rows, vectors[kept]])
        return kept

    def remove(self, which):
        order = self.inverse.remove(np.asarray(which, dtype=np.int64))
        assert sorted(order.tolist()) == sorted(set(range(len(self.rows))) - set(which))
        self.rows = self.rows[order]

    def check(self):
        assert self.inverse.size == len(self.rows)
        if len(self.rows):
            gram = self.rows @ self.rows.T
            expected = np.linalg.inv(gram)
            accuracy = max(1e-7, 100 * np.finfo(float).eps * np.linalg.cond(gram))
            atol = accuracy * np.abs(expected).max()
            np.testing.assert_allclose(self.inverse.matrix, expected, rtol=0, atol=atol)

    def sharp(self):
        """Whether the rows are independent enough to tell what depends on them."""
        return not len(self.rows) or np.linalg.cond(self.rows) < 3e3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(-6, 6), min_size=1, max_size=25))
def test_any_sequence_of_appends_and_removals(seed, actions):
    rng = np.random.default_rng(seed)
    mirror = Mirror(d=40)
    for action in actions:
        if action > 0 and len(mirror.rows) + action <= 20:
            kept = mirror.append(rng.standard_normal((action, 40)))
            assert kept.tolist() == list(range(action))
        elif action < 0 and len(mirror.rows):
            m = min(-action, len(mirror.rows))
            mirror.remove(rng.permutation(len(mirror.rows))[:m].tolist())
        mirror.check()


def test_buffers_grow_past_their_first_size():
    rng = np.random.default_rng(0)
    mirror = Mirror(d=400)
    for _ in range(10):
        mirror.append(rng.standard_normal((20, 400)))
    mirror.remove(list(range(0, 200, 3)))
    mirror.append(rng.standard_normal((40, 400)))
    mirror.check()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 12))
@example(1415911638, 4, 12)  # some that depend on rows which nearly do so themselves
@example(1702950416, 6, 11)
@example(2638212367, 4, 6)
def test_dependent_rows_are_found_and_left_out(seed, d, m):
    rng = np.random.default_rng(seed)
    mirror = Mirror(d)
    pool = []
    for _ in range(m):
        kind = rng.integers(3)
        if kind == 0 or not pool:
            vector = rng.standard_normal(d)
        elif kind == 1:  # the same again, or its negative
            vector = rng.choice([-1, 1]) * pool[rng.integers(len(pool))]
        else:
            vector = rng.standard_normal(len(pool)) @ np.array(pool)
        sizes = np.linalg.svd(np.vstack([mirror.rows, vector[None]]), compute_uv=False)
        share = sizes.min() / sizes.max() if len(sizes) > len(mirror.rows) else 0.0
        if not mirror.sharp():
            break
        kept = mirror.append(vector[None])
        if not 1e-10 < share < 1e-3:  # between these, either answer will do
            assert len(kept) == int(share > 1e-3)
        pool.append(vector)
        mirror.check()


def test_within_a_batch_the_first_of_equals_is_kept():
    vectors = np.array([[1.0, 0, 0], [2.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0], [0, 0, 3.0]])
    gram = vectors @ vectors.T
    assert independent_rows(gram, np.diag(gram), np.diag(gram)).tolist() == [0, 2, 4]
    assert Inverse().append(np.zeros((0, 5)), gram).tolist() == [0, 2, 4]


@pytest.mark.parametrize("span", [0, 5, 12])
def test_the_inverse_of_rows_of_very_different_scale(span):
    rng = np.random.default_rng(span)
    A = rng.standard_normal((8, 20))
    scale = 10.0 ** rng.uniform(-span, span, 8)
    expected = np.linalg.inv(A @ A.T)
    inverse = solved((A @ A.T) * scale[:, None] * scale, np.eye(8))
    np.testing.assert_allclose(inverse * scale[:, None] * scale, expected, rtol=1e-9)


@pytest.mark.parametrize("k", [1, 5, 64, 65, 200])
def test_an_inverse_from_its_factor(k):
    A = np.random.default_rng(k).standard_normal((2 * k, k))
    found = inverted(A.T @ A)
    np.testing.assert_allclose(found, np.linalg.inv(A.T @ A), rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert np.all(np.isfinite(inverted(np.zeros((k, k)))))  # of what has none, something


def test_a_block_that_is_singular_is_no_reason_to_crash():
    for block in (np.ones((3, 3)), np.zeros((2, 2)), np.diag([1.0, 0.0]), -np.eye(2)):
        assert np.all(np.isfinite(solved(block, np.eye(len(block)))))


@pytest.mark.parametrize("mean", [10.0, 1e3, 1e4])
def test_rows_far_from_zero_that_all_but_coincide_are_independent(mean):
    rng = np.random.default_rng(0)
    mirror = Mirror(d=132)
    for m in (44, 1, 20, 30):
        kept = mirror.append(mean + rng.standard_normal((m, 132)))
        assert kept.tolist() == list(range(m))
    mirror.remove(list(range(0, 95, 4)))
    assert mirror.append(mean + rng.standard_normal((20, 132))).tolist() == list(range(20))
    assert not len(mirror.append(mirror.rows[:1] - mirror.rows[1:2] + mirror.rows[2:3]))
    mirror.check()


def test_zero_rows_are_dependent():
    assert Inverse().append(np.zeros((0, 2)), np.zeros((2, 2))).tolist() == []


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
def test_the_gram_matrix_grows_with_the_active_set(kind, fit_intercept):
    rng = np.random.default_rng(3)
    d, n = 15, 150
    A = rng.standard_normal((d, n)) * (rng.random((d, n)) < 0.4)
    active, gram = ExplicitActiveSet(SquaredError(rng.standard_normal(d), fit_intercept)), Gram()

    def atom(j):
        sparsely = kind == "sparse" or (kind == "mixed" and j < 60)
        if not sparsely:
            return Atom(j, d, A[:, j].copy())
        rows = np.flatnonzero(A[:, j])
        return Atom(j, d, A[rows, j], rows.astype(np.int32))

    done = 0
    for size in (1, 9, 0, 50, 90):
        active.append([atom(j) for j in range(done, done + size)])
        gram.extend(active)
        done += size
        B = A[:, :done] - (A[:, :done].mean(axis=0) if fit_intercept else 0)
        np.testing.assert_allclose(gram.matrix, 2 * B.T @ B, rtol=0, atol=1e-12)
    np.testing.assert_allclose(active.scores(), A.T @ active.gradient, atol=1e-12)
