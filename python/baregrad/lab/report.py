"""Pages from records: every module of `baregrad.lab.pages` whose experiment was run."""

from __future__ import annotations

import importlib
import json
import pathlib

from baregrad.lab.files import write_file
from baregrad.lab.page import Page
from baregrad.lab.records import Experiment, load_run


FAILED = "This page could not be made"


def build_page(experiment: Experiment, finished: dict[str, Experiment]) -> Page:
    """The page of an experiment; None if it was interrupted."""
    if not experiment.finished:
        return Page(experiment.name, "")
    module = importlib.import_module(f"baregrad.lab.pages.{experiment.name}")
    page: Page = module.build(experiment, finished)
    return page


def build_pages(run: dict[str, Experiment], keep_going: bool = False) -> dict[str, Page]:
    """The page of every experiment of the run. A page may use the records of other finished
    experiments. With `keep_going` an error replaces only its own page by a message."""
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
    """The values that pages derived from records, as in the file derived.jsonl."""
    lines = [
        json.dumps({"kind": "derived", "experiment": name, "key": key, "value": value})
        for name, experiment in run.items()
        for key, value in experiment.derived.items()
    ]
    return "".join(line + "\n" for line in lines)


def files_of(root: pathlib.Path, name: str) -> list[str]:
    """The files of an experiment: its records, and files named after it."""
    return sorted(path.name for path in root.glob(f"{name}.*") if path.is_file())


def write_report(folder: str | pathlib.Path) -> pathlib.Path:
    """Pictures, derived.jsonl and index.html into the folder of a run."""
    # Imported here, so that records can be read without matplotlib.
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
