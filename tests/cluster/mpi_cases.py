"""What is special about MPI: ranks that hold a part each, and ranks that disagree or fail.

Every rank runs each case with its own communicator; like the contract, these are run by
`mpi_ranks.py`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from atomcast import (
    Checkpoint,
    KernelSVC,
    KernelSVR,
    Lasso,
    LassoCV,
    LocalCluster,
    MultipleKernelRegressor,
    Preparation,
    Shards,
    Solver,
    SparseLogisticRegressionCV,
    StructuredSVM,
    TimeLimit,
)
from atomcast.atoms.explicit import DenseAtoms
from atomcast.cluster.consistency import DriftError
from atomcast.cluster.mpi.failures import RankError
from atomcast.errors import ClusterError
from atomcast.network.wire import codec as wire
from atomcast.steps.inner.cone import Cones
from cluster import resume_cases
from cluster.contract import (
    assert_same_account,
    assert_same_fit,
    assert_same_result,
    fitted,
    parts_of,
    simulated,
)
from problems import regression, sparse_regression

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def own_folder(name):
    """A folder for the files of a case."""
    folder = Path(os.environ["ATOMCAST_CONTRACT_FOLDER"], name)
    folder.mkdir(exist_ok=True)
    return folder


def parts(X, nodes, rank):
    return np.array_split(np.arange(X.shape[1]), nodes)[rank]


@case
def every_rank_brings_its_own_part(cluster):
    nodes, rank = cluster.nodes, cluster.rank
    for X, y in (regression(seed=1, d=30, n=50), sparse_regression(seed=1)):
        own = parts(X, nodes, rank)
        names = [f"x{j}" for j in own]
        model = fitted(Shards.mine(X[:, own], names=names, row_ids=range(len(y))), y, cluster)
        whole = Shards.split(X, nodes, by="contiguous", names=[f"x{j}" for j in range(X.shape[1])])
        assert_same_result(model.result_, fitted(whole, y, simulated(nodes)).result_)
        assert model.n_features_in_ == X.shape[1]
        assert list(model.feature_names_in_) == [f"x{j}" for j in range(X.shape[1])]
        np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)


@case
def every_rank_keeps_the_weights_of_its_own_part(cluster):
    nodes, rank = cluster.nodes, cluster.rank
    X, y = regression(seed=12, d=40, n=90, support=40)
    own = parts(X, nodes, rank)
    how = {"beta": 8.0, "step": "compound", "tol": 1e-6, "reveal": "never"}
    model = fitted(Shards.mine(X[:, own]), y, cluster, **how)
    whole = Shards.split(X, nodes, by="contiguous")
    expected = fitted(whole, y, simulated(nodes), **how)
    assert model.result_.status == expected.result_.status == "optimal"
    np.testing.assert_allclose(model.coef_[own], expected.coef_[own], rtol=0, atol=1e-3)
    assert np.count_nonzero(model.coef_) == np.count_nonzero(model.coef_[own]) > 0
    # Rounding decides where an iterative method stops; what is said in a round is the same.
    first, there = (m.result_.ledger.by_round()[0] for m in (model, expected))
    assert first.values == there.values
    predicted = model.predict(Shards.mine(X[:5, own]))
    np.testing.assert_allclose(predicted, expected.predict(X[:5]), rtol=0, atol=1e-2)
    with pytest.raises(ValueError, match=r"Shards\.mine"):
        model.predict(X[:5])


@case
def a_rank_that_cannot_answer_is_named_by_all(cluster):
    X, y = regression(seed=12, d=40, n=90, support=40)
    solver = Solver(step="compound", reveal="never")
    with pytest.MonkeyPatch.context() as broken:
        if cluster.rank == cluster.nodes - 1:
            broken.setattr(Cones, "_room", lambda *asked: 1 / 0)
        with pytest.raises(ClusterError, match=f"rank {cluster.nodes - 1}.*division by zero"):
            Lasso(8.0, cluster=cluster, solver=solver).fit(X, y)
    assert Lasso(8.0, cluster=cluster, solver=solver).fit(X, y).result_.status == "optimal"


@case
def every_rank_prepares_its_own_table(cluster):
    X, y = regression(seed=1, d=30, n=20)
    table = pd.DataFrame(X).add_prefix("x")
    table.iloc[::3] = table.iloc[::3].where(table > 0)
    words = {f"w{j}": np.where(X[:, j] > 0, "a", "b") for j in range(cluster.nodes)}
    tidy = Preparation(impute="mean", scale="standard")

    def own(rank):
        columns = table.iloc[:, parts(X, cluster.nodes, rank)]
        return columns.assign(**{f"w{rank}": words[f"w{rank}"]})

    model = fitted(Shards.mine(own(cluster.rank), prepare=tidy), y, cluster)
    whole = pd.concat([own(rank) for rank in range(cluster.nodes)], axis=1)
    expected = fitted(Shards.split(whole, cluster.nodes, prepare=tidy), y, None)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
    assert len(model.preparation_) == cluster.nodes
    np.testing.assert_allclose(model.predict(whole), expected.predict(whole), atol=1e-6)


@case
def cross_validation_where_every_rank_has_its_own_part(cluster):
    X, y = regression(seed=1, d=40, n=16)
    own = parts(X, cluster.nodes, cluster.rank)
    mine = Shards.mine(X[:, own], party_name=f"party {cluster.rank}")
    parties = [f"party {rank}" for rank in range(cluster.nodes)]
    whole = Shards.split(X, cluster.nodes, by="contiguous", party_names=parties)
    for settings in ({"betas": [0.5, 2.0], "cv": 3}, {"n_betas": 4, "cv": 2}):
        model = LassoCV(**settings, cluster=cluster).fit(mine, y)
        expected = LassoCV(**settings, cluster=simulated(cluster.nodes)).fit(whole, y)
        np.testing.assert_allclose(model.mse_path_, expected.mse_path_, rtol=1e-6)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
        assert_same_account(model.result_.ledger, expected.result_.ledger)
    if cluster.nodes > 1:
        again = Shards.mine(X[:, own], party_name="the same")
        with pytest.raises(ValueError, match="party name 'the same' occurs twice"):
            LassoCV(cluster=cluster).fit(again, y)


@case
def classifiers_where_every_rank_has_its_own_part(cluster):
    X, y = regression(seed=2, d=60, n=16)
    own = parts(X, cluster.nodes, cluster.rank)
    labels = np.where(y > 0, "up", "down")
    model = SparseLogisticRegressionCV([1.0, 4.0], cv=2, cluster=cluster)
    model.fit(Shards.mine(X[:, own], names=[f"x{j}" for j in own]), labels)
    expected = SparseLogisticRegressionCV([1.0, 4.0], cv=2, cluster=1).fit(X, labels)
    assert model.n_features_in_ == 16
    assert list(model.feature_names_in_) == [f"x{j}" for j in range(16)]
    np.testing.assert_allclose(model.loss_path_, expected.loss_path_, rtol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=0.05)


@case
def all_ranks_have_the_same_model(cluster):
    X, y = regression(seed=2, d=30, n=50)
    model = fitted(X, y, cluster, step="pairwise", tol=1e-8)
    mine = np.append(model.coef_, model.result_.gap)
    first = mine.copy()
    cluster.comm.Bcast(first, 0)
    np.testing.assert_array_equal(mine, first)


@case
def scikit_learn_can_clone_the_estimator(cluster):
    X, y = regression(seed=3)
    assert_same_fit(X, y, clone(Lasso(cluster=cluster)).cluster, cluster.nodes)


@case
def another_parameter_on_one_rank(cluster):
    X, y = regression(seed=4)
    last = cluster.rank == cluster.nodes - 1
    beta, limit = (3.0, 10_000) if last else (2.0, 10_000)
    with pytest.raises(ValueError, match=r"told another problem\.domain\.beta.* 3\.0 against 2\.0"):
        fitted(X, y, cluster, beta)
    limit = 7 if last else 5
    with pytest.raises(ValueError, match=r"told another max_rounds.* 7 against 5"):
        fitted(X, y, cluster, max_rounds=limit)
    assert_same_fit(X, y, cluster, cluster.nodes)


@case
def only_one_rank_wants_to_resume(cluster):
    X, y = regression(seed=4)
    resume = "nowhere.safetensors" if cluster.rank == 0 else None
    with pytest.raises(ValueError, match=r"told another resume.* False against True"):
        fitted(X, y, cluster, resume=resume)


@case
def only_rank_0_has_a_checkpoint_callback(cluster):
    X, y = regression(seed=4)
    path = resume_cases.common("rank-0", cluster.nodes)
    watchers = [Checkpoint(path, rounds=1)] if cluster.rank == 0 else []
    fitted(X, y, cluster, max_rounds=2, callbacks=watchers)
    cluster.comm.Barrier()
    resumed = fitted(X, y, cluster, resume=path).result_
    expected = fitted(X, y, simulated(cluster.nodes)).result_
    np.testing.assert_allclose(resumed.weights, expected.weights, atol=1e-9)


@case
def a_checkpoint_in_a_folder_that_is_not_there(cluster):
    X, y = regression(seed=4)
    expected = FileNotFoundError if cluster.rank == 0 else RankError
    with pytest.raises(expected, match="there is no folder"):
        fitted(X, y, cluster, callbacks=[Checkpoint("nowhere/c.safetensors")])


@case
def another_target_on_one_rank(cluster):
    X, y = regression(seed=5)
    if cluster.rank == cluster.nodes - 1:
        y = y.copy()
        y[3] += 1e-13
    with pytest.raises(ValueError, match=rf"node {cluster.nodes - 1} was told another .*\.y"):
        fitted(X, y, cluster)


@case
def a_state_that_drifts_is_noticed_in_that_round(cluster):
    X, y = regression(seed=6, d=30, n=40)
    rounds = []

    def disturb(state):
        rounds.append(state.round)
        if state.round == 3 and cluster.rank == cluster.nodes - 1:
            state.replica.active.image = state.replica.active.image * (1 + 2**-50)

    with pytest.raises(DriftError, match=rf"round 4: node .*{cluster.nodes - 1}.* another state"):
        fitted(X, y, cluster, step="line-search", callbacks=[disturb])
    assert rounds == [0, 1, 2, 3]


@case
def a_callback_that_fails_on_one_rank(cluster):
    X, y = regression(seed=7, d=30, n=40)
    for failing in {0, cluster.nodes - 1}:

        def fail(state, failing=failing):
            if state.round == 2 and cluster.rank == failing:
                raise ZeroDivisionError("the callback is to blame")

        expected, message = RankError, rf"rank {failing} failed: .*the callback is to blame"
        if cluster.rank == failing:
            expected, message = ZeroDivisionError, "the callback is to blame"
        for step in ("classic", "corrective"):
            with pytest.raises(expected, match=message):
                fitted(X, y, cluster, step=step, tol=1e-14, atoms_per_round=2, callbacks=[fail])
    assert_same_fit(X, y, cluster, cluster.nodes)


@case
def a_callback_that_fails_in_the_last_round(cluster):
    """The other ranks have their result and leave: the error is that rank's own."""
    X, y = regression(seed=7, d=30, n=40)
    last = cluster.nodes - 1
    for how in ({"max_rounds": 3, "tol": 1e-14}, {"tol": 1e-4}):

        def fail(state, how=how):
            ends = state.relative_gap <= how["tol"] or state.round == how.get("max_rounds")
            if ends and cluster.rank == last:
                raise ZeroDivisionError("the callback is to blame")

        if cluster.rank == last:
            with pytest.raises(ZeroDivisionError, match="to blame"):
                fitted(X, y, cluster, callbacks=[fail], **how)
        else:
            assert fitted(X, y, cluster, callbacks=[fail], **how).result_.status != "stopped"
    assert_same_fit(X, y, cluster, cluster.nodes)


@case
def a_rank_that_wishes_to_stop_when_all_stop_anyway(cluster):
    X, y = regression(seed=7, d=30, n=40)

    def enough(state):
        return state.round < 3 or cluster.rank > 0

    result = fitted(X, y, cluster, step="classic", max_rounds=3, callbacks=[enough]).result_
    assert (result.status, result.rounds) == ("max_rounds", 3)


@case
def a_snapshot_that_nobody_else_knows_of(cluster):
    X, y = regression(seed=7, d=30, n=40)
    refused = []

    def look(state):
        try:
            state.snapshot()
        except ValueError as error:
            refused.append(str(error))

    fitted(X, y, cluster, callbacks=[look] if cluster.rank == 0 else [])
    if cluster.nodes > 1 and cluster.rank == 0:
        assert "Checkpoint(path) among the callbacks" in refused[0]
    else:
        assert not refused


@case
def a_kernel_machine_of_which_every_rank_knows_its_own_examples(cluster):
    X, y = make_classification(90, 6, random_state=0)
    own = np.array_split(np.arange(len(y)), cluster.nodes)[cluster.rank]
    mine = KernelSVC(cluster=cluster).fit(Shards.mine(X[own]), y[own], classes=[0, 1])
    whole = Shards.split(X, cluster.nodes, by="contiguous")
    plain = KernelSVC(cluster=LocalCluster(cluster.nodes)).fit(whole, y)
    assert_same_result(mine.result_, plain.result_)
    np.testing.assert_allclose(mine.decision_function(X), plain.decision_function(X))
    target = X[:, 0] + 0.1 * y
    mine = KernelSVR(cluster=cluster).fit(Shards.mine(X[own]), target[own])
    plain = KernelSVR(cluster=LocalCluster(cluster.nodes)).fit(whole, target)
    assert_same_result(mine.result_, plain.result_)
    np.testing.assert_allclose(mine.predict(X), plain.predict(X))


@case
def sequences_of_which_every_rank_knows_its_own(cluster):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 5, size=12)
    y = rng.integers(3, size=sizes.sum())
    X = np.round(np.eye(3)[y] + 0.6 * rng.standard_normal((len(y), 3)), 1)
    parts = np.array_split(np.arange(len(sizes)), cluster.nodes)
    rows = [int(sizes[part].sum()) for part in parts]
    own = slice(int(sum(rows[: cluster.rank])), int(sum(rows[: cluster.rank + 1])))
    whole = Shards.split(X, cluster.nodes, by=rows)
    for step in ("corrective", "block-coordinate"):
        solver = Solver(step, tol=1e-2)
        mine = StructuredSVM("chain", cluster=cluster, solver=solver)
        mine.fit(Shards.mine(X[own]), y[own], lengths=sizes[parts[cluster.rank]], classes=[0, 1, 2])
        plain = StructuredSVM("chain", cluster=LocalCluster(cluster.nodes), solver=solver)
        plain.fit(whole, y, lengths=sizes)
        assert (mine.n_iter_, mine.passes_) == (plain.n_iter_, plain.passes_)
        np.testing.assert_allclose(mine.coef_, plain.coef_, atol=1e-6)
        assert mine.result_.ledger.values == plain.result_.ledger.values


class Undecided:
    """Two classes by sign, but there is no answer for an input above 10."""

    d = 1

    def joint_feature(self, x, y):
        return y * x[0]

    def loss(self, y, other):
        return float(y != other)

    def decode(self, w, x, y=None):
        if x[0, 0] > 10:
            raise ArithmeticError("no answer")
        return max((-1, 1), key=lambda o: w @ self.joint_feature(x, o) + self.loss(y, o))


@case
def an_example_that_one_rank_cannot_decode(cluster):
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    X[7] = 11.0
    model = StructuredSVM(Undecided(), cluster=cluster)
    with pytest.raises((ValueError, RankError), match=r"example 7 of .*no answer"):
        model.fit(X, np.sign(X[:, 0]).tolist())


@case
def kernels_of_which_every_rank_knows_its_own_view(cluster):
    X, y = regression(seed=3, d=40, n=8)
    own = np.array_split(np.arange(8), cluster.nodes)[cluster.rank]
    kernels, solver = ["rbf", "linear"], Solver(tol=1e-3)
    mine = MultipleKernelRegressor(kernels=kernels, cluster=cluster, solver=solver)
    mine.fit(Shards.mine(X[:30, own]), y[:30])
    whole = Shards.split(X[:30], cluster.nodes, by="contiguous")
    plain = MultipleKernelRegressor(kernels=kernels, solver=solver).fit(whole, y[:30])
    assert_same_result(mine.result_, plain.result_)
    expected = plain.predict(X[30:])  # here, every rank works out its own part
    np.testing.assert_allclose(mine.predict(Shards.mine(X[30:, own])), expected)


@case
def scoring_that_fails_on_one_rank(cluster):
    X, y = regression(seed=8, d=30, n=40)
    failing = cluster.nodes - 1

    def spoil(state):
        if state.round == 2 and cluster.rank == failing:
            state.replica.domain = None

    with pytest.raises(AttributeError if cluster.rank == failing else RankError):
        fitted(X, y, cluster, step="classic", callbacks=[spoil])


@case
def clocks_and_callbacks_that_differ(cluster):
    X, y = regression(seed=9, d=30, n=40)
    last = cluster.rank == cluster.nodes - 1
    watchers = [TimeLimit(1e-9)] if last else []
    result = fitted(X, y, cluster, step="classic", callbacks=watchers).result_
    assert (result.status, result.rounds) == ("time_limit", 1)
    watchers = [lambda state: state.round < 4] if last else []
    result = fitted(X, y, cluster, step="classic", callbacks=watchers).result_
    assert (result.status, result.rounds) == ("stopped", 5)


@case
def a_matrix_cut_in_another_way_on_each_rank(cluster):
    X, y = regression(seed=10, d=20, n=40)
    shards = Shards.split(X, cluster.nodes, random_state=cluster.rank)
    with pytest.raises(ValueError, match=r"atoms are not held by exactly one node"):
        fitted(shards, y, cluster)


@case
def more_ranks_than_files(cluster):
    X, y = regression(seed=11, d=20, n=12)
    shards = Shards.files(parts_of(X, cluster.nodes + 1))
    with pytest.raises(ValueError, match=rf"{cluster.nodes + 1} files, but {cluster.nodes} ranks"):
        fitted(shards, y, cluster)


@case
def only_the_own_file_is_within_reach(cluster):
    X, y = regression(seed=12, d=20, n=24)
    nodes, rank = cluster.nodes, cluster.rank
    folder = own_folder(f"own-{nodes}-{rank}")
    np.save(folder / f"part-{rank}.npy", X[:, parts(X, nodes, rank)])
    shards = Shards.files([folder / f"part-{i}.npy" for i in range(nodes)])
    names = [f"part-{i}" for i in range(nodes)]
    whole = Shards.split(X, nodes, by="contiguous", party_names=names)
    expected = fitted(whole, y, simulated(nodes)).result_
    assert_same_result(fitted(shards, y, cluster).result_, expected)
    labels = np.where(y > 0, 1, 0)
    np.save(folder / f"part-{rank}.npy", np.array_split(X, nodes)[rank])
    expected = KernelSVC(cluster=LocalCluster(nodes)).fit(whole, labels).result_
    machine = KernelSVC(cluster=cluster).fit(Shards.files(shards.arguments()["paths"]), labels)
    assert_same_result(machine.result_, expected)


@case
def a_file_that_is_missing(cluster):
    X, y = regression(seed=13, d=20, n=24)
    paths = parts_of(X, cluster.nodes)
    if cluster.rank == cluster.nodes - 1:
        paths[-1].unlink()
    with pytest.raises(FileNotFoundError, match=rf"part-{cluster.nodes - 1}\.npy"):
        fitted(Shards.files(paths), y, cluster)


@case
def rows_in_another_order_on_one_rank(cluster):
    X, y = regression(seed=14, d=20, n=24)
    own = parts(X, cluster.nodes, cluster.rank)
    row_ids = np.arange(20)
    if cluster.rank == cluster.nodes - 1:
        row_ids = row_ids[::-1]
    with pytest.raises(ValueError, match=rf"shard {cluster.nodes - 1}: its row ids differ"):
        fitted(Shards.mine(X[:, own], row_ids=row_ids), y, cluster)


@case
def too_few_rows_on_one_rank(cluster):
    X, y = regression(seed=15, d=20, n=24)
    own = X[:, parts(X, cluster.nodes, cluster.rank)]
    if cluster.rank == cluster.nodes - 1:
        own = own[:-1]
    with pytest.raises(ValueError, match=rf"shard {cluster.nodes - 1} has 19 rows"):
        fitted(Shards.mine(own), y, cluster)


@case
def a_name_on_two_ranks(cluster):
    X, y = regression(seed=16, d=20, n=4 * cluster.nodes)
    own = X[:, parts(X, cluster.nodes, cluster.rank)]
    names = ["age", *(f"x{cluster.rank}-{j}" for j in range(3))]
    with pytest.raises(ValueError, match=r"the column name 'age' occurs more than once"):
        fitted(Shards.mine(own, names=names), y, cluster)


def own_peak():
    """The most memory, in bytes, that this process has had since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


@case
def a_matrix_in_a_file_costs_a_rank_its_own_part(cluster):
    if cluster.nodes > 2:
        return
    path = own_folder("mapped") / "X.npy"
    if cluster.rank == 0:
        rng = np.random.default_rng(0)
        np.save(path, rng.standard_normal((100_000, 120), dtype=np.float32))
    cluster.comm.Barrier()
    y = np.arange(100_000) % 2
    model = KernelSVC(cluster=cluster, solver=Solver(step="classic", max_rounds=2, tol=0.5))
    model.fit(np.load(path, mmap_mode="r"), y)  # compiles
    forget_peak()
    before = own_peak()
    model.fit(np.load(path, mmap_mode="r"), y)
    assert own_peak() - before < path.stat().st_size
    cluster.comm.Barrier()
    if cluster.rank == 0:
        path.unlink()


@case
def nan_in_a_matrix_that_is_in_a_file(cluster):
    path = own_folder(f"nan-{cluster.nodes}-{cluster.rank}") / "X.npy"
    X, y = regression(seed=17, d=20, n=24)
    X[3, 5] = np.nan
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    with pytest.raises(ValueError, match=r"shard \d: column 5 contains NaN, first in row 3"):
        Lasso(cluster=cluster).fit(mapped, y)
    with pytest.raises(ValueError, match=r"shard \d: row 3 contains NaN, first in column 5"):
        KernelSVC(cluster=cluster).fit(mapped, np.where(y > 0, 1, 0))


def failing_on_the_last_rank(cluster, monkeypatch, owner, name):
    """Let a function fail, with a message of its own, on the last rank alone."""

    def fail(*args, **kwargs):
        raise ZeroDivisionError("this machine is to blame")

    if cluster.rank == cluster.nodes - 1:
        monkeypatch.setattr(owner, name, fail)


@case
def an_atom_that_its_owner_cannot_send(cluster):
    """All ranks raise the same error; nobody waits for the deadline, and the next fit is well."""
    X, y = regression(seed=18, d=30, n=40)
    X[:, -1] = 10 * y  # the best atom, and so in the first round
    whole = Shards.split(X, cluster.nodes, by="contiguous")
    message = rf"round 0: node {cluster.nodes - 1} cannot send its atom: .*: this machine is to"
    for owner, name in ((DenseAtoms, "atom"), (wire, "encode")):
        for count in (1, 8):  # of one owner, and of several
            with pytest.MonkeyPatch.context() as patch:
                failing_on_the_last_rank(cluster, patch, owner, name)
                with pytest.raises(RankError, match=message) as caught:
                    fitted(whole, y, cluster, atoms_per_round=count)
                assert caught.value.raised_by_all
    assert_same_fit(X, y, cluster, cluster.nodes)


@case
def an_atom_that_one_rank_cannot_send_while_another_fails(cluster):
    """Whoever fails by itself still takes part in the broadcast, which tells it of the other."""
    X, y = regression(seed=18, d=30, n=40)
    X[:, -1] = 10 * y

    def fail(state):
        if cluster.rank == 0:
            raise KeyError("the callback is to blame")

    with pytest.MonkeyPatch.context() as patch:
        failing_on_the_last_rank(cluster, patch, DenseAtoms, "atom")
        with pytest.raises(KeyError if cluster.rank == 0 else RankError):
            fitted(Shards.split(X, cluster.nodes, by="contiguous"), y, cluster, callbacks=[fail])
    assert_same_fit(X, y, cluster, cluster.nodes)


@case
def an_atom_that_one_rank_cannot_read(cluster):
    X, y = regression(seed=18, d=30, n=40)
    X[:, 0] = 10 * y
    last = cluster.rank == cluster.nodes - 1
    with pytest.MonkeyPatch.context() as patch:
        failing_on_the_last_rank(cluster, patch, wire, "decode")
        with pytest.raises(ZeroDivisionError if last else RankError, match="to blame"):
            fitted(Shards.split(X, cluster.nodes, by="contiguous"), y, cluster)


@case
def atoms_that_one_rank_cannot_make_of_its_shard(cluster):
    X, y = regression(seed=18, d=30, n=40)
    with pytest.MonkeyPatch.context() as patch:
        failing_on_the_last_rank(cluster, patch, DenseAtoms, "__init__")
        with pytest.raises(RuntimeError, match=rf"rank {cluster.nodes - 1} failed: ZeroDivision"):
            fitted(X, y, cluster)
