"""All pages of a run as one self-contained HTML file: styles and pictures are inside, there is no
script."""

from __future__ import annotations

import base64
import html
import re

from baregrad.lab import story, text
from baregrad.lab.facts import NOT_FINISHED, absent_line, facts, machine_line
from baregrad.lab.page import Block, Code, Heading, Page, Picture, Table, Text
from baregrad.lab.pictures import Drawn
from baregrad.lab.records import Experiment

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fdfdfb; --faint: #5b5b5b; --rule: #d5d5d0; --well: #f1f1ed;
  --link: #005a9c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e2; --paper: #161616; --faint: #a6a6a0; --rule: #3a3a38; --well: #222220; --link: #7cc0f5; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 50rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
a { color: var(--link); }
h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
section { border-top: 1px solid var(--rule); margin-top: 3rem; padding-top: 1rem; }
nav li, section li { margin: .35rem 0; }
.question { font-size: 1.15rem; color: var(--faint); margin-top: -.5rem; }
.result { border-left: 4px solid var(--link); padding: .1rem 0 .1rem .9rem; }
.unfinished { border-left: 4px solid #c05000; padding-left: .9rem; }
dl { font-size: .9rem; color: var(--faint); display: grid; grid-template-columns: max-content minmax(0, 1fr);
  gap: .15rem .9rem; }
dt { font-weight: 600; }
dd { margin: 0; }
code, pre { font: .88em/1.45 ui-monospace, monospace; background: var(--well); border-radius: 3px; }
code { padding: .05em .25em; overflow-wrap: anywhere; }
pre { padding: .7rem; overflow-x: auto; }
pre code { padding: 0; background: none; overflow-wrap: normal; }
figure { margin: 1.5rem 0; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
figcaption, caption { font-size: .9rem; color: var(--faint); text-align: left; padding: .35rem 0; }
.table { overflow-x: auto; margin: 1.25rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: 400; }
td.prose, th.prose { white-space: normal; min-width: 16rem; text-align: left; }
footer { border-top: 1px solid var(--rule); margin-top: 3rem; font-size: .9rem; color: var(--faint); }
"""


def inline(prose: str) -> str:
    """Prose with its two kinds of markup, everything else escaped."""
    parts = re.split(r"(`[^`]*`)", prose)
    for i, part in enumerate(parts):
        escaped = html.escape(part)
        if i % 2 == 1:
            parts[i] = f"<code>{escaped[1:-1]}</code>"
        else:
            parts[i] = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return "".join(parts)


def _table(table: Table) -> str:
    # Numbers stay on one line, sentences may wrap.
    marks = [' class="prose"' if table.is_prose(column) else "" for column in range(len(table.headings))]
    head = "".join(
        f'<th scope="col"{mark}>{inline(cell)}</th>' for mark, cell in zip(marks, table.headings, strict=True)
    )
    tags = ['th scope="row"'] + ["td"] * (len(table.headings) - 1)
    rows = "".join(
        "<tr>"
        + "".join(
            f"<{tag}{mark}>{inline(cell)}</{tag[:2]}>" for tag, mark, cell in zip(tags, marks, row, strict=True)
        )
        + "</tr>\n"
        for row in table.rows
    )
    caption = f"<caption>{inline(table.caption)}</caption>" if table.caption else ""
    label = html.escape(table.caption or ", ".join(table.headings))
    # The box scrolls, so the keyboard must be able to reach it.
    return (
        f'<div class="table" role="region" aria-label="{label}" tabindex="0">\n<table>{caption}\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>"
    )


def _picture(drawn: Drawn) -> str:
    data = base64.b64encode(drawn.svg.encode("utf-8")).decode("ascii")
    alt = html.escape(re.sub(r"[`*]", "", drawn.caption))
    return (
        f'<figure>\n<img src="data:image/svg+xml;base64,{data}" alt="{alt}" width="{drawn.width}" '
        f'height="{drawn.height}">\n<figcaption>{inline(drawn.caption)}</figcaption>\n</figure>'
    )


def _block(block: Block, drawn: dict[str, Drawn]) -> str:
    match block:
        case Text():
            return f"<p>{inline(block.text)}</p>"
        case Heading():
            return f"<h3>{inline(block.text)}</h3>"
        case Picture():
            return _picture(drawn[block.name])
        case Table():
            return _table(block)
        case Code():
            return f"<pre><code>{html.escape(block.text)}</code></pre>"


def _list(title: str, items: list[str]) -> list[str]:
    """A heading and a list, if there are any items."""
    if not items:
        return []
    return [f"<h3>{title}</h3>", "<ul>", *(f"<li>{inline(item)}</li>" for item in items), "</ul>"]


def _section(experiment: Experiment, page: Page, drawn: dict[str, Drawn], files: list[str]) -> str:
    name = html.escape(experiment.name)
    lines = [
        f'<section id="{name}" aria-labelledby="{name}-title">',
        f'<h2 id="{name}-title">{inline(page.title)}</h2>',
        f'<p class="question">{inline(experiment.header["question"])}</p>',
    ]
    if not experiment.finished:
        lines.append(f'<p class="unfinished">{NOT_FINISHED}</p>')
    if page.result:
        lines.append(f'<p class="result">{inline(page.result)}</p>')
    lines += ["<dl>", *(f"<dt>{key}</dt><dd>{inline(value)}</dd>" for key, value in facts(experiment)), "</dl>"]
    lines += [_block(block, drawn) for block in page.blocks]
    if page.lesson:
        lines += ["<h3>What it teaches</h3>", f"<p>{inline(page.lesson)}</p>"]
    lines += _list("To know when reading the numbers", experiment.notes)
    lines += _list("Not measured here", [absent_line(record) for record in experiment.absent])
    links = ", ".join(f'<a href="{html.escape(file)}">{html.escape(file)}</a>' for file in files)
    lines += [f"<p>Files: {links}</p>", "</section>"]
    return "\n".join(lines)


def html_page(
    run: dict[str, Experiment],
    pages: dict[str, Page],
    drawn: dict[str, dict[str, Drawn]],
    files: dict[str, list[str]],
) -> str:
    """The whole file. `files` names the other files of each experiment."""
    headers = [experiment.header for experiment in run.values()]
    entries = "\n".join(
        f'<li><a href="#{name}">{inline(page.title)}</a> (<code>{name}</code>)</li>' for name, page in pages.items()
    )
    opening = "\n".join(f"<p>{inline(paragraph)}</p>" for paragraph in story.opening(run))
    sections = "\n".join(_section(run[name], page, drawn[name], files[name]) for name, page in pages.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>baregrad lab</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>baregrad lab</h1>
<p>{inline(machine_line(headers[0]))}; {inline(headers[0]["date"])}</p>
{opening}
</header>
<nav aria-labelledby="contents">
<h2 id="contents">Contents</h2>
<ol>
{entries}
</ol>
</nav>
<main>
{sections}
</main>
<footer>
<p>Measured in {text.number(story.total_seconds(run))} s by <code>baregrad lab</code>; every number above stands in the
files named with it or in <a href="derived.jsonl">derived.jsonl</a>.</p>
</footer>
</body>
</html>
"""
