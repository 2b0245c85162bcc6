"""The look of pictures: readable in black and white (markers, dashes and hatches distinguish lines,
colour only helps), axes with units, ceilings drawn in."""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

OURS = "baregrad"
PNG_DOTS_PER_INCH = 160
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
MARKERS = "osD^vP*X<>"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "//", "..", "xx", "\\\\", "--", "++", "oo")

matplotlib.rcParams.update(
    {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "grid.linewidth": 0.5,
        "legend.frameon": False,
        "svg.fonttype": "path",
        "svg.hashsalt": "baregrad",
        "path.simplify_threshold": 0.3,
    }
)


def new_figure(rows: int = 1, columns: int = 1, height: float = 3.6, width: float = 7.2) -> tuple[Figure, Any]:
    """A figure as wide as a page's column, and its axes as `Figure.subplots` returns them."""
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns)


def line(index: int, ours: bool = False) -> dict[str, Any]:
    """Keywords of the index-th line of a plot; ours is black, solid and thick in every picture."""
    if ours:
        return {"color": COLOURS[0], "linestyle": "-", "marker": MARKERS[0], "linewidth": 2.2, "markersize": 5}
    step = index + 1
    return {
        "color": COLOURS[step % len(COLOURS)],
        "linestyle": DASHES[step % len(DASHES)],
        "marker": MARKERS[step % len(MARKERS)],
        "linewidth": 1.3,
        "markersize": 4.5,
    }


def bar(index: int) -> dict[str, Any]:
    """Keywords of the index-th kind of bar."""
    return {
        "color": COLOURS[(index + 1) % len(COLOURS)],
        "hatch": HATCHES[index % len(HATCHES)],
        "edgecolor": "black",
        "linewidth": 0.6,
        "alpha": 0.85,
    }


def ceiling(axes: Axes, value: float, label: str) -> None:
    """A ceiling of the machine as a labelled horizontal line. Adjusts limits that were set, to make
    room."""
    axes.axhline(value, color="black", linestyle=(0, (6, 2)), linewidth=1)
    lower, upper = axes.get_ylim()
    if value > upper:
        axes.set_ylim(lower, value * (1.5 if axes.get_yscale() == "log" else 1.08))
    axes.annotate(
        label,
        (1.0, value),
        xytext=(0, 1.5),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
    )
