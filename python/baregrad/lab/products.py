"""Common parts of pages on products of matrices: the peak, the order of contenders, lines over
sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baregrad.lab import style
from baregrad.lab.page import Table
from baregrad.lab.records import Experiment, Record

LABELS = {
    "openblas": "OpenBLAS",
    "blis": "BLIS",
    "dnnl": "oneDNN",
    "mkl": "MKL",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "openmp": "OpenMP",
}


def label(name: str) -> str:
    """The usual notation."""
    return LABELS.get(name, name.replace("_", "-"))


def peak(experiment: Experiment, dtype: str, threads: int) -> float | None:
    """The best rate of multiply-adds of the run, in GFLOP/s."""
    return max((r["gflop_per_s"] for r in experiment.of("ceiling", dtype=dtype, threads=threads)), default=None)


def names_of(records: Sequence[Record]) -> list[str]:
    """Contenders in the order of measurement."""
    return list(dict.fromkeys(record["name"] for record in records))


def sizes_of(records: Sequence[Record]) -> list[int]:
    return sorted({record["n"] for record in records})


def by_name(records: Sequence[Record], name: str) -> list[Record]:
    return sorted((r for r in records if r["name"] == name), key=lambda r: r["n"])


def rate_text(record: Record | None) -> str:
    """GFLOP/s with the significant digits."""
    if record is None:
        return "–"
    rate = record["gflop_per_s"]
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.1f}" if rate >= 10 else f"{rate:.2f}"


def threads_text(threads: int) -> str:
    return "one thread" if threads == 1 else f"{threads} threads"


def line_of(name: str, among: Sequence[str], ours: str = style.OURS) -> dict[str, Any]:
    """Keywords of a contender's line: a library looks the same in every picture."""
    known = list(LABELS)
    others = [each for each in among if each != ours]
    index = known.index(name) if name in known else others.index(name) if name != ours else 0
    return style.line(index, ours=name == ours)


def draw_sizes(
    axes: Axes, records: Sequence[Record], value: Callable[[Record], float], ours: str = style.OURS
) -> None:
    """One line per contender over N."""
    names = names_of(records)
    for name in names:
        mine = by_name(records, name)
        keywords = line_of(name, names, ours)
        axes.plot([r["n"] for r in mine], [value(r) for r in mine], label=label(name), **keywords)
    shown: list[int] = []
    for n in sizes_of(records):
        # Labels of close sizes would overlap.
        if not shown or n / shown[-1] > 1.3:
            shown.append(n)
    axes.set_xscale("log")
    axes.set_xticks(shown, [str(n) for n in shown], rotation=45)
    axes.minorticks_off()
    axes.set_xlabel("N (rows and columns)")


def draw_rates(axes: Axes, records: Sequence[Record], top: float | None, title: str) -> None:
    """GFLOP/s over N from 0 to beyond the peak."""
    draw_sizes(axes, records, lambda record: float(record["gflop_per_s"]))
    highest = max(float(record["gflop_per_s"]) for record in records)
    axes.set_ylim(0, 1.12 * max(highest, top or 0))
    axes.set_title(title, fontsize=10)
    if top is not None:
        style.ceiling(axes, top, "multiply-add peak")


def legend_below(figure: Figure, axes: Axes, columns: int = 4) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9)


def versions_table(experiment: Experiment) -> Table | None:
    """The libraries of the run."""
    versions = {record["name"]: record["version"] for record in experiment.of("library")}
    if not versions:
        return None
    return Table(["library", "version, as it says itself"], [[label(k), v] for k, v in versions.items()])


def fastest(records: Sequence[Record]) -> Record:
    return max(records, key=lambda record: float(record["gflop_per_s"]))
