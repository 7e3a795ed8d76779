"""The report of a run: complete, escaped, and with nothing from elsewhere."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner

from atomcast import KernelSVC, Lasso, LassoCV, LocalCluster, Preparation, Shards, save_model
from atomcast.cli import app
from atomcast.plots.page.html_tables import HtmlTable, whole_page

EVIL = "</script><script>alert('\"&amp;')</script>"


@pytest.fixture(scope="module")
def model():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return Lasso(800.0, cluster=LocalCluster(3)).fit(X.rename(columns={"bmi": EVIL}), y)


class Page(HTMLParser):
    """All elements and texts of a page, which must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def checked(path):
    """A page with one script, no handlers, and nothing that is loaded."""
    page = Page(path.read_text(encoding="utf-8"))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1
    for _, attrs in page.elements:
        assert not any(name.startswith("on") or name in ("src", "srcset") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
        assert attrs.get("xlink:href", "#").startswith(("#", "data:image/png;"))
    return page


def test_a_run_as_a_page(model, tmp_path):
    page = checked(model.result_.report(tmp_path / "run.html", model))
    assert EVIL in page.text
    assert "Lasso: optimal" in page.text
    assert f"{model.result_.ledger.values:,}" in page.text
    assert sum(tag == "svg" for tag, _ in page.elements) == 2  # progress and network
    cells = [attrs["data-value"] for tag, attrs in page.elements if "data-value" in attrs]
    assert {repr(w) for w in model.result_.atom_weights.tolist()} <= set(cells)
    assert "the target" in page.text
    assert "fit_intercept" in page.text


def test_a_run_on_one_node_sent_nothing(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    result = Lasso(800.0).fit(X, y).result_
    page = checked(result.report(tmp_path / "run.html"))
    assert sum(tag == "svg" for tag, _ in page.elements) == 1
    assert "A run: optimal" in page.text


def test_folds_are_on_the_page(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = LassoCV(betas=[300.0, 900.0], cv=3).fit(X, y)
    text = model.result_.report(tmp_path / "run.html", model).read_text()
    assert "Cross-validation" in text
    for number in (900.0, *model.mse_path_.ravel()):
        assert f'data-value="{float(number)!r}"' in text


def test_a_saved_model_as_a_page(model, tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(model, path)
    done = CliRunner().invoke(app, ["report", str(path)])
    assert done.exit_code == 0, done.output
    page = checked(tmp_path / "model.html")
    assert EVIL in page.text
    assert "svg" not in {tag for tag, _ in page.elements}  # a file has no trace
    path.write_bytes(path.read_bytes()[:-3])
    assert CliRunner().invoke(app, ["report", str(path)]).exit_code == 2


def test_only_our_own_script_may_run():
    page = whole_page("t", ["x"])
    policy = re.search(r'Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'$", policy)


def test_numbers_are_numbers_and_texts_are_texts():
    html = HtmlTable("t", ["a"], [[np.float64(0.1)], [3], [True], ["<b>"]]).html()
    assert '<td class="number" data-value="3">3</td>' in html
    assert "<td>True</td>" in html
    assert "<td>&lt;b&gt;</td>" in html


def test_a_page_tells_how_tables_were_prepared(tmp_path):
    table = pd.DataFrame({EVIL: ["a", "b", "a"], "age": [1.0, None, 5.0]})
    shards = Shards.split(table, 2, prepare=Preparation(impute="mean"))
    model = Lasso(9.0).fit(shards, [1.0, 2.0, 4.0])
    text = Page(model.result_.report(tmp_path / "run.html", model).read_text()).text
    assert "0 or 1 for each of a, b" in text
    assert "x, missing: 3" in text
    save_model(model, tmp_path / "m.safetensors")
    assert CliRunner().invoke(app, ["report", str(tmp_path / "m.safetensors")]).exit_code == 0
    assert "x, missing: 3" in Page((tmp_path / "m.html").read_text()).text


def test_a_page_takes_no_other_files_place(model, tmp_path):
    save_model(model, tmp_path / "m.safetensors")
    before = (tmp_path / "m.safetensors").read_bytes()
    file = str(tmp_path / "m.safetensors")
    outcome = CliRunner().invoke(app, ["report", file, "--out", file])
    assert outcome.exit_code == 2
    assert "a report is a page of HTML" in outcome.stderr
    assert (tmp_path / "m.safetensors").read_bytes() == before


def test_columns_below_zero_are_shifted_up(tmp_path):
    table = pd.DataFrame({"t": [-4.0, -2.0, 0.0]})
    model = Lasso(9.0).fit(Shards.split(table, 1, prepare=Preparation(scale="standard")), [1, 2, 4])
    assert "(x + 2) /" in model.result_.report(tmp_path / "run.html", model).read_text()


def test_notebooks_show_tables(model):
    for shown in (model.result_, model.result_.ledger, model.result_.trace):
        page = Page(shown._repr_html_())
        assert ("table", {}) in page.elements
    assert EVIL in Page(model.result_.ledger._repr_html_()).text


def test_weights_that_are_no_atoms_have_no_owner(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = KernelSVC(cluster=3).fit(X[:60], np.digitize(y[:60], [100, 180]))
    assert not model.result_._story(model).owned
    checked(model.result_.report(tmp_path / "run.html", model))
