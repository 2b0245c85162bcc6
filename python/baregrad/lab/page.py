"""A page: what was asked, done and seen, in blocks that can be written as HTML and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Text:
    """A paragraph. `code` in backquotes and **strong** words are the only marks."""

    text: str


@dataclass
class Heading:
    text: str


@dataclass
class Picture:
    """A drawing; `name` becomes its file's name, `caption` says what to look at."""

    name: str
    caption: str
    figure: Figure

    def file_of(self, experiment: str) -> str:
        """The name of its files, without the suffix: that of the experiment comes first, once."""
        return self.name if self.name.startswith(experiment) else f"{experiment}-{self.name}"


@dataclass
class Table:
    """Cells are texts already; the first column and those of sentences are aligned left, the others right."""

    headings: list[str]
    rows: list[list[str]]
    caption: str = ""

    def is_prose(self, column: int) -> bool:
        """Whether a column holds what is too long for a number."""
        longest_number = 32
        return any(len(row[column]) > longest_number for row in self.rows)


@dataclass
class Code:
    """A program or a command, as it is."""

    text: str
    language: str = ""


Block = Text | Heading | Picture | Table | Code


@dataclass
class Page:
    """What a module of `baregrad.lab.pages` returns. Question, method, command, machine, notes and what is absent
    come from the experiment's header and are not repeated in the blocks."""

    title: str
    result: str  # the answer in one or two sentences, with its numbers
    blocks: list[Block] = field(default_factory=list)
    lesson: str = ""  # what it teaches
