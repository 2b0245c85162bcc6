"""Pages as Markdown, one file each, with pictures beside them."""

from __future__ import annotations

import re

from baregrad.lab.facts import NOT_FINISHED, absent_line, facts
from baregrad.lab.page import Block, Code, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment


def inline(prose: str) -> str:
    """Prose with its two kinds of markup; other Markdown characters are escaped."""
    parts = re.split(r"(`[^`]*`|\*\*)", prose)
    parts[::2] = [re.sub(r"([\\<>\[\]*_|~#])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _cell(prose: str) -> str:
    """A bar would end the cell, even within backquotes."""
    parts = re.split(r"(`[^`]*`)", prose)
    return "".join(part.replace("|", r"\|") if i % 2 else inline(part) for i, part in enumerate(parts))


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def table_lines(table: Table) -> list[str]:
    columns = range(len(table.headings))
    marks = "|" + "|".join("---" if i == 0 or table.is_prose(i) else "---:" for i in columns) + "|"
    caption = [inline(table.caption), ""] if table.caption else []
    return [*caption, _row(table.headings), marks, *(_row(row) for row in table.rows)]


def _block(experiment: str, block: Block) -> list[str]:
    match block:
        case Text():
            return [inline(block.text)]
        case Heading():
            return [f"## {inline(block.text)}"]
        case Picture():
            alt = re.sub(r"[\[\]`*]", "", block.caption)
            return [f"![{alt}](pictures/{block.file_of(experiment)}.svg)", "", f"*{inline(block.caption)}*"]
        case Table():
            return table_lines(block)
        case Code():
            return [f"```{block.language}", *block.text.strip("\n").split("\n"), "```"]


def _list(title: str, items: list[str]) -> list[str]:
    return [f"## {title}", "", *(f"- {inline(item)}" for item in items), ""] if items else []


def markdown_page(experiment: Experiment, page: Page) -> str:
    """A page of docs/lab."""
    lines = [f"# {inline(page.title)}", "", f"*{inline(experiment.header['question'])}*", ""]
    if not experiment.finished:
        lines += [f"**{NOT_FINISHED}**", ""]
    if page.result:
        lines += [f"> {inline(page.result)}", ""]
    lines += [*(f"- **{key}**: {inline(value)}" for key, value in facts(experiment)), ""]
    for block in page.blocks:
        lines += [*_block(experiment.name, block), ""]
    if page.lesson:
        lines += ["## What it teaches", "", inline(page.lesson), ""]
    lines += _list("To know when reading the numbers", experiment.notes)
    lines += _list("Not measured here", [absent_line(record) for record in experiment.absent])
    lines += [
        f"Records: [{experiment.name}.jsonl](data/{experiment.name}.jsonl), "
        "[derived.jsonl](data/derived.jsonl). [All experiments](README.md)"
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"
