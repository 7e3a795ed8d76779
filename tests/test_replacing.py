"""Files are written under a name that nobody can foresee, and take their place when complete."""

from __future__ import annotations

import os
import stat
import threading

import numpy as np
import pytest

from atomcast import Checkpoint, Lasso, Solver, save_model
from atomcast._replacing import replacing


def test_the_old_content_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(TypeError), replacing(path, encoding="utf-8") as file:
        file.write(b"bytes")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_names_differ_and_are_created_anew(tmp_path, monkeypatch):
    names = []
    for _ in range(2):
        with replacing(tmp_path / "file") as file:
            names.append(file.name)
    assert len(set(names)) == 2
    (tmp_path / "other").touch()
    assert os.stat(tmp_path / "file").st_mode == os.stat(tmp_path / "other").st_mode
    # Even if somebody guessed the name, a link of theirs is not followed.
    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / ".file.guessed.part").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError), replacing(tmp_path / "file") as file:
        file.write(b"overwritten")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / ".file.guessed.part").is_symlink()


def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    said = []
    reader = threading.Thread(target=lambda: said.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replacing(tmp_path / "pipe") as file:
        file.write(b"through")
    reader.join()
    assert said == [b"through"]
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_nothing_foreseeable_is_opened_for_writing(tmp_path, monkeypatch):
    """Links that stand where a process used to write lead nowhere."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    for name in ("model", "checkpoint", "trace"):
        (tmp_path / f".{name}.{os.getpid()}.part").symlink_to(victim)
        (tmp_path / name).symlink_to(victim)
    X = np.random.default_rng(0).standard_normal((20, 3))
    solver = Solver(callbacks=[Checkpoint(tmp_path / "checkpoint")])
    model = Lasso(1.0, solver=solver).fit(X, X[:, 0])
    save_model(model, tmp_path / "model")
    model.result_.trace.to_csv(tmp_path / "trace")
    assert victim.read_bytes() == b"precious"
    for name in ("model", "checkpoint", "trace"):
        assert not (tmp_path / name).is_symlink()
