"""The tutorials: their code runs from the top of a page to its end."""

import re
from pathlib import Path

import pytest

from cluster.conftest import MPI_ENVIRONMENT

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
