"""Sparse codes: those of scikit-learn and celer, certified signal by signal, on any network."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from atomcast import Checkpoint, Faults, LocalCluster, Shards, Solver, SparseCoder
from atomcast.atoms import signals
from atomcast.cluster.node import Fleet


def problem(seed=0, atoms=60, d=20, signals=25):
    """A dictionary of unit atoms, and noisy combinations of a few of them."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((atoms, d))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    W = np.zeros((signals, atoms))
    for row in W:
        row[rng.choice(atoms, 4, replace=False)] = rng.standard_normal(4)
    return D, W @ D + 0.05 * rng.standard_normal((signals, d))


def in_shards(D):
    return Shards.split(D, nodes=5)


def gaps_by_hand(D, X, codes, radii):
    """The duality gap of each signal, from its definition, or its error if that is smaller."""
    residual = X - codes @ D
    scores = 2 * residual @ D.T
    gaps = radii * np.abs(scores).max(axis=1) - np.sum(codes * scores, axis=1)
    return np.minimum(gaps, np.sum(residual**2, axis=1))


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("nodes", [1, 3, 8])
def test_the_codes_of_scikit_learn_at_the_matching_penalty(alpha, nodes):
    D, X = problem()
    theirs = sparse_encode(X, D, algorithm="lasso_lars", alpha=alpha)
    radii = np.abs(theirs).sum(axis=1)
    some = radii > 0.0
    coder = SparseCoder(D, beta=radii[some], cluster=nodes)
    encoded = coder.encode(X[some])
    codes = encoded.codes.toarray()
    np.testing.assert_allclose(codes, theirs[some], atol=1e-6)
    assert encoded.result.status == "optimal"
    by_hand = gaps_by_hand(D, X[some], codes, radii[some])
    assert np.all(by_hand <= encoded.gaps + 1e-13)
    error = np.sum((X[some] - codes @ D) ** 2, axis=1)
    assert np.all(encoded.gaps <= 1e-9 * error + 1e-14 * np.sum(X[some] ** 2, axis=1))


def test_the_codes_of_celer_at_the_matching_penalty():
    from celer import Lasso

    D, X = problem(1)
    theirs = np.array([
        Lasso(alpha=0.005, fit_intercept=False, tol=1e-14).fit(D.T, x).coef_ for x in X
    ])  # fmt: skip
    codes = SparseCoder(D, beta=np.abs(theirs).sum(axis=1), cluster=3).transform(X)
    np.testing.assert_allclose(codes.toarray(), theirs, atol=1e-6)


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize("nodes", [1, 4])
def test_pursuits_are_those_of_scikit_learn(count, nodes):
    D, X = problem(2)
    encoded = SparseCoder(D, n_nonzero=count, cluster=nodes).encode(X)
    theirs = sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=count)
    np.testing.assert_allclose(encoded.codes.toarray(), theirs, atol=1e-9)
    assert encoded.codes.has_canonical_format
    assert encoded.gaps is None
    assert encoded.result.gap is None
    assert encoded.result.status == "reached"


@pytest.mark.parametrize("how", [{"beta": 1.5}, {"n_nonzero": 3}])
@pytest.mark.parametrize("topology", ["star", "tree", "complete"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.float32, in_shards])
def test_any_network_and_any_form_of_dictionary(how, topology, form):
    D, X = problem(3)
    D = np.where(np.abs(D) > 0.1, D, 0.0).astype(np.float32).astype(float)
    expected = SparseCoder(D, **how).transform(X).toarray()
    cluster = LocalCluster(5, topology=topology)
    codes = SparseCoder(form(D), cluster=cluster, **how).transform(sparse.csr_array(X))
    np.testing.assert_allclose(codes.toarray(), expected, atol=1e-8)


@pytest.mark.parametrize("how", [{"beta": 1.5}, {"n_nonzero": 4}])
def test_an_atom_is_sent_once_for_all_signals(how):
    D, X = problem(4, signals=200)
    ledger = SparseCoder(D, cluster=6, **how).encode(X).result.ledger
    sent = [one.atom for one in ledger.disclosures]
    assert len(sent) == len(set(sent)) == ledger.atoms_sent
    per_signal = [
        SparseCoder(D, cluster=6, **how).encode(X[:size]).result.ledger.values / size
        for size in (5, 25, 200)
    ]
    assert per_signal[0] > per_signal[1] > per_signal[2]


def test_what_signals_say_on_a_star():
    D, X = problem(5, signals=12)
    ledger = SparseCoder(D, n_nonzero=1, cluster=4).encode(X).result.ledger
    kinds = ledger.by_kind()
    # Every node has an atom for every signal in round 0, and is told all choices; then, nothing
    # is left to say but that, in one number.
    assert kinds["index"].values == 2 * 4 * 12
    assert kinds["proposal"].values == 2 * 4 * 12 + 2 * 4
    assert kinds["target"].values == 4 * X.size


@pytest.mark.parametrize("topology", ["tree", "complete"])
def test_what_signals_say_on_other_networks(topology):
    D, X = problem(5, signals=12)
    cluster = LocalCluster(7, topology=topology)
    ledger = SparseCoder(D, n_nonzero=1, cluster=cluster).encode(X).result.ledger
    # On a tree, a node passes on one proposal for each signal, however many have come to it.
    edges = {"tree": 2 * 6, "complete": 7 * 6}[topology]
    assert ledger.by_kind()["index"].values == edges * 12


@pytest.mark.parametrize("how", [{"beta": 2.0}, {"n_nonzero": 3}])
def test_signals_may_choose_before_or_after_they_are_told(how, monkeypatch):
    D, X = problem(signals=700)[:2]
    D[40:50] = D[3:13]  # atoms that tie, on several nodes
    monkeypatch.setattr(signals, "PIECE", 1000)  # many pieces

    def coded():
        return SparseCoder(D, cluster=LocalCluster(5), **how).encode(X)

    before = coded()
    monkeypatch.setattr(Fleet, "choose", property(lambda _: False, lambda *_: None), raising=False)
    after = coded()
    np.testing.assert_array_equal(before.codes.toarray(), after.codes.toarray())
    for name in ("gap", "atoms", "values", "bytes"):
        np.testing.assert_array_equal(before.result.trace[name], after.result.trace[name])


def test_signals_stop_by_themselves():
    D, X = problem(6, signals=30)
    easy = np.vstack([X, np.zeros((2, D.shape[1])), 0.3 * D[:3]])
    encoded = SparseCoder(D, beta=0.4, cluster=3).encode(easy)
    assert encoded.codes[30:32].nnz == 0
    np.testing.assert_allclose(encoded.codes[32:].toarray(), 0.3 * np.eye(60)[:3], atol=1e-12)
    alone = SparseCoder(D, beta=0.4, cluster=3).encode(X).codes
    np.testing.assert_allclose(encoded.codes[:30].toarray(), alone.toarray(), atol=1e-8)


@pytest.mark.parametrize("radius", [0.01, 1.0, 5.0, 1e3])
def test_atoms_that_depend_on_each_other(radius):
    D, X = problem(7, d=8)
    D = np.vstack([D, D[:10], -D[:5], (D[:5] + D[5:10]) / 2])
    encoded = SparseCoder(D, beta=radius, cluster=4).encode(X)
    codes = encoded.codes.toarray()
    assert encoded.result.status == "optimal"
    assert np.all(np.abs(codes).sum(axis=1) <= radius * (1 + 1e-12))
    by_hand = gaps_by_hand(D, X, codes, np.full(len(X), radius))
    error = np.sum((X - codes @ D) ** 2, axis=1)
    assert np.all(by_hand <= 1e-9 * error + 1e-13 * np.sum(X**2, axis=1))
    pursuit = SparseCoder(D, n_nonzero=20, cluster=4).encode(X)
    assert np.isfinite(pursuit.codes.data).all()
    assert pursuit.result.objective < 1e-20


def test_a_run_that_is_cut_short_says_how_good_its_codes_are():
    D, X = problem(8)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        encoded = SparseCoder(D, beta=2.0, solver=Solver(tol=1e-9, max_rounds=1)).encode(X)
    by_hand = gaps_by_hand(D, X, encoded.codes.toarray(), np.full(len(X), 2.0))
    assert encoded.gaps.sum() == pytest.approx(encoded.result.gap)
    assert np.all(by_hand <= encoded.gaps * (1 + 1e-9))
    assert encoded.result.status == "max_rounds"


def test_a_run_is_resumed(tmp_path):
    D, X = problem(9)
    path = tmp_path / "run.safetensors"
    part = Solver(tol=1e-9, max_rounds=2, callbacks=[Checkpoint(path, rounds=1)])
    with pytest.warns(ConvergenceWarning):
        SparseCoder(D, beta=2.0, cluster=3, solver=part).encode(X)
    rest = SparseCoder(D, beta=2.0, cluster=2, solver=Solver(tol=1e-9, resume=path)).encode(X)
    whole = SparseCoder(D, beta=2.0).encode(X)
    assert rest.result.status == "optimal"
    np.testing.assert_allclose(rest.codes.toarray(), whole.codes.toarray(), atol=1e-8)


def test_transform_needs_no_fit_but_for_a_dictionary():
    D, X = problem()
    coder = SparseCoder(D, n_nonzero=2)
    before = coder.transform(X)
    np.testing.assert_array_equal(coder.fit(X).transform(X).toarray(), before.toarray())
    other = coder.set_params(dictionary=D[::-1]).transform(X)
    np.testing.assert_allclose(other.toarray()[:, ::-1], before.toarray(), atol=1e-12)
    with pytest.raises(ValueError, match="the atoms of the dictionary have 20"):
        coder.fit(X[:, :19])
    assert coder.fit(X).get_feature_names_out().tolist() == [f"sparsecoder{k}" for k in range(60)]
    with pytest.raises(NotFittedError):
        SparseCoder(n_nonzero=2).transform(X)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"beta": -1.0}, "beta must be a finite number > 0"),
        ({"beta": "wide"}, "beta must be a finite number > 0"),
        ({"beta": [1.0, 2.0]}, "one for each of the 25 signals"),
        ({"n_nonzero": 61}, "n_nonzero=61 is more than the 60 atoms: use at most 60"),
        ({"n_nonzero": 0}, "n_nonzero must be a whole number >= 1"),
        ({"beta": 1.0, "n_nonzero": 2}, "exclude each other"),
        ({"solver": "away"}, "step='away' is not for sparse coding"),
        ({"solver": Solver(selection="random-subset")}, "is not for sparse coding"),
        ({"dictionary": np.eye(19)}, "the atoms of the dictionary have 19"),
        ({"dictionary": np.diag([1.0] * 19 + [0.0])}, "dictionary: atom 19 is zero"),
        ({"dictionary": Shards.split(np.diag([0.0] + [1.0] * 19), 2)}, "atom 0 is zero"),
        ({"cluster": LocalCluster(3, faults=Faults(loss=0.1))}, "needs all nodes in every round"),
        ({"cluster": LocalCluster(3, asynchronous=True)}, "depends on the order"),
    ],
)
def test_bad_parameters(wrong, says):
    D, X = problem()
    parameters = {"dictionary": D, **wrong}
    with pytest.raises(ValueError, match=says):
        SparseCoder(**parameters).transform(X)
