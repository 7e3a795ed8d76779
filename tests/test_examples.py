"""Every example runs, in a process of its own, and says something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

ROOT = Path(__file__).parents[1]
#: These start ranks, actors or threads of their own: one at a time.
PROCESSES = ("federated/three_hospitals.py", "mpi_lasso.py", "ray_lasso.py")
FOLDER = ROOT / "examples"
EXAMPLES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py"))


def run(name: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in PROCESSES])
def test_example(name, tmp_path):
    assert run(name, tmp_path).strip()


@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("name", PROCESSES)
def test_example_with_processes(name, tmp_path):
    from cluster.conftest import MPI_ENVIRONMENT, RAY_ENVIRONMENT

    assert run(name, tmp_path, **(MPI_ENVIRONMENT | RAY_ENVIRONMENT)).strip()
