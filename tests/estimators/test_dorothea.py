"""Dorothea (1,150 x 100,000, beta = 16): the facts that the product stands for, on real data."""

import numpy as np
import pytest

from atomcast import Lasso, LocalCluster, Solver
from atomcast.data import load_dorothea
from realdata import use

pytestmark = pytest.mark.data

OBJECTIVE = 98.5804


@pytest.fixture(scope="module")
def dorothea():
    with pytest.MonkeyPatch.context() as patch:
        use("dorothea", patch)
        return load_dorothea()


def fit(data, beta=16.0, nodes=100, **how):
    model = Lasso(beta, fit_intercept=False, cluster=LocalCluster(nodes), solver=Solver(**how))
    return model.fit(data.X, data.y)


@pytest.fixture(scope="module")
def fitted(dorothea):
    return fit(dorothea)


def test_a_hundred_nodes_hardly_send_more_than_the_solution(fitted, dorothea):
    result = fitted.result_
    assert result.status == "optimal"
    assert result.relative_gap <= 1e-4
    assert result.objective == pytest.approx(OBJECTIVE, rel=1e-4)
    assert result.rounds <= 60
    assert result.ledger.atoms_sent <= 491  # 1.10 times the 447 atoms of the solution
    assert np.abs(fitted.coef_).sum() <= 16.0 * (1 + 1e-12)
    residual = dorothea.y - dorothea.X @ fitted.coef_
    assert float(residual @ residual) == pytest.approx(result.objective, rel=1e-9)


def test_the_certificate_by_hand(fitted, dorothea):
    w = fitted.coef_
    gradient = 2 * dorothea.X.T @ (dorothea.X @ w - dorothea.y)
    gap = w @ gradient + 16.0 * np.abs(gradient).max()
    assert fitted.result_.gap == pytest.approx(gap, rel=1e-6, abs=1e-9)


def test_celer_finds_the_same(dorothea):
    """The penalty that goes with the radius is the multiplier of the ball."""
    import celer

    ours = fit(dorothea, nodes=1, tol=1e-8)
    residual = dorothea.y - dorothea.X @ ours.coef_
    penalty = float(np.abs(dorothea.X.T @ residual).max()) / len(residual)
    theirs = celer.Lasso(penalty, fit_intercept=False, tol=1e-9).fit(dorothea.X, dorothea.y)
    residual = dorothea.y - dorothea.X @ theirs.coef_
    assert float(residual @ residual) == pytest.approx(OBJECTIVE, rel=1e-4)
    assert float(np.abs(theirs.coef_).sum()) == pytest.approx(16.0, rel=1e-5)


def test_the_ledger(fitted, dorothea):
    ledger = fitted.result_.ledger
    sent = [entry.atom for entry in ledger.disclosures]
    assert len(set(sent)) == len(sent)
    assert set(np.flatnonzero(fitted.coef_).tolist()) <= set(sent)
    nonzeros = np.diff(dorothea.X.indptr)
    assert ledger.by_kind()["atom"].values == 100 * int(nonzeros[sent].sum())


@pytest.mark.parametrize("nodes", [1, 7, 1000])
def test_the_number_of_nodes_changes_nothing(fitted, dorothea, nodes):
    other = fit(dorothea, nodes=nodes)
    assert other.result_.rounds == fitted.result_.rounds
    np.testing.assert_allclose(other.coef_, fitted.coef_, rtol=0, atol=1e-9)
    assert other.result_.gap == pytest.approx(fitted.result_.gap, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("beta", [2.0, 8.0, 24.0])
def test_other_radii_are_certified_too(dorothea, beta):
    result = fit(dorothea, beta=beta, nodes=10, tol=1e-6).result_
    assert result.status == "optimal"
    assert result.ledger.atoms_sent <= 1.3 * len(result.atom_ids) + 20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_classic_step_is_far_behind(dorothea):
    """The paper's own step: hundreds of rounds, and a gap that is still far from small."""
    result = fit(dorothea, step="classic", max_rounds=200).result_
    assert result.status == "max_rounds"
    assert result.relative_gap > 0.1
    assert np.all(np.diff(result.trace.atoms) >= 0)
