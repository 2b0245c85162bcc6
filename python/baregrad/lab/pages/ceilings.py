"""The ceilings of the machine."""

from __future__ import annotations

from baregrad.lab import text
from baregrad.lab.page import Block, Heading, Page, Table, Text
from baregrad.lab.pages.ceilings_memory import bandwidth, clock_of, counts, fastest, latency, plural
from baregrad.lab.records import Experiment

FLOAT_BYTES = 4


# ---- The processor -------------------------------------------------------------------------------


def _processor(experiment: Experiment) -> list[Block]:
    machine = experiment.header["machine"]
    cores = machine["physical_cores"]
    told = f"{plural(cores, 'core')}, {plural(machine['logical_cpus'], 'hardware thread')}, " if cores else ""
    blocks: list[Block] = [
        Heading("The processor"),
        Text(
            f"It calls itself {machine['cpu']}: {told}{machine['usable_cpus']:,} of them usable by this process, "
            f"{text.size(machine['memory_bytes'])} of memory. The engine uses its `{experiment.header['isa']}` "
            "kernels here."
        ),
    ]
    rows = [
        [
            f"L{cache['level']} {cache['type']}",
            text.size(cache["bytes"]),
            plural(cache["shared_by"], "hardware thread") if cache["shared_by"] else "not known",
        ]
        for cache in machine["caches"]
    ]
    if rows:
        blocks.append(Table(["Cache", "Size", "Shared by"], rows))
    else:
        blocks.append(Text("The system does not say which caches there are; usual sizes are used instead."))
    clock = experiment.one("clock")
    if clock:
        blocks.append(
            Text(
                f"The clock: {text.number(clock['median_ghz'])} GHz in the median of {clock['repeats']:,} samples, "
                f"{text.number(clock['p10_ghz'])} at the tenth and {text.number(clock['p90_ghz'])} at the ninetieth "
                "percentile. A program cannot count cycles everywhere, but it can add integers, each sum waiting for "
                "the one before: that takes one cycle an addition."
            )
        )
    return blocks


# ---- Arithmetic ----------------------------------------------------------------------------------


def _arithmetic(experiment: Experiment) -> list[Block]:
    records = experiment.of("fma")
    if not records:
        return []
    clock = clock_of(experiment)
    rows = []
    for record in records:
        row = [
            record["dtype"],
            f"{record['threads']:,}",
            text.number(record["gflop_per_s"]),
            f"{text.number(record['p10_gflop_per_s'])} to {text.number(record['p90_gflop_per_s'])}",
        ]
        if clock:
            key = f"flop_per_cycle {record['dtype']} {record['threads']}"
            row.append(text.number(experiment.derive(key, record["gflop_per_s"] / clock / record["threads"])))
        rows.append(row)
    headings = ["Type", "Threads", "Best, GFLOP/s", "Rounds, p10 to p90"] + (["Per cycle and thread"] if clock else [])
    blocks: list[Block] = [
        Heading("Arithmetic"),
        Text(
            "Twelve chains of multiply-adds that never leave the registers. A multiply-add counts as two operations. "
            "The ceiling is the best round: whatever disturbs a round can only make it slower."
        ),
        Table(headings, rows),
    ]
    if clock:
        blocks.append(
            Text(
                "Operations per cycle are what the processor was built for: lanes of a vector, times two for a "
                "multiply-add, times the units that work side by side. A program that adds one number at a time, each "
                "waiting for the last, gets one operation every few cycles."
            )
        )
    one, most = experiment.one("fma", dtype="float32", threads=1), counts(records)[-1]
    double = experiment.one("fma", dtype="float64", threads=1)
    if one and double:
        ratio = experiment.derive("float32 over float64", one["gflop_per_s"] / double["gflop_per_s"])
        blocks.append(
            Text(
                f"float32 does {text.times(ratio)} the operations of float64: a vector holds twice as many of them. "
                "float16 and bfloat16 are not in the table: the engine widens them to float32 and computes there."
            )
        )
    all_threads = experiment.one("fma", dtype="float32", threads=most)
    if one and all_threads and most > 1:
        gain = experiment.derive("fma speedup", all_threads["gflop_per_s"] / one["gflop_per_s"])
        told = f"{most:,} threads do {text.times(gain)} the work of one"
        cores = experiment.header["machine"]["physical_cores"]
        if gain >= 0.97 * most:
            told += ": arithmetic shares nothing."
        elif 0 < cores < most:
            told += f": there are {plural(cores, 'core')}, and threads of one core share its units."
        else:
            told += ". What is missing went to a lower clock or to others who wanted the cores."
        blocks.append(Text(told))
    return blocks


# ---- Parallel regions ----------------------------------------------------------------------------


def _regions(experiment: Experiment) -> list[Block]:
    records = experiment.of("fork_join")
    if not records:
        return []
    rows = [
        [
            record["implementation"],
            record["body"],
            f"{record['threads']:,}",
            text.time(record["median_ns"]),
            text.time(record["p10_ns"]),
            text.time(record["p90_ns"]),
        ]
        for record in records
    ]
    blocks: list[Block] = [
        Heading("The start of a parallel region"),
        Text(
            "From entering a region to leaving it. With an empty body a thread of ours that finds a piece of work "
            "unclaimed takes it, so the caller may finish before any other thread has started; with all present, no "
            "body returns before every thread has begun. A program without a pool creates and joins threads for each "
            "region."
        ),
        Table(["Who", "Body", "Threads", "Median", "p10", "p90"], rows),
    ]
    most = counts(records)[-1]
    ours = experiment.one("fork_join", implementation="baregrad", body="all present", threads=most)
    made = experiment.one("fork_join", implementation="pthread_create and join", threads=most)
    peak = experiment.one("fma", dtype="float32", threads=1)
    if ours and peak:
        flops = experiment.derive("flops in a region", ours["median_ns"] * peak["gflop_per_s"])
        blocks.append(
            Text(
                f"In the {text.time(ours['median_ns'])} that it takes to gather {most:,} threads, one thread could "
                f"have done {text.number(flops)} operations. Work that is not much larger is done sooner by one thread."
            )
        )
    if ours and made and made["median_ns"] > ours["median_ns"]:
        factor = experiment.derive("pthread over pool", made["median_ns"] / ours["median_ns"])
        blocks.append(Text(f"New threads for every region cost {text.times(factor)} of that."))
    return blocks


# ---- The page ------------------------------------------------------------------------------------


def _result(experiment: Experiment) -> str:
    peak = experiment.one("fma", dtype="float32", threads=1)
    near, far = fastest(experiment, "L1", 1), fastest(experiment, "memory", 1)
    if not peak:
        return "Nothing was measured."
    most = counts(experiment.of("fma"))[-1]
    all_threads = experiment.one("fma", dtype="float32", threads=most)
    told = f"One thread does at most {text.number(peak['gflop_per_s'])} GFLOP/s in float32"
    if all_threads and most > 1:
        told += f", {most:,} threads do {text.number(all_threads['gflop_per_s'])}"
    told += "."
    if near and far:
        told += (
            f" It is fed {text.number(near['gb_per_s'])} GB/s from its L1 cache and {text.number(far['gb_per_s'])} "
            "from memory"
        )
        balance = experiment.derive("flop per float", FLOAT_BYTES * peak["gflop_per_s"] / far["gb_per_s"])
        told += f": for every float that comes from memory there is time for {text.number(balance)} operations."
    return told


def build(experiment: Experiment, run: dict[str, Experiment]) -> Page:
    blocks = (
        _processor(experiment)
        + _arithmetic(experiment)
        + bandwidth(experiment)
        + latency(experiment)
        + _regions(experiment)
    )
    return Page(
        "What this machine can do at best",
        _result(experiment),
        blocks,
        "Arithmetic is plentiful, bytes are not, and waiting for a byte is the most expensive of all. A program is "
        "fast if it does many operations with each number that it has fetched, fetches in a predictable order, and "
        "keeps what it needs again in a cache. All other experiments are drawn against these ceilings.",
    )
