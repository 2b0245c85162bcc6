"""The overview of a run: from the naive loop to the engine, one paragraph per experiment."""

from __future__ import annotations

from dataclasses import dataclass

from baregrad.lab import text
from baregrad.lab.facts import machine_line
from baregrad.lab.page import Page, Table
from baregrad.lab.records import Experiment
from baregrad.lab.to_markdown import inline, table_lines

# The transition from one experiment to the next. The result is the page's own sentence.
CHAPTERS = {
    "ceilings": "First the machine itself: its multiply-adds and its memory limit everything else, so both are "
    "measured, and everything else is drawn against them.",
    "ladder": "Then the product of two matrices, first in its plain form, and one idea at a time on top of it: an "
    "order of loops that reads along rows, tiles, unrolling, vectors, sums kept in registers, packing.",
    "flags": "How much of that would the compiler have done? The scalar rungs are built again with other flags.",
    "cache": "The order of loops mattered because memory comes in lines. Walking one matrix in several ways shows "
    "the cost of a miss and how much of a line is wasted.",
    "branches": "Unrolling mattered for another reason: every iteration of a loop ends with a branch, and every sum "
    "is a chain.",
    "wall": "Other libraries compute the same products: their shares of the peak, and ours.",
    "scaling": "Then more threads. Their gain depends on what limits the work.",
    "roofline": "The number of operations per byte decides which of the two ceilings limits a kernel.",
    "pages": "Memory costs time before it is read: the first touch of every page is a fault.",
    "training": "A training step allocates memory again and again. The same network with three allocators, and in "
    "PyTorch; then over sizes, up to those where only arithmetic counts.",
    "jitter": "All times above are medians. Here are the other times, and the reasons for the slow ones.",
    "energy": "Last, the cost in joules.",
}


@dataclass
class Step:
    """A rung of the ladder at its largest size, on one thread."""

    title: str
    ns: float
    gflop_per_s: float
    share: float  # of the peak


def steps(ladder: Experiment) -> tuple[int, list[Step]]:
    """The size, and all rungs from lowest to highest. Empty if nothing was timed."""
    timed = ladder.of("product", group="rungs", threads=1)
    peaks = [record["gflop_per_s"] for record in ladder.of("ceiling", dtype="float32", threads=1)]
    if not timed or not peaks:
        return 0, []
    largest = max(record["n"] for record in timed)
    titles: dict[str, str] = {record["name"]: record["title"] for record in ladder.of("rung")}
    found = []
    for record in (record for record in timed if record["n"] == largest):
        name: str = record["name"]
        share = ladder.derive(f"story: share of the peak, {name}", record["gflop_per_s"] / max(peaks))
        found.append(Step(titles.get(name) or name, record["median_ns"], record["gflop_per_s"], share))
    return largest, found


def opening(run: dict[str, Experiment]) -> list[str]:
    """The headline: the share of the peak on the lowest rung and on the highest. Empty without a
    ladder."""
    ladder = run.get("ladder")
    size, rungs = steps(ladder) if ladder is not None else (0, [])
    if ladder is None or len(rungs) < 2:
        return []
    foot, top = rungs[0], rungs[-1]
    ratio = ladder.derive("story: foot over top", foot.ns / top.ns)
    compared = f"{text.times(ratio)} as fast" if ratio > 1 else "no faster than the loops here"
    return [
        f"Multiply two matrices of {size:,} × {size:,} numbers as the textbook says, in three loops, and one thread of "
        f"this machine takes {text.time(foot.ns)}: **{text.percent(foot.share)} of its peak**. The engine's own "
        "product "
        f"of the same two takes {text.time(top.ns)}: **{text.percent(top.share)}**, {compared}. The arithmetic is the "
        "same. The difference is the order of loops, caches, registers and vectors. These pages explain it, one "
        "question at a time."
    ]


def _way_up(run: dict[str, Experiment]) -> list[str]:
    """The rungs as a table, for the overview."""
    size, rungs = steps(run["ladder"]) if "ladder" in run else (0, [])
    if not rungs:
        return []
    rows = []
    for i, step in enumerate(rungs):
        gain = run["ladder"].derive(f"story: gain, {step.title}", rungs[i - 1].ns / step.ns) if i else None
        rows.append(
            [
                step.title,
                text.time(step.ns),
                text.number(step.gflop_per_s),
                text.percent(step.share),
                text.times(gain) if gain else "",
            ]
        )
    headings = ["rung", "time", "GFLOP/s", "share of the peak", "over the rung below"]
    return [*table_lines(Table(headings, rows, f"The way up at N = {size:,}, float32, one thread.")), ""]


def total_seconds(run: dict[str, Experiment]) -> float:
    """The time of all experiments together."""
    total = sum(experiment.seconds for experiment in run.values())
    return next(iter(run.values())).derive("story: seconds of all experiments", total)


def _chapter(name: str, page: Page) -> list[str]:
    result = inline(page.result) + " " if page.result else ""
    title = inline(text.sentence(page.title))
    return [f"**[{title}]({name}.md)** {CHAPTERS[name]} {result}".rstrip(), ""]


def readme(run: dict[str, Experiment], pages: dict[str, Page]) -> str:
    """docs/lab/README.md."""
    header = next(iter(run.values())).header
    lines = ["# The lab: from the naive loop to the machine's peak", ""]
    for paragraph in opening(run):
        lines += [inline(paragraph), ""]
    lines += [
        f"Measured on {inline(machine_line(header))}, on {header['date']}, in {text.number(total_seconds(run))} s. "
        "Your machine will give other numbers: `make lab` runs all of it there and writes the same pages.",
        "",
        "## Overview",
        "",
    ]
    for name, page in pages.items():
        lines += _chapter(name, page)
        if name == "ladder":
            lines += _way_up(run)
    lines += ["## The questions", ""]
    lines += [
        f"- [{name}]({name}.md): {inline(experiment.header['question'])} `{experiment.header['command']}`"
        for name, experiment in run.items()
    ]
    lines += [
        "",
        "Every number in these pages is one of the records in [data](data) or was derived from them "
        "([derived.jsonl](data/derived.jsonl)). `python -m baregrad.lab docs docs/lab/data docs/lab` writes the pages "
        "again from there.",
    ]
    return "\n".join(lines) + "\n"
