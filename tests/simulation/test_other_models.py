"""The log protocol under every kind of model: the answer is that of a reliable network."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from atomcast import (
    Faults,
    GroupLasso,
    KernelSVC,
    L1AdaBoost,
    LocalCluster,
    Outage,
    SparseLogisticRegression,
)

X, LABELS = make_classification(
    80, 12, n_informative=6, n_classes=3, n_clusters_per_class=1, random_state=0
)
GROUPS = np.arange(12).reshape(4, 3).tolist()
TARGET = X[:, :4].sum(axis=1)

MODELS = {
    "group lasso": (lambda c: GroupLasso(2.0, groups=GROUPS, cluster=c), TARGET),
    "boosting": (lambda c: L1AdaBoost(cluster=c), LABELS > 0),
    "multinomial": (lambda c: SparseLogisticRegression(3.0, cluster=c), LABELS),
    "kernel, direct": (lambda c: KernelSVC(cluster=c), LABELS),
    "kernel, one against the rest": (
        lambda c: KernelSVC(multi_class="one-vs-rest", cluster=c),
        LABELS,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_objective_and_a_certified_gap(name):
    make, y = MODELS[name]
    faults = Faults(loss=0.3, duplicates=0.1, reorder=0.1, outages=[Outage(2, 1, 3)], seed=4)
    plain, lossy = (
        make(cluster).fit(X, y).result_
        for cluster in (LocalCluster(4), LocalCluster(4, "tree", faults=faults))
    )
    assert lossy.status == plain.status == "optimal"
    bound = plain.gap + lossy.gap
    assert abs(lossy.objective - plain.objective) <= bound + 1e-9 * abs(plain.objective)
