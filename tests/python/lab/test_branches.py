"""The page of `branches` from records made by hand."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("matplotlib")

from baregrad.lab.page import Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import branches  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402

SIZE = 1000
HEADER = {
    "machine": {
        "caches": [
            {"level": 1, "type": "data", "bytes": 49152},
            {"level": 1, "type": "instruction", "bytes": 32768},
            {"level": 2, "type": "unified", "bytes": 1 << 20},
        ]
    }
}


def picks(random_ns: float = 4.5) -> list[Record]:
    """Sorted takes 1 ns; random takes `random_ns` at one half and 1 ns at the ends."""
    times = {"sorted": 1.0, "random": random_ns, "masked": 1.5}
    return [
        {
            "kind": "pick",
            "name": f"pick:{order}_{share}",
            "size": SIZE,
            "order": order,
            "taken_percent": share,
            "ns_per_element": ns if share == 50 else 1.0,
        }
        for share in (0, 50, 100)
        for order, ns in times.items()
    ]


def dots(times: dict[tuple[int, int], float]) -> list[Record]:
    return [
        {
            "kind": "dot",
            "name": f"dot:{unrolled}x{sums}",
            "size": SIZE,
            "unrolled": unrolled,
            "sums": sums,
            "ns_per_element": ns,
        }
        for (unrolled, sums), ns in times.items()
    ]


DOTS = {(1, 1): 0.8, (8, 1): 0.8, (32, 1): 0.8, (8, 8): 0.2, (32, 32): 0.3}


def code() -> list[Record]:
    times = {1 << 10: 0.05, 32 << 10: 0.05, 64 << 10: 0.1, 2 << 20: 0.2}
    return [
        {"kind": "code", "name": "code", "size": size, "instructions": size / 4, "ns_per_instruction": ns}
        for size, ns in times.items()
    ]


def count(name: str, size: int = SIZE, **events: float) -> Record:
    return {"kind": "count", "name": name, "size": size, "warm_ups": 1, "source": "callgrind", **events}


def counts() -> list[Record]:
    records = []
    for record in picks():
        missed = 0.5 if record["order"] == "random" and record["taken_percent"] == 50 else 0.0
        needed = 10.0 if record["order"] == "masked" else 6.0
        events = {"instructions": needed * SIZE, "branches": 2.0 * SIZE, "mispredictions": missed * SIZE}
        records.append(count(record["name"], **events))
    for unrolled, sums in DOTS:
        events = {"instructions": (3 + 3 / unrolled) * SIZE, "stores": 0.5 * SIZE if sums == 32 else 0.0}
        records.append(count(f"dot:{unrolled}x{sums}", **events))
    return [*records, count("code", 1 << 10, l1i_misses=0.0), count("code", 64 << 10, l1i_misses=1024.0)]


def page_of(records: list[Record], header: dict[str, Any] = HEADER) -> tuple[Page, Experiment]:
    experiment = Experiment("branches", header, records, finished=True)
    return branches.build(experiment, {}), experiment


def prose(page: Page) -> str:
    return " ".join(block.text for block in page.blocks if isinstance(block, Text))


def table(page: Page, heading: str) -> list[list[str]]:
    return next(block.rows for block in page.blocks if isinstance(block, Table) and block.headings[0] == heading)


def test_everything_was_measured() -> None:
    page, experiment = page_of([*picks(), *dots(DOTS), *code(), *counts()])
    # (4.5 - 1.0) ns / 0.5 mispredictions
    assert experiment.derived["cost of a misprediction, ns"] == pytest.approx(7.0)
    assert "the unexpected way costs 7.00 ns" in page.result
    assert "unrolled 32 times runs at 1.00× the speed" in page.result
    assert "one with 8 sums at 4.00×" in page.result
    told = prose(page)
    assert "divided by the mispredictions counted" in told
    assert "3.00× as fast at one half, though it executes 10.0 instructions per element and not 6.00" in told
    assert "the latency of one addition" in told
    assert "With 32 sums it takes 1.50× the time of the best: there are not so many registers, and 0.500 sums" in told
    assert "L1i cache of 32 KiB and more: 2.00× the time at 64 KiB" in told
    assert "L2 cache of 1 MiB and more: 4.00× the time at 2 MiB" in told
    assert [row[2] for row in table(page, "length")] == ["0", "-", "0.0625", "-"]
    names = [block.name for block in page.blocks if isinstance(block, Picture)]
    assert names == ["branches_shares", "branches_unrolling", "branches_code"]


def test_nothing_was_counted() -> None:
    page, experiment = page_of([*picks(), *dots(DOTS), *code()])
    # At most half of the tosses of a coin can be predicted.
    assert experiment.derived["cost of a misprediction, ns"] == pytest.approx(7.0)
    assert "the share of wrong predictions for a tossed coin" in prose(page)
    assert "of the instructions" not in prose(page)
    assert all(row[3:] == ["-", "-", "-"] for row in table(page, "elements that count"))


def test_sentences_follow_the_numbers() -> None:
    # Random order costs nothing, unrolling alone helps, several sums do no harm.
    page, _ = page_of([*picks(1.0), *dots({(1, 1): 0.8, (32, 1): 0.4, (32, 32): 0.2}), *counts()])
    assert "unexpected" not in page.result
    assert "cost of one misprediction" not in prose(page)
    assert "latency" not in prose(page)
    assert "registers" not in prose(page)


def test_no_code_no_caches_no_records() -> None:
    page, _ = page_of([*picks(), *dots(DOTS), *counts()])
    assert not any(isinstance(block, Picture) and block.name == "branches_code" for block in page.blocks)
    page, _ = page_of(code(), {})
    assert "At best, with 1 KiB" in prose(page)
    page, _ = page_of([])
    assert page.result == "Nothing was measured."
    assert page.blocks == []
