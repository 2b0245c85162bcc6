#!/usr/bin/env python3
"""Draws docs/rooms.svg: the rooms of the repository and the includes between them.

    draw_rooms.py            # writes the picture
    draw_rooms.py --check    # fails if the committed picture differs

A room stands in its layer of check_layers.py. An arrow goes from a room to a room whose headers it
includes. An arrow that follows from two others is left out.
"""

import argparse
import collections
import math
import pathlib
import sys
import typing

import check_layers
from repo_files import ROOT, list_files

PICTURE = "docs/rooms.svg"
# It includes every public header, and says nothing about the room that includes it.
UMBRELLA = "include/baregrad/baregrad.h"

# Rooms of one layer stand in this order, from the left; others follow by name.
ORDER = ("lab", "bench", "cli", "capi", "python", "io", "data", "optim", "nn", "linalg")
# Where a room stands that is alone in its layer, if not in the middle.
CENTRES = {"train": 340, "profile": 98, "graph": 362}
CAPTIONS = {
    "lab": "experiments, records",
    "bench": "benchmarks, peers",
    "cli": "the command baregrad",
    "python": "bindings and the package",
    "train": "from a data set to checkpoints",
    "profile": "recorded ops with times",
    "io": "safetensors, npy, events",
    "data": "datasets, loaders, readers",
    "optim": "optimizers, schedules",
    "nn": "layers, losses, init",
    "linalg": "decompositions",
    "graph": "DOT, tables, norms",
    "autograd": "tape, gradient rules, engine",
    "ops": "ops.def, shapes, dtypes, dispatch, public functions",
    "parallel": "the thread pool",
    "core": "DType, Layout, Storage, allocators, Tensor, Generator",
}

WIDTH = 900
MARGIN = 10
BOX_HEIGHT = 50
GAP = 38
BOX_WIDTH = 158
# A layer of one room has space for a longer caption: the width of a character.
CHARACTER = 6.3
LEVEL = 12
RADIUS = 6
# Fill and border by layer, from the lowest. Text stands on light boxes and lines are mid grey, so that the picture
# is readable on white and on black pages.
TINTS = (("#e5e1f4", "#8577c0"),) * 3 + (("#dcefe0", "#5f9e70"),) * 3 + (("#dbe9f8", "#5b8cc0"),) * 2
TOP_TINT = ("#f8ead0", "#c0924a")
LINE = "#858b94"


class Box(typing.NamedTuple):
    room: str
    caption: str
    x: float  # of the centre
    y: float  # of the upper edge
    width: float


def include_graph(root: pathlib.Path, files: list[str]) -> dict[str, set[str]]:
    """The rooms that each room includes."""
    known = set(files)
    graph: dict[str, set[str]] = collections.defaultdict(set)
    for path in files:
        room = check_layers.room_of(path)
        if room is None or path == UMBRELLA:
            continue
        graph[room]
        if not path.endswith(check_layers.SOURCE_SUFFIXES):
            continue
        text = check_layers.COMMENT.sub("", (root / path).read_text(encoding="utf-8"))
        for quoted, angled in check_layers.INCLUDE.findall(text):
            found = check_layers.resolve(path, quoted or angled, known)
            below = None if found in (None, UMBRELLA) else check_layers.room_of(found)
            if below is not None and below != room:
                graph[room].add(below)
    return dict(graph)


def thinned(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the arrows into lower layers that follow from two others."""
    rank = check_layers.RANK
    down = {room: {below for below in seen if rank[below] < rank[room]} for room, seen in graph.items()}

    def below(room: str) -> set[str]:
        return down[room].union(*(below(other) for other in down[room]))

    return {
        room: {to for to in seen
               if rank[to] == rank[room] or not any(to in below(other) for other in down[room] - {to})}
        for room, seen in graph.items()
    }


def backends(files: list[str]) -> str:
    """cpu: conv gemm ..., from the folders of src/backends."""
    inner: dict[str, set[str]] = collections.defaultdict(set)
    for path in files:
        parts = path.split("/")
        if parts[:2] == ["src", "backends"] and len(parts) > 3:
            inner[parts[2]] |= {parts[3]} if len(parts) > 4 else set()
    return "; ".join(f"{kind}: {', '.join(sorted(rooms))}" if rooms else kind for kind, rooms in sorted(inner.items()))


def place(graph: dict[str, set[str]], captions: dict[str, str]) -> dict[str, Box]:
    """Boxes in layers."""
    layers = [[room for room in layer if room in graph] for layer in reversed(check_layers.LAYERS)]
    layers = [sorted(layer, key=lambda room: (ORDER.index(room) if room in ORDER else len(ORDER), room))
              for layer in layers if layer]
    boxes: dict[str, Box] = {}
    y = MARGIN + 2 * LEVEL
    for layer in layers:
        for place, room in enumerate(layer):
            caption = captions.get(room, "")
            width = BOX_WIDTH if len(layer) > 1 else max(BOX_WIDTH, CHARACTER * len(caption) + 24)
            x = MARGIN + (WIDTH - 2 * MARGIN) * (place + 0.5) / len(layer)
            if len(layer) == 1:
                x = CENTRES.get(room, x)
            x = min(max(x, MARGIN + width / 2), WIDTH - MARGIN - width / 2)
            boxes[room] = Box(room, caption, round(x, 1), y, round(width, 1))
        y += BOX_HEIGHT + GAP
    return boxes


def rounded(points: list[tuple[float, float]]) -> str:
    """A path along the points, with round corners."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for before, corner, after in zip(points, points[1:], points[2:]):
        near = []
        for end in (before, after):
            length = abs(end[0] - corner[0]) + abs(end[1] - corner[1])
            part = min(RADIUS, length / 2) / length if length else 0
            near.append([round(corner[axis] + (end[axis] - corner[axis]) * part, 1) for axis in (0, 1)])
        path += f" L{near[0][0]:g} {near[0][1]:g} Q{corner[0]:g} {corner[1]:g} {near[1][0]:g} {near[1][1]:g}"
    return path + f" L{points[-1][0]:g} {points[-1][1]:g}"


def line(points: list[tuple[float, float]], ends: str = 'marker-end="url(#tip)"') -> str:
    return f'<path d="{rounded(points)}" {ends}/>'


def way_past(x: float, row: list[Box]) -> float:
    """The nearest place to x where a line can pass between the boxes of a row."""
    edges = sorted((box.x - box.width / 2, box.x + box.width / 2) for box in row)
    if all(not left - RADIUS < x < right + RADIUS for left, right in edges):
        return x
    gaps = zip([-math.inf, *(right for _, right in edges)], [*(left for left, _ in edges), math.inf])
    places = [max(left, right - GAP) if math.isinf(left) else min(right, left + GAP) if math.isinf(right)
              else (left + right) / 2 for left, right in gaps]
    return min(places, key=lambda place: abs(place - x))


def draw_down(graph: dict[str, set[str]], boxes: dict[str, Box]) -> list[str]:
    """Arrows between layers: down past the layers between, along in the gap above the rooms below, and down."""
    # Arrows that share an end share their way: those of a room with several rooms below it, else those to one room.
    nets: dict[tuple[float, str], list[tuple[Box, Box]]] = collections.defaultdict(list)
    for room, seen in graph.items():
        lower = [boxes[to] for to in seen if boxes[to].y > boxes[room].y]
        rows = collections.Counter(to.y for to in lower)
        for to in lower:
            nets[to.y, room if rows[to.y] > 1 else to.room].append((boxes[room], to))
    by_row = collections.defaultdict(list)
    for (y, name), ends in sorted(nets.items(), key=lambda net: (net[0][0], boxes[net[0][1]].x)):
        by_row[y].append(sorted(ends))
    lines = []
    for y, row in by_row.items():
        for number, ends in enumerate(row):
            shift = (number - (len(row) - 1) / 2) * LEVEL
            for start, to in ends:
                shared = sum(any(other is to for _, other in net) for net in row) > 1
                x = start.x
                points = [(x, start.y + BOX_HEIGHT)]
                for passed in sorted({box.y for box in boxes.values() if start.y < box.y < y}):
                    free = way_past(x, [box for box in boxes.values() if box.y == passed])
                    if free != x:
                        points += [(x, passed - GAP / 4), (free, passed - GAP / 4)]
                    x = free
                end = to.x + (shift if shared else 0)
                if abs(x - end) >= 1:
                    points += [(x, y - GAP / 2 - shift), (end, y - GAP / 2 - shift)]
                lines.append(line([*points, (end, y)]))
    return lines


def draw_beside(graph: dict[str, set[str]], boxes: dict[str, Box]) -> list[str]:
    """Arrows within a layer: between neighbours straight, else over the boxes."""
    lines = []
    for room in sorted(graph):
        for to in sorted(graph[room]):
            start, end = boxes[room], boxes[to]
            both = room in graph[to]
            if start.y != end.y or (both and room > to):
                continue
            ends = 'marker-end="url(#tip)"' + (' marker-start="url(#tip)"' if both else "")
            side = 1 if end.x > start.x else -1
            between = [box for box in boxes.values()
                       if box.y == start.y and min(start.x, end.x) < box.x < max(start.x, end.x)]
            if between:
                over = start.y - LEVEL - 4
                lines.append(line([(start.x, start.y), (start.x, over), (end.x, over), (end.x, end.y)], ends))
            else:
                y = start.y + BOX_HEIGHT / 2
                lines.append(line([(start.x + side * start.width / 2, y), (end.x - side * end.width / 2, y)], ends))
    return lines


def draw(graph: dict[str, set[str]], captions: dict[str, str]) -> str:
    boxes = place(graph, captions)
    height = max(box.y for box in boxes.values()) + BOX_HEIGHT + MARGIN
    out = [
        "<!-- Drawn by tests/tools/draw_rooms.py from the includes. -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}"'
        f' height="{height:g}" font-family="Helvetica, Arial, sans-serif" text-anchor="middle">',
        "<title>The rooms of baregrad and what they include</title>",
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
        f' markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0.5 L8 4 L0 7.5 z" fill="{LINE}"/>'
        "</marker>",
        f'<g fill="none" stroke="{LINE}" stroke-width="1.4">',
        *draw_down(graph, boxes),
        *draw_beside(graph, boxes),
        "</g>",
    ]
    top = len(check_layers.LAYERS) - 1
    for box in boxes.values():
        rank = check_layers.RANK[box.room]
        fill, border = TOP_TINT if rank == top else TINTS[min(rank, len(TINTS) - 1)]
        out += [
            f'<rect x="{box.x - box.width / 2:g}" y="{box.y:g}" width="{box.width:g}" height="{BOX_HEIGHT}" rx="7"'
            f' fill="{fill}" stroke="{border}"/>',
            f'<text x="{box.x:g}" y="{box.y + (22 if box.caption else 30):g}" font-size="15" font-weight="bold"'
            f' fill="#1f2328">{box.room}</text>',
        ]
        if box.caption:
            out.append(f'<text x="{box.x:g}" y="{box.y + 39:g}" font-size="11" fill="#41474e">{box.caption}</text>')
    return "\n".join([*out, "</svg>", ""])


def picture() -> str:
    files = list_files()
    return draw(thinned(include_graph(ROOT, files)), CAPTIONS | {"backends": backends(files)})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    drawn = picture()
    path = ROOT / PICTURE
    if not parser.parse_args().check:
        path.write_text(drawn, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
        print(f"draw_rooms: {PICTURE} is out of date: run tests/tools/draw_rooms.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
