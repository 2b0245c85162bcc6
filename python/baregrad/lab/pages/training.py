"""The page of `training`: steps by source of memory, then by size."""

from __future__ import annotations

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.pages.training_sweep import OURS_IN_PYTHON, PYTORCH, Sweep, sweep_blocks
from baregrad.lab.records import Experiment, Record

TITLE = "The memory of a training step, and the reversal"


def _networks(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(record["network"] for record in experiment.of("step")))


def _amount(value: float | None) -> str:
    return "not counted" if value is None else text.number(value)


def _table(experiment: Experiment, network: str) -> Table:
    rows = []
    for record in experiment.of("step", network=network):
        rows.append(
            [
                record["name"],
                text.time(record["median_ns"]),
                f"{text.time(record['p10_ns'])} to {text.time(record['p90_ns'])}",
                _amount(record["minor_faults_per_step"]),
                _amount(record.get("blocks_per_step")),
                _amount(record.get("system_calls_per_step")),
                f"{record['last_loss']:.5f}",
            ]
        )
    steps = experiment.of("step", network=network)[0]["trained_steps"]
    headings = [
        "memory or library",
        "time per step",
        "p10 to p90",
        "page faults",
        "blocks of tensors",
        "of the system",
        f"loss after {steps} steps",
    ]
    return Table(headings, rows, f"{network}: all columns but the last are per step.")


def _bars(experiment: Experiment, networks: list[str]) -> Picture:
    figure, panels = style.new_figure(len(networks), 1, height=1.75)
    for axes, network in zip([panels] if len(networks) == 1 else panels, networks, strict=True):
        records = experiment.of("step", network=network)
        for place, record in enumerate(records):
            median, low, high = (record[key] / 1e6 for key in ("median_ns", "p10_ns", "p90_ns"))
            python = "system_calls_per_step" not in record
            axes.barh(place, median, **style.bar(1 if python else 0))
            axes.errorbar(median, place, xerr=[[median - low], [high - median]], color="black", capsize=3, linewidth=1)
        axes.set_yticks(range(len(records)), [record["name"] for record in records], fontsize=8)
        axes.invert_yaxis()
        axes.set_title(network, fontsize=9)
        axes.set_xlabel("ms per step")
        axes.set_xlim(left=0)
        axes.grid(axis="y", visible=False)
    caption = "Time per step, with the 10th and the 90th percentile; hatched bars are driven from Python."
    return Picture("training_memory", caption, figure)


def _system_against_arena(experiment: Experiment, network: str) -> str:
    """The cost of memory from the system compared with the arena, and its causes."""
    system = experiment.one("step", network=network, name="system")
    arena = experiment.one("step", network=network, name="arena")
    if system is None or arena is None:
        return ""
    ratio = experiment.derive(f"system_to_arena/{network}", system["median_ns"] / arena["median_ns"])
    faults = system["minor_faults_per_step"]
    begin = f"{network}: with memory from the system a step takes {text.times(ratio)} the time of the arena's."
    if faults < 1:
        return (
            f"{begin} The system is asked {text.number(system['system_calls_per_step'])} times a step, but "
            f"{text.number(faults)} pages fault: the C library keeps blocks of this size and hands them out again."
        )
    if system["p10_ns"] <= arena["median_ns"]:
        return f"{begin} Its {text.number(faults)} page faults a step are lost in the noise of this run."
    each = experiment.derive(f"ns_per_fault/{network}", (system["median_ns"] - arena["median_ns"]) / faults)
    return (
        f"{begin} Its blocks are so large that they go back to the kernel when they are free: "
        f"{text.number(faults)} page faults a step. Put down to them, the difference is {text.time(each)} a fault."
    )


def _arena_sentence(experiment: Experiment) -> str:
    records = experiment.of("step", name="arena")
    if not records:
        return ""
    faults = max(record["minor_faults_per_step"] + record["major_faults_per_step"] for record in records)
    calls = max(record["system_calls_per_step"] for record in records)
    if faults == 0 and calls == 0:
        return (
            f"A step in the arena had {text.number(faults)} page faults and asked the system for memory "
            f"{text.number(calls)} times, in every network: its tensors are places in one region that was reserved and "
            "touched before the third step, and at a step's end the region is empty again. What is counted are "
            "blocks of tensors. Small objects of the tape and of the dispatch still come from the C library's heap, "
            "which has them at hand; they are not counted here. Faults are the least of several rounds of steps: a "
            "page of code or of a worker's stack may be touched late, once."
        )
    return (
        f"A step in the arena had up to {text.number(faults)} page faults and asked the system for memory up to "
        f"{text.number(calls)} times. Both should be none."
    )


def _phases(experiment: Experiment, networks: list[str], peak: Record | None) -> list[Block]:
    rows = []
    for network in networks:
        parts = experiment.of("phase", network=network)
        arena = experiment.one("step", network=network, name="arena")
        if not parts or arena is None:
            continue
        share = "-"
        if peak is not None:
            rate = experiment.derive(f"gflop_per_s/{network}", arena["flops"] / arena["median_ns"])
            share = text.percent(experiment.derive(f"peak_share/{network}", rate / peak["gflop_per_s"]))
        rows.append(
            [network, text.number(arena["flops"] / 1e6), *(text.time(part["median_ns"]) for part in parts), share]
        )
    if not rows:
        return []
    return [
        Heading("What a step is made of"),
        Table(
            ["network", "MFLOP in products", "forward", "backward", "AdamW", "share of the FMA peak"],
            rows,
            "Our step in the arena, taken apart by the clock.",
        ),
        Text(
            "Forward is one product per layer, backward nearly two: one for the weights' gradient and, behind the "
            "first layer, one for the input's. AdamW does a dozen operations for every weight whatever the batch is."
        ),
    ]


def _losses(experiment: Experiment) -> str:
    records = experiment.of("step")
    error = experiment.derive("first_loss_error", max(record["first_loss_error"] for record in records))
    spread = 0.0
    for network in _networks(experiment):
        last = [record["last_loss"] for record in experiment.of("step", network=network)]
        spread = max(spread, max(last) - min(last))
    experiment.derive("last_loss_spread", spread)
    verdict = "all of them train the same network" if spread < 1e-3 else "that is more than rounding explains"
    return (
        f"All begin with the same weights. The first loss is that of plain loops in double precision to "
        f"within {error:.1e}, and the losses after the same steps differ by "
        f"{f'at most {spread:.1e}' if spread else text.number(spread)}: {verdict}."
    )


def _faults_of_pytorch(experiment: Experiment) -> str:
    records = [r for r in experiment.of("step") if r["name"].startswith("PyTorch") and r["minor_faults_per_step"] >= 1]
    if not records:
        return ""
    worst = max(records, key=lambda record: float(record["minor_faults_per_step"]))
    return (
        f"PyTorch asks the C library for its tensors. Its steps fault too, up to "
        f"{text.number(worst['minor_faults_per_step'])} times a step ({worst['name']}, {worst['network']})."
    )


def _trace(experiment: Experiment) -> list[Block]:
    record = experiment.one("trace")
    if record is None:
        return []
    ops = experiment.derive("trace_ops_per_step", record["ops"] / record["steps"])
    return [
        Heading("Op by op"),
        Text(
            f"A run leaves `{record['file']}` beside its records: it holds {record['steps']} of our steps as they ran, "
            f"{text.number(ops)} ops a step on average, each with its time, shapes, bytes and operations. Open it at "
            "ui.perfetto.dev or chrome://tracing."
        ),
    ]


def _who_ran(experiment: Experiment) -> str:
    threads = experiment.header["threads"]
    said = f"All ran on {threads} {'thread' if threads == 1 else 'threads'}, the first three rows of a table from C++."
    if experiment.of("step", name=OURS_IN_PYTHON):
        said += f" `{OURS_IN_PYTHON}` is the same engine, memory from its pool, called from Python."
    if experiment.of("step", name=PYTORCH):
        said += (
            " PyTorch, called from Python as its users do, is there twice: with AdamW as it is by default, a few calls "
            "per tensor, and with `fused=True`."
        )
    return said


def _result(experiment: Experiment, sweep: Sweep) -> str:
    arena = experiment.of("step", name="arena")
    parts = []
    if arena:
        faults = max(record["minor_faults_per_step"] for record in arena)
        calls = max(record["system_calls_per_step"] for record in arena)
        parts.append(
            f"A training step in the arena has {text.number(faults)} page faults and {text.number(calls)} allocations "
            "from the system."
        )
    parts.append(sweep.summary())
    return " ".join(part for part in parts if part)


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    networks = _networks(experiment)
    if not networks:
        return Page(TITLE, "Nothing was measured.")
    peak = experiment.one("peak")
    sweep = Sweep(experiment)
    blocks: list[Block] = [
        Text(
            "A training step makes tensors and throws them away: activations, gradients, results in between. The next "
            "step makes the same ones again. Their memory can come from the system each time, from a pool that keeps "
            "what was given back, or from an arena, one region that is reserved before and used from its beginning in "
            "every step."
        ),
        Text(_who_ran(experiment)),
        Heading("Where the memory comes from"),
        *(_table(experiment, network) for network in networks),
        _bars(experiment, networks),
        Text(_arena_sentence(experiment)),
        *(Text(_system_against_arena(experiment, network)) for network in networks),
        Text(_faults_of_pytorch(experiment)),
        Text(_losses(experiment)),
        *_phases(experiment, networks, peak),
        *sweep_blocks(sweep, peak),
        *_trace(experiment),
    ]
    return Page(
        TITLE,
        _result(experiment, sweep),
        [block for block in blocks if not (isinstance(block, Text) and not block.text)],
        "A small step is overhead: calls, checks, allocation; its arithmetic hardly counts. A large step is "
        "arithmetic, and there the product decides. Memory matters where blocks are so large that the system takes "
        "them back between steps; an allocator that keeps them does not pay for them twice.",
    )
