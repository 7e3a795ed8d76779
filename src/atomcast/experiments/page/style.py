"""How the page of `atomcast reproduce` looks, in light and dark."""

STYLE = """\
:root { color-scheme: light dark; --text: #1c1e21; --page: #ffffff; --line: #d0d5db;
  --shade: #f2f4f7; --link: #0b5cad; --yes: #17693a; --partly: #8a5300; --no: #b3261e;
  --unknown: #5b6470; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7eb; --page: #15181c; --line: #3a424c;
  --shade: #20252b; --link: #7db7f5; --yes: #6fcf97; --partly: #f0b95b; --no: #ff8a80;
  --unknown: #a3adb8; } }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
a { color: var(--link); }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
code { background: var(--shade); padding: 0.1em 0.3em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.4rem; }
th, td { border: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left;
  vertical-align: top; }
thead th, th[scope=rowgroup] { background: var(--shade); }
tbody th { font-weight: 400; }
th[scope=rowgroup] a { font-weight: 600; }
small { color: var(--unknown); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { font-weight: 600; white-space: nowrap; }
.yes.verdict, .yes strong { color: var(--yes); }
.partly.verdict, .partly strong { color: var(--partly); }
.no.verdict, .no strong { color: var(--no); }
.unknown.verdict, .unknown strong { color: var(--unknown); }
.problems { border-left: 4px solid var(--no); padding: 0.5rem 0.5rem 0.5rem 2rem;
  background: var(--shade); }
dl { display: grid; grid-template-columns: 11rem 1fr; gap: 0.2rem 1rem; margin: 1rem 0;
  padding-left: 0.8rem; border-left: 4px solid var(--line); }
dl.yes { border-color: var(--yes); }
dl.partly { border-color: var(--partly); }
dl.no { border-color: var(--no); }
dt { color: var(--unknown); }
dd { margin: 0; }
img { max-width: 100%; height: auto; background: #ffffff; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } }
"""
