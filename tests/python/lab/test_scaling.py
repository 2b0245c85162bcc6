"""The page on threads, from records made by hand."""

from __future__ import annotations

import pytest

from baregrad.lab.page import Page, Picture, Table, Text
from baregrad.lab.pages import scaling
from baregrad.lab.records import Experiment, Record


def point(name: str, threads: int, speedup: float, allowed: float, bound_by: str) -> Record:
    ns = 1e6 / speedup
    return {
        "kind": "scaling",
        "name": name,
        "n": 1024,
        "dtype": "float32",
        "bound_by": bound_by,
        "threads": threads,
        "median_ns": ns,
        "p10_ns": 0.9 * ns,
        "p90_ns": 1.1 * ns,
        "repeats": 20,
        "speedup": speedup,
        "gflop_per_s": 100 * speedup,
        "gb_per_s": 10 * speedup,
        "ceiling": "a loop",
        "ceiling_per_s": 1e9 * allowed,
        "max_error": 1e-7,
        "same_bits": True,
    }


def fit(name: str, fraction: float, low: float, high: float, points: int) -> Record:
    return {
        "kind": "amdahl",
        "name": name,
        "serial_fraction": fraction,
        "low": low,
        "high": high,
        "confidence": 0.95,
        "one_thread_ns": 1e6,
        "misfit": 0.01,
        "points": points,
    }


def measured(counts: list[int]) -> Experiment:
    records = []
    for threads in counts:
        records.append(point("matmul", threads, 0.9 * threads if threads > 1 else 1.0, threads, "arithmetic"))
        records.append(point("sum", threads, 1.25 if threads > 1 else 1.0, 1.25 if threads > 1 else 1.0, "memory"))
    if len(counts) > 1:
        records.append(fit("matmul", 0.1, 0.08, 0.12, len(counts)))
        records.append(fit("sum", 0.6, 0.58, 0.62, len(counts)))
    return Experiment("scaling", {"machine": {}}, records, True)


def prose(page: Page) -> str:
    return "\n".join([page.result, *(block.text for block in page.blocks if isinstance(block, Text))])


def fits_of(page: Page) -> Table:
    return next(block for block in page.blocks if isinstance(block, Table) and "Serial fraction" in block.headings)


def test_two_threads_and_what_two_points_cannot_tell() -> None:
    experiment = measured([1, 2])
    page = scaling.build(experiment, {})
    assert page.result == "On 2 threads instead of one: `matmul` 1.80×, `sum` 1.25×."
    assert "not a test of the law" in prose(page)
    assert fits_of(page).rows == [
        ["matmul", "10.0 %", "8.00 % to 12.0 %", "10.0×"],
        ["sum", "60.0 %", "58.0 % to 62.0 %", "1.67×"],
    ]
    assert experiment.derived["ceiling speedup matmul 2"] == 2
    assert experiment.derived["share of allowed matmul"] == pytest.approx(0.9)
    assert [block.name for block in page.blocks if isinstance(block, Picture)] == ["speedup", "allowed"]
    assert "interval is wide" not in prose(page)


def test_many_threads_test_the_law() -> None:
    page = scaling.build(measured([1, 2, 4, 8, 16]), {})
    assert "not a test of the law" not in prose(page)
    assert fits_of(page).headings[-1] == "Law off by"
    assert all(len(row) == len(fits_of(page).headings) for row in fits_of(page).rows)


def test_one_thread_has_nothing_to_scale() -> None:
    page = scaling.build(measured([1]), {})
    assert "nothing to scale" in page.result
    assert not any(isinstance(block, Picture) for block in page.blocks)
    assert "same bits" not in prose(page)


def test_what_is_odd_is_said() -> None:
    experiment = measured([1, 2])
    experiment.of("scaling", name="sum", threads=2)[0]["same_bits"] = False
    experiment.of("amdahl", name="sum")[0].update(serial_fraction=-0.2, low=-0.5, high=0.3)
    told = prose(scaling.build(experiment, {}))
    assert "Other bits than on one thread came from `sum` on 2." in told
    assert "A negative fraction" in told
    assert "interval is wide for `sum`:" in told
    assert fits_of(scaling.build(experiment, {})).rows[1][3] == "none"


def test_nothing_measured() -> None:
    assert scaling.build(Experiment("scaling", {}, [], True), {}).result == "Nothing was measured."
