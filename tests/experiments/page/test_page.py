"""The page of `atomcast reproduce`: complete, escaped, and made of whatever was run when."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from atomcast.commands.reproduce import reproduce_app as app
from atomcast.experiments.figures import EXPERIMENTS, find, topologies
from atomcast.experiments.figures.atom_counts import AtomCount
from atomcast.experiments.figures.lower_bound import LowerBound
from atomcast.experiments.figures.options import Options
from atomcast.experiments.page import claims, page, reports
from atomcast.experiments.page.findings import Finding
from atomcast.experiments.page.reports import PrintedTable, Report
from atomcast.experiments.page.verdicts import Verdict
from atomcast.experiments.reproducing import command_line

EVIL = "<script>alert('\"&amp;')</script>"
COUNT = AtomCount(50, 0, 3, 10.0, 100)
EMPTY = {"meta", "img", "br"}


class Reader(HTMLParser):
    """Reads a page and insists that every element is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def check_page(folder):
    """Read index.html; all it links to must be there, and nothing may come from elsewhere."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    reader = Reader(text)
    assert reader.all("html") == [{"lang": "en"}]
    ids = {attrs["id"] for _, attrs in reader.elements if "id" in attrs}
    links = [a["href"] for a in reader.all("a")] + [i["src"] for i in reader.all("img")]
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        else:
            assert (folder / unquote(link)).is_file()
            assert "/" not in link
    assert all(image["alt"] for image in reader.all("img"))
    assert all(cell["scope"] in ("col", "row", "rowgroup") for cell in reader.all("th"))
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in reader.elements}
    assert "url(" not in text
    assert "@import" not in text
    return reader


def a_record(text="fine", verdict=Verdict.HOLDS, must=False):
    table = PrintedTable(f"table {text}", ["name", text], [[text, "1"], ["b", "2"]])
    finding = Finding(
        f"claim {text}", "where " + text, "rule " + text, "got " + text, verdict, must
    )
    return Report(f"Figure {text}", f"note {text}", [table], [finding])


def keep(folder, name, record):
    kept = reports.Kept(name, f"atomcast reproduce {name}", reports.circumstances(3.0), record)
    return reports.keep(kept, folder)


def test_what_is_kept_comes_back(tmp_path):
    record = a_record("x", Verdict.PARTLY, must=True)
    keep(tmp_path, "fig3", record)
    (kept,) = reports.find(tmp_path, list(EXPERIMENTS))
    assert (kept.name, kept.command) == ("fig3", "atomcast reproduce fig3")
    assert kept.report.findings == record.findings
    assert not kept.report.holds
    (table,) = kept.report.tables
    assert [table.title, table.header, table.rows] == list(record.tables[0][:3])
    assert set(kept.made) == {"date", "atomcast", "NumPy", "Python", "machine", "cores", "took"}
    assert [path.name for path in tmp_path.iterdir()] == ["fig3.json"]


def test_everything_is_escaped(tmp_path):
    keep(tmp_path, "fig3", a_record(EVIL))
    (tmp_path / f"fig3-{EVIL.replace('/', '')}.csv").write_text("a\n")
    (tmp_path / "fig3.png").write_bytes(b"")
    page.write(tmp_path, EXPERIMENTS, {"fig4": EVIL})
    reader = check_page(tmp_path)
    assert reader.text.count(EVIL) >= 10
    assert EVIL in reader.all("img")[0]["alt"]


def test_experiments_of_different_days_are_all_on_the_page(tmp_path):
    keep(tmp_path, "fig4", a_record("4: first"))
    page.write(tmp_path, EXPERIMENTS)
    keep(tmp_path, "fig3", a_record("3: older"))
    page.write(tmp_path, EXPERIMENTS)
    reader = check_page(tmp_path)
    assert [section["id"] for section in reader.all("section")] == ["fig3", "fig4"]
    assert "fig2a was not run" in reader.text
    assert "fig3 was not run" not in reader.text
    keep(tmp_path, "fig3", a_record("3: newer"))
    page.write(tmp_path, EXPERIMENTS, {"fig4": "no data"})
    reader = check_page(tmp_path)
    assert "3: newer" in reader.text
    assert "3: older" not in reader.text
    assert "fig4 failed: no data (below is what an earlier run found)" in reader.text


def test_quick_runs_are_marked(tmp_path):
    reports.keep(reports.Kept("fig3", "atomcast reproduce fig3 --quick", {}, a_record()), tmp_path)
    page.write(tmp_path, EXPERIMENTS)
    assert check_page(tmp_path).text.count("made smaller or shorter by --quick") == 2


def test_verdicts_are_words(tmp_path):
    for name, verdict in zip(EXPERIMENTS, Verdict, strict=False):
        keep(tmp_path, name, a_record(name, verdict, must=True))
    page.write(tmp_path, EXPERIMENTS)
    reader = check_page(tmp_path)
    for verdict in Verdict:
        assert reader.text.count(verdict) >= 2
    assert reader.text.count("although it must") == 2  # partly, and not


DAMAGES = {
    "nothing": "",
    "half": '{"schema": 1, "name": "fi',
    "no record": "[1, 2]",
    "deep": "[" * 100_000,
    "other schema": json.dumps({"schema": 999}),
    "parts missing": json.dumps({"schema": 1}),
}


@pytest.mark.parametrize("content", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named_and_left_out(tmp_path, capsys, content):
    keep(tmp_path, "fig3", a_record())
    (tmp_path / "fig4.json").write_text(content)
    page.write(tmp_path, EXPERIMENTS)
    assert [section["id"] for section in check_page(tmp_path).all("section")] == ["fig3"]
    (line,) = capsys.readouterr().err.splitlines()
    assert "fig4.json is left out of the page" in line
    assert "atomcast reproduce fig4 writes it anew" in line


@pytest.mark.parametrize(
    "damage",
    [
        {"title": 3},
        {"made": 3},
        {"tables": [{"title": "t", "header": ["a"], "rows": [["1", "2"]], "text_columns": []}]},
        {"tables": [{"title": "t"}]},
        {"tables": 5},
        {"findings": ["x"]},
        {
            "findings": [
                {**Finding("c", "w", "r", "m", Verdict.HOLDS)._asdict(), "verdict": "so so"}
            ]
        },
    ],
)
def test_a_file_of_wrong_content_is_left_out(tmp_path, capsys, damage):
    path = keep(tmp_path, "fig3", a_record())
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    assert reports.find(tmp_path, ["fig3"]) == []
    assert "fig3.json is left out of the page" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_left_out(tmp_path, capsys):
    (tmp_path / "fig3.json").write_bytes(b"\xff\xfe\x00")
    assert reports.find(tmp_path, ["fig3"]) == []
    assert "fig3.json" in capsys.readouterr().err


def test_the_command_that_repeats_a_run():
    asked = Options(True, 3, synthetic=True, n=5000, atom_density=(0.1, 0.01))
    assert command_line("fig5a", asked) == "atomcast reproduce fig5a --quick --runs 3 --n 5000"
    assert command_line("lower-bound", asked) == "atomcast reproduce lower-bound --quick"
    both = "--atom-density 0.1 --atom-density 0.01"
    assert command_line("fig3", asked) == f"atomcast reproduce fig3 --quick --runs 3 {both}"
    assert command_line("fig4", Options(download=True)) == "atomcast reproduce fig4"
    assert command_line("fig3", Options(jobs=2, resume=True)) == "atomcast reproduce fig3"
    assert command_line("fig4", asked) == "atomcast reproduce fig4 --quick --runs 3 --synthetic"


@pytest.fixture
def pretended(monkeypatch):
    """Experiments that take no time: they write one file, unless they are to fail."""
    outcomes = {}

    def show(name):
        def run(self, options):
            outcome = outcomes.get(name, a_record(name))
            if isinstance(outcome, BaseException):
                raise outcome
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}.csv").write_text("a\n1\n")
            return outcome

        return run

    for name in EXPERIMENTS:
        monkeypatch.setattr(find(name), "show", show(name))
    return outcomes


def test_missing_data_of_one_experiment_does_not_lose_the_others(tmp_path, pretended):
    pretended["fig2a"] = FileNotFoundError("the data set 'a9a' is not complete")
    outcome = CliRunner().invoke(app, ["all", "--out", str(tmp_path)])
    assert outcome.exit_code == 2
    assert "atomcast: error: fig2a: the data set 'a9a' is not complete" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("atomcast: error: not run: fig2a; ")
    reader = check_page(tmp_path)
    assert len(reader.all("section")) == len(EXPERIMENTS) - 1
    assert "fig2a failed: the data set 'a9a' is not complete" in reader.text
    assert not (tmp_path / "fig2a.json").exists()


def test_a_defect_of_one_experiment_does_not_lose_the_others(tmp_path, pretended):
    pretended["fig2a"] = RuntimeError("nobody thought of this")
    outcome = CliRunner().invoke(app, ["all", "--out", str(tmp_path)])
    assert outcome.exit_code == 2
    assert "Traceback" in outcome.stderr
    assert "fig2a failed: nobody thought of this" in check_page(tmp_path).text
    assert len(list(tmp_path.glob("*.csv"))) == len(EXPERIMENTS) - 1


def test_old_findings_are_not_shown_beside_new_numbers(tmp_path, pretended, monkeypatch):
    def halfway(self, options):
        (options.out / "fig3-mean.csv").write_text("b\n2\n")
        raise ValueError("later")

    arguments = ["fig3", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    pretended["fig3"] = ValueError("before anything was written")
    assert CliRunner().invoke(app, arguments).exit_code == 2
    assert (tmp_path / "fig3.json").exists()
    monkeypatch.setattr(find("fig3"), "show", halfway)
    assert CliRunner().invoke(app, arguments).exit_code == 2
    assert not (tmp_path / "fig3.json").exists()


def test_without_matplotlib_nothing_is_begun(tmp_path, pretended, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = CliRunner().invoke(app, ["fig5a", "--out", str(tmp_path)])
    assert outcome.exit_code == 2
    assert "pictures need matplotlib" in outcome.stderr
    assert not list(tmp_path.glob("*.csv"))


def test_a_broken_theorem_does_not_stop_the_others_and_is_told(tmp_path, pretended):
    pretended["lower-bound"] = a_record("bound", Verdict.FAILS, must=True)
    outcome = CliRunner().invoke(app, ["all", "--out", str(tmp_path)])
    assert outcome.exit_code == 1
    assert "lower-bound: what must hold does not" in outcome.stderr
    assert "does not hold although it must" in check_page(tmp_path).text
    assert len(list(tmp_path.glob("*.csv"))) == len(EXPERIMENTS)


def test_an_interrupted_run_leaves_a_page_of_what_is_done(tmp_path, pretended):
    pretended["fig2b"] = KeyboardInterrupt()
    assert CliRunner().invoke(app, ["all", "--out", str(tmp_path)]).exit_code != 0
    done = list(EXPERIMENTS)[: list(EXPERIMENTS).index("fig2b")]
    assert {section["id"] for section in check_page(tmp_path).all("section")} == set(done)


def test_debug_shows_where_it_failed(tmp_path, pretended):
    pretended["fig2a"] = ValueError("the middle of nowhere")
    outcome = CliRunner().invoke(app, ["all", "--debug", "--out", str(tmp_path)])
    assert isinstance(outcome.exception, ValueError)


def test_a_single_experiment_writes_the_page_too(tmp_path, monkeypatch):
    monkeypatch.setattr(LowerBound, "asked", lambda options: LowerBound(atoms=(16, 32)))
    outcome = CliRunner().invoke(app, ["lower-bound", "--out", str(tmp_path)])
    assert outcome.exit_code == 0, outcome.output
    assert "What the paper says, and what was measured" in outcome.output
    assert str(tmp_path / "index.html") in outcome.output
    reader = check_page(tmp_path)
    assert [section["id"] for section in reader.all("section")] == ["lower-bound"]
    assert "3d/4 atoms" in reader.text
    assert "made smaller or shorter by --quick" not in reader.text
    links = {attrs["href"] for attrs in reader.all("a")}
    assert {"lower-bound.csv", "lower-bound.svg", "lower-bound.png"} <= links


def test_a_formula_that_differs_ends_the_command_with_1(tmp_path, monkeypatch):
    wrong = topologies.NetworkRun("star", "classic", 0, 5, 4, 3, 2, 2, 11, 10.0, 10)
    found = [wrong], [COUNT]
    monkeypatch.setattr(topologies.Topologies, "measure", lambda *args: found)
    outcome = CliRunner().invoke(app, ["topologies", "--out", str(tmp_path)])
    assert outcome.exit_code == 1
    assert "topologies: what must hold does not" in outcome.stderr
    assert "measured = formula in only 0 of 1 runs" in outcome.output


def test_claims_are_written_into_a_page_between_their_marks(tmp_path):
    report = Report(EVIL, "d = 3 | n = 4", [], [Finding("a | b", EVIL, "r", "1\n2", Verdict.HOLDS)])
    kept = [reports.Kept("fig3", "atomcast reproduce fig3", {"cores": "2"}, report)]
    page = tmp_path / "page.md"
    table = PrintedTable("t | u", ["a", "b"], [["1", "<2>"]])
    kept = [replace(kept[0], report=replace(report, tables=[table]))]
    begin, end = "<!-- claims: begin -->", "<!-- claims: end -->"
    fig = "<!-- fig3: begin -->outdated<!-- fig3: end -->"
    page.write_text(f"{fig} before {begin} outdated {end} after")
    text = claims.write_into(page, kept).read_text()
    assert text.startswith("<!-- fig3: begin -->\n*t \\| u*\n\n| a | b |\n|---|---:|\n| 1 | &lt;2")
    assert "before <!-- claims: begin -->\n| the paper says |" in text
    assert text.endswith("<!-- claims: end --> after")
    assert "outdated" not in text
    assert "<script" not in text
    assert "| a \\| b |" in text
    assert "| 1 2 | **holds** |" in text
    assert text == claims.write_into(page, kept).read_text()
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place for the claims"):
        claims.write_into(page, kept)


def test_the_page_of_the_documentation_is_that_of_the_numbers_beside_it():
    docs = Path(__file__).parents[3] / "docs"
    kept = claims.in_order(docs / "numbers", EXPERIMENTS)
    assert kept
    page = (docs / "reproduction.md").read_text(encoding="utf-8")
    assert page == claims.filled(page, kept)
    assert all(f"<!-- {one.name}: begin -->" in page for one in kept)
    assert "<!-- claims: begin -->" in page


def test_the_command_writes_claims_into_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- claims: begin --><!-- claims: end -->")
    words = ["lower-bound", "--quick", "--out", str(tmp_path / "out"), "--into", str(page)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert "section 4.2" in page.read_text()
    assert "--into" not in page.read_text()
