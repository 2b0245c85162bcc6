"""cache: strides, orders of traversal, transposes and rows of a power of two."""

from __future__ import annotations

from matplotlib.axes import Axes

from baregrad.lab import style, text
from baregrad.lab.labels import plain_log_axis
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

LEVELS = ("L1", "L2", "L3", "memory")
FLOAT_BYTES = 4
LINE_BYTES = 64
ORDERS = ("rows", "columns", "tiles")


def _misses(experiment: Experiment, record: Record, elements: float, size: int, level: str) -> float | None:
    """Counted misses per element of a timed record: loads and stores, of the "l1" or the last level ("ll")."""
    count = experiment.one("count", name=record["name"], size=size, warm_ups=record.get("counted_warm_ups", 1))
    if count is None:
        return None
    found = [count[key] for key in (f"{level}_load_misses", f"{level}_store_misses") if key in count]
    return sum(found) / elements if found else None


def _stride_misses(experiment: Experiment, record: Record, level: str) -> float | None:
    size = record["counted_size"]
    return _misses(experiment, record, size // record["stride"], size, level)


def _matrix_misses(experiment: Experiment, record: Record, level: str) -> float | None:
    return _misses(experiment, record, record["counted_n"] ** 2, record["counted_n"], level)


def _shown(experiment: Experiment, key: str, value: float | None) -> str:
    """A number per element derived from counts; a dash if nothing was counted."""
    return "-" if value is None else text.number(experiment.derive(key, round(value, 4)))


def _slower(experiment: Experiment, key: str, slow: Record, fast: Record) -> float:
    """The time as a multiple of that of `fast`."""
    return experiment.derive(key, slow["ns_per_element"] / fast["ns_per_element"])


def _stride_picture(experiment: Experiment) -> Picture:
    counted = bool(experiment.of("count"))
    figure, axes = style.new_figure(1, 2 if counted else 1)
    left = axes[0] if counted else axes
    for index, level in enumerate(LEVELS):
        records = experiment.of("stride", level=level)
        if records:
            left.plot(
                [record["distance_bytes"] for record in records],
                [record["ns_per_element"] for record in records],
                label=level,
                **style.line(index),
            )
    _bytes_axis(experiment, left)
    left.set_yscale("log")
    plain_log_axis(left.yaxis)
    left.set_ylabel("time per element (ns)")
    left.legend(title="data in")
    if counted:
        _miss_panel(experiment, axes[1])
    caption = "Time per element over the distance from one to the next."
    if counted:
        caption += " Beside it the lines that each element needs: from one line on, every element is in another line."
    return Picture("cache_strides", caption, figure)


def _miss_panel(experiment: Experiment, axes: Axes) -> None:
    for index, (label, where, level) in enumerate(
        (("L1, data in L1", "L1", "l1"), ("L1, data in L2", "L2", "l1"), ("last level, data in memory", "memory", "ll"))
    ):
        points = [
            (record["distance_bytes"], misses)
            for record in experiment.of("stride", level=where)
            if (misses := _stride_misses(experiment, record, level)) is not None
        ]
        if points:
            axes.plot([x for x, _ in points], [y for _, y in points], label=label, **style.line(index))
    _bytes_axis(experiment, axes)
    axes.set_ylabel("misses per element")
    axes.set_ylim(-0.05, 1.6)
    axes.legend(title="misses of", loc="upper left", fontsize=8)


def _bytes_axis(experiment: Experiment, axes: Axes) -> None:
    ticks = sorted({record["distance_bytes"] for record in experiment.of("stride")})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("distance of elements (bytes)")


def _stride_table(experiment: Experiment) -> Table:
    rows = []
    for first in experiment.of("stride", level="L1"):
        stride = first["stride"]
        records = {level: experiment.one("stride", level=level, stride=stride) for level in LEVELS}
        outer = records["L2"]
        misses = _stride_misses(experiment, outer, "l1") if outer else None
        used = "-"
        if misses:
            share = min(1.0, FLOAT_BYTES / (LINE_BYTES * misses))
            used = text.percent(experiment.derive(f"stride {stride}: used share of a line", share))
        times = [text.time(record["ns_per_element"]) if record else "-" for record in records.values()]
        shown = _shown(experiment, f"stride {stride}: L1 misses", misses)
        rows.append([f"{first['distance_bytes']} B", shown, used, *times])
    headings = ["distance", "L1 misses per element (data in L2)", "used of each line"]
    return Table(headings + [f"data in {level}" for level in LEVELS], rows, "Time per element over strides.")


def _miss_costs(experiment: Experiment) -> list[tuple[str, float]]:
    """The cost of a line from a farther level: (level, ns), with one element per line."""
    stride = LINE_BYTES // FLOAT_BYTES
    near = experiment.one("stride", level="L1", stride=stride)
    costs = []
    for level in LEVELS[1:]:
        far = experiment.one("stride", level=level, stride=stride)
        if not near or not far:
            continue
        misses = _stride_misses(experiment, far, "l1")
        if misses:
            cost = (far["ns_per_element"] - near["ns_per_element"]) / misses
            costs.append((level, experiment.derive(f"cost of a miss served by {level}, ns", cost)))
    return costs


def _stride_blocks(experiment: Experiment) -> list[Block]:
    blocks: list[Block] = [
        Heading("Gaps between the elements"),
        Text(
            f"Memory comes in lines of {LINE_BYTES} bytes. A program that reads one float gets "
            f"{LINE_BYTES // FLOAT_BYTES} of them. Here a loop adds up floats that lie one, two, four and more apart, in memory as large as half of "
            "each cache, or larger than all of them. The loop is the same for all strides. It "
            "keeps eight sums, so that it waits for memory and not for the addition before."
        ),
        _stride_picture(experiment),
        _stride_table(experiment),
    ]
    costs = _miss_costs(experiment)
    if costs:
        listed = ", ".join(f"{text.time(cost)} when {level} has the line" for level, cost in costs)
        blocks.append(
            Text(
                f"At {LINE_BYTES} bytes every element needs a line of its own. What it takes longer than in L1, "
                f"divided by the misses, is the cost of one miss: {listed}. These are costs of misses that overlap: "
                "no load of this loop waits for another, so the processor has many under way at once. A chain of loads "
                "that wait for each other takes longer."
            )
        )
    return blocks


def _order_picture(experiment: Experiment) -> Picture:
    figure, axes = style.new_figure(1, 2)
    for axis, kind in zip(axes, ("sum", "fill"), strict=True):
        for index, order in enumerate(ORDERS):
            records = [experiment.one("matrix", level=level, name=f"{kind}:{order}") for level in LEVELS]
            heights = [record["ns_per_element"] if record else 0.0 for record in records]
            places = [place + (index - 1) * 0.27 for place in range(len(LEVELS))]
            axis.bar(places, heights, 0.27, label=order, **style.bar(index))
        axis.set_xticks(range(len(LEVELS)), LEVELS)
        axis.set_yscale("log")
        plain_log_axis(axis.yaxis)
        axis.set_xlabel("matrix in")
        axis.set_ylabel("time per element (ns)")
        axis.set_title({"sum": "adding up", "fill": "writing"}[kind])
    axes[0].legend(title="by")
    return Picture("cache_orders", "The same elements of a square matrix, in three orders.", figure)


def _order_table(experiment: Experiment, kinds: tuple[str, ...]) -> Table:
    rows = []
    for level in LEVELS:
        for name in kinds:
            record = experiment.one("matrix", level=level, name=name)
            if record is None:
                continue
            misses = [
                _shown(experiment, f"{name} in {level}: {cache} misses", _matrix_misses(experiment, record, cache))
                for cache in ("l1", "ll")
            ]
            work = name.replace("sum:", "sum by ").replace("fill:", "write by ").replace("transpose:", "transpose, ")
            rows.append([f"{level}, {record['n']} x {record['n']}", work, text.time(record["ns_per_element"]), *misses])
    headings = ["matrix in", "work", "time per element", "L1 misses per element", "last-level misses per element"]
    return Table(headings, rows)


def _columns_text(experiment: Experiment, level: str) -> str:
    """Compares rows, columns and tiles of one level, in words that are true for any result."""
    found = {order: experiment.one("matrix", level=level, name=f"sum:{order}") for order in ORDERS}
    rows, columns, tiles = (found[order] for order in ORDERS)
    if not rows or not columns or not tiles:
        return ""
    slower = _slower(experiment, f"sum in {level}: columns/rows", columns, rows)
    told = f"With the matrix in {level}, columns take {text.times(slower)} the time of rows"
    seen = [_matrix_misses(experiment, record, "l1") for record in (rows, columns)]
    if seen[0] and seen[1]:
        ratio = experiment.derive(f"sum in {level}: L1 misses, columns/rows", seen[1] / seen[0])
        told += f" and have {text.times(ratio)} the L1 misses"
    tiled = _slower(experiment, f"sum in {level}: tiles/columns", tiles, columns)
    told += f"; tiles take {text.times(tiled)} the time of columns. "
    return told


def _order_blocks(experiment: Experiment) -> list[Block]:
    last = experiment.one("matrix", level="memory", name="sum:columns")
    blocks: list[Block] = [
        Heading("Rows, columns, tiles"),
        Text(
            "A square matrix lies in memory row by row. By rows, a line is used up before the next one is asked for. "
            "By columns, each element is in another line; its neighbours are used only when the next column comes, and "
            "by then the line may be gone. Tiles also go down columns, but only so far that all their lines stay "
            "in the L1 cache until they are used up."
        ),
        _order_picture(experiment),
        _order_table(experiment, tuple(f"{kind}:{order}" for kind in ("sum", "fill") for order in ORDERS)),
    ]
    told = "".join(_columns_text(experiment, level) for level in ("L2", "L3", "memory"))
    if last and told:
        lines = experiment.derive("lines of a column in memory, bytes", last["n"] * LINE_BYTES)
        told += (
            f"A column of {last['n']} elements touches {text.size(lines)} of lines: whether they are still there for "
            "the next column depends on which cache is as large as that, not on how large the matrix is."
        )
    if told:
        blocks.append(Text(told))
    return blocks + _huge_blocks(experiment)


def _huge_blocks(experiment: Experiment) -> list[Block]:
    """Columns on small and on huge pages."""
    records = experiment.of("page")
    if len(records) != 2:
        return []
    small, huge = records
    ratio = _slower(experiment, "columns in memory: small pages/huge pages", small, huge)
    apart = ""
    if huge["n"] * FLOAT_BYTES >= small["page_bytes"]:
        apart = f"Each element of a column of this matrix lies on another page of {text.size(small['page_bytes'])}. "
    verdict = (
        "So a part of the cost of columns is looking up addresses, not moving lines."
        if ratio > 1.1
        else "So looking up addresses is not what makes columns slow here."
    )
    return [
        Text(
            "Misses of the caches are not all. Addresses are looked up page by page, and a processor remembers only so "
            f"many pages. {apart}On pages of {text.size(huge['page_bytes'])} the same loop takes "
            f"{text.time(huge['ns_per_element'])} per element instead of {text.time(small['ns_per_element'])}; the "
            f"small pages cost {text.times(ratio)} the time. {verdict}"
        )
    ]


def _transpose_blocks(experiment: Experiment) -> list[Block]:
    naive = experiment.one("matrix", level="memory", name="transpose:naive")
    tiled = experiment.one("matrix", level="memory", name="transpose:tiled")
    if not naive or not tiled:
        return []
    gain = _slower(experiment, "transpose in memory: naive/tiled", naive, tiled)
    verdict = (
        f"In memory tiles make it {text.times(gain)} as fast."
        if gain > 1
        else "Tiles do not make it faster in memory here."
    )
    near = [
        level
        for level in ("L1", "L2", "L3")
        if (one := experiment.one("matrix", level=level, name="transpose:naive"))
        and (other := experiment.one("matrix", level=level, name="transpose:tiled"))
        and other["ns_per_element"] > one["ns_per_element"]
    ]
    if near:
        verdict += f" Nearer, in {' and '.join(near)}, they only cost: there is no line to be saved."
    return [
        Heading("A transpose has no good order"),
        Text(
            "A loop that reads rows writes columns. A tile of 16 x 16 floats is the way out: 16 lines of the one "
            "matrix "
            f"and 16 of the other stay in the L1 cache until all of them is used. {verdict}"
        ),
        _order_table(experiment, ("transpose:naive", "transpose:tiled")),
    ]


def _pitch_blocks(experiment: Experiment) -> list[Block]:
    records = experiment.of("pitch")
    if len(records) != 2:
        return []
    rows, misses = [], []
    for record in records:
        seen = _misses(experiment, record, record["elements"], record["rows"], "l1")
        misses.append(seen)
        shown = _shown(experiment, f"rows of {record['pitch_bytes']} B: L1 misses", seen)
        rows.append([f"{record['pitch_bytes']} B", text.time(record["ns_per_element"]), shown])
    round_one, odd_one = records
    slower = _slower(experiment, "rows of a power of two / one line longer", round_one, odd_one)
    why = (
        "A cache puts a line where the middle bits of its address say; with rows of a power of two these bits are the "
        "same for a whole column, and all its lines compete for the few places of one set."
    )
    if slower <= 1:
        why = "Rows of a power of two cost nothing here."
    return [
        Heading("Rows of a power of two"),
        Text(
            f"The first {round_one['columns']} columns of a matrix with {round_one['rows']} rows are added up, one "
            f"after the other. They touch {text.size(round_one['touched_bytes'])} of lines, which any L1 cache holds. "
            "The rows of one matrix are a power of two long, those of the other one line longer."
        ),
        Table(["length of a row", "time per element", "L1 misses per element"], rows),
        Text(f"The power of two takes {text.times(slower)} the time. {why}"),
    ]


def _result(experiment: Experiment) -> str:
    rows = experiment.one("matrix", level="memory", name="sum:rows")
    columns = experiment.one("matrix", level="memory", name="sum:columns")
    if not rows or not columns:
        return "Nothing was measured."
    slower = _slower(experiment, "sum in memory: columns/rows", columns, rows)
    told = (
        f"Adding up a matrix in memory takes {text.time(rows['ns_per_element'])} per element by rows and "
        f"{text.time(columns['ns_per_element'])} by columns, {text.times(slower)} as long."
    )
    costs = _miss_costs(experiment)
    if costs:
        listed = ", ".join(f"{text.time(cost)} from {level}" for level, cost in costs)
        told += f" A missed line costs {listed}, when misses overlap."
    return told


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    blocks = _stride_blocks(experiment) if experiment.of("stride") else []
    if experiment.of("matrix"):
        blocks += _order_blocks(experiment) + _transpose_blocks(experiment)
    blocks += _pitch_blocks(experiment)
    return Page(
        "Cache lines: what a miss costs, and how much of a line is wasted",
        _result(experiment),
        blocks,
        "Memory is paid for by the line. Use all of a line while it is there: walk along rows, or cut the work into "
        "tiles whose lines fit in the L1 cache. Keep rows away from powers of two. The engine's products and "
        "transposed copies are built of such tiles.",
    )
