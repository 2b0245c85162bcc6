"""A bar that shows how far a loop has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")

_WIDTH = 24
_SECONDS_BETWEEN_DRAWS = 0.1


class ProgressBar:
    """One line, drawn over itself: ``epoch 2  45%|###   | 45/100 [00:03<00:04, 14.1 batch/s]``."""

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
        """The same items, counted as they are done with."""
        try:
            self._draw()
            for item in items:
                yield item
                self._done += 1
                if time.monotonic() - self._drawn >= _SECONDS_BETWEEN_DRAWS:
                    self._draw()
        finally:
            self._draw()
            self._stream.write("\n")
            self._stream.flush()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        line = self.line(self._drawn - self._began)
        # Spaces over what a longer line left behind.
        self._stream.write("\r" + line.ljust(self._length))
        self._stream.flush()
        self._length = len(line)

    def line(self, seconds: float) -> str:
        """What is shown `seconds` after the beginning."""
        part = self._done / self._total if self._total else 1.0
        rate = (self._done - self._first) / seconds if seconds > 0 else 0.0
        left = _clock((self._total - self._done) / rate) if rate > 0 else "?"
        bar = ("#" * int(part * _WIDTH)).ljust(_WIDTH)
        return (
            f"{self._label} {part:4.0%}|{bar}| {self._done}/{self._total} "
            f"[{_clock(seconds)}<{left}, {rate:.1f} batch/s]"
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
