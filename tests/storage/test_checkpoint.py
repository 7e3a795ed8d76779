"""Checkpoints: when they are written, what they hold, and which ones are refused."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import atomcast.storage.checkpoint
from atomcast import (
    Checkpoint,
    Lasso,
    LocalCluster,
    Shards,
    Solver,
    load_model,
    save_model,
)
from atomcast.domains.balls import L1Ball, Simplex
from atomcast.known.kernels.storage import Storage
from atomcast.loop.session import Session
from atomcast.objectives import SquaredError
from atomcast.problems.features import explicit_problem
from atomcast.storage.fingerprint import object_fingerprint, shard_fingerprint
from atomcast.storage.snapshot import read_checkpoint, write_checkpoint
from problems import regression, solve


@pytest.fixture
def data():
    return regression(seed=1, d=25, n=60)


@pytest.fixture
def path(tmp_path, data):
    """A checkpoint after three rounds."""
    file = tmp_path / "c.safetensors"
    solve(*data, L1Ball(2.0), nodes=3, max_rounds=3, callbacks=[Checkpoint(file)])
    return file


def written_rounds(monkeypatch, data, clock=None, **how):
    rounds = []
    monkeypatch.setattr(
        atomcast.storage.checkpoint, "write_checkpoint", lambda path, s: rounds.append(s.round)
    )
    if clock is not None:
        ticks = iter(np.arange(10_000) * clock)
        monkeypatch.setattr(
            atomcast.storage.checkpoint.time, "monotonic", lambda: float(next(ticks))
        )
    solver_with = {"step": "classic", "tol": 1e-12, "max_rounds": 10}
    solve(*data, L1Ball(2.0), callbacks=[Checkpoint("unused", **how)], **solver_with)
    return rounds


def test_every_so_many_rounds_and_at_the_end(monkeypatch, data):
    assert written_rounds(monkeypatch, data, rounds=4) == [4, 8, 10]


def test_every_so_many_seconds(monkeypatch, data):
    # The clock is looked at once a round and once more after writing: 10 seconds each time.
    assert written_rounds(monkeypatch, data, clock=10.0, seconds=25.0) == [3, 6, 9, 10]


def test_by_default_every_half_minute(monkeypatch, data):
    assert written_rounds(monkeypatch, data, clock=10.0) == [3, 6, 9, 10]
    assert Checkpoint("c").seconds == 30.0
    assert Checkpoint("c", rounds=5).seconds is None


@pytest.mark.parametrize("how", [{"rounds": 0}, {"rounds": 1.5}, {"seconds": 0}])
def test_bad_intervals(how):
    with pytest.raises(ValueError, match=next(iter(how))):
        Checkpoint("c.safetensors", **how)


def test_it_holds_the_log_and_the_weights_but_no_atoms(tmp_path):
    X, y = regression(seed=1, d=5_000, n=60)
    file = tmp_path / "c.safetensors"
    result = solve(X, y, L1Ball(2.0), nodes=3, tol=1e-9, callbacks=[Checkpoint(file)])
    snapshot = read_checkpoint(file)
    assert set(result.atom_ids) <= set(snapshot.ids)
    by_id = dict(zip(snapshot.ids, snapshot.weights, strict=True))
    np.testing.assert_allclose([by_id[i] for i in result.atom_ids], result.atom_weights)
    assert set(snapshot.memory) == {"image", "last_violation"}
    assert file.stat().st_size < 8 * (5_000 + 4 * len(snapshot.ids)) + 2_000  # the image, mainly


def test_a_copy_is_a_copy(tmp_path, path):
    write_checkpoint(tmp_path / "again.safetensors", read_checkpoint(path))
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_leftovers_of_killed_processes_are_removed(tmp_path, data):
    mine, other = tmp_path / ".c[1]*.st.123.part", tmp_path / ".c1.st.123.part"
    mine.touch(), other.touch()
    solve(*data, L1Ball(2.0), callbacks=[Checkpoint(tmp_path / "c[1]*.st")])
    assert not mine.exists()
    assert other.exists()


def test_a_failed_write_leaves_the_old_checkpoint(path, monkeypatch):
    before, snapshot = path.read_bytes(), read_checkpoint(path)

    def no_space(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        write_checkpoint(path, snapshot)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


# -- what is refused ------------------------------------------------------------------------------


def test_other_data_is_refused(data, path):
    X, y = data
    changed = X.copy()
    changed[7, 31] = np.nextafter(changed[7, 31], np.inf)  # the last bit of one value
    swapped = X[:, [1, 0, *range(2, 60)]]
    more = np.column_stack([X, np.zeros(25)])
    for other in (changed, swapped, more, X.astype(np.float32)):
        with pytest.raises(ValueError, match="checkpoint of other data"):
            solve(other, y, L1Ball(2.0), nodes=3, resume=path)
    cluster = LocalCluster(3, cast="float16")
    with pytest.raises(ValueError, match="checkpoint of other data"):
        solve(X, y, L1Ball(2.0), nodes=3, cluster=cluster, resume=path)


def test_another_problem_is_refused(data, path):
    X, y = data
    nearly = y.copy()
    nearly[3] += 1e-12
    for target, domain, how in (
        (nearly, L1Ball(2.0), {}),
        (y, L1Ball(2.1), {}),
        (y, Simplex(), {}),
        (y, L1Ball(2.0), {"fit_intercept": True}),
    ):
        with pytest.raises(ValueError, match="checkpoint of another problem"):
            solve(X, target, domain, nodes=3, resume=path, **how)


def test_another_step_is_refused(data, path):
    with pytest.raises(ValueError, match=r"step='corrective', but this run has step='away'"):
        solve(*data, L1Ball(2.0), resume=path, step="away")


def test_weights_that_do_not_give_the_objective_are_refused(data, path):
    snapshot = read_checkpoint(path)
    snapshot.weights[0] += 0.1
    write_checkpoint(path, snapshot)
    with pytest.raises(ValueError, match="does not go with this problem"):
        solve(*data, L1Ball(2.0), resume=path)


FORGERIES = {
    "infinite objective": ({"objective": np.inf}, "its objective has NaN or infinity"),
    "weights that are NaN": ({"weights": np.nan}, "its weights has NaN"),
    "best weights outside": ({"best": 5.0}, "its weights are not within the L1Ball"),
    "a smaller gap": ({"best_figures": np.array([0.0, 0.0, np.nan, np.nan])}, "objective"),
    "another image": ({"memory": "image"}, "its image is not that of its weights"),
    "a shorter image": ({"memory": "short"}, "its image has the shape"),
    "NaN in memory": ({"memory": "nan"}, "its last_violation has NaN"),
}


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("name", FORGERIES)
def test_what_does_not_follow_from_the_weights_is_refused(data, path, name, nodes):
    snapshot = read_checkpoint(path)
    (changed,), message = FORGERIES[name][0].items(), FORGERIES[name][1]
    part, value = changed
    if part == "memory":
        memory = dict(snapshot.memory)
        image = memory["image"]
        wrong = {"image": image + 0.01, "short": image[1:], "nan": image}[value]
        memory["image"] = wrong
        if value == "nan":
            memory["last_violation"] = np.array([np.nan])
        value = memory
    elif part in ("weights", "best"):
        value = np.concatenate([[value], getattr(snapshot, part)[1:]])
    write_checkpoint(path, replace(snapshot, **{part: value}))
    with pytest.raises(ValueError, match=f"does not describe a usable checkpoint.*{message}"):
        solve(*data, L1Ball(2.0), nodes=nodes, resume=path)


def test_a_gap_that_the_known_atoms_belie_is_refused(data, tmp_path):
    """Of the classic step, whose weights are far from the best that the known atoms allow."""
    path = tmp_path / "c.safetensors"
    how = {"step": "classic", "nodes": 2}
    solve(*data, L1Ball(2.0), **how, max_rounds=5, callbacks=[Checkpoint(path)])
    snapshot = read_checkpoint(path)
    gap, _, objective, lowest = snapshot.best_figures
    for figures, message in (
        ([0.0, 0.0, objective, lowest], "a gap of at least"),
        ([gap, gap / objective, objective, objective - 2 * gap], "a gap of at least"),
        ([gap, 1e-6, objective, lowest], "is no relative gap of"),
        ([gap, gap / objective, 2 * objective, lowest], "have the objective"),
    ):
        write_checkpoint(path, replace(snapshot, best_figures=np.array(figures)))
        with pytest.raises(ValueError, match=message):
            solve(*data, L1Ball(2.0), **how, resume=path)


def test_atoms_that_nobody_holds_are_refused(data, path):
    snapshot = read_checkpoint(path)
    for wrong in (60, -1):
        snapshot.ids[2] = wrong
        write_checkpoint(path, snapshot)
        with pytest.raises(ValueError, match=f"has an atom {wrong}, which no node holds"):
            solve(*data, L1Ball(2.0), nodes=3, resume=path)


def test_mistakes_are_found_before_the_work_is_done(data, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        solve(*data, L1Ball(2.0), callbacks=[Checkpoint(tmp_path / "nowhere" / "c")])
    with pytest.raises(ValueError, match="resume must be the path of a checkpoint"):
        Solver(resume=True)
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        solve(*data, L1Ball(2.0), callbacks=[Checkpoint(tmp_path)])


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody can write to")
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_folder_that_cannot_be_written_to_is_found_before_the_first_step(data, nodes):
    seen = []
    watch = [Checkpoint("/proc/self/c.safetensors"), lambda state: seen.append(state.round)]
    with pytest.raises(OSError, match=r"nothing can be written to the folder /proc/self \("):
        solve(*data, L1Ball(2.0), nodes=nodes, callbacks=watch)
    assert seen == []


@pytest.mark.parametrize(("lost_in", "warnings"), [(3, 1), (1, 3)])
def test_a_checkpoint_that_cannot_be_written_does_not_cost_the_fit(
    data, tmp_path, lost_in, warnings
):
    folder = tmp_path / "full"
    folder.mkdir()
    checkpoint = Checkpoint(folder / "c.safetensors", rounds=1)

    def lose_the_folder(state):
        if state.round == lost_in:
            shutil.rmtree(folder)

    how = {"step": "classic", "max_rounds": 3, "callbacks": [checkpoint, lose_the_folder]}
    with pytest.warns(RuntimeWarning, match="could not be written to") as told:
        result = solve(*data, L1Ball(2.0), **how)
    assert len(told) == warnings
    expected = solve(*data, L1Ball(2.0), **how | {"callbacks": []})
    np.testing.assert_array_equal(result.weights, expected.weights)


def test_files_that_are_no_checkpoint(data, tmp_path, path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        solve(*data, L1Ball(2.0), resume=tmp_path / "nowhere.safetensors")
    model = tmp_path / "m.safetensors"
    save_model(Lasso(2.0).fit(*data), model)
    with pytest.raises(ValueError, match="is no checkpoint, but a model"):
        solve(*data, L1Ball(2.0), resume=model)
    with pytest.raises(ValueError, match="usable model"):
        load_model(path)
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[:300], content[:-9] + b"\x01" + content[-8:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"no checkpoint file, or is damaged|is damaged"):
            solve(*data, L1Ball(2.0), resume=path)


class Elsewhere:
    """A cluster whose session has the verbs of every session, and no more."""

    nodes = 3

    def open(self, problem, shards):
        inner = LocalCluster(3).open(problem, shards)
        verbs = ["begin", "propose", "cast", "leave", "vote"]
        members = {name: staticmethod(getattr(inner, name)) for name in verbs}
        members |= {"nodes": 3, "n": inner.n, "ledger": inner.ledger}
        return type("ElsewhereSession", (Session,), members)()


def test_clusters_that_cannot_resume_say_so_at_once(data, path):
    assert solve(*data, L1Ball(2.0), nodes=3, cluster=Elsewhere()).status == "optimal"
    before = path.read_bytes()
    for how in ({"resume": path}, {"callbacks": [Checkpoint(path, rounds=100)]}):
        with pytest.raises(ValueError, match="ElsewhereSession can neither write nor resume"):
            solve(*data, L1Ball(2.0), nodes=3, cluster=Elsewhere(), **how)
    assert path.read_bytes() == before


# -- fingerprints ---------------------------------------------------------------------------------

VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-300, 3.7])
MATRICES = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=VALUES
)


def fingerprint(X, nodes=1, seed=0, axis=1):
    shards = Shards.split(X, nodes, random_state=seed)
    return sum(shard_fingerprint(shards.shard(i, axis), axis) for i in range(nodes)) % 2**64


@settings(deadline=None, max_examples=60)
@given(X=MATRICES, nodes=st.integers(1, 5), seed=st.integers(0, 100))
def test_the_same_data_has_the_same_fingerprint(X, nodes, seed):
    expected = fingerprint(X)
    assert fingerprint(X, nodes, seed) == expected
    assert fingerprint(sparse.csc_array(X), nodes, seed) == expected
    assert fingerprint(sparse.csr_array(X)) == expected
    assert fingerprint(np.asfortranarray(X)) == expected
    assert fingerprint(X.T, nodes, seed, axis=0) == expected
    assert fingerprint(sparse.csr_array(X.T), nodes, seed, axis=0) == expected


@settings(deadline=None, max_examples=60)
@given(X=MATRICES, Y=MATRICES)
def test_other_data_has_another_fingerprint(X, Y):
    same = X.shape == Y.shape and np.array_equal(X, Y)
    if X.shape[1] == Y.shape[1] and not same and (X.any() or Y.any()):
        rows = min(len(X), len(Y))
        padded = not (
            np.array_equal(X[:rows], Y[:rows]) and not X[rows:].any() and not Y[rows:].any()
        )
        assert (fingerprint(X) != fingerprint(Y)) == padded  # zero rows at the end add nothing


def test_many_small_changes_of_binary_data_are_all_noticed():
    X = (np.random.default_rng(0).random((40, 50)) < 0.1).astype(float)
    seen = {fingerprint(X)}
    for i in range(40):
        for j in range(50):
            changed = X.copy()
            changed[i, j] = 1.0 - changed[i, j]
            seen.add(fingerprint(changed))
    assert len(seen) == 2001


def test_large_dense_data_is_looked_at_in_pieces(monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 40))
    whole = fingerprint(X)
    monkeypatch.setattr("atomcast.storage.fingerprint.PIECE", 64)
    assert fingerprint(X) == whole


def test_objects_are_told_apart_by_what_they_mean():
    y = np.arange(5.0)
    problem = explicit_problem(SquaredError(y), L1Ball(1.0))
    used = explicit_problem(SquaredError(y), L1Ball(1.0))
    used.make_active().append([])
    assert object_fingerprint(problem) == object_fingerprint(used)
    others = [
        explicit_problem(SquaredError(y + 1), L1Ball(1.0)),
        explicit_problem(SquaredError(y, True), L1Ball(1.0)),
        explicit_problem(SquaredError(y), L1Ball(2.0)),
        explicit_problem(SquaredError(y), Simplex()),
        *([1, 2], [[1], 2], (1, 2), {"a": 1}, {"a": 2}, "12", 12, 12.0, None, True, L1Ball),
        *(y, y.reshape(5, 1), y.tolist(), sparse.csc_array(np.eye(2))),
    ]
    assert len({object_fingerprint(thing) for thing in [problem, *others]}) == len(others) + 1
    with pytest.raises(ValueError, match="no way to tell some builtin_function_or_method"):
        object_fingerprint(len)


def test_how_kernel_values_are_kept_does_not_make_another_problem():
    assert object_fingerprint(Storage(1, np.float32)) == object_fingerprint(Storage(2, np.float64))
    assert object_fingerprint(Storage(1)) != object_fingerprint(L1Ball(1.0))


def test_what_a_function_closes_over_counts():
    def make(scale):
        return lambda x: scale * x

    assert object_fingerprint(make(1)) == object_fingerprint(make(1))
    assert object_fingerprint(make(1)) != object_fingerprint(make(2))
