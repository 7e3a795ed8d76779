"""Tables and pages of HTML in which every text is escaped and only our own script can run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class HtmlTable:
    """A table; a long one can be sorted, filtered and downloaded as CSV.

    Parameters
    ----------
    title : str
    header : sequence of str
    rows : sequence of sequences
        Numbers stand to the right and are sorted as numbers; all else is text.
    file : str, default=""
        What a download is called; "": a short table, as it is.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    file: str = ""

    def html(self) -> str:
        """The table with what belongs to it."""
        head = "".join(f"<th scope=col>{self._heading(name)}</th>" for name in self.header)
        body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self.rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
        label = escape(self.title)
        region = f'<div class="wide" role="region" tabindex="0" aria-label="{label}">{table}</div>'
        if not self.file:
            return f"<h3>{label}</h3>{region}"
        tools = (
            '<p class="tools"><label>Filter '
            f'<input type="search" aria-label="Filter {label}"></label> '
            f'<button type="button" data-file="{escape(self.file)}">Download CSV</button> '
            f'<output aria-live="polite">{len(self.rows):,} rows</output></p>'
        )
        return f'<section class="table"><h3>{label}</h3>{tools}{region}</section>'

    def _heading(self, name: str) -> str:
        return f'<button type="button">{escape(name)}</button>' if self.file else escape(name)


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{escape(str(value))}</td>"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    return f'<td class="number" data-value="{value!r}">{shown}</td>'


def whole_page(title: str, parts: Iterable[str]) -> str:
    """A page of parts that are HTML already.

    Its policy lets nothing run but the script of ours, and nothing be loaded: a text that was not
    escaped would do no harm.
    """
    script, style = ((_HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    policy = f"default-src 'none'; {allowed}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n<body><main>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</main>\n"
        f"<script>{script}</script></body></html>\n"
    )
