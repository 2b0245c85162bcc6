"""Writes files whole or not at all."""

from __future__ import annotations

import os
import pathlib


def write_file(path: pathlib.Path, content: str | bytes) -> None:
    """Writes a temporary file and renames it. Creates its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
