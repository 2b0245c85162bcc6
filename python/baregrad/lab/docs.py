"""Writes docs/lab from a run: a page per experiment, an overview of all, the pictures and the
records."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from baregrad.lab import story
from baregrad.lab.files import write_file
from baregrad.lab.pictures import draw_pages
from baregrad.lab.records import load_run
from baregrad.lab.report import build_pages, derived_lines
from baregrad.lab.to_markdown import markdown_page

_PATH = re.compile(r"(?<![\w.$}/])(?:/[\w.+-]+){2,}")
# Paths that are the same on every machine are kept.
_EVERYWHERE = ("/proc/", "/sys/", "/dev/", "/usr/")


def _last_name(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith(_EVERYWHERE) else found[0].rpartition("/")[2]


def without_paths(value: Any) -> Any:
    """A record whose machine-specific paths are cut to their last part."""
    if isinstance(value, str):
        return _PATH.sub(_last_name, value)
    if isinstance(value, dict):
        return {key: without_paths(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_paths(each) for each in value]
    return value


def _published(path: pathlib.Path) -> str:
    """The records of a file without private paths."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    texts = (json.dumps(without_paths(json.loads(line)), ensure_ascii=False, separators=(",", ":")) for line in lines)
    return "".join(text + "\n" for text in texts)


def write_docs(folder: str | pathlib.Path, out: str | pathlib.Path) -> pathlib.Path:
    """Writes all pages from the records in `folder`, which may be the data folder of `out` itself."""
    source, target = pathlib.Path(folder), pathlib.Path(out)
    unfinished = [name for name, experiment in load_run(source).items() if not experiment.finished]
    if unfinished:
        raise ValueError(f"lab: docs are written of whole runs; not finished: {', '.join(unfinished)}")
    for path in sorted(source.glob("*.jsonl")):
        write_file(target / "data" / path.name, _published(path))
    run = load_run(target / "data")
    pages = build_pages(run)
    drawn = {each.name: each for by_name in draw_pages(pages).values() for each in by_name.values()}
    for name, page in pages.items():
        write_file(target / f"{name}.md", markdown_page(run[name], page))
    for name, each in drawn.items():
        write_file(target / "pictures" / f"{name}.svg", each.svg)
    for stale in (target / "pictures").glob("*.svg"):
        if stale.stem not in drawn:
            stale.unlink()
    readme = target / "README.md"
    write_file(readme, story.readme(run, pages))
    write_file(target / "data" / "derived.jsonl", derived_lines(run))
    return readme
