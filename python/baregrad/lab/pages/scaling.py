"""The gain from additional threads."""

from __future__ import annotations

from baregrad.lab import style, text
from baregrad.lab.labels import plain_log_axis
from baregrad.lab.page import Block, Heading, Page, Picture, Table, Text
from baregrad.lab.records import Experiment, Record

# Fits with a wider interval are inconclusive.
_WIDE = 0.25


def _names(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(record["name"] for record in experiment.of("scaling")))


def _counts(experiment: Experiment) -> list[int]:
    return sorted({record["threads"] for record in experiment.of("scaling")})


def _title(record: Record) -> str:
    """matmul of 1,024 × 1,024; exp of 1,048,576."""
    n = f"{record['n']:,}"
    return f"matmul of {n} × {n}" if record["name"] == "matmul" else f"{record['name']} of {n}"


def _last(experiment: Experiment, name: str) -> Record:
    """Records on the most threads."""
    return max(experiment.of("scaling", name=name), key=lambda record: int(record["threads"]))


def _ceiling_gain(experiment: Experiment, record: Record) -> float:
    """The speedup of the machine's own loop on as many threads."""
    first = experiment.of("scaling", name=record["name"])[0]
    key = f"ceiling speedup {record['name']} {record['threads']}"
    return experiment.derive(key, record["ceiling_per_s"] / first["ceiling_per_s"])


def _rate(record: Record) -> str:
    if record["bound_by"] == "memory":
        return f"{text.number(record['gb_per_s'])} GB/s"
    return f"{text.number(record['gflop_per_s'])} GFLOP/s"


# ---- Times ---------------------------------------------------------------------------------------


def _times(experiment: Experiment) -> list[Block]:
    rows = []
    for record in experiment.of("scaling"):
        row = [
            _title(record),
            record["bound_by"],
            f"{record['threads']:,}",
            text.time(record["median_ns"]),
            f"{text.time(record['p10_ns'])} to {text.time(record['p90_ns'])}",
            _rate(record),
            text.times(record["speedup"]),
            text.times(_ceiling_gain(experiment, record)),
        ]
        rows.append(row)
    headings = ["Work", "Bound by", "Threads", "Median", "p10 to p90", "Rate", "Speedup", "Of the machine's own loop"]
    blocks: list[Block] = [
        Heading("Times"),
        Text(
            "Counts of threads take turns on the same inputs; the allocation of the result is part of the time. The "
            "last column is what the machine allows: the same comparison for a loop that does nothing but "
            "multiply-adds (for `matmul` and `exp`), nothing but additions of arrays (`add`) or nothing but reads "
            "(`sum`), on as many bytes. The rate of `exp` counts one operation an element."
        ),
        Table(headings, rows),
        _exactness(experiment),
    ]
    return blocks


def _exactness(experiment: Experiment) -> Text:
    records = experiment.of("scaling")
    worst = max(records, key=lambda record: float(record["max_error"]))
    told = f"The largest relative error against wider arithmetic is `{worst['max_error']:.1e}`, of `{worst['name']}`."
    changed = [record for record in records if not record["same_bits"]]
    if changed:
        which = ", ".join(f"`{record['name']}` on {record['threads']:,}" for record in changed)
        return Text(told + f" Other bits than on one thread came from {which}.")
    if len(_counts(experiment)) > 1:
        told += " Every result has the same bits on every number of threads."
    return Text(told)


# ---- Pictures ------------------------------------------------------------------------------------


def _speedup_picture(experiment: Experiment) -> Picture:
    figure, axes = style.new_figure()
    counts = _counts(experiment)
    axes.plot(counts, counts, color="0.5", linestyle=":", linewidth=1, label="as many times faster as threads")
    for index, name in enumerate(_names(experiment)):
        records = experiment.of("scaling", name=name)
        base = records[0]["median_ns"]
        # Between the slow and the fast runs on this many threads.
        low = [record["speedup"] - base / record["p90_ns"] for record in records]
        high = [base / record["p10_ns"] - record["speedup"] for record in records]
        axes.errorbar(
            [record["threads"] * (1 + 0.012 * (index - 1.5)) for record in records],
            [record["speedup"] for record in records],
            yerr=[[max(0.0, value) for value in low], [max(0.0, value) for value in high]],
            capsize=3,
            label=_title(records[0]),
            **style.line(index),
        )
    axes.set_xlabel("threads")
    axes.set_ylabel("times faster than one thread")
    if counts[-1] > 8:
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log_axis(axes.yaxis)
        axes.minorticks_off()
    else:
        axes.set_ylim(bottom=0)
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.legend(loc="upper left", fontsize=8)
    return Picture(
        "speedup",
        "Speedup of the medians over threads; bars reach from the tenth to the ninetieth percentile of the times. The "
        "points of one count are set a little apart.",
        figure,
    )


def _allowed_picture(experiment: Experiment) -> Picture:
    figure, axes = style.new_figure(height=3.0)
    names = _names(experiment)
    ends = [_last(experiment, name) for name in names]
    places = range(len(names))
    most = ends[0]["threads"]
    for index, (label, heights) in enumerate(
        (
            ("the engine", [record["speedup"] for record in ends]),
            ("the machine's own loop", [_ceiling_gain(experiment, record) for record in ends]),
        )
    ):
        across = [place + 0.38 * (index - 0.5) for place in places]
        axes.bar(across, heights, width=0.36, label=label, **style.bar(index))
    axes.set_xticks(list(places), [f"{_title(record)}\n({record['bound_by']})" for record in ends], fontsize=8)
    axes.set_ylabel(f"times faster on {most:,} threads")
    axes.set_ylim(0, 1.25 * max([most, *(patch.get_height() for patch in axes.patches)]))
    style.ceiling(axes, most, f"{most:,}×")
    axes.legend(loc="upper right", fontsize=8, ncols=2)
    return Picture("allowed", f"What {most:,} threads bring, beside what the machine allows.", figure)


# ---- Amdahl --------------------------------------------------------------------------------------


def _fits(experiment: Experiment) -> list[Block]:
    fits = experiment.of("amdahl")
    if not fits:
        return []
    rows = []
    for fit in fits:
        limit = ""
        if fit["serial_fraction"] > 0:
            limit = text.times(experiment.derive(f"limit {fit['name']}", 1 / fit["serial_fraction"]))
        rows.append(
            [
                fit["name"],
                text.percent(fit["serial_fraction"]),
                f"{text.percent(fit['low'])} to {text.percent(fit['high'])}",
                limit or "none",
            ]
        )
        if fit["points"] > 2:
            rows[-1].append(text.percent(fit["misfit"]))
    points, confidence = fits[0]["points"], text.percent(fits[0]["confidence"])
    headings = ["Work", "Serial fraction", f"{confidence} interval", "Most that threads could bring"]
    if points > 2:
        headings.append("Law off by")
    blocks: list[Block] = [
        Heading("Amdahl's serial fraction"),
        Text(
            "Amdahl's law says that a part of the work, the serial fraction, does not get shorter with more threads: "
            "on `p` threads the time is `T(1) * (s + (1 - s) / p)`. The fraction `s` is fitted to the medians by least "
            "squares; for the interval the samples of each count are drawn anew, with repetition, and fitted again, "
            f"thousands of times. The interval holds the middle {confidence} of these fits."
        ),
        Table(headings, rows),
    ]
    if points == 2:
        blocks.append(
            Text(
                "There are two counts of threads here, and the law has two unknowns: it passes through both points "
                "whatever they are. So the fraction is a way to write down the speedup, not a test of the law. It "
                "cannot distinguish serial code from threads that wait for each other, for memory or for a core that "
                "another program uses, and its prediction for more threads is a guess."
            )
        )
    blocks += _readings(fits)
    return blocks


def _readings(fits: list[Record]) -> list[Block]:
    wide = [fit["name"] for fit in fits if fit["high"] - fit["low"] > _WIDE]
    blocks: list[Block] = []
    if wide:
        blocks.append(
            Text(
                f"The interval is wide for {_listed(wide)}: the times of one count differed among themselves by as "
                "much as those of different counts, as they do on a machine with other things to do. Do not read the "
                "fraction without it."
            )
        )
    if any(fit["serial_fraction"] < 0 for fit in fits):
        blocks.append(
            Text(
                "A negative fraction means more speed than threads, which the law does not know: each core brings its "
                "own caches, or the run on one thread was disturbed more."
            )
        )
    return blocks


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]


def _explanation(experiment: Experiment) -> list[Block]:
    """Which works scale like the machine's own loop, and which do not."""
    blocks: list[Block] = [Heading("What holds it back")]
    memory = [_last(experiment, name) for name in _names(experiment) if _last(experiment, name)["bound_by"] == "memory"]
    if memory:
        told = "; ".join(
            f"`{record['name']}` gets {text.times(record['speedup'])} and the loop "
            f"{text.times(_ceiling_gain(experiment, record))}"
            for record in memory
        )
        said = f"Beside the machine's own loop over memory, measured once on each number of threads: {told}. "
        if all(abs(record["speedup"] / _ceiling_gain(experiment, record) - 1) < 0.25 for record in memory):
            said += (
                "They scale as memory does. There is hardly any serial code in either; the fraction that Amdahl's law "
                "finds is the way to memory, which all cores share. The law takes for serial whatever does not divide."
            )
        else:
            said += (
                "They do not agree, so this run does not tell what memory allows: of the loop the best moment counts, "
                "of the engine the median, and two threads that meet on one core show as no gain at all."
            )
        blocks.append(Text(said))
    arithmetic = [
        _last(experiment, name) for name in _names(experiment) if _last(experiment, name)["bound_by"] == "arithmetic"
    ]
    for record in arithmetic:
        allowed = _ceiling_gain(experiment, record)
        share = experiment.derive(f"share of allowed {record['name']}", record["speedup"] / allowed)
        first = experiment.of("scaling", name=record["name"])[0]
        told = (
            f"`{record['name']}` on {record['threads']:,} threads takes {text.time(record['median_ns'])} instead of "
            f"{text.time(first['median_ns'])}: {text.percent(share)} of what multiply-adds gain."
        )
        if share < 0.85:
            told += (
                " The rest is the start of the region, pieces of unequal length, the caches that threads share, and "
                "other programs on the cores."
            )
        blocks.append(Text(told))
    return blocks


# ---- The page ------------------------------------------------------------------------------------


def _result(experiment: Experiment) -> str:
    names = _names(experiment)
    if not names:
        return "Nothing was measured."
    if len(_counts(experiment)) == 1:
        first = experiment.of("scaling", name=names[0])[0]
        return (
            f"There is one thread here, so there is nothing to scale: {_title(first)} takes "
            f"{text.time(first['median_ns'])} on it."
        )
    ends = [_last(experiment, name) for name in names]
    told = ", ".join(f"`{record['name']}` {text.times(record['speedup'])}" for record in ends)
    return f"On {ends[0]['threads']:,} threads instead of one: {told}."


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    blocks: list[Block] = []
    if _names(experiment):
        blocks += _times(experiment)
        if len(_counts(experiment)) > 1:
            blocks += [_speedup_picture(experiment), *_fits(experiment), *_explanation(experiment)]
            blocks.append(_allowed_picture(experiment))
    return Page(
        "What another thread brings",
        _result(experiment),
        blocks,
        "Count what the threads share before you count the threads. Arithmetic in registers and in a core's own caches "
        "multiplies with the cores; bytes from memory do not. A serial fraction is only as good as its interval, and "
        "it says how much does not divide, never why.",
    )
