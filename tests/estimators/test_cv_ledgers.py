"""Choosing a radius sends features too: nothing of that may be missing from the account."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from atomcast import (
    KernelSVC,
    LassoCV,
    LocalCluster,
    Shards,
    SparseLogisticRegressionCV,
    lasso_path,
)
from atomcast.estimators.trial import leading_to
from atomcast.network.ledger import Count

X, y = load_diabetes(return_X_y=True)


def test_folds_and_the_search_for_radii_are_accounted_for():
    searched = LassoCV(n_betas=4, cv=3, cluster=4).fit(X, y)
    given = LassoCV(betas=[50, 500], cv=3, cluster=4).fit(X, y)
    assert len(searched.ledgers_) == 2 + 3  # the largest penalty, the walk, three folds
    assert len(given.ledgers_) == 3
    assert all(ledger.values > 0 for ledger in searched.ledgers_)
    assert not searched.ledgers_[0].disclosures
    assert all(ledger.disclosures for ledger in searched.ledgers_[1:])
    labels = SparseLogisticRegressionCV(n_betas=3, cv=2, cluster=4).fit(X, y > 150)
    assert len(labels.ledgers_) == 2 + 2


def test_folds_leave_every_feature_where_it_is():
    shards = Shards.split(X, 3, by=[1, 0, 9])
    model = LassoCV(betas=[800.0], cv=2, cluster=LocalCluster(3)).fit(shards, y)
    for ledger in [*model.ledgers_, model.result_.ledger]:
        assert all(one.node == (0 if one.atom == 0 else 2) for one in ledger.disclosures)


def test_a_path_counts_its_rounds_through():
    path = lasso_path(X, y, betas=[10.0, 100.0, 1000.0], cluster=4)
    ledger = path.results[-1].ledger
    assert len(ledger.by_round()) == sum(result.rounds + 1 for result in path.results)
    rounds = [one.round for one in ledger.disclosures]
    assert rounds == sorted(rounds)
    assert len({one.atom for one in ledger.disclosures}) == len(ledger.disclosures)


def test_one_radius_is_the_one_that_hardly_constrains():
    path = lasso_path(X, y, n_betas=1)
    least_squares, *_ = np.linalg.lstsq(X - X.mean(0), y - y.mean(), rcond=None)
    residual = y - y.mean() - (X - X.mean(0)) @ least_squares
    assert path.results[0].objective < 1.05 * residual @ residual


def total_of(ledgers):
    return sum((Count(one.values, one.bytes, one.messages) for one in ledgers), Count())


@pytest.mark.parametrize("topology", ["star", "tree", "complete"])
@pytest.mark.parametrize("betas", [None, [50.0, 500.0]])
def test_the_ledger_of_a_cv_model_has_all_that_was_sent(topology, betas):
    cluster = LocalCluster(4, topology, latency=1e-3)
    model = LassoCV(betas, n_betas=3, cv=3, cluster=cluster).fit(X, y)
    radii = leading_to(model.betas_[model.betas_ <= model.beta_])
    alone = lasso_path(X, y, betas=radii, cluster=cluster)
    parts = [*model.ledgers_, alone.results[-1].ledger]
    ledger = model.result_.ledger
    assert total_of([ledger]) == total_of(parts)
    assert ledger.atoms_sent == sum(part.atoms_sent for part in parts)
    assert ledger.hops == sum(part.hops for part in parts)
    np.testing.assert_allclose(ledger.seconds, sum(part.seconds for part in parts))
    np.testing.assert_allclose(sum(ledger.seconds_by_round()), ledger.seconds)
    for view in (ledger.by_kind(), ledger.by_node(), ledger.by_edge(), ledger.by_link()):
        assert sum(view.values(), Count()) == ledger.total
    assert sum(ledger.by_round(), Count()) == total_of([ledger])
    # The target is told once, though every run needs it.
    target = ledger.by_kind()["target"]
    assert ledger.total == total_of([ledger]) + target
    assert target == parts[-1].by_kind()["target"]
    (told,) = [one for one in ledger.told if one.kind == "target"]
    assert (told.values, told.phase, told.when) == (len(y), "", "before round 0")


@pytest.mark.parametrize(
    ("topology", "links"), [("star", 2 * 4), ("tree", 2 * 3), ("complete", 4 * 3)]
)
def test_predictions_for_held_out_rows_are_disclosed(topology, links):
    labels = SparseLogisticRegressionCV([0.1, 1.0], cv=3, cluster=LocalCluster(4, topology))
    model = labels.fit(X, np.digitize(y, [100, 200]))
    kinds = model.result_.ledger.by_kind()
    # Of every row, once, for two radii and three classes.
    assert kinds["prediction"].values == links * len(y) * 2 * 3
    told = [one for one in model.result_.ledger.told if one.kind == "prediction"]
    assert [(one.node, one.phase) for one in told] == [
        (node, f"fold {k}, held-out rows") for k in (1, 2, 3) for node in range(4)
    ]
    assert sum(one.values for one in told) == 4 * len(y) * 2 * 3


def test_disclosures_say_in_which_fold_and_for_which_radius():
    names = ["north", "south", "east"]
    shards = Shards.split(X, 3, party_names=names)
    model = LassoCV([50.0, 500.0, 2000.0], cv=2).fit(shards, y)
    sent = model.result_.ledger.disclosures
    assert {one.party for one in sent} <= set(names)
    assert {one.phase for one in sent} <= {
        f"{run}, radius {beta}"
        for run in ("fold 1", "fold 2", "final fit")
        for beta in (50, 500, 2000)
    }
    last = [one.round for one in sent if one.phase == f"final fit, radius {model.beta_:g}"]
    assert max(last, default=0) < max(model.result_.rounds, 1)
    runs = [one.phase.split(",")[0] for one in sent]
    assert runs == sorted(runs, key=["fold 1", "fold 2", "final fit"].index)
    for run in set(runs):  # no feature is sent twice in one of them
        atoms = [one.atom for one in sent if one.phase.startswith(run)]
        assert len(set(atoms)) == len(atoms)


def test_a_path_accounts_for_the_search_of_its_radii():
    path = lasso_path(X, y, n_betas=3, cluster=4)
    given = lasso_path(X, y, betas=path.betas, cluster=4)
    ledger = path.results[0].ledger
    assert all(result.ledger is ledger for result in path.results)
    assert ledger.values > given.results[-1].ledger.values
    phases = [one.phase for one in ledger.disclosures]
    assert phases[-given.results[-1].ledger.atoms_sent :] == [
        one.phase for one in given.results[-1].ledger.disclosures
    ]
    assert phases[0] == "search 2, problem 1"


def test_calibration_sends_examples_too():
    labels = (y > 150).astype(int)
    plain, calibrated = (
        KernelSVC(cluster=3, probability=probability).fit(X[:60], labels[:60]).result_.ledger
        for probability in (False, True)
    )
    assert calibrated.disclosures[: plain.atoms_sent] == plain.disclosures
    more = calibrated.disclosures[plain.atoms_sent :]
    # Five folds, and scikit-learn's own fit to all examples.
    assert list(dict.fromkeys(one.phase for one in more)) == [
        f"calibration {k}" for k in range(1, 7)
    ]
    assert calibrated.by_kind()["atom"].values == 3 * sum(d.values for d in calibrated.disclosures)


@pytest.mark.parametrize("multi_class", ["one-vs-one", "one-vs-rest"])
def test_machines_share_one_ledger(multi_class):
    labels = np.digitize(y[:60], [100, 200])
    ledger = KernelSVC(cluster=3, multi_class=multi_class).fit(X[:60], labels).result_.ledger
    assert ledger.atoms_sent == len({one.atom for one in ledger.disclosures})
    assert ledger.told == []  # labels travel with their examples
