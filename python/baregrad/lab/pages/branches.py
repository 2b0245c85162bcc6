"""branches: unpredictable branches, unrolling, and code larger than the caches."""

from __future__ import annotations

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

ORDERS = {"sorted": "branch, sorted", "random": "branch, random", "masked": "no branch, random"}


def _per(experiment: Experiment, record: Record, event: str, divisor: float) -> float | None:
    """The counts of a timed trial, per element or instruction."""
    count = experiment.one("count", name=record["name"], size=record["size"])
    return count[event] / divisor if count and event in count else None


def _shown(experiment: Experiment, key: str, value: float | None) -> str:
    return "-" if value is None else text.number(experiment.derive(key, round(value, 4)))


def _faster(experiment: Experiment, key: str, slow: Record, fast: Record) -> float:
    """The speed as a multiple of that of `slow`."""
    return experiment.derive(key, slow["ns_per_element"] / fast["ns_per_element"])


def _shares(experiment: Experiment) -> list[int]:
    return sorted({record["taken_percent"] for record in experiment.of("pick")})


def _pick_picture(experiment: Experiment) -> Picture:
    counted = any(_per(experiment, record, "mispredictions", 1) is not None for record in experiment.of("pick"))
    figure, axes = style.new_figure(1, 2 if counted else 1)
    left = axes[0] if counted else axes
    for index, (order, label) in enumerate(ORDERS.items()):
        records = experiment.of("pick", order=order)
        shares = [record["taken_percent"] for record in records]
        left.plot(shares, [record["ns_per_element"] for record in records], label=label, **style.line(index))
        if counted:
            points = [
                (record["taken_percent"], missed)
                for record in records
                if (missed := _per(experiment, record, "mispredictions", record["size"])) is not None
            ]
            axes[1].plot([x for x, _ in points], [y for _, y in points], label=label, **style.line(index))
    left.set_ylabel("time per element (ns)")
    left.set_ylim(0, 1.4 * max(record["ns_per_element"] for record in experiment.of("pick")))
    left.legend(fontsize=8, loc="upper left")
    for axis in axes if counted else [left]:
        axis.set_xlabel("elements that count (%)")
    if counted:
        axes[1].set_ylabel("mispredictions per element")
    return Picture("branches_shares", "The same sum over inputs that differ only in their order.", figure)


def _pick_table(experiment: Experiment) -> Table:
    rows = []
    for share in _shares(experiment):
        for order, label in ORDERS.items():
            record = experiment.one("pick", order=order, taken_percent=share)
            if record is None:
                continue
            counts = [
                _shown(experiment, f"{record['name']}: {event}", _per(experiment, record, event, record["size"]))
                for event in ("instructions", "branches", "mispredictions")
            ]
            rows.append([f"{share} %", label, text.time(record["ns_per_element"]), *counts])
    headings = ["elements that count", "loop and order", "time", "instructions", "branches", "mispredictions"]
    return Table(headings, rows, "All per element.")


def _misprediction(experiment: Experiment) -> tuple[float, bool] | None:
    """The cost of a misprediction in ns, and whether mispredictions were counted or are estimated
    from chance."""
    half = {order: experiment.one("pick", order=order, taken_percent=50) for order in ORDERS}
    random, ordered = half["random"], half["sorted"]
    if not random or not ordered:
        return None
    seen = [_per(experiment, record, "mispredictions", record["size"]) for record in (random, ordered)]
    counted = seen[0] is not None and seen[1] is not None
    more = seen[0] - seen[1] if seen[0] is not None and seen[1] is not None else random["taken_percent"] / 100
    if more <= 0:
        return None
    cost = (random["ns_per_element"] - ordered["ns_per_element"]) / more
    return experiment.derive("cost of a misprediction, ns", cost), counted


def _pick_blocks(experiment: Experiment) -> list[Block]:
    blocks: list[Block] = [
        Heading("Unpredictable branches"),
        Text(
            "A loop adds up the integers that are at least zero and leaves out the others. The numbers are the same, "
            "only their order differs. Sorted, the branch first goes one way and then the other, and is predicted. In "
            "random order it is a toss of a coin. The third loop has no branch: it makes a mask from the "
            "comparison, and "
            "adds zero for the numbers that are left out."
        ),
        _pick_picture(experiment),
        _pick_table(experiment),
    ]
    cost = _misprediction(experiment)
    if cost and cost[0] > 0:
        how = "the mispredictions counted" if cost[1] else "one half, the share of wrong predictions for a tossed coin"
        blocks.append(
            Text(
                "At one half the random order has the same instructions as the sorted one, and the same branches. Its "
                f"additional time per element, divided by {how}, is the cost of one misprediction: "
                f"{text.time(cost[0])}. The processor discards the work on the wrong path, and starts again."
            )
        )
    masked = experiment.one("pick", order="masked", taken_percent=50)
    random = experiment.one("pick", order="random", taken_percent=50)
    if masked and random:
        gain = _faster(experiment, "random at one half: branch/no branch", random, masked)
        told = f"Without the branch the random order is {text.times(gain)} as fast at one half"
        needs = [_per(experiment, record, "instructions", record["size"]) for record in (masked, random)]
        if gain > 1 and needs[0] and needs[1] and needs[0] > needs[1]:
            more, fewer = (
                _shown(experiment, f"{record['name']}: instructions", need)
                for record, need in zip((masked, random), needs, strict=True)
            )
            told += f", though it executes {more} instructions per element and not {fewer}"
        blocks.append(Text(told + "."))
    return blocks


def _dots(experiment: Experiment, several: bool) -> list[Record]:
    """Series by unrolling; the loop without unrolling starts both."""
    records = [
        record for record in experiment.of("dot") if record["unrolled"] == 1 or (record["sums"] > 1) == several
    ]
    return sorted(records, key=lambda record: record["unrolled"])


def _dot_picture(experiment: Experiment) -> Picture:
    counted = any(_per(experiment, record, "instructions", 1) is not None for record in experiment.of("dot"))
    figure, axes = style.new_figure(1, 2 if counted else 1)
    left = axes[0] if counted else axes
    for index, (several, label) in enumerate(((False, "one sum"), (True, "a sum for each"))):
        records = _dots(experiment, several)
        turns = [record["unrolled"] for record in records]
        left.plot(turns, [record["ns_per_element"] for record in records], label=label, **style.line(index))
        if counted:
            points = [
                (record["unrolled"], seen)
                for record in records
                if (seen := _per(experiment, record, "instructions", record["size"])) is not None
            ]
            axes[1].plot([x for x, _ in points], [y for _, y in points], label=label, **style.line(index))
    left.set_ylabel("time per element (ns)")
    left.legend()
    ticks = sorted({record["unrolled"] for record in experiment.of("dot")})
    for axis in axes if counted else [left]:
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.set_xlabel("elements per turn of the loop")
        axis.set_ylim(bottom=0)
    if counted:
        axes[1].set_ylabel("instructions per element")
    return Picture("branches_unrolling", "Fewer instructions are not less time, while every addition waits.", figure)


def _dot_table(experiment: Experiment) -> Table:
    rows = []
    for record in experiment.of("dot"):
        counts = [
            _shown(experiment, f"{record['name']}: {event}", _per(experiment, record, event, record["size"]))
            for event in ("instructions", "branches", "stores")
        ]
        rows.append([str(record["unrolled"]), str(record["sums"]), text.time(record["ns_per_element"]), *counts])
    return Table(["elements per turn", "sums", "time", "instructions", "branches", "stores"], rows, "Per element.")


def _dot_blocks(experiment: Experiment) -> list[Block]:
    plain = experiment.one("dot", unrolled=1)
    one, several = _dots(experiment, False), _dots(experiment, True)
    if not plain or len(one) < 2 or len(several) < 2:
        return []
    most = one[-1]
    best = min(several, key=lambda record: record["ns_per_element"])
    alone = _faster(experiment, "unrolling alone", plain, most)
    both = _faster(experiment, "unrolling and several sums", plain, best)
    told = f"Unrolled {most['unrolled']} times, but with one sum, the dot product is {text.times(alone)} as fast. "
    seen = [_per(experiment, record, "instructions", record["size"]) for record in (plain, most)]
    if seen[0] and seen[1]:
        fewer = experiment.derive("instructions of the most unrolled / plain", seen[1] / seen[0])
        told += f"It has {text.percent(fewer)} of the instructions. "
    if alone < 1.3:
        told += (
            "The loop's own instructions were done while the addition before was waited for: the time per element is "
            "the latency of one addition, and no unrolling changes that. "
        )
    told += f"With {best['sums']} sums it is {text.times(both)} as fast: additions to different sums need not wait. "
    last = several[-1]
    slower = _faster(experiment, "most sums / best", last, best)
    spilled = _per(experiment, last, "stores", last["size"])
    if slower > 1.1:
        told += f"With {last['sums']} sums it takes {text.times(slower)} the time of the best"
        if spilled and spilled > 0.1:
            stores = _shown(experiment, f"{last['name']}: stores", spilled)
            told += f": there are not so many registers, and {stores} sums per element go to memory and back"
        told += "."
    return [
        Heading("Unrolling, and what is mistaken for it"),
        Text(
            "A dot product of floats in the L1 cache, without vectors, handles 1 to 32 elements per turn of its loop. "
            "Unrolling saves instructions of the loop: a comparison, a jump, two additions to pointers. Several sums "
            "are another matter, often done in the same breath; here the two are apart."
        ),
        _dot_picture(experiment),
        _dot_table(experiment),
        Text(told.strip()),
    ]


def _caches(experiment: Experiment) -> list[tuple[str, int]]:
    """The caches that hold instructions."""
    found = []
    for cache in experiment.header.get("machine", {}).get("caches", []):
        if cache["type"] == "instruction" or (cache["level"] == 2 and cache["type"] == "unified"):
            found.append(("L1i" if cache["level"] == 1 else f"L{cache['level']}", int(cache["bytes"])))
    return found


def _code_picture(experiment: Experiment) -> Picture:
    records = experiment.of("code")
    figure, axes = style.new_figure()
    axes.plot(
        [record["size"] / 1024 for record in records],
        [record["ns_per_instruction"] for record in records],
        **style.line(0),
    )
    axes.set_xscale("log", base=2)
    ticks = [record["size"] // 1024 for record in records]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("length of the code (KiB)")
    axes.set_ylabel("time per instruction (ns)")
    for name, size in _caches(experiment):
        axes.axvline(size / 1024, color="black", linestyle=(0, (6, 2)), linewidth=1)
        place = {"xycoords": ("data", "axes fraction"), "ha": "right", "fontsize": 8, "rotation": 90}
        axes.annotate(name, (size / 1024, 0.02), **place)
    return Picture("branches_code", "Straight-line code that does nothing. Dashed: sizes of caches.", figure)


def _code_blocks(experiment: Experiment) -> list[Block]:
    records = experiment.of("code")
    if not records:
        return []
    rows = []
    for record in records:
        missed = _per(experiment, record, "l1i_misses", record["instructions"])
        shown = _shown(experiment, f"code of {record['size']} B: L1i misses", missed)
        rows.append([text.size(record["size"]), text.time(record["ns_per_instruction"]), shown])
    best = min(records, key=lambda record: record["ns_per_instruction"])
    told = f"At best, with {text.size(best['size'])}, an instruction takes {text.time(best['ns_per_instruction'])}. "
    for name, size in _caches(experiment):
        beyond = [record for record in records if record["size"] >= 2 * size]
        if beyond:
            slow = beyond[0]["ns_per_instruction"]
            ratio = experiment.derive(f"code beyond {name}", slow / best["ns_per_instruction"])
            told += (
                f"Twice as long as the {name} cache of {text.size(size)} and more: {text.times(ratio)} the time at "
                f"{text.size(beyond[0]['size'])}. "
            )
    told += (
        "No loop needs to be that long. But a loop that is unrolled over and over, or a template that is compiled for "
        "every case, can become that long."
    )
    return [
        Heading("Code that leaves the instruction cache"),
        Text(
            "The last experiment has no branches and no data. Blocks of instructions of four bytes that do nothing are "
            "run from the first to the last, again and again. What takes time is to fetch and decode them."
        ),
        _code_picture(experiment),
        Table(["length", "time per instruction", "L1i misses per instruction"], rows),
        Text(told),
    ]


def _result(experiment: Experiment) -> str:
    told = []
    cost = _misprediction(experiment)
    if cost and cost[0] > 0:
        told.append(f"A branch that goes the unexpected way costs {text.time(cost[0])}.")
    plain = experiment.one("dot", unrolled=1)
    one, several = _dots(experiment, False), _dots(experiment, True)
    if plain and len(one) > 1 and len(several) > 1:
        best = min(several, key=lambda record: record["ns_per_element"])
        alone = _faster(experiment, "unrolling alone", plain, one[-1])
        both = _faster(experiment, "unrolling and several sums", plain, best)
        told.append(
            f"A dot product unrolled {one[-1]['unrolled']} times runs at {text.times(alone)} the speed of the plain "
            f"loop with one sum, and one with {best['sums']} sums at {text.times(both)}."
        )
    return " ".join(told) or "Nothing was measured."


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    blocks = _pick_blocks(experiment) if experiment.of("pick") else []
    blocks += _dot_blocks(experiment)
    blocks += _code_blocks(experiment)
    return Page(
        "Branches: predictable, unpredictable, unrolled",
        _result(experiment),
        blocks,
        "Predictable branches are cheap; where random data decides, compute both sides and select. "
        "Count what a loop waits for before it is unrolled: several sums break the chain of additions, fewer "
        "instructions alone do not. The engine's kernels keep a handful of sums in registers, and no more.",
    )
