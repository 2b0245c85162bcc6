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
    """One experiment: its header, what it saw, and what was derived from that."""

    name: str
    header: Record
    records: list[Record]
    finished: bool
    seconds: float = 0.0  # that it took; 0 while it is not finished
    derived: dict[str, float] = field(default_factory=dict)

    def of(self, kind: str, **wanted: Any) -> list[Record]:
        """Records of a kind whose fields are as wanted."""
        return [
            record
            for record in self.records
            if record["kind"] == kind and all(record.get(key) == value for key, value in wanted.items())
        ]

    def one(self, kind: str, **wanted: Any) -> Record | None:
        """The first of them, if there is one."""
        found = self.of(kind, **wanted)
        return found[0] if found else None

    def derive(self, key: str, value: float) -> float:
        """A number that follows from the records and that a page shows: written down in derived.jsonl."""
        self.derived[key] = float(value)
        return self.derived[key]

    @property
    def notes(self) -> list[str]:
        return [record["text"] for record in self.of("note")]

    @property
    def absent(self) -> list[Record]:
        return self.of("absent")


def _parse(line: str) -> Record | None:
    """What a line says, or nothing where it was cut off in the midst."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def load_experiment(path: pathlib.Path) -> Experiment:
    """Reads a file; what stands behind the last part that is done was interrupted and does not count."""
    # A line counts when its end is there. Not splitlines(): JSON may hold other characters that it breaks at.
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
    """All experiments of a run by name, in the order in which a reader would do them."""
    root = pathlib.Path(folder)
    run = {name: load_experiment(root / f"{name}.jsonl") for name in ORDER if (root / f"{name}.jsonl").exists()}
    if not run:
        raise ValueError(f"lab: '{root}' holds no results of `baregrad lab`")
    return run
