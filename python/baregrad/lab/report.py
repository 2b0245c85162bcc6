"""Pages from records: every module of `baregrad.lab.pages` whose experiment is there."""

from __future__ import annotations

import importlib
import json
import pathlib

from baregrad.lab.files import write_file
from baregrad.lab.page import Page
from baregrad.lab.records import Experiment, load_run


FAILED = "This page could not be made"


def build_page(experiment: Experiment, finished: dict[str, Experiment]) -> Page:
    """The page of an experiment; what was interrupted has none yet."""
    if not experiment.finished:
        return Page(experiment.name, "")
    module = importlib.import_module(f"baregrad.lab.pages.{experiment.name}")
    page: Page = module.build(experiment, finished)
    return page


def build_pages(run: dict[str, Experiment], keep_going: bool = False) -> dict[str, Page]:
    """The page of every experiment of the run; a page may look at the records of others that are finished. With
    `keep_going` an error costs the reader one page, which then says so, and not all of them."""
    finished = {name: experiment for name, experiment in run.items() if experiment.finished}
    pages = {}
    for name, experiment in run.items():
        try:
            pages[name] = build_page(experiment, finished)
        except ModuleNotFoundError:
            raise  # no matplotlib: no page at all
        except Exception as error:
            if not keep_going:
                raise
            pages[name] = Page(name, f"{FAILED}: {type(error).__name__}: {error}. The records are whole.")
    return pages


def derived_lines(run: dict[str, Experiment]) -> str:
    """What pages computed from records, as the file derived.jsonl holds it."""
    lines = [
        json.dumps({"kind": "derived", "experiment": name, "key": key, "value": value})
        for name, experiment in run.items()
        for key, value in experiment.derived.items()
    ]
    return "".join(line + "\n" for line in lines)


def files_of(root: pathlib.Path, name: str) -> list[str]:
    """What an experiment wrote: its records, and what it named after itself."""
    return sorted(path.name for path in root.glob(f"{name}.*") if path.is_file())


def write_report(folder: str | pathlib.Path) -> pathlib.Path:
    """Pictures, derived.jsonl and index.html into the folder of a run."""
    # Here, so that records can be read where there is nothing to draw with.
    from baregrad.lab.pictures import draw_pages
    from baregrad.lab.to_html import html_page

    root = pathlib.Path(folder)
    run = load_run(root)
    pages = build_pages(run, keep_going=True)
    drawn = draw_pages(pages)
    files = {name: files_of(root, name) for name in run}
    text = html_page(run, pages, drawn, files)
    for each in (each for by_name in drawn.values() for each in by_name.values()):
        write_file(root / "pictures" / f"{each.name}.svg", each.svg)
        write_file(root / "pictures" / f"{each.name}.png", each.png)
    write_file(root / "derived.jsonl", derived_lines(run))
    write_file(root / "index.html", text)
    return root / "index.html"
