"""Choosing a radius sends features too: nothing of that may be missing from the account."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

from atomcast import LassoCV, LocalCluster, Shards, SparseLogisticRegressionCV, lasso_path

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
