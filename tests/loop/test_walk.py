"""A round of Lasso is short enough to be read: the files that it crosses, as they are drawn."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import atomcast
from atomcast import Lasso, LocalCluster, Solver
from problems import regression

ROOT = Path(__file__).parents[2]
SOURCE = Path(atomcast.__file__).parent
ROUND = 1


def files_of_a_round():
    """The files of atomcast whose functions are called in one round."""
    crossed, watching = set(), False

    def note(frame, event, _):
        if event == "call" and watching:
            crossed.add(frame.f_code.co_filename)

    def watch(state):
        nonlocal watching
        watching = state.round == ROUND

    X, y = regression(seed=0, d=200, n=1000, support=10)
    model = Lasso(5.0, cluster=LocalCluster(100), solver=Solver(callbacks=[watch]))
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(before)
    assert model.result_.rounds > ROUND + 1  # the last one also says goodbye
    assert np.any(model.result_.trace.atoms > 1)
    paths = (Path(name) for name in crossed)
    return {str(path.relative_to(SOURCE)) for path in paths if path.is_relative_to(SOURCE)}


def test_a_round_crosses_few_files():
    assert len(files_of_a_round()) <= 23


def test_architecture_draws_the_files_of_a_round():
    page = ROOT / "ARCHITECTURE.md"
    if not page.exists():
        pytest.skip("installed without the documentation")
    drawing = page.read_text().split("these are all that it crosses:")[1].split("```")[1]
    assert set(re.findall(r"[\w/]+\.py", drawing)) == files_of_a_round()
