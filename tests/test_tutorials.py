"""The tutorials: their code runs from the top of a page to its end."""

import re
from pathlib import Path

import numpy as np
import pytest

from cluster.conftest import MPI_ENVIRONMENT
from cluster.test_mpi import mpirun
from patience import PATIENCE

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = [
    pytest.param(path, marks=[pytest.mark.mpi, pytest.mark.xdist_group("processes")])
    if path.stem == "mpi"
    else path
    for path in sorted(FOLDER.glob("*.md"))
    if path.stem != "index"
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_tutorial_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    everything = {"__name__": "__main__"}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(page), "exec"), everything)
    assert blocks
    assert everything["model"].result_.status == "optimal"
    assert capsys.readouterr().out.count("\n") >= 3


@pytest.mark.mpi
@pytest.mark.xdist_group("processes")
def test_the_program_for_ranks_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```py\n(.*?)```", (FOLDER / "mpi.md").read_text(), re.DOTALL)
    Path("svm.py").write_text(program)
    X = np.random.default_rng(0).standard_normal((60, 4))
    for rank, rows in enumerate((slice(25), slice(25, None))):
        np.save(f"examples-{rank}.npy", X[rows])
        np.save(f"labels-{rank}.npy", (X[rows, 0] > 0).astype(int))
    code, output = mpirun(2, "svm.py", limit=PATIENCE)
    assert code == 0, output
    assert "optimal" in output
    np.save("labels-1.npy", [0, 1])
    code, output = mpirun(2, "svm.py", limit=PATIENCE)
    assert code != 0
    assert "y has 2 labels, but this process's X has 35 rows" in output
