"""The part of the ceilings' page on memory: bandwidth and latency over the working set."""

from __future__ import annotations

from matplotlib.axes import Axes

from baregrad.lab import style, text
from baregrad.lab.labels import plain_log_axis
from baregrad.lab.page import Block, Heading, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

LINE_BYTES = 64
UPDATE = "update"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def counts(records: list[Record]) -> list[int]:
    return sorted({record["threads"] for record in records})


def levels(experiment: Experiment) -> list[str]:
    """The levels, nearest first, in the order of measurement."""
    return list(dict.fromkeys(record["level"] for record in experiment.of("stream")))


def fastest(experiment: Experiment, level: str, threads: int) -> Record | None:
    """The fastest of reading, copying and adding. Not updating: its bytes are fetched once and
    counted twice."""
    found = [r for r in experiment.of("stream", level=level, threads=threads) if r["stream"] != UPDATE]
    return max(found, key=lambda record: record["gb_per_s"]) if found else None


def _data_caches(experiment: Experiment) -> list[Record]:
    return [cache for cache in experiment.header["machine"]["caches"] if cache["type"] != "instruction"]


def clock_of(experiment: Experiment) -> float | None:
    record = experiment.one("clock")
    return record["median_ghz"] if record else None


# ---- Bandwidth -----------------------------------------------------------------------------------


def _mark_caches(experiment: Experiment, axes: Axes) -> None:
    for cache in _data_caches(experiment):
        axes.axvline(cache["bytes"], color="0.5", linestyle=":", linewidth=1)
        axes.annotate(
            f" L{cache['level']}",
            (cache["bytes"], 1.0),
            xycoords=("data", "axes fraction"),
            ha="left",
            va="top",
            fontsize=8,
            color="0.3",
        )


def _size_axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlabel(label)
    ticks = [2.0**power for power in range(12, 31, 2)]
    low, high = axes.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(shown, [text.size(tick) for tick in shown], fontsize=8)


def _bandwidth_picture(experiment: Experiment) -> Picture | None:
    records = experiment.of("bandwidth")
    if not records:
        return None
    figure, axes = style.new_figure()
    for index, threads in enumerate(counts(records)):
        chosen = [record for record in records if record["threads"] == threads]
        axes.plot(
            [record["bytes"] for record in chosen],
            [record["gb_per_s"] for record in chosen],
            label=plural(threads, "thread"),
            **style.line(index - 1, ours=index == 0),
        )
    axes.set_yscale("log")
    _size_axis(axes, "working set of all threads together")
    axes.set_ylabel("read, GB/s")
    plain_log_axis(axes.yaxis)
    _mark_caches(experiment, axes)
    axes.legend(loc="lower left")
    return Picture(
        "bandwidth",
        "Bytes read per second over the size of what is read, again and again. Dotted: where each cache ends for one "
        "core.",
        figure,
    )


def bandwidth(experiment: Experiment) -> list[Block]:
    records = experiment.of("stream")
    if not records:
        return []
    clock = clock_of(experiment)
    names = ["read", "copy", "add"] + ([UPDATE] if experiment.of("stream", stream=UPDATE) else [])
    headings = ["Level", "Threads", "Bytes", *(f"{name.capitalize()}, GB/s" for name in names)]
    if clock:
        headings.append("Fastest, bytes per cycle and thread")
    rows = []
    for level in levels(experiment):
        for threads in counts(records):
            streams = {record["stream"]: record for record in experiment.of("stream", level=level, threads=threads)}
            best = fastest(experiment, level, threads)
            if best is None:
                continue
            row = [level, f"{threads:,}", text.size(best["bytes"])]
            row += [text.number(streams[name]["gb_per_s"]) if name in streams else "" for name in names]
            if clock:
                key = f"bytes_per_cycle {level} {threads}"
                row.append(text.number(experiment.derive(key, best["gb_per_s"] / clock / threads)))
            rows.append(row)
    blocks: list[Block] = [
        Heading("Bandwidth"),
        Text(
            "The loops walk half of each cache, and then a block that no cache holds. Reading adds numbers up, copying "
            "reads one array and writes another, adding reads two and writes a third; the bytes of all arrays count. "
            "Copies and additions are tried with ordinary stores and with stores that go past the caches; the better "
            "one counts."
            + (
                " Updating reads numbers and writes them where they stood: no line is fetched only to be overwritten. "
                "Loops that write elsewhere cannot do that, so it does not count as the fastest."
                if UPDATE in names
                else ""
            )
        ),
        Table(headings, rows),
    ]
    picture = _bandwidth_picture(experiment)
    if picture:
        blocks.append(picture)
    one, far = fastest(experiment, "L1", 1), fastest(experiment, "memory", 1)
    if one and far:
        factor = experiment.derive("L1 over memory bandwidth", one["gb_per_s"] / far["gb_per_s"])
        blocks.append(Text(f"One core is fed {text.times(factor)} as fast from its L1 cache as from memory."))
    most = counts(records)[-1]
    all_threads = fastest(experiment, "memory", most)
    if far and all_threads and most > 1:
        gain = experiment.derive("memory speedup", all_threads["gb_per_s"] / far["gb_per_s"])
        told = f"{most:,} threads together read, copy or add memory {text.times(gain)} as fast as one"
        if gain < 0.9 * most:
            told += ": every core brings its own caches, but the way to memory is one for all of them."
        else:
            told += ": one core cannot fill the way to memory, and so few do not crowd it yet."
        blocks.append(Text(told))
    return blocks


# ---- Latency -------------------------------------------------------------------------------------

_PAGES = {"small": "small pages", "huge": "huge pages"}


def _latency_picture(experiment: Experiment) -> Picture | None:
    if not experiment.of("latency"):
        return None
    figure, axes = style.new_figure()
    for index, (pages, name) in enumerate(_PAGES.items()):
        chosen = experiment.of("latency", pages=pages)
        if not chosen:
            continue
        sizes = [record["bytes"] for record in chosen]
        look = style.line(index - 1, ours=index == 0)
        axes.plot(sizes, [record["median_ns"] for record in chosen], label=name, **look)
        axes.fill_between(
            sizes,
            [record["p10_ns"] for record in chosen],
            [record["p90_ns"] for record in chosen],
            color=look["color"],
            alpha=0.12,
            linewidth=0,
        )
    axes.set_yscale("log")
    _size_axis(axes, "working set")
    axes.set_ylabel("time per load, ns")
    plain_log_axis(axes.yaxis)
    _mark_caches(experiment, axes)
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.9))
    return Picture(
        "latency",
        "Nanoseconds per load where every load waits for the one before, over the size of what is walked through. The "
        "bands reach from the tenth to the ninetieth percentile.",
        figure,
    )


def _inside(experiment: Experiment, level: str, pages: str) -> Record | None:
    """The largest working set that clearly fits a level; for memory, the largest of all."""
    records = experiment.of("latency", pages=pages)
    if level == "memory":
        return records[-1] if records else None
    limit = next((cache["bytes"] for cache in _data_caches(experiment) if f"L{cache['level']}" == level), 0)
    fitting = [record for record in records if record["bytes"] <= 0.5 * limit]
    return fitting[-1] if fitting else None


def latency(experiment: Experiment) -> list[Block]:
    picture = _latency_picture(experiment)
    if picture is None:
        return []
    clock = clock_of(experiment)
    kinds = [pages for pages in _PAGES if experiment.of("latency", pages=pages)]
    headings = ["Level", "Working set"]
    for pages in kinds:
        headings += [f"{_PAGES[pages].capitalize()}"] + (["in cycles"] if clock else [])
    rows = []
    for level in levels(experiment):
        found = [(pages, _inside(experiment, level, pages)) for pages in kinds]
        first = found[0][1] if found else None
        if first is None:
            continue
        row = [level, text.size(first["bytes"])]
        for pages, record in found:
            row.append(text.time(record["median_ns"]) if record else "")
            if clock:
                key = f"load_cycles {level} {pages}"
                row.append(text.number(experiment.derive(key, record["median_ns"] * clock)) if record else "")
        rows.append(row)
    blocks: list[Block] = [
        Heading("Latency"),
        Text(
            "One pointer in each cache line, all of them in one random cycle: nothing can be prefetched, since "
            "the next address is unknown."
        ),
        picture,
        Table(headings, rows),
    ]
    small, huge = _inside(experiment, "memory", "small"), _inside(experiment, "memory", "huge")
    stream = experiment.one("stream", stream="read", level="memory", threads=1)
    if small and stream:
        in_order = experiment.derive("ns per line in order", LINE_BYTES / stream["gb_per_s"])
        factor = experiment.derive("random over in order", small["median_ns"] / in_order)
        blocks.append(
            Text(
                f"A line from memory costs {text.time(small['median_ns'])} when the program has to wait for it, and "
                f"{text.time(in_order)} when lines are read in order: {text.times(factor)}. The memory is the same; in "
                "order, the processor asks for many lines before the first one is there."
            )
        )
    if small and huge and small["median_ns"] > 1.1 * huge["median_ns"]:
        gap = experiment.derive("page walk ns", small["median_ns"] - huge["median_ns"])
        blocks.append(
            Text(
                f"With huge pages the same load takes {text.time(gap)} less: that was the search for the page's "
                "address, which small pages make so long a list of that the processor cannot keep it."
            )
        )
    return blocks
