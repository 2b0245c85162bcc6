"""Labels beside points, placed so that none covers another label or a point; numbers beside axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from baregrad.lab import text as words

FONT_SIZE = 7.5
_RADII = (9.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0, 80.0, 100.0)
_ANGLES = (0, 180, 45, -45, 135, -135, 90, -90, 20, -20, 160, -160, 70, -70, 110, -110)
_ACROSS = 6  # in radii: the penalty for a text across a line
_PULLED = 4  # in radii: the penalty for a connecting line across other texts and points
_POINT = 4.0  # half the size of a marker

Place = tuple[float, float]


@dataclass
class Box:
    """Positions in points of the figure."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def inside(self, other: Box) -> bool:
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.bottom >= other.bottom
            and self.top <= other.top
        )


def _along(start: Place, end: Place) -> list[Box]:
    """Small boxes that cover a line."""
    count = max(1, math.ceil(math.dist(start, end) / 3))
    steps = [index / count for index in range(count + 1)]
    middles = [(start[0] + (end[0] - start[0]) * step, start[1] + (end[1] - start[1]) * step) for step in steps]
    return [Box(x - 1.5, y - 1.5, x + 1.5, y + 1.5) for x, y in middles]


def _any_meet(some: Sequence[Box], others: Sequence[Box]) -> bool:
    return any(one.meets(other) for one in some for other in others)


def _text_box(text: str, x: float, y: float) -> Box:
    """The box of a text with its middle at (x, y); widths are averages for the default font."""
    half_width = 0.31 * FONT_SIZE * len(text) + 1
    half_height = 0.6 * FONT_SIZE
    return Box(x - half_width, y - half_height, x + half_width, y + half_height)


def _candidates(here: Place, text: str) -> list[Place]:
    """Candidate middles of a text, nearest first: its near edge is at a distance of the radius."""
    box = _text_box(text, *here)
    half_width = (box.right - box.left) / 2
    return [
        (
            here[0] + math.cos(math.radians(angle)) * (radius + half_width),
            here[1] + math.sin(math.radians(angle)) * radius,
        )
        for radius in _RADII
        for angle in _ANGLES
    ]


def choose_places(
    points: Sequence[Place], texts: Sequence[str], room: Box, lines: Sequence[tuple[Place, Place]] = ()
) -> list[Place]:
    """The middles of the texts, all in points of the figure: places the longest text first, each at
    the nearest free place. A place across a line counts as farther away. If no place is free, the
    nearest is taken."""
    markers = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    taken = list(markers)
    crossed = [box for start, end in lines for box in _along(start, end)]
    places = list(points)
    for index in sorted(range(len(points)), key=lambda index: -len(texts[index])):
        text = texts[index]
        others = [box for box in taken if box is not markers[index]]
        candidates = _candidates(points[index], text)
        costs = []
        for order, place in enumerate(candidates):
            box = _text_box(text, *place)
            if box.inside(room) and not any(box.meets(other) for other in taken):
                farther = _ACROSS * any(box.meets(other) for other in crossed)
                farther += _PULLED * _any_meet(_along(points[index], place), others)
                costs.append((order + farther * len(_ANGLES), order))
        chosen = candidates[min(costs)[1] if costs else 0]
        crossed += _along(points[index], chosen)
        taken.append(_text_box(text, *chosen))
        places[index] = chosen
    return places


def label_points(
    axes: Axes, points: Sequence[Place], texts: Sequence[str], lines: Sequence[tuple[Place, Place]] = ()
) -> None:
    """Writes the texts beside the points of the axes, with a thin line from each to its point,
    avoiding the given straight lines. Call it last: later changes of the layout move the points."""
    figure = axes.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]  # lays the axes out, so that their scale is known
    scale = 72 / figure.dpi

    def on_paper(place: Place) -> Place:
        x, y = axes.transData.transform(place)
        return float(x) * scale, float(y) * scale

    at = [on_paper(point) for point in points]
    edges = axes.get_window_extent()
    room = Box(edges.x0 * scale, edges.y0 * scale, edges.x1 * scale, edges.y1 * scale)
    places = choose_places(at, texts, room, [(on_paper(start), on_paper(end)) for start, end in lines])
    for point, here, place, text in zip(points, at, places, texts, strict=True):
        axes.annotate(
            text,
            point,
            xytext=(place[0] - here[0], place[1] - here[1]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT_SIZE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "0.4", "shrinkA": 0, "shrinkB": 2},
            zorder=5,
        )


def plain_log_axis(axis: Axis) -> None:
    """Ticks 1, 2, 5, 10, 20, ... on a short logarithmic axis, powers of ten on a long one; without
    exponents."""
    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high / low < 2e3 else (1.0,)
    axis.set_major_locator(LogLocator(10, subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: words.number(value, digits=1)))
    axis.set_minor_formatter(NullFormatter())
