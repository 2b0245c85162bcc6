"""The page of `jitter` from records made by hand."""

import pytest

pytest.importorskip("matplotlib")

from baregrad.lab.page import Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import jitter  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402


def part(runs: int, **counted: float) -> Record:
    names = ("preempted", "migrated", "faulted", "stolen", "waited", "nothing", "excess_ns", "waited_ns")
    return {"runs": runs, **{name: counted.get(name, 0) for name in names}}


def event(run: int, **counted: int) -> Record:
    names = ("preempted", "slept", "migrations", "faults", "stolen_ticks", "waited_ns")
    return {"run": run, **{name: counted.get(name, 0) for name in names}}


def runs_of(name: str, mode: str, slowest: Record, p99: float = 2e6) -> Record:
    return {
        "kind": "runs",
        "name": name,
        "work": "256 × 256",
        "mode": mode,
        "runs": 200,
        "p50_ns": 1e6,
        "p90_ns": 1.5e6,
        "p99_ns": p99,
        "p999_ns": 9e6,
        "max_ns": 9e6,
        "slowest": slowest,
        "others": part(198, preempted=9, nothing=189),
        "ns": [1000000] * 150 + [1500000] * 48 + [2000000, 9000000],
        "events": [event(3, faults=2), event(9, migrations=1), event(150, waited_ns=5), event(199, preempted=1)],
    }


def denormals_of(name: str, ratio: float, restored: bool = True) -> list[Record]:
    times = {"ordinary": 1000.0, "denormal": 1000.0 * ratio, "denormal, flushed": 1000.0}
    flush = {"elements": 100, "zeros_kept": 10, "zeros_flushed": 60, "mxcsr_before": 8064}
    return [
        *({"kind": "denormals", "name": name, "work": "w", "inputs": each, "median_ns": times[each]} for each in times),
        {"kind": "flush", "name": name, **flush, "mxcsr_after": 8064 if restored else 40896},
    ]


def prose(page: Page) -> str:
    return " ".join(block.text for block in page.blocks if isinstance(block, Text))


def page_of(records: list[Record]) -> tuple[Page, Experiment]:
    experiment = Experiment("jitter", {}, records, finished=True)
    return jitter.build(experiment, {}), experiment


def test_a_whole_run_is_told() -> None:
    cut_off = part(2, preempted=2, waited=2, excess_ns=1e7, waited_ns=9e6)
    silent = part(2, nothing=2, excess_ns=1e6)
    page, experiment = page_of(
        [
            runs_of("product", "free", cut_off),
            runs_of("product", "pinned", cut_off, p99=1.9e6),
            runs_of("step", "free", cut_off),
            runs_of("step", "pinned", silent, p99=2.5e6),
            *denormals_of("multiply", 2.5),
            *denormals_of("add", 1.01),
        ]
    )
    assert "Half of 200 runs" in page.result and "the longest 9.00× that" in page.result
    assert "75.0 % had been taken off their CPU" in page.result
    text = prose(page)
    assert "75.0 % share one thing above others: “taken off the CPU”. Of the other runs it is 4.55 %" in text
    assert "87.1 % was spent ready to run" in text  # 27 of 31 ms
    assert experiment.derived["share of the excess spent waiting"] == pytest.approx(27 / 31)
    assert "For 25.0 % of them the kernel noticed nothing" in text
    assert "shorter with pinning for 1 of 2 kinds of work" in text
    assert "slow in 1 of 2 cases: multiply takes 2.50×" in text
    assert "what it had been before" in text and "NOT" not in text
    assert experiment.derived["zeros/multiply"] == 0.5
    assert sum(isinstance(block, Picture) for block in page.blocks) == 3
    for table in (block for block in page.blocks if isinstance(block, Table)):
        assert {len(row) for row in table.rows} == {len(table.headings)}


def test_denormals_without_a_price() -> None:
    page, _ = page_of([runs_of("product", "free", part(2, nothing=2)), *denormals_of("add", 1.0)])
    assert "no longer than other numbers in any of these cases" in prose(page)


def test_a_register_that_was_not_put_back_is_told() -> None:
    page, _ = page_of([runs_of("product", "free", part(2, nothing=2)), *denormals_of("add", 1.0, restored=False)])
    assert "NOT what it had been before" in prose(page)


def test_without_pinning_and_without_events() -> None:
    record = runs_of("product", "free", part(2, nothing=2)) | {"events": []}
    page, _ = page_of([record])
    text = prose(page)
    assert "pinning for" not in text
    assert "share one thing" not in text
    assert "For 100 % of them the kernel noticed nothing" in text
    assert sum(isinstance(block, Picture) for block in page.blocks) == 2


def test_nothing_at_all() -> None:
    page, _ = page_of([])
    assert page.blocks == []
