"""Every estimator gives the same model on real clusters as on simulated nodes.

As in `contract`, a case takes `cluster_of` and a number of nodes, and on MPI all ranks run it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from atomcast import (
    DictionaryLearning,
    GroupLasso,
    GroupLogisticRegression,
    KernelSVC,
    KernelSVR,
    L1AdaBoost,
    LocalCluster,
    MatchingPursuit,
    MCenters,
    MultipleKernelClassifier,
    RandomSubset,
    Shards,
    Solver,
    SparseCoder,
    SparseLogisticRegression,
    StructuredSVM,
)

CASES = {}

GROUPS = [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9]]


def two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:120, :10]), y[:120]


def three_classes():
    X, y = load_iris(return_X_y=True)
    return scale(X)[::3], y[::3]


MODELS = {
    "logistic": (lambda **how: SparseLogisticRegression(5.0, **how), two_classes),
    "multinomial": (lambda **how: SparseLogisticRegression(5.0, **how), three_classes),
    "group lasso": (lambda **how: GroupLasso(1.0, groups=GROUPS, **how), two_classes),
    "group logistic": (
        lambda **how: GroupLogisticRegression(3.0, groups=GROUPS, **how),
        two_classes,
    ),
    "pursuit": (lambda **how: MatchingPursuit(3, normalize=True, **how), two_classes),
    "plain pursuit": (lambda **how: MatchingPursuit(3, orthogonal=False, **how), two_classes),
    "many kernels": (
        lambda **how: MultipleKernelClassifier(kernels=["rbf", "linear"], views=GROUPS, **how),
        two_classes,
    ),
    "boosting": (lambda **how: L1AdaBoost(**how), two_classes),
    "svm": (lambda **how: KernelSVC(**how), two_classes),
    "svm of three classes": (lambda **how: KernelSVC(**how), three_classes),
    "one against the rest": (
        lambda **how: KernelSVC(multi_class="one-vs-rest", **how),
        three_classes,
    ),
    "regression": (lambda **how: KernelSVR(**how), three_classes),
    "structured svm": (lambda **how: StructuredSVM(**how), three_classes),
    "structured svm by blocks": (
        lambda cluster, **how: StructuredSVM(
            cluster=cluster, solver=Solver("block-coordinate", tol=1e-3)
        ),
        three_classes,
    ),
}


def case(function):
    CASES[function.__name__] = function
    return function


def the_same_model_as_on_simulated_nodes(make, data, cluster_of, nodes):
    X, y = data()
    solver = Solver(tol=1e-3)
    model = make(cluster=cluster_of(nodes), solver=solver).fit(X, y)
    expected = make(cluster=LocalCluster(nodes), solver=solver).fit(X, y)
    decide = "decision_function" if hasattr(model, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(model, decide)(X), getattr(expected, decide)(X), atol=1e-8)
    assert model.result_.ledger.values == expected.result_.ledger.values
    assert model.result_.ledger.disclosures == expected.result_.ledger.disclosures


CASES |= {
    name.replace(" ", "_"): partial(the_same_model_as_on_simulated_nodes, *how)
    for name, how in MODELS.items()
}


@case
def codes_in_balls_and_a_dictionary(cluster_of, nodes):
    cluster, how = cluster_of(nodes), {"beta": 1.5}
    encoded, expected = the_same_codes_as_on_simulated_nodes(cluster, nodes, how)
    np.testing.assert_allclose(encoded.gaps, expected.gaps, rtol=1e-3)
    X, _ = two_classes()
    model = DictionaryLearning(8, max_iter=2, cluster=cluster, **how).fit(X)
    simulated = DictionaryLearning(8, max_iter=2, cluster=LocalCluster(nodes), **how).fit(X)
    np.testing.assert_allclose(model.components_, simulated.components_, atol=1e-8)
    assert model.result_.ledger.values == simulated.result_.ledger.values


@case
def codes_of_a_few_atoms_each(cluster_of, nodes):
    the_same_codes_as_on_simulated_nodes(cluster_of(nodes), nodes, {"n_nonzero": 2})


def the_same_codes_as_on_simulated_nodes(cluster, nodes, how):
    X, _ = two_classes()
    encoded = SparseCoder(X[:40], cluster=cluster, **how).encode(X[40:])
    expected = SparseCoder(X[:40], cluster=LocalCluster(nodes), **how).encode(X[40:])
    np.testing.assert_allclose(encoded.codes.toarray(), expected.codes.toarray(), atol=1e-8)
    assert encoded.result.status == expected.result.status
    assert encoded.result.ledger.values == expected.result.ledger.values
    assert encoded.result.ledger.disclosures == expected.result.ledger.disclosures
    return encoded, expected


@case
def random_subsets(cluster_of, nodes):
    a_selection_that_leaves_atoms_out(RandomSubset(0.5), cluster_of, nodes)


@case
def centers(cluster_of, nodes):
    a_selection_that_leaves_atoms_out(MCenters(0.3), cluster_of, nodes)


def a_selection_that_leaves_atoms_out(selection, cluster_of, nodes):
    X, y = two_classes()
    solver = Solver(selection=selection, tol=1e-3)
    model = KernelSVC(cluster=cluster_of(nodes), solver=solver).fit(X, y)
    expected = KernelSVC(cluster=LocalCluster(nodes, isolated=True), solver=solver).fit(X, y)
    result, wanted = model.result_, expected.result_
    assert (result.status, result.rounds) == (wanted.status, wanted.rounds)
    assert result.ledger.disclosures == wanted.ledger.disclosures
    assert result.ledger.values == wanted.ledger.values
    assert result.gap == pytest.approx(wanted.gap, rel=1e-6)  # over all atoms, not those chosen
    assert result.radius == pytest.approx(wanted.radius)
    assert bool(result.radius) == isinstance(selection, MCenters)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


@case
def schedules_that_grow(cluster_of, nodes):
    X, y = two_classes()
    solver = Solver(selection=RandomSubset(lambda round: 5 + 3 * round), tol=1e-3)
    model = KernelSVC(cluster=cluster_of(nodes), solver=solver).fit(X, y)
    expected = KernelSVC(cluster=LocalCluster(nodes, isolated=True), solver=solver).fit(X, y)
    assert model.result_.ledger.disclosures == expected.result_.ledger.disclosures


@case
def violators_drawn_at_random_are_the_same_ones(cluster_of, nodes):
    X, y = two_classes()
    solver = Solver(selection="random-violators", tol=1e-3)
    model = KernelSVC(cluster=cluster_of(nodes), solver=solver).fit(X, y)
    expected = KernelSVC(cluster=LocalCluster(nodes), solver=solver).fit(X, y)
    assert model.result_.ledger.disclosures == expected.result_.ledger.disclosures


@case
def a_kernel_that_is_none_is_an_error_that_names_the_node(cluster_of, nodes):
    X, y = two_classes()
    K = X @ X.T
    model = MultipleKernelClassifier(kernels="precomputed", cluster=cluster_of(nodes))
    with pytest.raises(ValueError, match=r"shard 1.*is not positive semidefinite"):
        model.fit(Shards.split(np.hstack([K, -K]), nodes, by="contiguous"), y)
