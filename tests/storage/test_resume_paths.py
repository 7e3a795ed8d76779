"""A fit of many problems that is resumed does none of them twice, and ends the same."""

import shutil
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from atomcast import (
    Checkpoint,
    Lasso,
    LassoCV,
    Solver,
    SparseLogisticRegressionCV,
    lasso_path,
)
from atomcast.storage.snapshot import read_checkpoint
from problems import regression, sparse_regression


class Kept(Checkpoint):
    """A checkpoint whose file is copied each time that it is written."""

    def __init__(self, path):
        super().__init__(path, rounds=1)
        self.copies = []

    def _write(self, state):
        super()._write(state)
        self.copies.append(self.path.with_name(f"{len(self.copies)}.safetensors"))
        shutil.copy(self.path, self.copies[-1])


class Rounds:
    """Count the rounds that are run."""

    def __init__(self):
        self.count = 0

    def __call__(self, state):
        self.count += 1


def same_results(resumed, whole):
    for one, other in zip(resumed, whole, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-8)
        np.testing.assert_allclose(one.image, other.image, atol=1e-8)
        assert (one.status, one.rounds) == (other.status, other.rounds)
        assert one.objective == pytest.approx(other.objective)
        assert one.gap == pytest.approx(other.gap, rel=1e-6, abs=1e-8 * other.objective)


@pytest.mark.parametrize("betas", [None, [0.5, 2.0, 4.0]])
@pytest.mark.parametrize("step", ["corrective", "away"])
def test_a_path_from_every_checkpoint(tmp_path, betas, step):
    X, y = regression(seed=1, d=25, n=40)
    how = {"step": step, "tol": 1e-3, "max_rounds": 12}
    kept, all_rounds = Kept(tmp_path / "c.safetensors"), Rounds()
    options = {"betas": betas, "n_betas": 4}
    solver = Solver(callbacks=[kept, all_rounds], **how)
    whole = lasso_path(X, y, cluster=3, solver=solver, **options)
    finished = [len(read_checkpoint(path).finished) for path in kept.copies]
    assert finished == sorted(finished)
    assert finished[-1] == len(whole.betas) - 1
    for k in range(0, len(kept.copies), 1 + len(kept.copies) // 6):
        rounds = Rounds()
        solver = Solver(resume=kept.copies[k], callbacks=[rounds], **how)
        resumed = lasso_path(X, y, cluster=1 + k % 4, solver=solver, **options)
        np.testing.assert_array_equal(resumed.betas, whole.betas)
        same_results(resumed.results, whole.results)
        np.testing.assert_allclose(resumed.intercepts, whole.intercepts)
        assert all(len(result.trace) == 0 for result in resumed.results[: finished[k]])
    assert rounds.count < all_rounds.count


ESTIMATORS = {
    "found": LassoCV(n_betas=4, cv=3),
    "given": LassoCV(betas=[0.5, 2.0, 4.0], cv=KFold(2, shuffle=True, random_state=0)),
    "two classes": SparseLogisticRegressionCV(n_betas=3, cv=2),
    "three classes": SparseLogisticRegressionCV(betas=[1.0, 5.0], cv=2),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore:the largest radius")
def test_cross_validation_from_every_checkpoint(tmp_path, name):
    X, y = regression(seed=2, d=40, n=12)
    if "classes" in name:
        y = np.digitize(y, np.quantile(y, [0.5] if "two" in name else [0.33, 0.67]))
    kept, all_rounds = Kept(tmp_path / "c.safetensors"), Rounds()

    def fit(nodes, **how):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clone(ESTIMATORS[name]).set_params(cluster=nodes)
            model.solver = Solver(**how)
            return model.fit(X, y)

    whole = fit(3, callbacks=[kept, all_rounds])
    losses = "loss_path_" if "classes" in name else "mse_path_"
    assert len(kept.copies) > 6
    for k in range(0, len(kept.copies), 1 + len(kept.copies) // 5):
        model = fit(1 + k % 4, resume=kept.copies[k])
        np.testing.assert_allclose(getattr(model, losses), getattr(whole, losses), rtol=1e-7)
        np.testing.assert_array_equal(model.betas_, whole.betas_)
        assert model.beta_ == whole.beta_
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-7)
    rounds = Rounds()
    fit(3, resume=kept.copies[-1], callbacks=[rounds])
    assert rounds.count == 1  # the last problem says that it is finished
    assert rounds.count < all_rounds.count


@pytest.mark.parametrize("kind", [LassoCV, SparseLogisticRegressionCV])
def test_cross_validation_of_one_who_is_alone_from_a_checkpoint(tmp_path, kind):
    """Without checkpoints, a path goes straight on, which a resumed one would not know how to."""
    X, y = sparse_regression(seed=2, d=60, n=150)
    y = y if kind is LassoCV else (y > np.median(y)).astype(int)
    kept, betas = Kept(tmp_path / "c.safetensors"), np.geomspace(0.3, 4.0, 6)
    how = {"betas": betas, "cv": 2}
    losses = "mse_path_" if kind is LassoCV else "loss_path_"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = kind(solver=Solver(callbacks=[kept]), **how).fit(X, y)
        for path in kept.copies[:: len(kept.copies) // 5]:
            model = kind(solver=Solver(resume=path), **how).fit(X, y)
            np.testing.assert_allclose(getattr(model, losses), getattr(whole, losses), rtol=1e-9)
            np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-7, atol=1e-9)


def test_a_longer_path_is_resumed_too(tmp_path):
    """Where the error still falls at the end of the path, it goes on: also after a crash."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(40)
    X[:, 1] *= 3e-3  # enters so late that at a thousandth of the largest penalty it is not fitted
    kept = Kept(tmp_path / "c.safetensors")
    whole = LassoCV(n_betas=4, cv=2, solver=Solver(callbacks=[kept])).fit(X, y)
    assert len(whole.betas_) > 4
    for path in kept.copies[::7]:
        model = LassoCV(n_betas=4, cv=2, solver=Solver(resume=path)).fit(X, y)
        np.testing.assert_array_equal(model.betas_, whole.betas_)
        np.testing.assert_allclose(model.mse_path_, whole.mse_path_, rtol=1e-6)
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:the largest radius")
def test_checkpoints_of_other_fits_are_refused(tmp_path):
    X, y = regression(seed=1, d=25, n=20)
    path, single = tmp_path / "c.safetensors", tmp_path / "single.safetensors"
    LassoCV([1.0, 2.0], cv=2, solver=Solver(callbacks=[Checkpoint(path)])).fit(X, y)
    Lasso(2.0, solver=Solver(callbacks=[Checkpoint(single)])).fit(X, y)
    resume = Solver(resume=path)
    others = [
        lambda: LassoCV([1.0, 3.0], cv=2, solver=resume).fit(X, y),
        lambda: LassoCV([1.0, 2.0], cv=3, solver=resume).fit(X, y),
        lambda: LassoCV([1.0, 2.0], cv=2, solver=resume).fit(X, y[::-1]),
        lambda: LassoCV([1.0, 2.0], cv=2, solver=resume, fit_intercept=False).fit(X, y),
        lambda: LassoCV(cv=2, solver=resume).fit(X, y),
        lambda: lasso_path(X, y, betas=[1.0, 2.0], solver=resume),
        lambda: Lasso(2.0, solver=resume).fit(X[:, :9], y),
        lambda: lasso_path(X, y, betas=[2.0], solver=Solver(resume=single)),
    ]
    for other in others:
        with pytest.raises(ValueError, match=r"checkpoint of (another problem|other data)"):
            other()
    with pytest.raises(ValueError, match="checkpoint of other data"):
        LassoCV([1.0, 2.0], cv=2, solver=resume).fit(X + 1.0, y)
    with pytest.raises(FileNotFoundError, match="no file"):
        LassoCV([1.0], solver=Solver(resume=tmp_path / "none")).fit(X, y)
