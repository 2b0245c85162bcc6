"""Facts for every page: on which machine, when and how the experiment ran."""

from __future__ import annotations

from baregrad.lab import text
from baregrad.lab.records import Experiment, Record


def caches(machine: Record) -> str:
    """48 KiB data and 32 KiB instruction at level 1, ..."""
    levels: dict[int, list[str]] = {}
    for cache in machine["caches"]:
        kind = "" if cache["type"] == "unified" else f" {cache['type']}"
        levels.setdefault(cache["level"], []).append(text.size(cache["bytes"]) + kind)
    return ", ".join(f"L{level} {' and '.join(each)}" for level, each in sorted(levels.items()))


def machine_line(header: Record) -> str:
    """The machine in a line."""
    machine = header["machine"]
    cores = f", {machine['physical_cores']} cores" if machine["physical_cores"] else ""
    parts = [
        f"{machine['cpu']}{cores}, {machine['usable_cpus']} of {machine['logical_cpus']} CPUs usable",
        caches(machine) or "caches unknown",
        f"{text.size(machine['memory_bytes'])} of memory",
    ]
    return "; ".join(parts)


def facts(experiment: Experiment) -> list[tuple[str, str]]:
    """Names and values, in display order."""
    header = experiment.header
    count = header["threads"]
    took = f", took {text.number(experiment.seconds)} s" if experiment.finished else ""
    quick = " A quick look (`--quick`): few sizes, few repeats." if header["quick"] else ""
    return [
        ("Method", header["method"]),
        ("Command", f"`{header['command']}`"),
        ("Machine", machine_line(header)),
        ("Run", f"{header['date']}{took}, at most {count} thread{'' if count == 1 else 's'}, instruction set "
                f"{header['isa']}, seed {header['seed']}, built by {header['build']}.{quick}"),
    ]  # fmt: skip


NOT_FINISHED = "Not finished: the command was stopped before its end. The same command goes on where it stopped."


def absent_line(record: Record) -> str:
    """What could not be measured, and the reason."""
    return f"{text.sentence(record['what'])[:-1]}: {text.sentence(record['why'])}"
