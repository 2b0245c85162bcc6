"""The comparison as a table, as JSON and as a picture."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from comparison.case import Case
from comparison.timing import Times


@dataclass(frozen=True)
class Line:
    """One case against one peer."""

    row: int
    name: str
    threads: int
    peer: str
    ours: Times
    theirs: Times
    target: float | None

    @property
    def ratio(self) -> float:
        return self.theirs.median / self.ours.median

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.ratio >= self.target


def lines_of(case: Case, threads: int, times: dict[str, Times]) -> list[Line]:
    return [Line(case.row, case.name, threads, peer, times["ours"], taken, case.targets.get(peer))
            for peer, taken in times.items() if peer != "ours"]


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _spread(times: Times) -> str:
    return f"{duration(times.median)} ({duration(times.p10)} to {duration(times.p90)})"


def _verdict(line: Line) -> str:
    return {None: "", True: "met", False: "missed"}[line.met]


def header() -> str:
    return (f"{'row':>3}  {'work':<64} {'thr':>3} {'peer':<6} {'ours (p10 to p90)':<32} "
            f"{'peer (p10 to p90)':<32} {'ratio':>6} {'target':>6}")


def text(line: Line) -> str:
    target = "" if line.target is None else f"{line.target:g}"
    return (f"{line.row:>3}  {line.name:<64} {line.threads:>3} {line.peer:<6} {_spread(line.ours):<32} "
            f"{_spread(line.theirs):<32} {line.ratio:>6.2f} {target:>6} {_verdict(line)}").rstrip()


def markdown(lines: Iterable[Line]) -> str:
    out = ["| row | work | threads | peer | ours | peer's | ratio | target | |", "|---|---|---|---|---|---|---|---|---|"]
    for line in lines:
        target = "" if line.target is None else f"{line.target:g}"
        out.append(f"| {line.row} | {line.name} | {line.threads} | {line.peer} | {duration(line.ours.median)} | "
                   f"{duration(line.theirs.median)} | {line.ratio:.2f} | {target} | {_verdict(line)} |")
    return "\n".join(out) + "\n"


def write_json(path: Path, about: dict[str, object], lines: Iterable[Line]) -> None:
    rows = [asdict(line) | {"ratio": line.ratio, "met": line.met} for line in lines]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in [about, *rows]))


def write_plot(path: Path, lines: list[Line]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = sorted((line for line in lines if line.target is not None), key=lambda line: line.row, reverse=True)
    figure, axes = pyplot.subplots(figsize=(10, 0.24 * len(shown) + 1.5))
    colors = ["#2f7d4f" if line.met else "#c2553d" for line in shown]
    places = range(len(shown))
    axes.barh(places, [line.ratio for line in shown], color=colors, height=0.7)
    axes.scatter([line.target for line in shown], places, marker="|", s=60, color="black", zorder=3, label="target")
    axes.axvline(1.0, color="gray", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(list(places), [f"{line.row}  {line.name}, {line.peer}, {line.threads} thr" for line in shown],
                    fontsize=7)
    axes.set_xlabel("peer's time / our time (right of 1: we are faster)")
    axes.legend(loc="lower right")
    axes.margins(y=0.005)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
