"""Finds numbers of a Markdown page that are in no record."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

# The value of a unit in the units of records: those of their field names, or a share.
UNITS: dict[str, tuple[float, ...]] = {
    "%": (1, 0.01),
    "ns": (1,),
    "µs": (1e3,),
    "ms": (1e6,),
    "s": (1, 1e9),
    "KiB": (1, 2**10),
    "MiB": (1, 2**20),
    "GiB": (1, 2**30),
    "KB": (1e3,),
    "MB": (1, 1e6),
    "GB": (1, 1e9),
    "GB/s": (1, 1e9),
    "GiB/s": (1, 2**30),
    "MFLOP": (1, 1e6),
    "GFLOP": (1, 1e9),
    "GFLOP/s": (1, 1e9),
    "TFLOP/s": (1e3, 1e12),
    "GHz": (1, 1e9),
    "MHz": (1, 1e6),
    "million": (1e6,),
    "billion": (1e9,),
}
_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
_NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)*"
# Not numbers that are part of a word: L1, float32, AVX-512, 2³².
_TOKEN = re.compile(rf"(?<![\w.,-])-?({_NUMBER})(?![\w]|[.,]\d)(?:[ \u00a0]?({_UNIT})(?![\w/]))?")
_HEADING_UNIT = re.compile(rf"(?<![\w/])({_UNIT})(?![\w/])")
_CELL_END = re.compile(r"(?<!\\)\|")


class Known:
    """The numbers of records, including those inside texts."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.words: set[str] = set()
        values: set[float] = set()
        for record in records:
            self._collect(record, values)
        self.values = sorted(values)

    def _collect(self, value: Any, values: set[float]) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                self._collect(key, values)
                self._collect(each, values)
        elif isinstance(value, list):
            for each in value:
                self._collect(each, values)
        elif isinstance(value, str):
            self.words.update(re.findall(_NUMBER, value))
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            values.add(abs(float(value)))

    def has(self, printed: str, scales: tuple[float, ...]) -> bool:
        """Whether a record, rounded as it is printed, equals this number."""
        if printed in self.words or printed.replace(",", "") in self.words:
            return True
        if printed.count(".") > 1:
            return False
        value = float(printed.replace(",", ""))
        half = 0.5 * 10.0 ** -len(printed.partition(".")[2]) * (1 + 1e-6)
        for scale in scales:
            at = bisect.bisect_left(self.values, (value - half) * scale)
            if at < len(self.values) and self.values[at] <= (value + half) * scale:
                return True
        return False


def _prose(markdown: str) -> str:
    """The text without code, link targets and escapes."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"\\([^\w\s|])", r"\1", text)


def _units_in(text: str) -> tuple[str, ...]:
    return tuple(_HEADING_UNIT.findall(re.sub(r"(?i)\bpercent\b", "%", text)))


def _pieces(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Texts, each with the units that its numbers may have implicitly: those of the column's
    heading, or else of the line above the table."""
    caption = ""
    units: list[tuple[str, ...]] = []
    for line in text.split("\n"):
        if not line.startswith("|"):
            units = []
            caption = line or caption
            yield line, ()
            continue
        cells = _CELL_END.split(line)[1:-1]
        if not units:
            units = [_units_in(cell) or _units_in(caption) for cell in cells]
        yield from zip(cells, units, strict=True)


def unknown_numbers(markdown: str, known: Known) -> list[str]:
    """Numbers that no record explains, each with its context."""
    unknown = []
    for text, units in _pieces(_prose(markdown)):
        for found in _TOKEN.finditer(text):
            own = (found[2],) if found[2] else units
            scales = tuple(scale for unit in own for scale in UNITS[unit]) or (1,)
            if not known.has(found[1], (1, *scales) if not found[2] else scales):
                unknown.append(f"{found[0]!r} in {text[max(0, found.start() - 40) : found.end() + 20]!r}")
    return unknown
