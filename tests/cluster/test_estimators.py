"""Every estimator gives the same model on real clusters as on simulated nodes."""

from __future__ import annotations

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
    MPICluster,
    MultipleKernelClassifier,
    RandomSubset,
    RayCluster,
    Shards,
    Solver,
    SparseCoder,
    SparseLogisticRegression,
    StructuredSVM,
)
from cluster.conftest import MPI_ENVIRONMENT

pytestmark = [pytest.mark.xdist_group("processes")]

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


@pytest.fixture(
    scope="module",
    params=[pytest.param("mpi", marks=pytest.mark.mpi), pytest.param("ray", marks=pytest.mark.ray)],
)
def cluster(request):
    """Two nodes that are processes."""
    if request.param == "ray":
        request.getfixturevalue("ray")
        cluster = RayCluster(2)
        yield cluster
        cluster.close()
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MPI_ENVIRONMENT.items():
            patch.setenv(name, value)
        yield MPICluster.launch(2)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_as_on_simulated_nodes(name, cluster):
    make, data = MODELS[name]
    X, y = data()
    solver = Solver(tol=1e-3)
    model = make(cluster=cluster, solver=solver).fit(X, y)
    expected = make(cluster=LocalCluster(2), solver=solver).fit(X, y)
    decide = "decision_function" if hasattr(model, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(model, decide)(X), getattr(expected, decide)(X), atol=1e-8)
    assert model.result_.ledger.values == expected.result_.ledger.values
    assert model.result_.ledger.disclosures == expected.result_.ledger.disclosures


@pytest.mark.parametrize("how", [{"beta": 1.5}, {"n_nonzero": 2}], ids=["balls", "pursuits"])
def test_the_same_codes_as_on_simulated_nodes(how, cluster):
    X, _ = two_classes()
    encoded = SparseCoder(X[:40], cluster=cluster, **how).encode(X[40:])
    expected = SparseCoder(X[:40], cluster=LocalCluster(2), **how).encode(X[40:])
    np.testing.assert_allclose(encoded.codes.toarray(), expected.codes.toarray(), atol=1e-8)
    assert encoded.result.status == expected.result.status
    assert encoded.result.ledger.values == expected.result.ledger.values
    assert encoded.result.ledger.disclosures == expected.result.ledger.disclosures
    if "beta" in how:
        np.testing.assert_allclose(encoded.gaps, expected.gaps, rtol=1e-3)
        model = DictionaryLearning(8, max_iter=2, cluster=cluster, **how).fit(X)
        simulated = DictionaryLearning(8, max_iter=2, cluster=LocalCluster(2), **how).fit(X)
        np.testing.assert_allclose(model.components_, simulated.components_, atol=1e-8)
        assert model.result_.ledger.values == simulated.result_.ledger.values


@pytest.mark.parametrize("selection", [RandomSubset(0.5), MCenters(0.3)], ids=["subset", "centers"])
def test_selections_that_leave_atoms_out(cluster, selection):
    X, y = two_classes()
    solver = Solver(selection=selection, tol=1e-3)
    model = KernelSVC(cluster=cluster, solver=solver).fit(X, y)
    expected = KernelSVC(cluster=LocalCluster(2, isolated=True), solver=solver).fit(X, y)
    result, wanted = model.result_, expected.result_
    assert (result.status, result.rounds) == (wanted.status, wanted.rounds)
    assert result.ledger.disclosures == wanted.ledger.disclosures
    assert result.ledger.values == wanted.ledger.values
    assert result.gap == pytest.approx(wanted.gap, rel=1e-6)  # over all atoms, not those chosen
    assert result.radius == pytest.approx(wanted.radius)
    assert bool(result.radius) == isinstance(selection, MCenters)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


def test_schedules_that_grow(cluster):
    X, y = two_classes()
    solver = Solver(selection=RandomSubset(lambda round: 5 + 3 * round), tol=1e-3)
    model = KernelSVC(cluster=cluster, solver=solver).fit(X, y)
    expected = KernelSVC(cluster=LocalCluster(2, isolated=True), solver=solver).fit(X, y)
    assert model.result_.ledger.disclosures == expected.result_.ledger.disclosures


def test_violators_drawn_at_random_are_the_same_ones(cluster):
    X, y = two_classes()
    solver = Solver(selection="random-violators", tol=1e-3)
    model = KernelSVC(cluster=cluster, solver=solver).fit(X, y)
    expected = KernelSVC(cluster=LocalCluster(2), solver=solver).fit(X, y)
    assert model.result_.ledger.disclosures == expected.result_.ledger.disclosures


def test_a_kernel_that_is_none_is_an_error_that_names_the_node(cluster):
    X, y = two_classes()
    K = X @ X.T
    model = MultipleKernelClassifier(kernels="precomputed", cluster=cluster)
    with pytest.raises(ValueError, match=r"shard 1.*is not positive semidefinite"):
        model.fit(Shards.split(np.hstack([K, -K]), 2, by="contiguous"), y)
