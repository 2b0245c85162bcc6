"""A thousand runs of the same work: their spread, and the events during the slow ones."""

from __future__ import annotations

from matplotlib.ticker import MaxNLocator

from baregrad.lab import style, text
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

MODES = {"free": "free to move", "pinned": "pinned to a CPU"}
CAUSES = {
    "preempted": "taken off the CPU",
    "waited": "had to wait for one",
    "migrated": "moved to another",
    "faulted": "page fault",
    "stolen": "CPU time stolen",
    "nothing": "none of these",
}
# From this factor on denormals count as slow: less is within the spread of the timings.
COSTLY = 1.1


def _share_slower(record: Record) -> tuple[list[float], list[float]]:
    """Times in ascending order, and the share of runs that took at least as long."""
    times = sorted(record["ns"])
    return [ns / 1e6 for ns in times], [(len(times) - place) / len(times) for place in range(len(times))]


def _spread_picture(runs: list[Record]) -> Picture:
    names = list(dict.fromkeys(record["name"] for record in runs))
    figure, all_axes = style.new_figure(1, len(names), height=3.4)
    for axes, name in zip(all_axes if len(names) > 1 else [all_axes], names, strict=True):
        for index, record in enumerate(record for record in runs if record["name"] == name):
            look = style.line(index) | {"marker": ""}
            axes.step(*_share_slower(record), where="post", label=MODES[record["mode"]], **look)
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.set_yscale("log")
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("time of a run [ms]")
    first = all_axes[0] if len(names) > 1 else all_axes
    first.set_ylabel("share of runs at least as long")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    caption = (
        "How many runs took at least as long as the time below. A wall on the left means that most runs are alike; "
        "what goes on to the right is the tail."
    )
    return Picture("jitter_spread", caption, figure)


def _cause_of(event: Record) -> str:
    if event["preempted"]:
        return "taken off the CPU"
    if event["migrations"]:
        return "moved to another CPU"
    if event["faults"]:
        return "page fault"
    return "other (waited, slept, stolen)"


def _order_picture(record: Record) -> Picture:
    """Every run in its order, marked by its events."""
    figure, axes = style.new_figure()
    groups: dict[str, list[int]] = {}
    events = {event["run"]: event for event in record["events"]}
    for place in range(len(record["ns"])):
        cause = _cause_of(events[place]) if place in events else "nothing noticed"
        groups.setdefault(cause, []).append(place)
    looks = {
        "taken off the CPU": ("x", "#d55e00", 6),
        "moved to another CPU": ("^", "#0072b2", 6),
        "page fault": ("s", "#009e73", 5),
        "other (waited, slept, stolen)": ("+", "#000000", 6),
    }
    quiet = groups.get("nothing noticed", [])
    times = [record["ns"][place] / 1e6 for place in quiet]
    axes.plot(quiet, times, color="#7f7f7f", linewidth=0.7, label="nothing noticed")
    for cause, (marker, colour, size) in looks.items():
        places = groups.get(cause, [])
        if places:
            times = [record["ns"][place] / 1e6 for place in places]
            axes.plot(places, times, marker, color=colour, markersize=size, label=cause)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("run, in the order of time")
    axes.set_ylabel("time of a run [ms]")
    figure.legend(loc="outside upper center", ncols=3)
    caption = f"Every run of the {record['name']} ({MODES[record['mode']]}), and what the kernel counted beside it."
    return Picture("jitter_runs", caption, figure)


def _spread_table(experiment: Experiment, runs: list[Record]) -> Table:
    rows = []
    for record in runs:
        name = f"max over median/{record['name']}/{record['mode']}"
        ratio = experiment.derive(name, record["max_ns"] / record["p50_ns"])
        quantiles = [text.time(record[f"{key}_ns"]) for key in ("p50", "p90", "p99", "p999", "max")]
        rows.append([f"{record['name']}, {MODES[record['mode']]}", *quantiles, text.times(ratio)])
    headings = ["work", "half", "90 %", "99 %", "99.9 %", "longest", "longest / half"]
    return Table(headings, rows, "Time within which that share of the runs was done.")


def _cause_table(experiment: Experiment, runs: list[Record]) -> Table:
    rows = []
    for record in runs:
        for key, title in (("slowest", "slowest 1 %"), ("others", "others")):
            part = record[key]
            cells = []
            for cause in CAUSES:
                share = part[cause] / part["runs"] if part["runs"] else 0.0
                name = f"{key} {cause}/{record['name']}/{record['mode']}"
                cells.append(text.percent(experiment.derive(name, share)))
            rows.append([f"{record['name']}, {MODES[record['mode']]}: {title}", *cells])
    caption = "Share of the runs to which it happened. Several things may happen to one run."
    return Table(["runs", *CAUSES.values()], rows, caption)


def _total(runs: list[Record], key: str, cause: str) -> float:
    return float(sum(record[key][cause] for record in runs))


def _tail_text(experiment: Experiment, runs: list[Record]) -> str:
    count = _total(runs, "slowest", "runs")
    shares = {cause: _total(runs, "slowest", cause) / count for cause in CAUSES}
    for cause, share in shares.items():
        experiment.derive(f"all slowest {cause}", share)
    main = max((cause for cause in CAUSES if cause != "nothing"), key=lambda cause: shares[cause])
    sentences = []
    if shares[main] > 0:
        rest = _total(runs, "others", main) / _total(runs, "others", "runs")
        experiment.derive(f"all others {main}", rest)
        sentences.append(
            f"Of the slowest hundredth of all runs together, {text.percent(shares[main])} share one thing above "
            f"others: “{CAUSES[main]}”. Of the other runs it is {text.percent(rest)}."
        )
    waited = _total(runs, "slowest", "waited_ns")
    excess = _total(runs, "slowest", "excess_ns")
    if waited > 0 and excess > 0:
        part = experiment.derive("share of the excess spent waiting", min(1.0, waited / excess))
        sentences.append(
            f"Of the time by which they were longer than the median, {text.percent(part)} was spent ready to run, in "
            "the queue for a CPU: they were not slower, they were not running."
        )
    if shares["nothing"] > 0:
        sentences.append(
            f"For {text.percent(shares['nothing'])} of them the kernel noticed nothing. What is left are causes that "
            "it does not count per thread: interrupts, caches and memory shared with neighbours, a clock that changes, "
            "and in a virtual machine whatever the host does."
        )
    return " ".join(sentences)


def _pin_text(experiment: Experiment, runs: list[Record]) -> str:
    """Whether pinning helped, by the 99 % quantile."""
    moved = {mode: 0 for mode in MODES}
    better, pairs = 0, 0
    for record in runs:
        moved[record["mode"]] += record["slowest"]["migrated"] + record["others"]["migrated"]
        other = experiment.one("runs", name=record["name"], mode="pinned")
        if record["mode"] == "free" and other is not None:
            pairs += 1
            better += other["p99_ns"] < record["p99_ns"]
    if pairs == 0:
        return ""
    experiment.derive("runs that moved while free", moved["free"])
    experiment.derive("runs that moved while pinned", moved["pinned"])
    experiment.derive("works with a shorter tail when pinned", better)
    experiment.derive("works that were pinned", pairs)
    sentence = (
        f"Free to move, {moved['free']:,} runs changed their CPU; pinned, {moved['pinned']:,}. The 99 % quantile was "
        f"shorter with pinning for {better} of {pairs} kinds of work."
    )
    if better < pairs:
        sentence += (
            " Pinning keeps a thread's caches, but a pinned thread must wait when another one uses its CPU, while a "
            "free one can move."
        )
    return sentence


def _denormal_picture(experiment: Experiment, names: list[str]) -> Picture:
    figure, axes = style.new_figure()
    inputs = ("denormal", "denormal, flushed")
    for index, kind in enumerate(inputs):
        ratios = []
        for name in names:
            plain = experiment.one("denormals", name=name, inputs="ordinary")
            record = experiment.one("denormals", name=name, inputs=kind)
            ratios.append(record["median_ns"] / plain["median_ns"] if plain and record else 0.0)
        places = [place + (index - 0.5) * 0.38 for place in range(len(names))]
        axes.bar(places, ratios, 0.38, label=kind, **style.bar(index))
    style.ceiling(axes, 1.0, "ordinary numbers")
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=8)
    axes.set_ylabel("time / time of ordinary numbers")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper center", ncols=2)
    return Picture("jitter_denormals", "What denormal numbers cost, with and without flushing.", figure)


def _denormals(experiment: Experiment) -> list[Block]:
    names = list(dict.fromkeys(record["name"] for record in experiment.of("denormals")))
    if not names:
        return []
    rows, slow, restored = [], [], True
    for name in names:
        plain, kept, flushed = (
            experiment.of("denormals", name=name, inputs=kind)[0]
            for kind in ("ordinary", "denormal", "denormal, flushed")
        )
        ratio = experiment.derive(f"denormal cost/{name}", kept["median_ns"] / plain["median_ns"])
        if ratio >= COSTLY:
            slow.append((ratio, name))
        flush = experiment.of("flush", name=name)[0]
        restored = restored and flush["mxcsr_before"] == flush["mxcsr_after"]
        lost = experiment.derive(f"zeros/{name}", (flush["zeros_flushed"] - flush["zeros_kept"]) / flush["elements"])
        times = [text.time(record["median_ns"]) for record in (plain, kept, flushed)]
        rows.append([f"{name} ({plain['work']})", *times, text.times(ratio), text.percent(lost)])
    headings = ["work", "ordinary", "denormal", "denormal, flushed", "denormal / ordinary", "results flushed to 0"]
    return [
        Heading("Denormal numbers"),
        Text(
            "The time of an operation may also depend on its numbers. A float32 closer to zero than the smallest "
            "normal one is kept with fewer bits, as a denormal, and many processors need help from microcode for it. "
            "Two bits of the control register MXCSR avoid that: FTZ makes denormal results zero, DAZ takes denormal "
            "operands for zero. The lab sets both for the time of one call. “Small × small” multiplies ordinary "
            "numbers whose products are denormal."
        ),
        _denormal_picture(experiment, names),
        Table(headings, rows, "Median times on one thread."),
        Text(_denormal_text(experiment, slow, len(names), restored)),
    ]


def _denormal_text(experiment: Experiment, slow: list[tuple[float, str]], count: int, restored: bool) -> str:
    sentences = []
    experiment.derive("cases with denormals", count)
    experiment.derive("cases with slow denormals", len(slow))
    if slow:
        ratio, name = max(slow)
        sentences.append(
            f"On this processor denormals are slow in {len(slow)} of {count} cases: {name} takes {text.times(ratio)} "
            "the time of ordinary numbers."
        )
        if len(slow) < count:
            sentences.append("The other cases have them in hardware.")
    else:
        sentences.append("On this processor denormals take no longer than other numbers in any of these cases.")
    sentences.append(
        "Flushing changes results: what was small but not zero is zero then. The engine never flushes by itself."
    )
    if restored:
        sentences.append("After every case the register was what it had been before.")
    else:
        sentences.append("After a case the register was NOT what it had been before: the times after it are in doubt.")
    return " ".join(sentences)


def _result(experiment: Experiment, runs: list[Record]) -> str:
    worst = max(runs, key=lambda record: float(record["max_ns"] / record["p50_ns"]))
    ratio = experiment.derive(f"max over median/{worst['name']}/{worst['mode']}", worst["max_ns"] / worst["p50_ns"])
    usual = experiment.derive(f"p90 over median/{worst['name']}/{worst['mode']}", worst["p90_ns"] / worst["p50_ns"])
    count = _total(runs, "slowest", "runs")
    off = experiment.derive("all slowest preempted", _total(runs, "slowest", "preempted") / count)
    return (
        f"Half of {worst['runs']:,} runs of the same {worst['name']} took at most {text.time(worst['p50_ns'])}, nine "
        f"tenths at most {text.times(usual)} that, and the longest {text.times(ratio)} that. Of the slowest hundredth "
        f"of all runs, {text.percent(off)} had been taken off their CPU by the kernel."
    )


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    runs = experiment.of("runs")
    title = "Why are two runs not equally long?"
    if not runs:
        return Page(title, "No runs were measured here.", _denormals(experiment))
    works = list(dict.fromkeys(f"{record['name']} ({record['work']})" for record in runs))
    blocks: list[Block] = [
        Text(
            f"The same work, {runs[0]['runs']:,} times each way: {'; '.join(works)}. One thread does it, either where "
            "the kernel puts it or pinned to one CPU. Blocks of both take turns."
        ),
        _spread_picture(runs),
        _spread_table(experiment, runs),
        Heading("What happened to the slow ones"),
        Text(
            "Before and after each run the kernel is asked what it counted for this thread: how often it was taken off "
            "its CPU for another (an involuntary context switch), how often it moved, how many pages it touched that "
            "were not there, and for how long it was ready but waited; and what the hypervisor took from the whole "
            "machine, in ticks of a hundredth of a second."
        ),
        _order_picture(runs[0]),
        _cause_table(experiment, runs),
        Text(_tail_text(experiment, runs)),
        Text(_pin_text(experiment, runs)),
        *_denormals(experiment),
    ]
    lesson = (
        "A mean hides all of this. The median says what the work costs, the 90 % quantile how steady the machine is, "
        "and the tail who else uses it. That is why everything in this lab is told as medians with quantiles, and why "
        "contenders take turns."
    )
    return Page(title, _result(experiment, runs), [block for block in blocks if block != Text("")], lesson)
