"""Figures as small files, with the same bytes every time."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

from baregrad.lab import style
from baregrad.lab.page import Page, Picture

PIXELS_PER_INCH = 96  # of a browser

_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COORDINATES = re.compile(r' (?:d|x|y|points)="[^"]*"')


@dataclass
class Drawn:
    """A drawn picture of a page."""

    name: str  # of its files, without suffix
    caption: str
    svg: str
    png: bytes
    width: int  # in pixels of a browser
    height: int


def _round(match: re.Match[str]) -> str:
    """Rounds to hundredths of a point, below what is visible."""
    short = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def shrink_svg(text: str) -> str:
    """Removes comments, metadata and invisible digits, about half of the size."""
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>", "", text, flags=re.DOTALL)
    text = _COORDINATES.sub(lambda found: _LONG_NUMBER.sub(_round, found[0]), text)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def draw(experiment: str, picture: Picture) -> Drawn:
    """Both forms of a picture."""
    svg = io.StringIO()
    picture.figure.savefig(svg, format="svg", metadata={"Date": None})
    png = io.BytesIO()
    picture.figure.savefig(png, format="png", dpi=style.PNG_DOTS_PER_INCH, metadata={"Software": None})
    width, height = (round(PIXELS_PER_INCH * inches) for inches in picture.figure.get_size_inches())
    name = picture.file_of(experiment)
    return Drawn(name, picture.caption, shrink_svg(svg.getvalue()), png.getvalue(), width, height)


def draw_pages(pages: dict[str, Page]) -> dict[str, dict[str, Drawn]]:
    """The pictures of every page, by name."""
    drawn: dict[str, dict[str, Drawn]] = {}
    for name, page in pages.items():
        drawn[name] = {}
        for block in page.blocks:
            if not isinstance(block, Picture):
                continue
            if not re.fullmatch(r"[a-z0-9_-]+", block.name) or block.name in drawn[name]:
                raise ValueError(f"lab: the page {name} has two pictures '{block.name}', or that is no file's name")
            drawn[name][block.name] = draw(name, block)
    return drawn
