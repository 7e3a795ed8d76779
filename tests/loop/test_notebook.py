"""A real notebook: one line that moves while a fit runs, tables of what it leaves behind."""

import pytest

from atomcast.loop.callbacks import in_notebook

CELLS = [
    """
import numpy as np
from atomcast import Lasso, Shards, Solver
from atomcast.loop import callbacks
callbacks.REFRESH = 1e9  # every round
X = np.random.default_rng(0).standard_normal((40, 30))
shards = Shards.split(X, 3, party_names=["<b>", "south", "east"])
solver = Solver(step="classic", max_rounds=20, tol=1e-9, verbose=True)
shown = []
""",
    """
import warnings
publisher = get_ipython().display_pub
publish = publisher.publish
publisher.publish = lambda *a, **more: (shown.append(more.get("update")), publish(*a, **more))[1]
warnings.simplefilter("ignore")
model = Lasso(2.0, cluster=3, solver=solver).fit(shards, X[:, 0] + X[:, 1] - X[:, 2] ** 2)
""",
    "print(len(shown), shown.count(True))",
    "model.result_",
    "model.result_.ledger",
    "model.result_.trace",
    "shards",
]


@pytest.fixture(scope="module")
def outputs():
    """What the cells of a notebook show."""
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=240).execute()
    return [cell.outputs for cell in notebook.cells]


def test_one_line_moves_while_a_fit_runs(outputs):
    (line,) = outputs[1]
    assert line.output_type == "display_data"
    assert line.data["text/plain"].startswith("round    20 ")
    assert '<progress max="1" value="0.' in line.data["text/html"]
    assert outputs[2][0].text.split() == ["22", "21"]  # rounds 0 to 20, and once more at the end


@pytest.mark.parametrize("cell", [3, 4, 5, 6])
def test_what_a_fit_leaves_behind_is_a_table(outputs, cell):
    (shown,) = outputs[cell]
    assert "<table>" in shown.data["text/html"]


def test_names_are_escaped(outputs):
    html = outputs[6][0].data["text/html"]
    assert "<td>&lt;b&gt;</td>" in html
    assert "<b>" not in html


def test_this_is_no_notebook():
    assert not in_notebook()
