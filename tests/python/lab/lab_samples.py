"""Hand-made runs for the tests of the lab's report."""

from __future__ import annotations

import json
import pathlib
import sys
import types
from typing import Any

from baregrad.lab import style
from baregrad.lab.page import Code, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment

MACHINE = {
    "cpu": "Abacus <9000> & Sons",
    "logical_cpus": 4,
    "physical_cores": 2,
    "usable_cpus": 2,
    "memory_bytes": 8 * 2**30,
    "caches": [
        {"level": 1, "type": "data", "bytes": 49152, "shared_by": 2},
        {"level": 1, "type": "instruction", "bytes": 32768, "shared_by": 2},
        {"level": 2, "type": "unified", "bytes": 2 * 2**20, "shared_by": 2},
    ],
}


def header(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "header",
        "format": 1,
        "experiment": name,
        "question": "Is 1 < 2 & so on?",
        "method": "By <looking>.",
        "command": f"baregrad lab {name} --quick",
        "quick": True,
        "threads": 2,
        "seed": 1,
        "isa": "avx2",
        "build": "GCC 12.2.0, optimised",
        "machine": MACHINE,
        "date": "2001-02-03",
        **changes,
    }


RECORDS = [
    {"kind": "seen", "n": 64, "median_ns": 1234.5},
    {"kind": "note", "text": "A <warm> day"},
    {"kind": "part", "key": "first"},
    {"kind": "absent", "what": "joules", "why": "/opt/here/bin/meter is not there"},
    {"kind": "part", "key": "second"},
]
END = {"kind": "end", "seconds": 2.5}


def product(
    group: str, name: str, shape: tuple[int, int, int], dtype: str, threads: int, rate: float
) -> dict[str, Any]:
    """A record of a product of m x k by k x n at a given rate, in the form of the ladder and the
    wall."""
    m, n, k = shape
    ns = 2 * m * n * k / rate
    return {
        "kind": "product",
        "name": name,
        "m": m,
        "n": n,
        "k": k,
        "dtype": dtype,
        "threads": threads,
        "gflop_per_s": rate,
        "max_error": 1e-7,
        "tolerance": 1e-5,
        "median_ns": ns,
        "p10_ns": 0.9 * ns,
        "p90_ns": 1.1 * ns,
        "repeats": 5,
        "group": group,
    }


def write_run(folder: pathlib.Path, name: str, records: list[dict[str, Any]], tail: str = "") -> pathlib.Path:
    """Writes a file of records, with the remains of an interruption."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + tail, encoding="utf-8")
    return path


def sample_page(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    """One block of each kind, with special characters of HTML and Markdown."""
    seen = experiment.of("seen")
    figure, axes = style.new_figure()
    axes.plot([1, 2, 3], [1, 4, 9], label="squares", **style.line(0, ours=True))
    axes.set_xlabel("n")
    axes.set_ylabel("time (ns)")
    style.ceiling(axes, 8, "the most")
    ratio = experiment.derive("ratio", 7.25)
    return Page(
        "A sample | of <pages>",
        f"**{len(seen)}** was seen, {ratio} times.",
        [
            Heading("A & B"),
            Text("Where a < b and `x<y>` and *stars* stay [as they are](nowhere)."),
            Picture("squares", 'Squares "grow" <quickly>', figure),
            Table(["who", "how <much>"], [["a|b", "1,234"], ["<b>", "5.6 ns"]], "A table & its caption"),
            Code("if (a < b) go();", "cpp"),
        ],
        "Do not <trust> it.",
    )


def failing_page(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    raise KeyError("nothing here")


def fake_page(monkeypatch: Any, name: str, build: Any) -> None:
    """Replaces the page module of an experiment by `build`."""
    module = types.ModuleType(f"baregrad.lab.pages.{name}")
    module.build = build  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"baregrad.lab.pages.{name}", module)
