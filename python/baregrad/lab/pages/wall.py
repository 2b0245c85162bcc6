"""The wall: the share of the peak of each library, over sizes and shapes, dtypes and thread counts."""

from __future__ import annotations

from matplotlib.figure import Figure

from baregrad.lab import products, style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record


def _key(record: Record) -> str:
    shape = f"{record['m']}x{record['n']}x{record['k']}"
    return f"{record['name']}.{shape}.{record['dtype']}.{record['threads']}"


def _share(experiment: Experiment, record: Record) -> float:
    """The share of the peak of its dtype with as many threads."""
    top = products.peak(experiment, record["dtype"], record["threads"])
    if not top:
        return 0.0
    return experiment.derive(f"share.{_key(record)}", record["gflop_per_s"] / top)


def _select(experiment: Experiment, group: str, dtype: str, threads: int) -> list[Record]:
    return experiment.of("product", group=group, dtype=dtype, threads=threads)


def _draw_squares(experiment: Experiment, dtype: str, counts: list[int]) -> Figure:
    figure, all_axes = style.new_figure(columns=len(counts), height=4.0)
    for index, threads in enumerate(counts):
        axes = all_axes[index] if len(counts) > 1 else all_axes
        records = _select(experiment, "square", dtype, threads)
        products.draw_sizes(axes, records, lambda record: 100 * _share(experiment, record))
        axes.set_ylim(0, 112)
        style.ceiling(axes, 100, "multiply-add peak")
        axes.set_title(f"{dtype}, {products.threads_text(threads)}", fontsize=10)
        if index == 0:
            axes.set_ylabel("% of the peak")
            products.legend_below(figure, axes)
    return figure


def _skinny_label(record: Record) -> str:
    return f"{record['m']} × {record['n']}"


def _draw_skinny(experiment: Experiment, dtype: str, counts: list[int]) -> Figure:
    figure, all_axes = style.new_figure(columns=len(counts), height=4.0)
    for index, threads in enumerate(counts):
        axes = all_axes[index] if len(counts) > 1 else all_axes
        records = _select(experiment, "skinny", dtype, threads)
        names = products.names_of(records)
        shapes = list(dict.fromkeys(_skinny_label(record) for record in records))
        for i, name in enumerate(names):
            mine = {_skinny_label(r): 100 * _share(experiment, r) for r in records if r["name"] == name}
            there = [shape for shape in shapes if shape in mine]
            keywords = products.line_of(name, names) | {"linestyle": "none"}
            # Otherwise marks of equal height would hide each other.
            beside = 0.09 * (i - (len(names) - 1) / 2)
            places = [shapes.index(shape) + beside for shape in there]
            axes.plot(places, [mine[shape] for shape in there], label=products.label(name), **keywords)
        axes.set_xticks(range(len(shapes)), shapes, rotation=45)
        axes.set_xlim(-0.5, len(shapes) - 0.5)
        axes.set_yscale("log")
        axes.set_xlabel("rows of A × side of B")
        style.ceiling(axes, 100, "multiply-add peak")
        axes.set_title(f"{dtype}, {products.threads_text(threads)}", fontsize=10, pad=14)
        if index == 0:
            axes.set_ylabel("% of the peak (log scale)")
            products.legend_below(figure, axes)
    return figure


def _squares_table(experiment: Experiment, dtype: str, threads: int) -> Table:
    records = _select(experiment, "square", dtype, threads)
    sizes = products.sizes_of(records)
    rows = []
    for name in products.names_of(records):
        mine = {r["n"]: r for r in records if r["name"] == name}
        rows.append(
            [products.label(name)] + [f"{100 * _share(experiment, mine[n]):.0f} %" if n in mine else "–" for n in sizes]
        )
    caption = f"Share of the peak of {dtype} by N, {products.threads_text(threads)}."
    return Table(["", *(str(n) for n in sizes)], rows, caption)


def _skinny_table(experiment: Experiment, dtype: str, threads: int) -> Table:
    """Time and memory traffic of ours and of the fastest other."""
    records = _select(experiment, "skinny", dtype, threads)
    rows = []
    for shape in dict.fromkeys(_skinny_label(record) for record in records):
        here = [record for record in records if _skinny_label(record) == shape]
        ours = next(record for record in here if record["name"] == style.OURS)
        others = [record for record in here if record["name"] != style.OURS]
        best = products.fastest(others) if others else None
        rows.append(
            [
                shape,
                text.time(ours["median_ns"]),
                text.number(experiment.derive(f"gb_per_s.{_key(ours)}", ours["bytes"] / ours["median_ns"])),
                text.percent(_share(experiment, ours)),
                "–" if best is None else f"{text.time(best['median_ns'])} ({products.label(best['name'])})",
            ]
        )
    return Table(
        ["rows × side", "baregrad", "GB/s", "of the peak", "fastest of the others"],
        rows,
        f"{dtype}, {products.threads_text(threads)}. GB/s: both operands and the result, counted once.",
    )


def _pairs(records: list[Record]) -> list[tuple[Record, Record]]:
    """Ours and the fastest other, for each case that has both."""
    cases: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        cases.setdefault(tuple(record[k] for k in ("m", "n", "k", "dtype", "threads")), []).append(record)
    pairs = []
    for here in cases.values():
        ours = [record for record in here if record["name"] == style.OURS]
        others = [record for record in here if record["name"] != style.OURS]
        if ours and others:
            pairs.append((ours[0], products.fastest(others)))
    return pairs


def _result(experiment: Experiment, records: list[Record]) -> str:
    n = products.sizes_of([r for r in records if r["group"] == "square"])[-1]
    said = []
    for dtype in dict.fromkeys(record["dtype"] for record in records):
        here = [r for r in _select(experiment, "square", dtype, 1) if r["n"] == n]
        ours = next((r for r in here if r["name"] == style.OURS), None)
        if ours is None:
            continue
        line = f"{text.percent(_share(experiment, ours))} of the peak in {dtype}"
        others = [r for r in here if r["name"] != style.OURS]
        if others:
            best = products.fastest(others)
            share = text.percent(_share(experiment, best))
            line += f" ({products.label(best['name'])}, the best of the others: {share})"
        said.append(line)
    return f"At N = {n} on one thread baregrad reaches {' and '.join(said)}."


def _near(experiment: Experiment, dtype: str) -> Text:
    """How many libraries come near the peak at the largest size."""
    records = _select(experiment, "square", dtype, 1)
    n = products.sizes_of(records)[-1]
    here = [record for record in records if record["n"] == n]
    near = [products.label(r["name"]) for r in here if _share(experiment, r) >= 0.8]
    if not near:
        return Text(f"At N = {n} on one thread no library reaches four fifths of the peak in {dtype}.")
    return Text(f"Four fifths of the peak in {dtype} at N = {n} on one thread or more: {', '.join(near)}.")


def _standing(experiment: Experiment, records: list[Record]) -> Text | None:
    pairs = _pairs(records)
    if not pairs:
        return None
    first = [(ours, best) for ours, best in pairs if ours["median_ns"] <= best["median_ns"]]
    cases = experiment.derive("cases", len(pairs))
    won = experiment.derive("cases_where_ours_is_fastest", len(first))
    said = f"Of {cases:.0f} products baregrad is the fastest in {won:.0f}."
    behind = [(ours, best) for ours, best in pairs if ours["median_ns"] > best["median_ns"]]
    if behind:
        ours, best = max(behind, key=lambda pair: float(pair[0]["median_ns"] / pair[1]["median_ns"]))
        factor = experiment.derive("furthest_behind", ours["median_ns"] / best["median_ns"])
        shape = f"{ours['m']} × {ours['k']} by {ours['k']} × {ours['n']}"
        said += (
            f" It is furthest behind at {shape} in {ours['dtype']} on {products.threads_text(ours['threads'])}: "
            f"{text.times(factor)} the time of {products.label(best['name'])}."
        )
    return Text(said)


def _wrong(records: list[Record]) -> Text:
    wrong = products.names_of([r for r in records if r["max_error"] > r["tolerance"]])
    if wrong:
        return Text(f"**Results beyond what rounding can explain**: {', '.join(map(products.label, wrong))}.")
    worst = max(records, key=lambda r: float(r["max_error"] / r["tolerance"]))
    return Text(
        "Every result was compared with sums in a wider type before it was timed; none is further off than rounding "
        f"explains. The nearest to that limit is {products.label(worst['name'])} with an error of "
        f"{worst['max_error']:.1e}, where {worst['tolerance']:.1e} could be."
    )


def _small(experiment: Experiment, dtype: str) -> Text | None:
    """Sizes where the call costs more than the product."""
    records = _select(experiment, "square", dtype, 1)
    n = products.sizes_of(records)[0]
    here = [record for record in records if record["n"] == n]
    if len(here) < 2:
        return None
    times = ", ".join(
        f"{products.label(r['name'])} {text.time(r['median_ns'])}"
        for r in sorted(here, key=lambda r: float(r["median_ns"]))
    )
    top = products.peak(experiment, dtype, 1)
    said = f"At N = {n} a call takes: {times}."
    if top:
        least = experiment.derive(f"least_ns.{n}.{dtype}", 2 * n**3 / top)
        said += f" The multiply-adds alone would take {text.time(least)}; the rest is the way to them."
    return Text(said)


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    title = "The wall: how close each library gets to the peak"
    records = experiment.of("product")
    if not any(record["group"] == "square" for record in records):
        return Page(title, "Nothing was measured.")
    blocks: list[Block] = [
        Text(
            "A processor can do so many multiply-adds a second and no more. That number was measured again before "
            "every product of this run, with a loop that does nothing else; the best of them is the peak here, for "
            "each dtype and thread count. All implementations take turns on the same numbers, and the memory of the "
            "result is taken and given back within the timed call on all sides."
        )
    ]
    if table := products.versions_table(experiment):
        blocks.append(table)
    if standing := _standing(experiment, records):
        blocks.append(standing)
    blocks.append(_wrong(records))
    for dtype in dict.fromkeys(record["dtype"] for record in records):
        counts = sorted({r["threads"] for r in records if r["dtype"] == dtype})
        blocks.append(Heading(f"Squares of {dtype}"))
        caption = f"Share of the peak over N in {dtype}, at equal thread counts."
        blocks.append(Picture(f"squares_{dtype}", caption, _draw_squares(experiment, dtype, counts)))
        blocks.append(_squares_table(experiment, dtype, counts[0]))
        blocks.append(_near(experiment, dtype))
        if small := _small(experiment, dtype):
            blocks.append(small)
    blocks.append(Heading("Skinny shapes"))
    blocks.append(
        Text(
            "A few rows times a large square matrix is what a layer of a network does for a few samples. With one row "
            "every number of B is loaded for a single multiply-add: the memory that B lies in sets the pace, not the "
            "arithmetic. Each further row uses the same loaded numbers once more, so the share of the peak rises with "
            "the rows as long as memory is the limit."
        )
    )
    for dtype in dict.fromkeys(record["dtype"] for record in records if record["group"] == "skinny"):
        counts = sorted({r["threads"] for r in records if r["dtype"] == dtype})
        caption = f"Share of the peak of products with few rows in {dtype}."
        blocks.append(Picture(f"skinny_{dtype}", caption, _draw_skinny(experiment, dtype, counts)))
        blocks.append(_skinny_table(experiment, dtype, counts[0]))
    lesson = (
        "In a large square every loaded number serves many multiply-adds, so a library that packs, blocks and keeps "
        "tiles in registers can come near the wall. In a small product the overhead before the multiply-adds counts, "
        "and in one with few rows the memory: a peak of arithmetic says little about either."
    )
    return Page(title, _result(experiment, records), blocks, lesson)
