"""Kernels and rungs under the roofs of arithmetic and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baregrad.lab import style, text
from baregrad.lab.labels import Place, label_points, plain_log_axis
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

_MARKERS = {"L1": "o", "L2": "s", "L3": "D", "memory": "^"}
_COLOURS = dict(zip(_MARKERS, style.COLOURS[1:], strict=False))
_DASHES = dict(zip(_MARKERS, style.DASHES[1:], strict=False))
_IN_PLACE = ", in place"  # behind the name of a level
_GOOD = 0.7  # of the roof


def _peak(experiment: Experiment) -> float | None:
    record = experiment.one("roof", name="multiply-adds")
    return record["gflop_per_s"] if record else None


def _slopes(experiment: Experiment) -> dict[str, float]:
    """GB/s by level, nearest first."""
    return {record["name"]: record["gb_per_s"] for record in experiment.of("roof") if "gb_per_s" in record}


def _slopes_in_place(experiment: Experiment) -> dict[str, float]:
    """The same for kernels that update in place; older records have none."""
    roofs = [record for record in experiment.of("roof") if "update_gb_per_s" in record]
    return {record["name"]: max(record["gb_per_s"], record["update_gb_per_s"]) for record in roofs}


def _roof_over(experiment: Experiment, point: Record) -> tuple[float, str]:
    """The lower of the two roofs at a point, in GFLOP/s, and its name."""
    peak = _peak(experiment)
    slope, name = _slopes(experiment).get(point["level"]), point["level"]
    if point.get("in_place") and name in _slopes_in_place(experiment):
        slope, name = _slopes_in_place(experiment)[name], f"{name}{_IN_PLACE}"
    arithmetic = peak if peak is not None else math.inf
    memory = slope * point["flop_per_byte"] if slope is not None else math.inf
    return (memory, name) if memory < arithmetic else (arithmetic, "arithmetic")


def _count(experiment: Experiment, key: str, points: Sequence[Record]) -> int:
    return int(experiment.derive(f"count {key}", len(points)))


def _share(experiment: Experiment, key: str, point: Record) -> float:
    if point["flops"] == 0:
        return experiment.derive(f"share {key}", point["gb_per_s"] / _slopes(experiment)[point["level"]])
    return experiment.derive(f"share {key}", point["gflop_per_s"] / _roof_over(experiment, point)[0])


# ---- Pictures ------------------------------------------------------------------------------------


def _dashes(level: str) -> Any:
    return (0, (1, 3)) if level.endswith(_IN_PLACE) else _DASHES[level]


def _draw_roofs(
    experiment: Experiment, axes: Axes, slopes: dict[str, float], low: float, high: float
) -> list[tuple[Place, Place]]:
    """Draws roofs, and returns the lines."""
    peak = _peak(experiment)
    assert peak is not None
    lines = []
    for level, slope in slopes.items():
        ridge = min(high, max(low, peak / slope))
        lines.append(((low, slope * low), (ridge, slope * ridge)))
        label = f"{level}, {text.number(slope)} GB/s"
        axes.plot(*zip(*lines[-1], strict=True), color="black", linewidth=1, linestyle=_dashes(level), label=label)
    lines.append(((low, peak), (high, peak)))
    label = f"multiply-adds, {text.number(peak)} GFLOP/s"
    axes.plot(*zip(*lines[-1], strict=True), color="black", linewidth=2, label=label)
    return lines


def _place(point: Record) -> Place:
    return point["flop_per_byte"], point["gflop_per_s"]


def _draw_panel(
    experiment: Experiment, axes: Axes, points: Sequence[Record], slopes: dict[str, float], lowest: float
) -> list[tuple[Place, Place]]:
    """Draws the roofs of these levels and the points under them, from the intensity `lowest` or
    less. Returns the roofs' lines."""
    peak = _peak(experiment)
    assert peak is not None
    across, up = zip(*map(_place, points), strict=True)
    low = min([lowest, *across]) / 1.5
    high = max([2 * peak / slope for slope in slopes.values()] + [2.5 * max(across)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(min([0.5 * min(up), *(0.6 * slope * low for slope in slopes.values())]), 3 * peak)
    roofs = _draw_roofs(experiment, axes, slopes, low, high)
    for level in slopes:
        chosen = [_place(point) for point in points if point["level"] == level]
        if chosen:
            axes.scatter(
                [x for x, _ in chosen],
                [y for _, y in chosen],
                marker=_MARKERS[level],
                color=_COLOURS[level],
                edgecolors="black",
                linewidths=0.6,
                s=26,
                zorder=4,
                label=f"its bytes fit {level}" if level != "memory" else "its bytes fit no cache",
            )
    axes.set_ylabel("GFLOP/s")
    plain_log_axis(axes.xaxis)
    plain_log_axis(axes.yaxis)
    return roofs


Panel = tuple[Axes, Sequence[Record], list[tuple[Place, Place]]]  # its points, and the lines of its roofs


def _finish(figure: Figure, panels: Sequence[Panel], key: str) -> None:
    """The legend of all panels, then labels beside points, which need the space that it leaves."""
    handles: dict[str, Artist] = {}
    for axes, _, _ in panels:
        artists, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, artists, strict=True))
    panels[-1][0].set_xlabel("intensity, operations per byte")
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", fontsize=8, ncols=3)
    for axes, points, roofs in panels:
        label_points(axes, [_place(point) for point in points], [point[key] for point in points], roofs)


def _draw_kernels(experiment: Experiment, points: Sequence[Record]) -> Figure:
    """Two panels: points that differ only in the level of their data would cover each other."""
    slopes = _slopes(experiment)
    near = {level: slope for level, slope in slopes.items() if level != "memory"}
    far = {level: slope for level, slope in slopes.items() if level == "memory"}
    # The roof of in-place updates is drawn only if a point belongs to it.
    owners = {point["level"] for point in points if point.get("in_place")}
    above = {level: slope for level, slope in _slopes_in_place(experiment).items() if level in owners}
    near |= {f"{level}{_IN_PLACE}": slope for level, slope in above.items() if level != "memory"}
    far |= {f"{level}{_IN_PLACE}": slope for level, slope in above.items() if level == "memory"}
    kinds = [(near, "bytes that fit a cache"), (far, "bytes that fit no cache")]
    chosen = [(levels, title, [p for p in points if p["level"] in levels]) for levels, title in kinds]
    chosen = [each for each in chosen if each[2]]
    figure, grid = style.new_figure(rows=len(chosen), height=4.2)
    panels = []
    for axes, (levels, title, here) in zip([grid] if len(chosen) == 1 else grid, chosen, strict=True):
        panels.append((axes, here, _draw_panel(experiment, axes, here, levels, 0.04)))
        axes.set_title(title, fontsize=9)
    _finish(figure, panels, "label")
    return figure


def _draw_rungs(experiment: Experiment, points: Sequence[Record]) -> Figure:
    figure, axes = style.new_figure(height=4.4)
    roofs = _draw_panel(experiment, axes, points, _slopes(experiment), 0.15)
    _finish(figure, [(axes, points, roofs)], "name")
    return figure


# ---- Blocks --------------------------------------------------------------------------------------


def _roofs(experiment: Experiment) -> list[Block]:
    peak = _peak(experiment)
    if peak is None:
        return []
    streams = {"read": "Read", "copy": "Copy", "add": "Add"}
    if _slopes_in_place(experiment):
        streams["update"] = "Update"
    rows = [["arithmetic", f"{text.number(peak)} GFLOP/s", *("" for _ in streams), ""]]
    for record in experiment.of("roof"):
        if "gb_per_s" not in record:
            continue
        ridge = experiment.derive(f"ridge {record['name']}", peak / record["gb_per_s"])
        rows.append(
            [
                record["name"],
                f"{text.number(record['gb_per_s'])} GB/s",
                *(text.number(record[f"{stream}_gb_per_s"]) for stream in streams),
                text.number(ridge),
            ]
        )
    return [
        Heading("The roofs"),
        Text(
            "A kernel that does I operations for every byte can do at most I times as many operations a second as "
            "bytes come, and at most as many as the units can do. Drawn over I on logarithmic axes, the first limit is "
            "a slope, one for each cache and one for memory, and the second is flat. Left of the ridge, where slope "
            "and flat roof meet, bytes are the limit; right of it arithmetic is. All of it on one thread, in float32."
        ),
        Table(
            ["Roof", "Height", *(f"{name}, GB/s" for name in streams.values()), "Ridge, operations per byte"],
            rows,
        ),
        Text(
            "The height of a slope is the fastest of reading, copying and adding on half of that cache."
            + (
                " Who writes where it has just read spares memory a transfer: such a kernel stands under the rate of "
                "updates, a roof of its own."
                if "update" in streams
                else ""
            )
        ),
    ]


def _moves(experiment: Experiment) -> list[Block]:
    points = [point for point in experiment.of("kernel") if point["flops"] == 0]
    if not points:
        return []
    slopes = _slopes(experiment)
    rows = [
        [
            f"`{point['label']}`",
            f"`{point['shape']}`",
            text.time(point["median_ns"]),
            text.number(point["gb_per_s"]),
            f"{point['level']}, {text.number(slopes[point['level']])}",
            text.percent(_share(experiment, point["label"], point)),
        ]
        for point in points
    ]
    return [
        Heading("Kernels that only move"),
        Text(
            "These compute nothing that counts as an operation, so they have no intensity and no place in the picture. "
            "Their bytes are compared with the roof of their level: every input read once, positions included, every "
            "result written once. Kernels with random access fetch whole lines for single numbers, and sorting walks "
            "its input many times: neither is counted."
        ),
        Table(["Kernel", "Shape", "Median", "GB/s", "Roof, GB/s", "Share of it"], rows),
    ]


def _kernels(experiment: Experiment) -> list[Block]:
    points = [point for point in experiment.of("kernel") if point["flops"] > 0]
    if not points or _peak(experiment) is None:
        return []
    rows = []
    for point in points:
        roof, name = _roof_over(experiment, point)
        height = experiment.derive(f"roof {point['label']}", roof)
        rows.append(
            [
                f"`{point['label']}`" + (" (forward and backward)" if "backward" in point["name"] else ""),
                f"`{point['shape']}`",
                text.time(point["median_ns"]),
                text.number(point["flop_per_byte"]),
                text.number(point["gflop_per_s"]),
                text.number(point["gb_per_s"]),
                f"{name}, {text.number(height)}",
                text.percent(_share(experiment, point["label"], point)),
            ]
        )
    headings = ["Kernel", "Shape", "Median", "Operations per byte", "GFLOP/s", "GB/s", "Roof, GFLOP/s", "Share of it"]
    return [
        Heading("The engine's kernels"),
        Text(
            "Operations and bytes are the profiler's: `2 m n k` for a product, one an element for everything "
            "elementwise and for reductions, softmax, normalisation and cross-entropy; every input is read once and "
            "every result written once. A step of AdamW is no op of the engine's, so its operations and bytes are "
            "counted by hand. The roof of a point is that of the smallest cache which holds these bytes. Results are "
            "allocated in the time measured."
        ),
        Picture(
            "kernels",
            "The engine's kernels on one thread. Slopes: bandwidth of each level; flat: multiply-adds. "
            "The nearer a point is to the roof of its own level, the less is left to win.",
            _draw_kernels(experiment, points),
        ),
        Table(headings, rows),
        *_readings(experiment, points),
    ]


def _readings(experiment: Experiment, points: list[Record]) -> list[Block]:
    blocks: list[Block] = []
    peak = _peak(experiment)
    assert peak is not None
    bound = [point for point in points if _roof_over(experiment, point)[1] == "arithmetic"]
    if bound:
        best = max(bound, key=lambda point: float(point["gflop_per_s"]))
        blocks.append(
            Text(
                f"{_count(experiment, 'bound by arithmetic', bound)} of {_count(experiment, 'points', points)} points "
                "are under the flat roof. The highest of them is "
                f"`{best['label']}` with {text.percent(_share(experiment, best['label'], best))} of the multiply-adds "
                "there are."
            )
        )
    blocks += _functions(experiment, points)
    over = [point["label"] for point in points if _share(experiment, point["label"], point) > 1.02]
    if over:
        names = ", ".join(f"`{name}`" for name in over)
        blocks.append(
            Text(
                f"Above the roof drawn for {'it' if len(over) == 1 else 'them'}: {names}. No roof is the last word: "
                "part of the bytes may still have been in a nearer cache, and who writes where it has just read spares "
                "memory a transfer that copying and adding pay for."
            )
        )
    return blocks


def _functions(experiment: Experiment, points: list[Record]) -> list[Block]:
    """Kernels that compute more than is counted."""
    peak = _peak(experiment)
    assert peak is not None
    chosen = [point for point in points if point["name"] in ("exp", "gelu", "softmax")]
    near = [point for point in chosen if point["level"] != "memory"]
    if not near:
        return []
    told = []
    for point in near:
        room = experiment.derive(f"room per element {point['label']}", point["median_ns"] * peak / point["flops"])
        told.append(f"{text.number(room)} for `{point['label']}`")
    sentences = (
        "Functions are counted as one operation an element, whatever they take, so those that lie in a cache are lower "
        "than their slope: they compute more than is counted. In the time of one element there is room for so many "
        f"operations: {', '.join(told)}."
    )
    far = {point["name"]: point for point in chosen if point["level"] == "memory"}
    closer = [
        point["name"]
        for point in near
        if point["name"] in far
        and _share(experiment, far[point["name"]]["label"], far[point["name"]])
        > _share(experiment, point["label"], point)
    ]
    if closer:
        names = ", ".join(f"`{name}`" for name in closer)
        sentences += f" In memory they have time to compute while they wait for bytes, and come closer to it: {names}."
    return [Text(sentences)]


def _rungs(experiment: Experiment) -> list[Block]:
    points = experiment.of("rung")
    if not points or _peak(experiment) is None:
        return []
    rows = []
    for index, point in enumerate(points):
        gain = ""
        if index > 0:
            key = f"gain {point['name']}"
            gain = text.times(experiment.derive(key, point["gflop_per_s"] / points[index - 1]["gflop_per_s"]))
        rows.append(
            [
                f"`{point['name']}`",
                point["title"],
                text.time(point["median_ns"]),
                text.number(point["gflop_per_s"]),
                text.percent(_share(experiment, f"rung {point['name']}", point)),
                gain,
                f"`{point['max_error']:.1e}`",
            ]
        )
    first, roof = points[0], _roof_over(experiment, points[0])[1]
    n = f"{first['n']:,}"
    millions = experiment.derive("millions of operations", first["flops"] / 1e6)
    told = (
        f"All rungs multiply the same matrices of {n} × {n}: {text.number(millions)} million operations, and "
        f"{text.size(first['bytes'])} that have to move at least once. So all of them stand at the same intensity, "
        f"{text.number(first['flop_per_byte'])} operations per byte"
    )
    if roof == "arithmetic":
        told += ", far to the right, under the flat roof: no rung has to wait for memory."
    else:
        told += "."
    lowest = min(points, key=lambda point: float(point["gflop_per_s"]))
    share = _share(experiment, f"rung {lowest['name']}", lowest)
    if share < 0.5:
        told += (
            f" `{lowest['name']}` reaches {text.percent(share)} of its roof all the same. The roof says what is "
            "possible with the bytes that must move; it does not say that a program moves only those, or that it keeps "
            "the units busy. That is what the ladder is about."
        )
    return [
        Heading("The ladder's rungs"),
        Text(told),
        Picture(
            "rungs",
            f"The rungs of the ladder at n = {n}, on one thread.",
            _draw_rungs(experiment, points),
        ),
        Table(["Rung", "What it is", "Median", "GFLOP/s", "Share of the roof", "Over the rung before", "Error"], rows),
    ]


# ---- The page ------------------------------------------------------------------------------------


def _result(experiment: Experiment) -> str:
    peak, slopes = _peak(experiment), _slopes(experiment)
    points = experiment.of("kernel")
    if peak is None or not points:
        return "Nothing was measured."
    told = ""
    if "memory" in slopes:
        ridge = experiment.derive("ridge memory", peak / slopes["memory"])
        told = (
            f"What does fewer than {text.number(ridge)} operations for every byte from memory is bound by memory on "
            "this machine, everything else by arithmetic. "
        )
    good = [point for point in points if _share(experiment, point["label"], point) >= _GOOD]
    return told + (
        f"{_count(experiment, 'near their roof', good)} of {_count(experiment, 'kernels', points)} kernels reach "
        f"{text.percent(experiment.derive('near', _GOOD))} or more of the roof above them."
    )


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    return Page(
        "Under which roof?",
        _result(experiment),
        _roofs(experiment) + _kernels(experiment) + _moves(experiment) + _rungs(experiment),
        "Look at the intensity before you tune. Under a slope the only thing that helps is to move fewer bytes: fuse "
        "kernels, keep data in a cache, use smaller types. Under the flat roof it is to keep the units busy. And far "
        "below both, something else is in the way: waiting, branches, or more work than was counted.",
    )
