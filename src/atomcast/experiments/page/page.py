"""`index.html`: what was measured side by side with what the paper says, from the reports kept.

The page stands by itself: no scripts, nothing from elsewhere; pictures and CSV files are those next
to it. Every text is escaped, for names and messages may contain anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from atomcast.experiments.page import claims, reports
from atomcast.experiments.page.findings import Finding
from atomcast.experiments.page.reports import Kept, PrintedTable
from atomcast.experiments.page.verdicts import CLEARLY, MUCH, Verdict
from atomcast.experiments.runs.jobs import replace_text

TITLE = "Distributed Frank-Wolfe: the paper and what was measured"
PAPER = (
    "Bellet, Liang, Bagheri Garakani, Balcan, Sha: A Distributed Frank-Wolfe Algorithm for "
    "Communication-Efficient Sparse Learning"
)
#: What every picture shows, if it has curves.
CURVES = (
    "Curves are means over the runs of what was reached just then, with bands from the smallest to "
    "the largest run; costs and verdicts go by the best so far, round by round"
)
STYLE = Path(__file__).with_name("style.css")
#: How a verdict looks; its words say the same.
CLASSES = {
    Verdict.HOLDS: "yes",
    Verdict.PARTLY: "partly",
    Verdict.FAILS: "no",
    Verdict.UNMEASURED: "unknown",
}


def write(out: Path, names: Iterable[str], failures: Mapping[str, str] | None = None) -> Path:
    """Write index.html from the reports in a folder.

    `names` are all experiments that there are, and `failures` those that could not be run just now,
    and why.
    """
    names = list(names)
    kept = claims.in_order(out, names)
    missing = [name for name in names if name not in {one.name for one in kept}]
    parts = [
        _head(),
        f"<h1>{escape(TITLE)}</h1>",
        f"<p>{escape(PAPER)}.</p>",
        _problems(failures or {}, missing),
        _claims(kept),
        *(_section(one, out) for one in kept),
        f"<footer><p>Written with {_facts(reports.circumstances())}.</p></footer>",
        "</main></body></html>\n",
    ]
    return replace_text(out / "index.html", "\n".join(parts))


def _head() -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(TITLE)}</title>\n<style>\n{STYLE.read_text(encoding='utf-8')}</style></head>\n"
        "<body><main>"
    )


def _problems(failures: Mapping[str, str], missing: Sequence[str]) -> str:
    """What is not on the page, or not up to date."""
    lines = [
        f"<li><strong>{escape(name)} failed:</strong> {escape(reason)}"
        + ("" if name in missing else " (below is what an earlier run found)")
        + "</li>"
        for name, reason in failures.items()
    ]
    lines += [
        f"<li>{escape(name)} was not run: <code>atomcast reproduce {escape(name)}</code></li>"
        for name in missing
        if name not in failures
    ]
    return f'<ul class="problems">{"".join(lines)}</ul>' if lines else ""


def _claims(kept: Sequence[Kept]) -> str:
    """All statements with their verdicts, a group of rows for each experiment."""
    groups = []
    for one in kept:
        report = one.report
        rows = "\n".join(_claim(finding) for finding in report.findings)
        groups.append(
            f'<tbody><tr><th colspan="4" scope="rowgroup"><a href="#{quote(one.name)}">'
            f"{escape(report.title)}</a> <small>{escape(one.about)}</small></th></tr>\n"
            f"{rows}</tbody>"
        )
    body = "".join(groups)
    head = _header(("the paper says", "where", "measured", "verdict"))
    return (
        "<h2>Claims and verdicts</h2>\n"
        "<p>Verdicts follow from the numbers by rules, which are the same at every size and stand "
        "in the sections below. Unless a rule says otherwise, a statement holds if it is true in "
        "every case that was measured, holds partly if it is true in some, and does not hold if "
        "it is true in none; a bound does not hold as soon as one case breaks it. "
        f"&ldquo;Significantly&rdquo; means by {CLEARLY - 1:.0%} at least, "
        f"&ldquo;much&rdquo; and &ldquo;dramatically&rdquo; {MUCH:g} times.</p>\n"
        + _scrolling("Claims and verdicts", f"<table><thead>{head}</thead>{body}</table>")
    )


def _claim(finding: Finding) -> str:
    return (
        f'<tr><th scope="row">{escape(finding.claim)}</th><td>{escape(finding.where)}</td>'
        f"<td>{escape(finding.measured)}</td>{_verdict(finding)}</tr>"
    )


def _verdict(finding: Finding) -> str:
    """A cell."""
    alarm = " although it must" if finding.broken else ""
    kind = CLASSES[finding.verdict]
    return f'<td class="verdict {kind}">{escape(finding.verdict)}{alarm}</td>'


def _section(one: Kept, out: Path) -> str:
    """One experiment: what was run, the picture, tables, findings, files."""
    report = one.report
    parts = [
        f'<section id="{escape(one.name)}"><h2>{escape(report.title)}</h2>',
        f"<p>{escape(one.about)}.</p>",
        _picture(one, out),
        *(_table(table) for table in report.tables),
        "<h3>Findings</h3>",
        *(_finding(finding) for finding in report.findings),
        f"<p>Again: <code>{escape(one.command)}</code></p>",
        _files(one.name, out),
        f"<p><small>Made with {_facts(one.made)}.</small></p></section>",
    ]
    return "\n".join(part for part in parts if part)


def _picture(one: Kept, out: Path) -> str:
    for suffix in (".svg", ".png"):
        name = f"{one.name}{suffix}"
        if (out / name).is_file():
            text = f"{one.report.title}; {one.report.note}. The numbers are in the tables and files"
            source, caption = quote(name), f"{one.report.title}; {one.report.note}. {CURVES}"
            image = f'<a href="{source}"><img src="{source}" alt="{escape(text)}"></a>'
            return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"
    return ""


def _table(table: PrintedTable) -> str:
    body = []
    for row in table.rows:
        cells = [f'<th scope="row">{escape(cell)}</th>' for cell in row[:1]]
        for j, cell in enumerate(row[1:], 1):
            kind = "text" if j in table.text_columns else "number"
            cells.append(f'<td class="{kind}">{escape(cell)}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return _scrolling(
        table.title,
        f"<table><caption>{escape(table.title)}</caption>"
        f"<thead>{_header(table.header)}</thead><tbody>{''.join(body)}</tbody></table>",
    )


def _header(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<th scope=col>{escape(cell)}</th>' for cell in cells)}</tr>"


def _scrolling(label: str, table: str) -> str:
    """Wide tables scroll by themselves, also by keyboard."""
    about = f'role="region" tabindex="0" aria-label="{escape(label)}"'
    return f'<div class="wide" {about}>{table}</div>'


def _finding(finding: Finding) -> str:
    kind = CLASSES[finding.verdict]
    return (
        f'<dl class="{kind}"><dt>{escape(finding.where)}</dt><dd>{escape(finding.claim)}</dd>'
        f"<dt>measured</dt><dd>{escape(finding.measured)}</dd>"
        f"<dt>rule</dt><dd>{escape(finding.rule)}</dd>"
        f"<dt>verdict</dt><dd><strong>{escape(finding.verdict)}</strong></dd></dl>"
    )


def _files(name: str, out: Path) -> str:
    """Links to the numbers and pictures of an experiment that are in the folder."""
    files = sorted({*out.glob(f"{name}.*"), *out.glob(f"{name}-*.*")})
    kinds = (".csv", ".png", ".svg", ".json")
    links = [
        f'<a href="{quote(path.name)}">{escape(path.name)}</a>'
        for path in files
        if path.suffix in kinds and path.is_file()
    ]
    return f"<p>Files: {', '.join(links)}</p>"


def _facts(facts: Mapping[str, str]) -> str:
    return ", ".join(escape(f"{name} {value}") for name, value in facts.items())
