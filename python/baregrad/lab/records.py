"""The records of a run: a folder with one file NAME.jsonl per experiment."""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]

ORDER = (
    "ceilings",
    "ladder",
    "flags",
    "cache",
    "branches",
    "wall",
    "scaling",
    "roofline",
    "pages",
    "training",
    "jitter",
    "energy",
)


@dataclass
class Experiment:
    """One experiment: its header, its records, and the values derived from them."""

    name: str
    header: Record
    records: list[Record]
    finished: bool
    seconds: float = 0.0  # duration; 0 while it is not finished
    derived: dict[str, float] = field(default_factory=dict)

    def of(self, kind: str, **wanted: Any) -> list[Record]:
        """Records of a kind with the given fields."""
        return [
            record
            for record in self.records
            if record["kind"] == kind and all(record.get(key) == value for key, value in wanted.items())
        ]

    def one(self, kind: str, **wanted: Any) -> Record | None:
        """The first of them, or None."""
        found = self.of(kind, **wanted)
        return found[0] if found else None

    def derive(self, key: str, value: float) -> float:
        """A number that is computed from the records and shown on a page; it is written to
        derived.jsonl."""
        self.derived[key] = float(value)
        return self.derived[key]

    @property
    def notes(self) -> list[str]:
        return [record["text"] for record in self.of("note")]

    @property
    def absent(self) -> list[Record]:
        return self.of("absent")


def _parse(line: str) -> Record | None:
    """The record of a line; None if the line was cut off."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def load_experiment(path: pathlib.Path) -> Experiment:
    """Reads a file; records after the last finished part were interrupted and do not count."""
    # A line counts if its newline is there. Not splitlines(): JSON may contain other characters
    # that it splits at.
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    header = _parse(lines[0]) if lines else None
    if header is None or header["kind"] != "header":
        raise ValueError(f"lab: '{path}' does not begin with a header: not a file of `baregrad lab`")
    experiment = Experiment(header["experiment"], header, [], finished=False)
    pending: list[Record] = []
    for line in lines[1:]:
        record = _parse(line)
        if record is None:
            break
        if record["kind"] == "part":
            experiment.records += pending
            pending = []
        elif record["kind"] == "end":
            experiment.finished = True
            experiment.seconds = record["seconds"]
        else:
            pending.append(record)
    return experiment


def load_run(folder: str | pathlib.Path) -> dict[str, Experiment]:
    """All experiments of a run by name, in reading order."""
    root = pathlib.Path(folder)
    run = {name: load_experiment(root / f"{name}.jsonl") for name in ORDER if (root / f"{name}.jsonl").exists()}
    if not run:
        raise ValueError(f"lab: '{root}' holds no results of `baregrad lab`")
    return run
