"""The changes between two rungs of the ladder, in counts: a part of the ladder's page."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from baregrad.lab import products, style, text
from baregrad.lab.page import Block, Heading, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

# The wording of a factor between two rungs, for each count.
COUNTS = (
    ("instructions", "instructions"),
    ("loads", "loads"),
    ("stores", "stores"),
    ("branches", "branches"),
    ("l1_misses", "L1 misses"),
)
# True of the code whatever is measured: what a rung changes about the one below it.
REASONS = {
    "reordered": "The naive loop keeps one sum and adds to it: each addition waits for the one before it, and `b` is "
    "read down a column, one number of each cache line. Exchanged, the additions of the inner loop do not depend on "
    "each other, and neighbours in memory are neighbours in the loop, so that the compiler can use vectors.",
    "tiled": "The arithmetic is the same and so is the inner loop. What changes is how far `b` travels: a tile is used "
    "for every row of `a` before the next is fetched. That can only help where all of `b` does not fit into a near "
    "cache, and where the hardware does not fetch ahead fast enough by itself.",
    "unrolled": "Every element of `c` is loaded and stored once for four multiply-adds instead of once for each.",
    "simd": "Wider vectors and fused multiply-adds: fewer instructions for the same arithmetic. Each multiply-add "
    "still loads its number of `b` anew.",
    "register_blocked": "A vector of `b` in a register serves several rows, a number of `a` several columns, and `c` "
    "stays where it is. Not every multiply-add needs a load and a store any more.",
    "packed": "The innermost loop is the same but for where it reads. Copying costs time in proportion to N²; it pays "
    "when N³ is large against it, and when rows would otherwise meet in the same places of a cache.",
    "engine": "It chooses by shape what is worth copying, and fetches `c` ahead.",
}


def rung_records(experiment: Experiment) -> list[Record]:
    return [record for record in experiment.of("product", group="rungs") if record["threads"] == 1]


def rung_at(experiment: Experiment, name: str, n: int) -> Record | None:
    return experiment.one("product", group="rungs", name=name, n=n)


def ratio(experiment: Experiment, slow: Record, fast: Record) -> float:
    """How many times as fast the second is."""
    key = f"ratio.{slow['group']}.{slow['name']}.{fast['name']}.{fast['n']}.{fast['threads']}"
    return experiment.derive(key, slow["median_ns"] / fast["median_ns"])


def _counts_lanes(experiment: Experiment) -> bool:
    """Whether a load within a vector multiply-add was counted once per element of the vector."""
    counter = experiment.one("counter")
    return counter is not None and counter["source"] == "callgrind" and experiment.header["isa"] in ("avx2", "avx512")


def _counts(experiment: Experiment) -> dict[str, dict[str, float]]:
    """Counts per multiply-add, by rung."""
    counted = {}
    for record in experiment.of("count"):
        name = record["name"].removeprefix("rung:")
        work = record["size"] ** 3
        values = {key: record[key] for key, _ in COUNTS if key in record}
        if name == "simd" and _counts_lanes(experiment):
            values.pop("loads", None)
        if "l1_load_misses" in record:
            values["l1_misses"] = record["l1_load_misses"] + record.get("l1_store_misses", 0)
        counted[name] = {
            key: experiment.derive(f"per_multiply_add.{key}.{name}", value / work) for key, value in values.items()
        }
    return counted


def _counts_table(experiment: Experiment, counted: dict[str, dict[str, float]], n: int) -> Table:
    rows = []
    for name, counts in counted.items():
        timed = rung_at(experiment, name, n)
        if timed is None:
            continue
        spent = experiment.derive(f"ns_per_multiply_add.{name}", timed["median_ns"] / n**3)
        misses = counts.get("l1_misses")
        fetched = None if misses is None else experiment.derive(f"bytes_per_multiply_add.{name}", 64 * misses)
        rows.append(
            [products.label(name), text.number(spent)]
            + [_cell(counts.get(key)) for key, _ in COUNTS if key != "l1_misses"]
            + [
                _cell(None if misses is None else experiment.derive(f"l1_misses_per_1000.{name}", 1000 * misses)),
                _cell(fetched),
            ]
        )
    return Table(
        ["rung", "ns", "instructions", "loads", "stores", "branches", "L1 misses in a thousand", "bytes into L1"],
        rows,
        f"Per multiply-add, N = {n}. Bytes are L1 misses times the bytes of a cache line.",
    )


def _cell(value: float | None) -> str:
    return "–" if value is None else text.number(value)


def _change(key: str, name: str, before: float, after: float, experiment: Experiment) -> str | None:
    """"2.4× fewer loads"; empty if the change is small."""
    if before <= 0 or after <= 0:
        return None
    word, factor = ("fewer", before / after) if before > after else ("as many", after / before)
    if factor < 1.15:
        return None
    return f"{text.times(experiment.derive(f'change.{key}.{name}', factor))} {word} {dict(COUNTS)[key]}"


def _at_largest(experiment: Experiment, lower: str, upper: str, n: int) -> str:
    """The same step where the matrices exceed the near caches, if that is another size."""
    largest = products.sizes_of(rung_records(experiment))[-1]
    slow, fast = rung_at(experiment, lower, largest), rung_at(experiment, upper, largest)
    if largest == n or slow is None or fast is None:
        return ""
    factor = text.times(ratio(experiment, slow, fast))
    return f" At N = {largest} its rate is {factor} that of {products.label(lower)}."


def _jumps(experiment: Experiment, counted: dict[str, dict[str, float]], n: int) -> list[Block]:
    """One paragraph per rung: the factor in time, with the factors in counts."""
    blocks: list[Block] = []
    names = list(counted)
    for lower, upper in zip(names, names[1:], strict=False):
        slow, fast = rung_at(experiment, lower, n), rung_at(experiment, upper, n)
        if slow is None or fast is None:
            continue
        faster = ratio(experiment, slow, fast)
        if faster >= 1.05:
            pace = f"{text.times(faster)} as fast as {products.label(lower)}"
        elif faster > 0.95:
            pace = f"as fast as {products.label(lower)}"
        else:
            slower = experiment.derive(f"slower.{lower}.{upper}.{n}", 1 / faster)
            pace = f"{text.times(slower)} slower than {products.label(lower)}"
        changes = [
            change
            for key, _ in COUNTS
            if key in counted[lower] and key in counted[upper]
            if (change := _change(key, upper, counted[lower][key], counted[upper][key], experiment))
        ]
        seen = f" with {', '.join(changes)}" if changes else " with nearly the same counts"
        said = f"**{products.label(upper)}** is {pace}{seen}. {REASONS.get(upper, '')}"
        blocks.append(Text(said.strip() + _at_largest(experiment, lower, upper, n)))
    return blocks


def _draw_counts(experiment: Experiment, counted: dict[str, dict[str, float]], n: int) -> Figure:
    names = [name for name in counted if rung_at(experiment, name, n) is not None]
    times: list[float | None] = [experiment.derived[f"ns_per_multiply_add.{name}"] for name in names]
    panels = [("time (ns)", times)]
    for key, title in COUNTS:
        panels.append((title, [counted[name].get(key) for name in names]))
    panels = [(title, values) for title, values in panels if any(values)]
    figure, grid = style.new_figure(rows=2, columns=3, height=2.9)
    for index, axes in enumerate(grid.flat):
        axes.set_visible(index < len(panels))
        if index >= len(panels):
            continue
        title, values = panels[index]
        axes.barh(range(len(names)), [value or 0.0 for value in values], **style.bar(index))
        axes.set_yticks(range(len(names)), [products.label(name) for name in names] if index % 3 == 0 else [])
        axes.invert_yaxis()
        axes.set_xscale("log")
        positive = [value for value in values if value]
        left = 10 ** math.floor(math.log10(min(positive)) - 0.1)
        axes.set_xlim(left, 10 ** math.ceil(math.log10(max(positive))))
        for place, value in enumerate(values):
            if not value:
                said = "not counted" if value is None else "0"
                axes.annotate(said, (left, place), (3, 0), textcoords="offset points", va="center", fontsize=7.5)
        axes.minorticks_off()
        axes.set_title(title, fontsize=9)
        if index >= len(panels) - 3:
            axes.set_xlabel("per multiply-add", fontsize=8)
        axes.tick_params(labelsize=8)
    return figure


def counts_blocks(experiment: Experiment) -> list[Block]:
    counted = _counts(experiment)
    sizes = {record["size"] for record in experiment.of("count")}
    counter = experiment.one("counter")
    if not counted or counter is None or len(sizes) != 1:
        return []
    n = sizes.pop()
    blocks: list[Block] = [Heading("What changes between two rungs")]
    if counter["source"] == "hardware":
        blocks.append(Text(f"The processor's own counters watched each rung once, at N = {n}."))
    else:
        said = f"Callgrind simulated each rung once, at N = {n}."
        if _counts_lanes(experiment):
            said += " It counts a load inside of a vector multiply-add once for every number of the vector. The simd "
            said += "rung is full of those, so its loads are left out."
        if experiment.header["isa"] == "avx512":
            said += " It knows no AVX-512: the vector rungs were counted in their AVX2 form, and timed with AVX-512."
        blocks.append(Text(said))
    table = _counts_table(experiment, counted, n)
    blocks.append(table)
    blocks.append(
        Picture("counts", "Time and counts per multiply-add, log scales.", _draw_counts(experiment, counted, n))
    )
    return blocks + _jumps(experiment, counted, n)
