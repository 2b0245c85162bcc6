"""The second half of the page of `training`: hidden layers and batches from small to large."""

from __future__ import annotations

import math

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Picture, Table, Text
from baregrad.lab.records import Experiment, Record
from baregrad.lab.step_model import StepModel, fit_step_model

OURS = "baregrad"
OURS_IN_PYTHON = "baregrad in Python"
PYTORCH = "PyTorch, fused AdamW"
NEAR = 1.5  # two times within this factor count as equal


class Sweep:
    """The points by contender, hidden size and batch."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        records = experiment.of("point")
        self.by_key: dict[tuple[str, int, int], Record] = {(r["name"], r["hidden"], r["batch"]): r for r in records}
        self.names = list(dict.fromkeys(r["name"] for r in records))
        self.hiddens = sorted({r["hidden"] for r in records})
        self.batches = sorted({r["batch"] for r in records})

    @property
    def compared(self) -> bool:
        """Whether PyTorch and our Python package both ran: same language, same weights, same
        threads."""
        return PYTORCH in self.names and OURS_IN_PYTHON in self.names

    def ns(self, name: str, hidden: int, batch: int) -> float:
        return float(self.by_key[name, hidden, batch]["median_ns"])

    def flops(self, hidden: int, batch: int) -> float:
        return float(self.by_key[OURS, hidden, batch]["flops"])

    def places(self) -> list[tuple[int, int]]:
        """Hidden sizes and batches, from the least work to the most."""
        places = [(hidden, batch) for name, hidden, batch in self.by_key if name == OURS]
        return sorted(places, key=lambda place: (self.flops(*place), place))

    def ratio(self, hidden: int, batch: int) -> float:
        """PyTorch's time divided by ours, both in Python."""
        value = self.ns(PYTORCH, hidden, batch) / self.ns(OURS_IN_PYTHON, hidden, batch)
        return self.experiment.derive(f"pytorch_to_ours/{hidden}/{batch}", value)

    def model(self, name: str) -> StepModel | None:
        records = [record for (owner, _, _), record in self.by_key.items() if owner == name]
        model = fit_step_model([(r["flops"], r["parameters"], r["median_ns"]) for r in records])
        if model is not None:
            for key, value in vars(model).items():
                self.experiment.derive(f"model/{name}/{key}", value)
            if model.crossover_flops is not None:
                self.experiment.derive(f"model/{name}/crossover_flops", model.crossover_flops)
        return model

    def alike_from(self) -> float | None:
        """The work from which on the two differ by at most NEAR; None if they differ to the end."""
        found = None
        for hidden, batch in reversed(self.places()):
            ratio = self.ratio(hidden, batch)
            if max(ratio, 1 / ratio) > NEAR:
                break
            found = self.flops(hidden, batch)
        return found if found is None else self.experiment.derive("alike_from_flops", found)

    def summary(self) -> str:
        """One sentence for the top of the page."""
        if not self.compared or not self.places():
            return ""
        (small, one), (large, many) = self.places()[0], self.places()[-1]
        return (
            f"At {small} hidden units and batch {one} PyTorch takes {text.times(self.ratio(small, one))} our time, "
            f"both from Python; at {large} and batch {many}, {text.times(self.ratio(large, many))}."
        )


def _heat(sweep: Sweep, peak: Record | None) -> Picture:
    """Left: the comparison with PyTorch; right: our share of the machine's peak. One of them if the
    other is missing."""
    maps: list[tuple[str, list[list[float]], bool]] = []  # title, values, whether factors are compared
    if sweep.compared:
        values = [[sweep.ratio(hidden, batch) for batch in sweep.batches] for hidden in sweep.hiddens]
        maps.append(("time of PyTorch by ours, both in Python", values, True))
    if peak is not None:
        values = [[_peak_percent(sweep, hidden, batch, peak) for batch in sweep.batches] for hidden in sweep.hiddens]
        maps.append(("ours in C++: percent of the FMA peak", values, False))
    figure, panels = style.new_figure(1, len(maps), height=3.4)
    for axes, (title, values, factors) in zip([panels] if len(maps) == 1 else panels, maps, strict=True):
        shades = [[math.log(value) if factors else value for value in line] for line in values]
        least, most = min(map(min, shades)), max(map(max, shades))
        axes.imshow(shades, cmap="Greys", vmin=least, vmax=most + 0.3 * (most - least), aspect="auto", origin="lower")
        for row, line in enumerate(values):
            for column, value in enumerate(line):
                colour = "white" if shades[row][column] > least + 0.6 * (most - least) else "black"
                axes.annotate(text.number(value, 2), (column, row), ha="center", va="center", color=colour)
        axes.set_xticks(range(len(sweep.batches)), [str(batch) for batch in sweep.batches])
        axes.set_yticks(range(len(sweep.hiddens)), [str(hidden) for hidden in sweep.hiddens])
        axes.set(xlabel="batch, rows", ylabel="hidden units")
        axes.set_title(title, fontsize=9)
        axes.grid(visible=False)
    return Picture("training_reversal", "Each cell is one network, 128 inputs and 64 classes; darker is more.", figure)


def _peak_percent(sweep: Sweep, hidden: int, batch: int, peak: Record) -> float:
    share = sweep.flops(hidden, batch) / sweep.ns(OURS, hidden, batch) / float(peak["gflop_per_s"])
    return sweep.experiment.derive(f"peak_percent/{hidden}/{batch}", 100 * share)


def _lines(sweep: Sweep, peak: Record | None) -> Picture:
    figure, grid = style.new_figure(1, len(sweep.names), height=3.9)
    panels = [grid] if len(sweep.names) == 1 else list(grid)
    times = [float(record["median_ns"]) / 1e3 for record in sweep.by_key.values()]
    work = [sweep.flops(*place) / 1e6 for place in sweep.places()]
    for axes, name in zip(panels, sweep.names, strict=True):
        axes.set(xscale="log", yscale="log", ylim=(min(times) / 3, 2 * max(times)))
        axes.set_title(name, fontsize=9)
        for index, hidden in enumerate(sweep.hiddens):
            batches = [batch for batch in sweep.batches if (name, hidden, batch) in sweep.by_key]
            axes.plot(
                [sweep.flops(hidden, batch) / 1e6 for batch in batches],
                [sweep.ns(name, hidden, batch) / 1e3 for batch in batches],
                label=f"{hidden} hidden",
                **style.line(index),
            )
        if peak is not None:
            ends = [min(work), max(work)]
            axes.plot(ends, [1e3 * end / peak["gflop_per_s"] for end in ends], color="black", linewidth=1,
                      linestyle=(0, (6, 2)), label=f"FMA peak, {text.number(peak['gflop_per_s'])} GFLOP/s")
        axes.set_xlabel("work per step, MFLOP", fontsize=9)
        axes.tick_params(labelsize=8, labelleft=axes is panels[0])
    panels[0].set_ylabel("time per step, µs", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=8, ncols=3)
    caption = (
        "Time per step over the work in its products, on the same axes for all; along a line the batch grows. "
        "Nothing can be below the dashed line. Where a line is flat, the step costs what every step costs; where it "
        "runs beside the dashed one, it is arithmetic."
    )
    return Picture("training_sweep", caption, figure)


def _model_blocks(sweep: Sweep, peak: Record | None) -> list[Block]:
    rows, crossovers = [], []
    for name in sweep.names:
        model = sweep.model(name)
        if model is None:
            continue
        rate = None
        if model.ns_per_flop > 0:
            rate = sweep.experiment.derive(f"model/{name}/gflop_per_s", 1 / model.ns_per_flop)
        crossover = model.crossover_flops
        rows.append(
            [
                name,
                text.time(model.fixed_ns),
                "-" if rate is None else f"{text.number(rate)} GFLOP/s",
                f"{text.number(model.ns_per_parameter)} ns",
                "-" if crossover is None else f"{text.number(crossover / 1e6)} MFLOP",
                text.percent(model.error),
            ]
        )
        if crossover is not None:
            crossovers.append(f"{text.number(crossover / 1e6)} MFLOP for {name}")
    if not rows:
        return []
    said = ""
    if crossovers:
        said = (
            f" The work that takes as long as the fixed part, {', '.join(crossovers)}, is where overhead stops to rule "
            "and arithmetic takes over."
        )
    return [
        Table(
            ["who", "every step", "products run at", "per weight", "both alike at", "median error"],
            rows,
            "The measured times as a sum of three parts, fitted by least squares of relative errors.",
        ),
        Text(
            "Three things take time: calls, checks and bookkeeping, which every step has; operations in products; and "
            f"the weights, each of which AdamW reads and writes once a step, whatever the batch.{said}"
        ),
    ]


def _reversal(sweep: Sweep) -> str:
    """Where the two become equal, and whether PyTorch is ahead anywhere."""
    if not sweep.compared:
        return ""
    slower = [place for place in sweep.places() if sweep.ratio(*place) < 1]
    alike = sweep.alike_from()
    parts = []
    if alike is None:
        parts.append(f"Up to the largest step here the two differ by more than a factor of {NEAR:g}.")
    else:
        parts.append(
            f"From {text.number(alike / 1e6)} MFLOP a step on the two differ by less than a factor of {NEAR:g}: who "
            "trains networks of that size need not choose an engine by its overhead."
        )
    if slower:
        cells = ", ".join(f"{hidden} hidden at batch {batch}" for hidden, batch in slower)
        parts.append(f"PyTorch is ahead at {cells}.")
    else:
        parts.append("PyTorch is ahead in no cell.")
    small = sweep.places()[0]
    language = sweep.experiment.derive(
        "python_to_cpp/smallest", sweep.ns(OURS_IN_PYTHON, *small) / sweep.ns(OURS, *small)
    )
    parts.append(
        f"Python itself is part of it: in the smallest step our package takes {text.times(language)} the time of the "
        "same engine called from C++."
    )
    return " ".join(parts)


def sweep_blocks(sweep: Sweep, peak: Record | None) -> list[Block]:
    if not sweep.places():
        return []
    blocks: list[Block] = [
        Heading("The reversal"),
        Text(
            "The same network with more or fewer hidden units, at more or fewer rows in a batch. Memory is the pool's, "
            f"the default{', and AdamW of PyTorch is the fused one' if sweep.compared else ''}."
        ),
    ]
    if sweep.compared or peak is not None:
        blocks.append(_heat(sweep, peak))
    blocks.append(_lines(sweep, peak))
    blocks += _model_blocks(sweep, peak)
    blocks.append(Text(_reversal(sweep)))
    return blocks
