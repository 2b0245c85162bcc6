"""The profiler records every op of a part of a program, with its time, for ui.perfetto.dev."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from baregrad._core.profile import is_recording, start, stop

__all__ = ["is_recording", "record", "start", "stop"]


@contextmanager
def record(path: str | os.PathLike[str]) -> Iterator[None]:
    """Records all ops in its scope, in all threads, and writes the file at the end.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> with bg.profile.record(path):
    ...     x = bg.ones((2, 2)) * 2
    >>> os.path.exists(path)
    True
    """
    start(path)
    try:
        yield
    finally:
        stop()
