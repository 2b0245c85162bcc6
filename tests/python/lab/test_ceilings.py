"""The page of `ceilings`, from records made by hand."""

from __future__ import annotations

from typing import Any

from baregrad.lab.page import Page, Picture, Table, Text
from baregrad.lab.pages import ceilings
from baregrad.lab.records import Experiment, Record

CACHES = [
    {"level": 1, "type": "data", "bytes": 32768, "shared_by": 1},
    {"level": 1, "type": "instruction", "bytes": 32768, "shared_by": 1},
    {"level": 2, "type": "unified", "bytes": 1 << 20, "shared_by": 2},
]
MACHINE: Record = {
    "cpu": "A Processor",
    "logical_cpus": 2,
    "physical_cores": 2,
    "usable_cpus": 2,
    "memory_bytes": 1 << 34,
    "caches": CACHES,
}


def timing(ns: float) -> Record:
    return {"median_ns": ns, "p10_ns": 0.9 * ns, "p90_ns": 1.2 * ns, "repeats": 9}


def rates(name: str, value: float) -> Record:
    return {name: value, f"median_{name}": value, f"p10_{name}": 0.9 * value, f"p90_{name}": value, "rounds": 5}


def records(threads: list[int], pages: list[str]) -> list[Record]:
    found: list[Record] = [{"kind": "clock", "median_ghz": 4.0, "p10_ghz": 3.5, "p90_ghz": 4.1, "repeats": 100}]
    for dtype, rate in (("float32", 128.0), ("float64", 64.0)):
        found += [{"kind": "fma", "dtype": dtype, "threads": n, **rates("gflop_per_s", n * rate)} for n in threads]
    for level, rate, size in (("L1", 256.0, 16384), ("L2", 64.0, 1 << 19), ("memory", 8.0, 1 << 27)):
        for n in threads:
            for stream in ("read", "copy", "add"):
                found.append(
                    {"kind": "stream", "stream": stream, "level": level, "bytes": size, "threads": n}
                    | rates("gb_per_s", rate * (n if level != "memory" else 1))
                )
    for n in threads:
        for size in (6144, 1 << 16, 1 << 27):
            found.append({"kind": "bandwidth", "stream": "read", "bytes": size, "threads": n, "gb_per_s": 1e6 / size})
    for kind in pages:
        for size, ns in ((4096, 1.0), (16384, 1.0), (1 << 19, 4.0), (1 << 27, 100.0 if kind == "small" else 80.0)):
            found.append({"kind": "latency", "pages": kind, "bytes": size, **timing(ns)})
    for n in threads[1:]:
        for who, ns in (("baregrad", 500.0), ("OpenMP", 700.0), ("pthread_create and join", 20000.0)):
            found.append({"kind": "fork_join", "implementation": who, "body": "all present", "threads": n} | timing(ns))
    return found


def updates(threads: list[int]) -> list[Record]:
    rate = rates("gb_per_s", 999.0)
    return [
        {"kind": "stream", "stream": "update", "level": level, "bytes": 1 << 14, "threads": n, **rate}
        for level in ("L1", "L2", "memory")
        for n in threads
    ]


def experiment(found: list[Record], **machine: Any) -> Experiment:
    header = {"kind": "header", "isa": "avx2", "machine": MACHINE | machine, "quick": False}
    return Experiment("ceilings", header, found, True)


def prose(page: Page) -> str:
    return "\n".join([page.result, *(block.text for block in page.blocks if isinstance(block, Text))])


def tables(page: Page) -> list[Table]:
    return [block for block in page.blocks if isinstance(block, Table)]


def test_numbers_follow_from_the_records() -> None:
    measured = experiment(records([1, 2], ["small", "huge"]))
    page = ceilings.build(measured, {})
    assert measured.derived["flop_per_cycle float32 1"] == 128 / 4
    assert measured.derived["flop_per_cycle float32 2"] == 128 / 4
    assert measured.derived["bytes_per_cycle L1 2"] == 64
    assert measured.derived["L1 over memory bandwidth"] == 32
    assert measured.derived["flop per float"] == 4 * 128 / 8
    assert measured.derived["load_cycles memory small"] == 400
    assert measured.derived["ns per line in order"] == 8
    assert measured.derived["pthread over pool"] == 40
    assert "128 GFLOP/s in float32, 2 threads do 256" in page.result
    assert "20.0 ns less" in prose(page)
    assert [block.name for block in page.blocks if isinstance(block, Picture)] == ["bandwidth", "latency"]


def test_what_threads_bring_to_memory_is_told_as_it_was_seen() -> None:
    found = records([1, 2], ["small"])
    assert "one for all of them" in prose(ceilings.build(experiment(found), {}))
    for record in found:
        if record["kind"] == "stream" and record["level"] == "memory" and record["threads"] == 2:
            record["gb_per_s"] *= 2
    assert "one for all of them" not in prose(ceilings.build(experiment(found), {}))


def test_latency_is_read_where_a_level_holds_the_working_set() -> None:
    page = ceilings.build(experiment(records([1, 2], ["small", "huge"])), {})
    latency = next(table for table in tables(page) if "Small pages" in table.headings)
    assert [row[:3] for row in latency.rows] == [
        ["L1", "16 KiB", "1.00 ns"],
        ["L2", "512 KiB", "4.00 ns"],
        ["memory", "128 MiB", "100 ns"],
    ]


def test_one_thread_and_no_huge_pages() -> None:
    page = ceilings.build(experiment(records([1], ["small"])), {})
    assert "threads do" not in prose(page)
    assert "huge" not in prose(page)
    assert not any("Who" in table.headings for table in tables(page))


def test_shared_cores_are_named_as_the_reason() -> None:
    found = [record for record in records([1, 2], ["small"]) if record["kind"] != "fma"]
    found += [{"kind": "fma", "dtype": "float32", "threads": n, **rates("gflop_per_s", 100.0 + n)} for n in (1, 2)]
    assert "share its units" in prose(ceilings.build(experiment(found, physical_cores=1), {}))
    assert "share its units" not in prose(ceilings.build(experiment(found), {}))


def test_a_machine_that_says_nothing_of_itself() -> None:
    page = ceilings.build(experiment(records([1], ["small"]), caches=[], physical_cores=0), {})
    assert "does not say which caches" in prose(page)


def test_nothing_measured() -> None:
    page = ceilings.build(experiment([]), {})
    assert page.result == "Nothing was measured."


def test_updates_have_a_column_and_are_no_ceiling_of_the_others() -> None:
    before = ceilings.build(experiment(records([1, 2], ["small"])), {})
    after = ceilings.build(experiment(records([1, 2], ["small"]) + updates([1, 2])), {})
    assert after.result == before.result
    old, new = (
        next(block for block in page.blocks if isinstance(block, Table) and block.headings[0] == "Level")
        for page in (before, after)
    )
    assert "Update, GB/s" not in old.headings
    assert new.headings[6] == "Update, GB/s"
    assert {row[6] for row in new.rows} == {"999"}
    assert [row[:6] + row[7:] for row in new.rows] == old.rows
