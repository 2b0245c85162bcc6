"""The ladder's page from records made by hand."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lab_samples import product  # noqa: E402

from baregrad.lab.page import Heading, Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import ladder  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402

# GFLOP/s of each rung, for every size: factors are easy to see.
RATES = {
    "naive": 1.0,
    "reordered": 5.0,
    "tiled": 5.0,
    "unrolled": 10.0,
    "simd": 20.0,
    "register_blocked": 64.0,
    "packed": 60.0,
    "engine": 80.0,
}
WAYS = {"pthreads": 100.0, "openmp": 120.0, "pool": 150.0, "baregrad": 160.0}
LIBRARIES = {"baregrad": 80.0, "openblas": 60.0, "numpy": 50.0}


def square(group: str, name: str, n: int, threads: int, rate: float) -> Record:
    return product(group, name, (n, n, n), "float32", threads, rate)


def introduction() -> list[Record]:
    return [
        {"kind": "rung", "name": name, "title": f"the {name} one", "change": "", "file": f"{name}.cpp", "scalar": True}
        for name in RATES
    ]


def ceilings(threads: list[int]) -> list[Record]:
    # The first record of a run may have been disturbed: the best one counts.
    return [
        {"kind": "ceiling", "dtype": "float32", "threads": t, "gflop_per_s": t * rate}
        for t in threads
        for rate in (70, 100)
    ]


def rungs(sizes: list[int]) -> list[Record]:
    return [square("rungs", name, n, 1, rate) for n in sizes for name, rate in RATES.items()]


def counts(n: int, source: str = "callgrind") -> list[Record]:
    found: list[Record] = [{"kind": "counter", "source": source}]
    for step, name in enumerate(RATES):
        found.append(
            {
                "kind": "count",
                "name": f"rung:{name}",
                "size": n,
                "source": source,
                "instructions": 8.0 * n**3 / 2**step,
                "loads": 2.0 * n**3,
                "stores": 1.0 * n**3,
                "branches": 1.0 * n**3,
                "l1_load_misses": 0.5 * n**3,
                "l1_store_misses": 0.25 * n**3,
            }
        )
    return found


def whole(threads: list[int]) -> list[Record]:
    sizes = [10, 16, 32, 64, 100, 128, 192, 256, 512, 1000, 1024, 2000]
    found = introduction() + ceilings(threads) + rungs(sizes) + counts(192)
    if len(threads) > 1:
        found += [square("threads", name, n, 2, rate) for n in (64, 2000) for name, rate in WAYS.items()]
    for t in threads:
        found += [square("libraries", name, n, t, t * rate) for n in (10, 2000) for name, rate in LIBRARIES.items()]
    found += [{"kind": "library", "name": "openblas", "version": "OpenBLAS 0.3"}]
    return found


def build(records: list[Record], isa: str = "avx512") -> tuple[Page, Experiment]:
    experiment = Experiment("ladder", {"kind": "header", "isa": isa, "quick": False}, records, True)
    return ladder.build(experiment, {}), experiment


def prose(page: Page) -> str:
    return "\n".join([page.result, *(block.text for block in page.blocks if isinstance(block, Text | Heading))])


def said_in_panel(page: Page, title: str) -> list[str]:
    """The labels beside the bars of a panel of the picture of counts."""
    (picture,) = [block for block in page.blocks if isinstance(block, Picture) and block.name == "counts"]
    (axes,) = [axes for axes in picture.figure.axes if axes.get_title() == title]
    return [words.get_text() for words in axes.texts]


def pictures(page: Page) -> list[str]:
    return [block.name for block in page.blocks if isinstance(block, Picture)]


def table(page: Page, heading: str) -> Table:
    return next(block for block in page.blocks if isinstance(block, Table) and heading in block.headings)


def test_numbers_follow_from_the_records() -> None:
    page, experiment = build(whole([1, 2]))
    assert page.result == (
        "At N = 2000 on one thread the engine's product is 80.0× as fast as the naive loop; the rung that keeps a "
        "block of c in registers reaches 64.0×. From 1.00 % to 80.0 % of the multiply-add peak."
    )
    assert experiment.derived["share.rungs.engine.2000.1"] == 0.8
    assert experiment.derived["ratio.rungs.unrolled.simd.2000.1"] == pytest.approx(2)
    assert experiment.derived["per_multiply_add.l1_misses.naive"] == 0.75
    assert experiment.derived["bytes_per_multiply_add.naive"] == 48
    assert pictures(page) == ["rungs", "counts", "threads", "libraries"]


def test_a_rung_that_brings_nothing_is_not_praised() -> None:
    page, _ = build(whole([1, 2]))
    said = prose(page)
    assert "**reordered** is 5.00× as fast as naive with 2.00× fewer instructions." in said
    assert "**tiled** is as fast as reordered" in said
    assert "At N = 2000 its rate is 1.00× that of reordered." in said
    assert "**packed** is 1.07× slower than register-blocked" in said


def test_what_the_simulation_cannot_count_is_left_out_and_said() -> None:
    page, _ = build(whole([1, 2]))
    assert "knows no AVX-512" in prose(page)
    row = next(row for row in table(page, "instructions").rows if row[0] == "simd")
    assert row[3] == "–"
    assert said_in_panel(page, "loads") == ["not counted"]
    assert said_in_panel(page, "stores") == []
    page, _ = build(whole([1, 2]), isa="avx2")
    assert "AVX-512" not in prose(page)
    page, _ = build(whole([1, 2]), isa="sse4")
    row = next(row for row in table(page, "instructions").rows if row[0] == "simd")
    assert row[3] == "2.00"


def test_hardware_counters_need_no_caveat() -> None:
    found = [record for record in whole([1, 2]) if record["kind"] not in ("count", "counter")]
    found += counts(192, "hardware")
    for record in found:
        record.pop("stores", None)  # not every processor counts them
    page, _ = build(found)
    assert "The processor's own counters" in prose(page)
    assert "Callgrind" not in prose(page)


def test_the_power_of_two_is_told_as_it_was_seen() -> None:
    found = whole([1])
    assert "No rung lost" in prose(build(found)[0])
    for record in found:
        if record["kind"] == "product" and record["n"] == 1024 and record["name"] == "naive":
            record["gflop_per_s"] = 0.25
    assert "naive keeps 25.0 % of its rate at N = 1000" in prose(build(found)[0])


def test_who_is_ahead_of_the_libraries() -> None:
    found = whole([1, 2])
    assert "baregrad does 160 GFLOP/s, against 120 of OpenBLAS" in prose(build(found)[0])
    for record in found:
        if record["kind"] == "product" and record["name"] == "openblas":
            record["gflop_per_s"] *= 3
            record["median_ns"] /= 3
    assert "baregrad does 160 GFLOP/s, behind 360 of OpenBLAS" in prose(build(found)[0])


def test_wrong_results_are_named() -> None:
    found = whole([1])
    assert "All results are products" in prose(build(found)[0])
    found[-2]["max_error"] = 1e308
    assert "**Results beyond what rounding can explain**: NumPy" in prose(build(found)[0])


def test_one_core_no_counters_and_no_libraries() -> None:
    page, _ = build(introduction() + ceilings([1]) + rungs([16, 64]))
    assert pictures(page) == ["rungs"]
    assert "Threads" not in prose(page)
    found = introduction() + rungs([16, 64]) + [{"kind": "counter", "source": "none"}]
    assert "peak" not in build(found)[0].result


def test_nothing_measured() -> None:
    assert build([])[0].result == "Nothing was measured."
