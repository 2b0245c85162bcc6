"""A progress bar for loops."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")

_WIDTH = 24
_NARROWEST = 4
_SECONDS_BETWEEN_DRAWS = 0.1


class ProgressBar:
    """One line that overwrites itself: ``epoch 2  45%|###   | 45/100 [00:03<00:04, 14.1 batch/s]``."""

    def __init__(self, label: str, total: int, done: int = 0, stream: TextIO | None = None) -> None:
        self._label = label
        self._total = total
        self._first = done
        self._done = done
        self._stream = sys.stderr if stream is None else stream
        self._began = time.monotonic()
        self._drawn = 0.0
        self._length = 0

    def follow(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the same items and counts those that are done."""
        overwrites = not (_is_terminal(self._stream) and _is_dumb())
        try:
            if overwrites:
                self._draw()
            for item in items:
                yield item
                self._done += 1
                if overwrites and time.monotonic() - self._drawn >= _SECONDS_BETWEEN_DRAWS:
                    self._draw()
        finally:
            self._draw()
            self._stream.write("\n")
            self._stream.flush()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        room = _room(self._stream)
        line = self.line(self._drawn - self._began, room)
        # Spaces over what a longer line left behind, but not into the next line of a terminal that
        # became narrower.
        start = "" if _is_terminal(self._stream) and _is_dumb() else "\r"
        self._stream.write(start + line.ljust(self._length)[:room])
        self._stream.flush()
        self._length = len(line)

    def line(self, seconds: float, room: int | None = None) -> str:
        """The line `seconds` after the start, in at most `room` columns."""
        part = self._done / self._total if self._total else 1.0
        rate = (self._done - self._first) / seconds if seconds > 0 else 0.0
        left = _clock((self._total - self._done) / rate) if rate > 0 else "?"
        before = f"{self._label} {part:4.0%}|"
        after = f"| {self._done}/{self._total} [{_clock(seconds)}<{left}, {rate:.1f} batch/s]"
        width = _WIDTH
        if room is not None:
            # The bar takes the columns that the numbers leave free.
            width = min(_WIDTH, room - len(before) - len(after))
            width = 0 if width < _NARROWEST else width
        bar = ("#" * int(part * width)).ljust(width)
        return (before + bar + after)[:room]


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # closed
        return False


def _is_dumb() -> bool:
    """Whether the terminal cannot overwrite a line."""
    return os.environ.get("TERM", "dumb") in ("", "dumb")


def _room(stream: TextIO) -> int | None:
    """The number of columns available; None where lines do not wrap."""
    if not _is_terminal(stream):
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    # The last column stays free: some terminals wrap when it is written.
    return max(1, (columns or 80) - 1)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
