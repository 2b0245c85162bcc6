"""A page: question, method and results, in blocks that can be written as HTML and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Text:
    """A paragraph. The only markup is `code` in backquotes and **strong** words."""

    text: str


@dataclass
class Heading:
    text: str


@dataclass
class Picture:
    """A drawing; `name` is its file name, `caption` says what to look at."""

    name: str
    caption: str
    figure: Figure

    def file_of(self, experiment: str) -> str:
        """The name of its files without the suffix; it starts with the experiment's name, once."""
        return self.name if self.name.startswith(experiment) else f"{experiment}-{self.name}"


@dataclass
class Table:
    """Cells are texts; the first column and columns of sentences are aligned left, the others
    right."""

    headings: list[str]
    rows: list[list[str]]
    caption: str = ""

    def is_prose(self, column: int) -> bool:
        """Whether a column holds texts that are too long for a number."""
        longest_number = 32
        return any(len(row[column]) > longest_number for row in self.rows)


@dataclass
class Code:
    """A program or a command, verbatim."""

    text: str
    language: str = ""


Block = Text | Heading | Picture | Table | Code


@dataclass
class Page:
    """The result of a module of `baregrad.lab.pages`. Question, method, command, machine, notes and
    absences come from the experiment's header and are not repeated in the blocks."""

    title: str
    result: str  # the answer in one or two sentences, with its numbers
    blocks: list[Block] = field(default_factory=list)
    lesson: str = ""  # what the reader can learn from it
