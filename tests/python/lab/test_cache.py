"""The page of `cache` from records made by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from baregrad.lab.page import Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import cache  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402

LEVELS = {"L1": 0.1, "L2": 0.5, "L3": 1.1, "memory": 4.1}
SIDE = 16
SIZE = 1024


def matrices() -> list[Record]:
    """In memory, columns take ten times as long as rows; at other levels the times are equal."""
    records = []
    for level in LEVELS:
        for name in [f"{kind}:{order}" for kind in ("sum", "fill") for order in ("rows", "columns", "tiles")] + [
            "transpose:naive",
            "transpose:tiled",
        ]:
            slow = level == "memory" and name.partition(":")[2] in ("columns", "naive")
            fields = {"kind": "matrix", "name": name, "level": level, "n": 4080, "counted_n": SIDE}
            records.append({**fields, "counted_warm_ups": 1, "ns_per_element": 5.0 if slow else 0.5})
    return records


def strides() -> list[Record]:
    return [
        {
            "kind": "stride",
            "name": f"stride:{stride}",
            "level": level,
            "stride": stride,
            "distance_bytes": 4 * stride,
            "counted_size": SIZE,
            "counted_warm_ups": 1,
            "ns_per_element": ns if stride == 16 else 0.1,
        }
        for level, ns in LEVELS.items()
        for stride in (1, 4, 16)
    ]


def pitches(slower: float) -> list[Record]:
    fields = {"kind": "pitch", "rows": 128, "columns": 16, "touched_bytes": 8192, "elements": 2048}
    return [
        {**fields, "name": "pitch:1024", "pitch_bytes": 4096, "ns_per_element": slower},
        {**fields, "name": "pitch:1040", "pitch_bytes": 4160, "ns_per_element": 1.0},
    ]


def pages(huge_ns: float) -> list[Record]:
    fields = {"kind": "page", "level": "memory", "n": 4080}
    return [
        {**fields, "name": "sum:columns", "page_bytes": 4096, "ns_per_element": 5.0},
        {**fields, "name": "huge:columns", "page_bytes": 2 << 20, "ns_per_element": huge_ns},
    ]


def count(name: str, size: int, misses: float) -> Record:
    fields = {"kind": "count", "name": name, "size": size, "warm_ups": 1, "source": "callgrind"}
    return {**fields, "l1_load_misses": misses, "l1_store_misses": 0.0, "ll_load_misses": 0.0, "ll_store_misses": 0.0}


def counts() -> list[Record]:
    """One miss per line of 16 floats, except columns: one per element."""
    records = [count(f"stride:{stride}", SIZE, SIZE / 16) for stride in (1, 4, 16)]
    for record in matrices()[:8]:
        slow = record["name"].partition(":")[2] in ("columns", "naive")
        records.append(count(record["name"], SIDE, SIDE**2 / (1 if slow else 16)))
    return [*records, count("pitch:1024", 128, 2048), count("pitch:1040", 128, 0)]


def page_of(records: list[Record]) -> tuple[Page, Experiment]:
    experiment = Experiment("cache", {}, records, finished=True)
    return cache.build(experiment, {}), experiment


def prose(page: Page) -> str:
    return " ".join(block.text for block in page.blocks if isinstance(block, Text))


def table(page: Page, heading: str) -> list[list[str]]:
    return next(block.rows for block in page.blocks if isinstance(block, Table) and block.headings[0] == heading)


def test_everything_was_measured() -> None:
    page, experiment = page_of([*matrices(), *strides(), *pages(2.5), *pitches(4.0), *counts()])
    assert "0.500 ns per element by rows and 5.00 ns by columns, 10.0× as long" in page.result
    # With one line per element: (0.5 - 0.1) ns / 1 miss, and so on.
    assert "0.400 ns from L2, 1.00 ns from L3, 4.00 ns from memory" in page.result
    assert experiment.derived["cost of a miss served by L3, ns"] == pytest.approx(1.0)
    lines = [["0.0625", "100 %"], ["0.250", "25.0 %"], ["1.00", "6.25 %"]]
    assert [row[1:3] for row in table(page, "distance")] == lines
    told = prose(page)
    assert "With the matrix in memory, columns take 10.0× the time of rows and have 16.0× the L1 misses" in told
    assert "In memory tiles make it 10.0× as fast" in told
    assert "2.50 ns per element instead of 5.00 ns; the small pages cost 2.00× the time" in told
    assert "The power of two takes 4.00× the time. A cache puts" in told
    assert [row[2] for row in table(page, "length of a row")] == ["1.00", "0"]
    assert [block.name for block in page.blocks if isinstance(block, Picture)] == ["cache_strides", "cache_orders"]


def test_nothing_was_counted() -> None:
    page, experiment = page_of([*matrices(), *strides(), *pitches(4.0)])
    assert "misse" not in page.result
    assert not any("cost of a miss" in key for key in experiment.derived)
    assert all(row[1:3] == ["-", "-"] for row in table(page, "distance"))
    assert all(row[3:] == ["-", "-"] for row in table(page, "matrix in"))
    assert "L1 misses;" not in prose(page)


def test_sentences_follow_the_numbers() -> None:
    level = [{**record, "ns_per_element": 1.0} for record in matrices()]
    page, _ = page_of([*level, *strides(), *pages(5.0), *pitches(0.9), *counts()])
    told = prose(page)
    assert "Tiles do not make it faster in memory here" in told
    assert "Rows of a power of two cost nothing here" in told
    assert "not what makes columns slow" in told


def test_no_huge_pages_and_no_records() -> None:
    page, _ = page_of([*matrices(), *strides(), *counts()])
    assert "looked up" not in prose(page)
    page, _ = page_of([])
    assert page.result == "Nothing was measured."
    assert page.blocks == []
