"""The ladder: rungs over sizes, counts per multiply-add, threads, libraries."""

from __future__ import annotations

from matplotlib.figure import Figure

from baregrad.lab import products, style, text
from baregrad.lab.ladder_steps import counts_blocks, ratio, rung_at, rung_records
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

F32 = "float32"


def _share(experiment: Experiment, record: Record) -> float | None:
    """The share of the peak with as many threads."""
    top = products.peak(experiment, F32, record["threads"])
    if top is None:
        return None
    key = f"share.{record['group']}.{record['name']}.{record['n']}.{record['threads']}"
    return experiment.derive(key, record["gflop_per_s"] / top)


def _draw_rungs(experiment: Experiment) -> Figure:
    figure, axes = style.new_figure(height=4.6)
    products.draw_sizes(axes, rung_records(experiment), lambda r: float(r["gflop_per_s"]), ours="engine")
    axes.set_yscale("log")
    axes.set_ylabel("GFLOP/s (log scale)")
    top = products.peak(experiment, F32, 1)
    if top is not None:
        style.ceiling(axes, top, "multiply-add peak, one thread")
    products.legend_below(figure, axes)
    return figure


def _rungs_table(experiment: Experiment, n: int) -> Table:
    rows = []
    below: Record | None = None
    for rung in experiment.of("rung"):
        record = rung_at(experiment, rung["name"], n)
        if record is None:
            continue
        share = _share(experiment, record)
        rows.append(
            [
                f"{products.label(rung['name'])} (`{rung['file']}`)",
                text.time(record["median_ns"]),
                f"{text.time(record['p10_ns'])} to {text.time(record['p90_ns'])}",
                products.rate_text(record),
                "–" if below is None else text.times(ratio(experiment, below, record)),
                "–" if share is None else text.percent(share),
                f"{record['max_error']:.1e}",
            ]
        )
        below = record
    return Table(
        ["rung", "time", "p10 to p90", "GFLOP/s", "× the rung below", "of the peak", "error"],
        rows,
        f"N = {n}, one thread. The error is the greatest distance from the sum in double precision, divided by "
        "the sum of the magnitudes of its terms, over a grid of rows and columns that holds the first and the last.",
    )


def _power_of_two(experiment: Experiment) -> list[Block]:
    """Compares 1000 and 1024, if a run has both."""
    rows, worst = [], None
    for rung in experiment.of("rung"):
        plain, power = rung_at(experiment, rung["name"], 1000), rung_at(experiment, rung["name"], 1024)
        if plain is None or power is None:
            continue
        kept = experiment.derive(f"power_of_two.{rung['name']}", power["gflop_per_s"] / plain["gflop_per_s"])
        rows.append(
            [
                products.label(rung["name"]),
                products.rate_text(plain),
                products.rate_text(power),
                text.percent(kept),
            ]
        )
        if worst is None or kept < worst[1]:
            worst = (rung["name"], kept)
    if worst is None:
        return []
    distance = experiment.derive("row_bytes.1024", 4 * 1024)
    said = (
        f"At N = 1024 rows begin {text.number(distance)} bytes apart. Caches choose the place of a line by some bits "
        "of its address, and the numbers of one column then compete for few places."
    )
    if worst[1] < 0.9:
        said += f" {products.label(worst[0])} keeps {text.percent(worst[1])} of its rate at N = 1000."
    else:
        said += " No rung lost a tenth of its rate by that here."
    said += " Packed operands have no such distances."
    return [
        Heading("A power of two"),
        Text(said),
        Table(["rung", "GFLOP/s at 1000", "at 1024", "kept"], rows, "One thread."),
    ]


def _threads_blocks(experiment: Experiment) -> list[Block]:
    records = experiment.of("product", group="threads")
    if not records:
        return []
    threads = records[0]["threads"]
    figure, axes = style.new_figure(height=3.8)
    products.draw_rates(axes, records, products.peak(experiment, F32, threads), products.threads_text(threads))
    axes.set_ylabel("GFLOP/s")
    products.legend_below(figure, axes)
    small, large = products.sizes_of(records)[0], products.sizes_of(records)[-1]
    said = (
        f"The packed rung on {products.threads_text(threads)}: each takes a share of the rows. Threads are created for "
        "every product (pthreads), or they wait between products: OpenMP's, and those of the engine's pool. Beside "
        "them the engine's own product, which also shares the copying."
    )
    ways = [r for r in records if r["name"] != style.OURS]
    for n in dict.fromkeys((small, large)):
        there = [r for r in ways if r["n"] == n]
        best = products.fastest(there)
        slowest = min(there, key=lambda r: float(r["gflop_per_s"]))
        said += (
            f" At N = {n} {products.label(best['name'])} is the fastest of the three ways with "
            f"{text.time(best['median_ns'])}, {products.label(slowest['name'])} the slowest with "
            f"{text.time(slowest['median_ns'])}."
        )
    caption = "What it costs to bring threads together shows where products are short. Two threads that meet on one core take as long as one."
    return [Heading("Threads, three ways"), Text(said), Picture("threads", caption, figure)]


def _libraries_blocks(experiment: Experiment) -> list[Block]:
    records = experiment.of("product", group="libraries")
    counts = sorted({record["threads"] for record in records})
    if not records:
        return []
    figure, all_axes = style.new_figure(columns=len(counts), height=3.8)
    said = (
        "Everyone multiplies the same numbers into memory that is there already, in turns. NumPy and PyTorch are "
        "called from Python: the way there is part of their times, and counts for small N."
    )
    for index, threads in enumerate(counts):
        axes = all_axes[index] if len(counts) > 1 else all_axes
        mine = [record for record in records if record["threads"] == threads]
        products.draw_rates(axes, mine, products.peak(experiment, F32, threads), products.threads_text(threads))
        if index == 0:
            axes.set_ylabel("GFLOP/s")
        said += _standing(experiment, mine, threads)
        if index == len(counts) - 1:
            products.legend_below(figure, axes)
    blocks: list[Block] = [Heading("Against the libraries"), Text(said)]
    blocks.append(Picture("libraries", "GFLOP/s over N at equal thread counts.", figure))
    if table := products.versions_table(experiment):
        blocks.append(table)
    return blocks


def _standing(experiment: Experiment, records: list[Record], threads: int) -> str:
    """The fastest at the largest size."""
    n = products.sizes_of(records)[-1]
    here = [record for record in records if record["n"] == n]
    ours = next((record for record in here if record["name"] == style.OURS), None)
    others = [record for record in here if record["name"] != style.OURS]
    if ours is None or not others:
        return ""
    best = products.fastest(others)
    word = "against" if ratio(experiment, best, ours) >= 1 else "behind"
    return (
        f" On {products.threads_text(threads)} at N = {n} baregrad does {products.rate_text(ours)} GFLOP/s, {word} "
        f"{products.rate_text(best)} of {products.label(best['name'])}, the fastest of the others."
    )


def _accuracy(experiment: Experiment) -> Text:
    records = experiment.of("product")
    worst = max(records, key=lambda r: float(r["max_error"]))
    wrong = products.names_of([r for r in records if r["max_error"] > r["tolerance"]])
    if wrong:
        return Text(f"**Results beyond what rounding can explain**: {', '.join(map(products.label, wrong))}.")
    return Text(
        f"All results are products: the greatest error of all is {worst['max_error']:.1e} "
        f"({products.label(worst['name'])} at N = {worst['n']}), where rounding could reach {worst['tolerance']:.1e}."
    )


def _result(experiment: Experiment, n: int) -> str:
    naive, engine = rung_at(experiment, "naive", n), rung_at(experiment, "engine", n)
    blocked = rung_at(experiment, "register_blocked", n)
    if naive is None or engine is None or blocked is None:
        return "The ladder was not measured whole."
    of_engine = text.times(ratio(experiment, naive, engine))
    of_blocked = text.times(ratio(experiment, naive, blocked))
    said = (
        f"At N = {n} on one thread the engine's product is {of_engine} as fast as the naive loop; the rung that keeps "
        f"a block of c in registers reaches {of_blocked}."
    )
    low, high = _share(experiment, naive), _share(experiment, engine)
    if low is not None and high is not None:
        said += f" From {text.percent(low)} to {text.percent(high)} of the multiply-add peak."
    return said


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    title = "The ladder: from three loops to the engine's product"
    records = rung_records(experiment)
    if not records:
        return Page(title, "Nothing was measured.")
    n = products.sizes_of(records)[-1]
    rungs = "; ".join(f"**{products.label(r['name'])}**: {r['title']}" for r in experiment.of("rung"))
    blocks: list[Block] = [
        Text(
            "A product of two N × N matrices takes N³ multiply-adds whichever way it is written: two floating-point "
            "operations each. Every rung below is a short file in `lab/ladder/` that changes one thing against the one "
            "before. All are built with -O3; the baseline is a plain loop over pointers."
        ),
        Text(f"The rungs: {rungs}."),
        Picture(
            "rungs",
            "Every rung over N on one thread. The dashed line is what multiply-adds alone can do.",
            _draw_rungs(experiment),
        ),
        _rungs_table(experiment, n),
        _accuracy(experiment),
        *counts_blocks(experiment),
        *_power_of_two(experiment),
        *_threads_blocks(experiment),
        *_libraries_blocks(experiment),
    ]
    lesson = (
        "The arithmetic never changes, only the number of loads, stores and instructions around it, and the level "
        "from which the numbers come. The large steps are those that let a loaded number serve more than one "
        "multiply-add."
    )
    return Page(title, _result(experiment, n), blocks, lesson)
