"""Who is alone looks at its own atoms before the first question: the same answers, sooner."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as Reference

from atomcast import Checkpoint, Lasso, Solver
from atomcast.known.active_set import FEW
from atomcast.simulation.local_session import LocalSession
from atomcast.steps import foresight
from atomcast.steps.batches import FreeBatches
from atomcast.steps.corrective import Corrective
from problems import regression


def dense(rng, d=120, n=300):
    return rng.standard_normal((d, n))


def copied(rng, d=120, n=300):
    return rng.standard_normal((d, 80))[:, rng.integers(0, 80, n)] * rng.choice([-1.0, 1.0], n)


def words(rng, d=200, n=900):
    return sparse.random_array((d, n), density=0.03, format="csc", rng=rng) @ sparse.diags(
        rng.lognormal(0.0, 2.0, n)
    )


def categories(rng, d=300):
    values = rng.choice([3, 10, 50], 8)
    return sparse.csc_array(np.hstack([np.eye(k)[rng.integers(0, k, d)] for k in values]))


KINDS = [dense, copied, words, categories]


def made(kind, seed):
    rng = np.random.default_rng(seed)
    X = kind(rng)
    weights = rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.1)
    return X, X @ weights + 0.5 * rng.standard_normal(X.shape[0])


def reference(X, y, penalty, **options):
    """The coefficients that scikit-learn finds for a penalty beside the sum of squares."""
    total = options["sample_weight"].sum() if "sample_weight" in options else len(y)
    weights = options.pop("sample_weight", None)
    model = Reference(penalty / (2 * total), tol=1e-10, max_iter=1_000_000, **options)
    return model.fit(X.toarray() if sparse.issparse(X) else X, y, sample_weight=weights)


def value(X, y, model, sample_weight=None):
    squares = (y - X @ model.coef_ - model.intercept_) ** 2
    return float(squares.sum() if sample_weight is None else sample_weight @ squares)


def true_gap(X, y, model, positive):
    """The duality gap of a model on its ball, from the data alone."""
    gradient = -2.0 * (X.T @ (y - X @ model.coef_ - model.intercept_))
    best = np.max(-gradient if positive else np.abs(gradient), initial=0.0)
    return float(model.coef_ @ gradient + model.beta * best)


@pytest.fixture
def questions(monkeypatch):
    """How often anybody is asked for proposals, one entry a time."""
    asked, propose = [], LocalSession.propose

    def counted(self, replica, request):
        asked.append(replica.round)
        return propose(self, replica, request)

    monkeypatch.setattr(LocalSession, "propose", counted)
    return asked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.03])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_it_ends_at_the_solution_of_scikit_learn(kind, share, fit_intercept, positive, questions):
    X, y = made(kind, 1)
    centred = y - y.mean() * fit_intercept
    penalty = share * 2 * np.abs(X.T @ centred).max()
    options = {"fit_intercept": fit_intercept, "positive": positive}
    expected = reference(X, y, penalty, **options)
    beta = float(np.abs(expected.coef_).sum())
    model = Lasso(beta, tol=1e-8, **options).fit(X, y)
    assert model.result_.status == "optimal"
    assert questions == []  # the last look at all atoms has certified what was found
    assert model.result_.trace.atoms[0] == 0
    assert model.result_.gap == pytest.approx(true_gap(X, y, model, positive), abs=1e-9 * (y @ y))
    assert model.result_.objective == pytest.approx(value(X, y, expected), rel=1e-6)
    assert model.result_.objective == pytest.approx(value(X, y, model), rel=1e-9)
    assert np.abs(model.coef_).sum() <= beta * (1 + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.03])
def test_sample_weights_count(kind, share):
    X, y = made(kind, 2)
    counts = np.random.default_rng(0).random(len(y)) + 0.1
    penalty = share * 2 * np.abs(X.T @ (counts * y)).max()
    expected = reference(X, y, penalty, sample_weight=counts)
    beta = float(np.abs(expected.coef_).sum())
    result = Lasso(beta, tol=1e-8).fit(X, y, sample_weight=counts).result_
    assert result.status == "optimal"
    assert result.objective == pytest.approx(value(X, y, expected, counts), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.03])
@pytest.mark.parametrize("positive", [False, True])
def test_a_penalty_is_that_of_scikit_learn(kind, share, positive, questions):
    X, y = made(kind, 3)
    penalty = share * 2 * np.abs(X.T @ (y - y.mean())).max()
    expected = reference(X, y, penalty, positive=positive)
    model = Lasso(alpha=penalty / (2 * len(y)), tol=1e-8, positive=positive).fit(X, y)
    cost = value(X, y, expected) + penalty * np.abs(expected.coef_).sum()
    assert model.result_.status == "optimal"
    assert model.result_.objective == pytest.approx(cost, rel=1e-6)
    # How steep it is at zero, or else a radius; the last look at all atoms has told the rest.
    assert len(questions) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_that_ask_find_the_same(kind):
    X, y = made(kind, 4)
    beta = 0.1 * float(np.abs(np.linalg.lstsq(X @ np.eye(X.shape[1]), y)[0]).sum())
    alone, asked = (Lasso(beta, tol=1e-9, cluster=c).fit(X, y) for c in (None, 3))
    assert alone.result_.rounds == 1 < asked.result_.rounds
    np.testing.assert_allclose(alone.predict(X), asked.predict(X), atol=1e-3 * np.abs(y).max())
    assert alone.result_.objective == pytest.approx(asked.result_.objective, rel=1e-8)


def test_of_copies_one_joins():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((60, 30)), 5, axis=1)
    model = Lasso(3.0, tol=1e-8).fit(X, X[:, :20] @ rng.standard_normal(20))
    assert model.result_.trace.atoms[-1] <= 30
    assert model.result_.status == "optimal"


def test_more_join_the_farther_the_optimum_is_if_they_are_cheap():
    used = np.ones(20)
    sizes = [foresight._next(FreeBatches(6_000, 2_000, 8.0), used, far) for far in (0.1, 5.0, 90.0)]
    assert sizes == [40, 100, FEW - 20]  # beyond a few, a compiler may be needed
    assert foresight._next(FreeBatches(6_000, 2_000, 8.0), np.ones(FEW), 90.0) == 2 * FEW
    # Room for fewer than join at least is none: a look and new weights would be for these alone.
    nearly = np.ones(FEW - 1)
    assert foresight._next(FreeBatches(6_000, 2_000, 8.0), nearly, 90.0) == 2 * (FEW - 1)
    dear = FreeBatches(3_000, 2_000, 2_000.0)
    assert foresight._next(dear, used, 90.0) == 40
    assert foresight._next(dear, np.append(used, np.zeros(20)), 90.0) == 20
    assert foresight._next(FreeBatches(6_000, 80, 80.0), used, 90.0) == 20  # of their length


def test_those_that_are_likely_to_be_of_use_join_first():
    """Of columns that have nothing to do with each other, these are those of the solution."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((600, 300)))[0] * rng.lognormal(0.0, 1.0, 300)
    y = X @ np.where(np.arange(300) < 40, rng.standard_normal(300), 0.0)
    for share in (0.3, 0.6):
        model = reference(X, y, share * 2 * np.abs(X.T @ y).max(), fit_intercept=False)
        beta, used = float(np.abs(model.coef_).sum()), np.count_nonzero(model.coef_)
        result = Lasso(beta, fit_intercept=False, tol=1e-6).fit(X, y).result_
        assert used <= result.trace.atoms[1] <= max(3 * used // 2, foresight.LIGHT // 600)
        assert len(result.trace.atoms) == 2


def test_one_that_leaves_nothing_joins_alone():
    """Where the ball is so small that the best feature fills it, no other violates anything."""
    X, y = regression(0, 100, 200)
    y = X[:, 7] + 1e-3 * y
    model = Lasso(1e-3, fit_intercept=False).fit(X, y)
    assert model.result_.trace.atoms.tolist() == [0, 1]
    assert np.flatnonzero(model.coef_).tolist() == [7]


def test_many_are_left_to_rounds(monkeypatch, questions):
    X, y = made(dense, 5)
    monkeypatch.setattr(foresight, "MANY", 30)
    result = Lasso(20.0, tol=1e-7).fit(X, y).result_
    assert result.status == "optimal"
    assert len(questions) > 2
    assert 0 < result.trace.atoms[1] <= 30 < result.trace.atoms[-1]


def test_where_pivots_give_up_the_step_of_a_round_goes_on(monkeypatch, questions):
    X, y = made(dense, 6)
    expected = Lasso(5.0, tol=1e-9).fit(X, y).result_
    monkeypatch.setattr(foresight, "solutions", lambda *_: iter(()))
    result = Lasso(5.0, tol=1e-9).fit(X, y).result_
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    assert questions == []


@pytest.mark.parametrize("step", ["classic", "away", Corrective(atoms_per_round=5)])
def test_only_the_usual_step_looks_ahead(step, questions):
    X, y = made(dense, 7)
    with pytest.warns(ConvergenceWarning):
        Lasso(5.0, solver=Solver(step, max_rounds=3)).fit(X, y)
    assert questions == [0, 1, 2, 3]


def test_without_rounds_nothing_joins(questions):
    X, y = made(dense, 8)
    with pytest.warns(ConvergenceWarning):
        model = Lasso(5.0, solver=Solver(max_rounds=0)).fit(X, y)
    assert questions == [0]
    assert not model.coef_.any()


def test_callbacks_see_what_was_found():
    X, y = made(dense, 9)
    seen = []

    def watch(state):
        seen.append((state.round, state.gap, len(state.replica.active.support()[0])))

    result = Lasso(5.0, solver=Solver(callbacks=[watch])).fit(X, y).result_
    assert [round for round, _, _ in seen] == [1]
    assert seen[0][1:] == (result.gap, len(result.atom_ids))
    assert result.trace.gap[0] > result.trace.gap[1]
    assert result.trace.objective[0] == pytest.approx(np.sum((y - y.mean()) ** 2))


def test_a_checkpoint_is_resumed(tmp_path):
    X, y = made(words, 10)
    path = tmp_path / "run"
    first = Lasso(5.0, solver=Solver(callbacks=[Checkpoint(path)])).fit(X, y).result_
    again = Lasso(5.0, solver=Solver(resume=path)).fit(X, y).result_
    np.testing.assert_array_equal(again.weights, first.weights)
    assert again.gap == first.gap
    finer = Lasso(5.0, solver=Solver(tol=1e-9, callbacks=[Checkpoint(path)]))
    assert finer.fit(X, y).result_.status == "optimal"


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("scale", [1e120, 1e160])
def test_columns_out_of_scale_are_refused(scale, fit_intercept):
    X, y = made(dense, 11)
    X[:, 3] *= scale
    with pytest.raises(ValueError, match="out of scale"):
        Lasso(5.0, fit_intercept=fit_intercept).fit(X, y)


def test_a_column_of_zeros_or_ones_is_no_trouble():
    X, y = made(dense, 12)
    X[:, 0], X[:, 1] = 0.0, 1.0
    expected = reference(X, y, 30.0)
    beta = float(np.abs(expected.coef_).sum())
    result = Lasso(beta, tol=1e-8).fit(X, y).result_
    assert result.objective == pytest.approx(value(X, y, expected), rel=1e-6)
    assert not {0, 1} & set(result.atom_ids.tolist())


@pytest.mark.parametrize("spread", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("level", [-1.0, 0.0, 1.0, 1e9])
def test_the_best_violators_are_those_of_a_sorted_list(spread, level):
    rng = np.random.default_rng(int(10 * spread))
    for n, count in ((1, 1), (50, 60), (900, 3), (5_000, 24)):
        merit = np.exp(spread * rng.standard_normal(n))
        merit[rng.random(n) < 0.1] = -np.inf  # as atoms have that are known
        merit[rng.integers(0, n, 3)] = merit[0]  # copies, of which the first is enough
        best = sorted({value: row for row, value in reversed(list(enumerate(merit)))}.items())[::-1]
        expected = [row for value, row in best if value > level][:count]
        assert foresight._violators(merit, level, count).tolist() == expected
