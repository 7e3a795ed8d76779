"""Jobs of an experiment: side by side, interrupted, and taken up again."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from atomcast.commands.reproduce import reproduce_app
from atomcast.experiments.figures.fig2a import Fig2a
from atomcast.experiments.figures.fig3 import Fig3
from atomcast.experiments.runs.curves import Point
from atomcast.experiments.runs.jobs import Done, Job, Plan, checksum, run_jobs
from pictures import read

SIZES = {
    "d": 40, "n": 80, "atom_densities": (0.1, 0.5), "solution_densities": (0.05,), "nodes": 4,
    "rounds": 20, "admm_rounds": 10,
}  # fmt: skip
TINY = Fig3(**SIZES)


def work(k: int, log: Path, broken: Path) -> Done:
    """Leave a mark, and fail where told to."""
    if broken.exists() and broken.read_text() == str(k):
        raise RuntimeError(f"part {k} is broken")
    with log.open("a") as file:
        file.write(f"{k}\n")
    row = Point("panel", "method", k, 0, 0.1 * k, math.inf, math.nan, 1 / 3, k, 10**15 + k, 0)
    return Done([row], (1 / 3, math.inf, k))


@pytest.fixture
def parts(tmp_path):
    log, broken = tmp_path / "log", tmp_path / "broken"
    log.touch()
    return [Job(f"part {k}", "given", partial(work, k, log, broken)) for k in range(4)]


def ran(folder):
    return sorted((folder / "log").read_text().split())


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_parts(parts, tmp_path, jobs):
    done = run_jobs("e", parts, tmp_path / "out", Plan(jobs))
    assert [one.facts[2] for one in done] == [0, 1, 2, 3]
    assert ran(tmp_path) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_finished_before_a_failure_is_not_run_again(parts, tmp_path, jobs, capsys):
    (tmp_path / "broken").write_text("3")
    with pytest.raises(RuntimeError, match="part 3 is broken"):
        run_jobs("e", parts, tmp_path / "out", Plan(jobs))
    (tmp_path / "broken").unlink()
    kept = {path.stem for path in (tmp_path / "out" / "e-parts").glob("*.json")}
    assert "part 3" not in kept
    assert kept or jobs == 2
    before = ran(tmp_path)
    done = run_jobs("e", parts, tmp_path / "out", Plan(jobs, resume=True))
    assert len(ran(tmp_path)) == len(before) + 4 - len(kept)
    assert [one.facts[2] for one in done] == [0, 1, 2, 3]
    assert capsys.readouterr().err.count("finished before") == len(kept)


def test_numbers_survive_the_file(parts, tmp_path):
    fresh = run_jobs("e", parts, tmp_path / "out")
    kept = run_jobs("e", parts, tmp_path / "out", Plan(resume=True))
    assert ran(tmp_path) == ["0", "1", "2", "3"]
    assert repr(kept) == repr(fresh)  # NaN is not equal to itself


def test_without_resume_everything_is_run_again(parts, tmp_path):
    run_jobs("e", parts, tmp_path / "out")
    run_jobs("e", parts, tmp_path / "out")
    assert len(ran(tmp_path)) == 8


def test_finished_runs_can_be_judged_while_others_are_missing(tmp_path):
    TINY.run(runs=1, out=tmp_path)
    replace(TINY, atom_densities=(0.5,)).run(runs=2, out=tmp_path, plan=Plan(resume=True))
    rows, needs, *_ = TINY.run(runs=3, out=tmp_path, plan=Plan(finished=True))
    assert {one.atom_density: one.runs for one in needs} == {0.5: 2, 0.1: 1}
    assert {row.run for row in rows} == {0, 1}
    with pytest.raises(ValueError, match=r"--finished needs a finished run of each problem"):
        replace(TINY, atom_densities=(0.5, 0.3)).run(out=tmp_path, plan=Plan(finished=True))


def test_parts_of_other_settings_are_run_again(parts, tmp_path, capsys):
    run_jobs("e", parts, tmp_path / "out")
    others = [part._replace(given="something else") for part in parts[:1]]
    run_jobs("e", others + parts[1:], tmp_path / "out", Plan(resume=True))
    assert ran(tmp_path) == ["0", "0", "1", "2", "3"]
    assert "part 0.json: of other data or settings; run anew" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"schema": 1}'])
def test_a_corrupt_file_is_named(parts, tmp_path, content):
    run_jobs("e", parts, tmp_path / "out")
    (tmp_path / "out" / "e-parts" / "part 2.json").write_text(content)
    with pytest.raises(ValueError, match=r"part 2\.json is not a finished part .* delete it"):
        run_jobs("e", parts, tmp_path / "out", Plan(resume=True))


def test_checksum_tells_data_apart():
    X, y = np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0])
    changed = X.copy()
    changed[1, 1] += 1e-9
    sums = [
        checksum(X, y), checksum(changed, y), checksum(X, -y), checksum(X.reshape(3, 2), y),
        checksum(sparse.csc_array(X), y), checksum(sparse.csc_array(changed), y),
    ]  # fmt: skip
    assert len(set(sums)) == len(sums)
    assert checksum(X.copy(), y.copy()) == sums[0]


def test_fig3_does_not_depend_on_jobs_nor_on_interruptions(tmp_path):
    def untimed(rows):
        return [row._replace(seconds=0.0) for row in rows]

    rows, needs, *_ = TINY.run(runs=2, out=tmp_path / "one")
    side_by_side = TINY.run(runs=2, out=tmp_path / "two", plan=Plan(2))
    assert untimed(side_by_side[0]) == untimed(rows)
    assert side_by_side[1] == needs
    # One density now, and the other later.
    half = replace(TINY, atom_densities=(0.5,))
    half.run(runs=2, out=tmp_path / "three")
    resumed = TINY.run(runs=2, out=tmp_path / "three", plan=Plan(resume=True))
    assert untimed(resumed[0]) == untimed(rows)
    assert resumed[1] == needs
    assert len(read(tmp_path / "three" / "fig3-verdict.csv")) == 2


def test_what_a_run_depends_on_is_written_as_it_always_was():
    """Else --resume would run anew what earlier versions have finished."""
    assert TINY.given(None, (0.5, 0.05)) == (
        "Setting(d=40, n=80, atom_densities=(0.5,), solution_densities=(0.05,), nodes=4, "
        "penalty=0.1, rounds=20, most_rounds=10000, admm_rounds=10, tol=0.001)"
    )
    assert Fig2a().sizes == (
        "Setting(nodes=100, rounds=5000, per_node=(1, 2, 3, 5, 7, 10, 15, 20, 30), tol=0.01, "
        "local_step='classic', batch=10, budgets=(100000.0, 300000.0, 1000000.0, 3000000.0), "
        "cost=100.0, examples=None)"
    )


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setattr(Fig3, "quick", SIZES)
    arguments = ["fig3", "--quick", "--runs", "1", "--jobs", "2", "--out", str(tmp_path)]
    assert CliRunner().invoke(reproduce_app, arguments).exit_code == 0
    outcome = CliRunner().invoke(reproduce_app, [*arguments, "--resume"])
    assert outcome.exit_code == 0
    assert outcome.stderr.count("finished before") == 2
    (tmp_path / "fig3-parts" / "s_A=0.5 s_alpha=0.05 run 0.json").write_text("{")
    outcome = CliRunner().invoke(reproduce_app, [*arguments, "--resume"])
    assert outcome.exit_code == 2
    assert "delete it, or run without --resume" in outcome.stderr
