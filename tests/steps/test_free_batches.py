"""Where nothing is sent, batches follow from the distance to the optimum and the cost of atoms."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso as Reference
from sklearn.linear_model import LogisticRegression

from atomcast import Lasso, Solver, SparseLogisticRegression
from atomcast.known.columns import DenseColumns, SparseColumns
from atomcast.messages.atom import Atom
from atomcast.steps import foresight
from atomcast.steps.batches import FREE, LEAP, FreeBatches

SHORT = FreeBatches(n=6_000, d=2_000, values=8.0)  # columns of few values, which cost little
LONG = FreeBatches(n=3_000, d=2_000, values=2_000.0)


def test_the_farther_the_optimum_the_more_atoms_join():
    sizes = [SHORT.size(40, 1.0, distance) for distance in (0.0, 1.0, 2.0, 4.0, np.inf)]
    assert sizes == [40, 40, 80, 160, LEAP * 40]


def test_fewer_join_where_those_known_were_in_vain():
    sizes = [SHORT.size(40, used, np.inf) for used in (1.0, 0.8, 0.6, 0.4)]
    assert sizes == [320, 160, 80, FREE // 2]


def test_atoms_that_cost_as_much_as_a_round_do_not_leap():
    assert SHORT.cheap
    assert not LONG.cheap
    assert LONG.size(90, 1.0, np.inf) == LONG.size(90, 1.0, 0.0) == 90
    assert LONG.size(0, 0.0, np.inf) == FREE


def test_no_more_leap_than_are_independent():
    assert FreeBatches(n=6_000, d=400, values=8.0).size(60, 1.0, np.inf) == 100


def test_a_loss_whose_curvature_changes_leaps_at_first():
    """The first scores say little of what is of use, but the gap says how far away it is."""
    bent = replace(SHORT, quadratic=False)
    sizes = [bent.size(0, 0.0, distance) for distance in (0.0, 2.0, 4.0, np.inf)]
    assert sizes == [FREE // 2, FREE // 2, FREE, LEAP * FREE // 2]
    assert replace(LONG, quadratic=False).size(0, 0.0, np.inf) == FREE // 2
    assert replace(bent, d=400).size(0, 0.0, np.inf) == 100  # no more are independent


@pytest.mark.parametrize("seed", range(2))
def test_a_first_leap_of_a_logistic_loss_ends_at_the_solution_of_liblinear(seed):
    X, y = text(seed)
    y = np.where(y > 0.0, 1.0, -1.0)
    penalty = 0.02 * np.abs(X.T @ (0.5 * y)).max()
    reference = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=1.0 / penalty, fit_intercept=False, tol=1e-7,
        max_iter=100_000,
    ).fit(X, y)  # fmt: skip
    beta = float(np.abs(reference.coef_).sum())
    result = SparseLogisticRegression(beta, fit_intercept=False, tol=1e-7).fit(X, y).result_
    assert result.status == "optimal"
    assert result.trace.atoms[1] > FREE // 2
    loss = np.logaddexp(0.0, -y * (X @ reference.coef_[0])).sum()
    assert result.objective == pytest.approx(loss, rel=1e-6)


def text(seed, d=600, n=3_000, words=12_000):
    """Sparse columns in units of their own, and a target that many of them make up."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, d, words), rng.integers(0, n, words)
    X = sparse.coo_matrix((rng.random(words), (rows, columns)), shape=(d, n)).tocsc()
    X = (X @ sparse.diags(rng.lognormal(0.0, 1.0, n))).tocsc()
    return X, X @ rng.standard_normal(n) + rng.standard_normal(d)


@pytest.mark.parametrize("seed", range(3))
def test_leaps_end_at_the_solution_of_scikit_learn_in_fewer_rounds(seed, monkeypatch):
    monkeypatch.setattr(foresight, "ROUNDS", 0)  # as for data that it takes long to look at
    X, y = text(seed)
    penalty = 0.005 * np.abs(X.T @ y).max()
    reference = Reference(penalty / len(y), fit_intercept=False, tol=1e-12, max_iter=100_000)
    expected = reference.fit(X, y).coef_
    model = Lasso(np.abs(expected).sum(), fit_intercept=False, solver=Solver(tol=1e-8))
    leaping = model.fit(X, y).result_
    monkeypatch.setattr(FreeBatches, "cheap", False)
    doubling = model.fit(X, y).result_
    assert leaping.status == doubling.status == "optimal"
    assert leaping.objective == pytest.approx(np.sum((y - X @ expected) ** 2), rel=1e-6)
    assert leaping.objective == pytest.approx(doubling.objective, rel=1e-7)
    assert leaping.rounds < doubling.rounds


@pytest.mark.parametrize("store", [DenseColumns, SparseColumns])
def test_columns_in_several_batches_are_those_of_the_matrix(store):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 12)) * (rng.random((30, 12)) < 0.3)
    X[:, [0, 5, 11]] = 0.0  # columns without a value, also at the ends
    columns, diagonal, weights = store(30), rng.random(30), rng.standard_normal((3, 12))
    columns.append([])
    for part in (range(5), range(5, 6), range(6, 12)):
        rows = [X[:, j].nonzero()[0] for j in part]
        columns.append([Atom(j, 30, X[i, j], i) for j, i in zip(part, rows, strict=True)])
    np.testing.assert_array_equal(columns.block(0, 12), X)
    np.testing.assert_array_equal(columns.block(4, 7), X[:, 4:7])
    lengths = np.sum(X**2 * diagonal[:, None], axis=0)
    np.testing.assert_allclose(columns.lengths(diagonal), lengths, atol=1e-14)
    np.testing.assert_allclose(columns.lengths(diagonal, 4), lengths[4:], atol=1e-14)
    np.testing.assert_allclose(columns.combine(weights), weights @ X.T, atol=1e-14)
    np.testing.assert_allclose(columns.combine(weights[0]), X @ weights[0], atol=1e-14)
