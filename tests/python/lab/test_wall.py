"""The wall's page from records made by hand."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lab_samples import product  # noqa: E402

from baregrad.lab.page import Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import wall  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402

SHARES = {"baregrad": 0.9, "openblas": 0.8, "dnnl": 0.7, "numpy": 0.75}
PEAKS = {"float32": 100.0, "float64": 50.0}


def sized(group: str, name: str, shape: tuple[int, int, int], dtype: str, threads: int, rate: float) -> Record:
    m, n, k = shape
    return {**product(group, name, shape, dtype, threads, rate), "bytes": 4.0 * (m * n + n * k + m * k)}


def records(threads: list[int], names: list[str], sizes: list[int], rows: list[int]) -> list[Record]:
    found: list[Record] = [{"kind": "library", "name": "openblas", "version": "OpenBLAS 0.3"}]
    for t in threads:
        for dtype, peak in PEAKS.items():
            found.append({"kind": "ceiling", "dtype": dtype, "threads": t, "gflop_per_s": t * peak})
            for name in names:
                if name == "dnnl" and dtype == "float64":
                    continue
                rate = t * peak * SHARES[name]
                found += [sized("square", name, (n, n, n), dtype, t, rate) for n in sizes]
                found += [sized("skinny", name, (m, 1024, 1024), dtype, t, rate / 10) for m in rows]
    return found


def build(found: list[Record]) -> tuple[Page, Experiment]:
    experiment = Experiment("wall", {"kind": "header", "isa": "avx2", "quick": False}, found, True)
    return wall.build(experiment, {}), experiment


def prose(page: Page) -> str:
    return "\n".join([page.result, *(block.text for block in page.blocks if isinstance(block, Text))])


def whole() -> list[Record]:
    return records([1, 2], list(SHARES), [10, 16, 32, 64, 100, 128, 256, 512, 1000, 2000], [1, 4, 16])


def test_numbers_follow_from_the_records() -> None:
    page, experiment = build(whole())
    assert page.result == (
        "At N = 2000 on one thread baregrad reaches 90.0 % of the peak in float32 (OpenBLAS, the best of the others: "
        "80.0 %) and 90.0 % of the peak in float64 (OpenBLAS, the best of the others: 80.0 %)."
    )
    assert experiment.derived["share.numpy.2000x2000x2000.float64.2"] == 0.75
    assert experiment.derived["least_ns.10.float32"] == 2000 / 100
    names = [block.name for block in page.blocks if isinstance(block, Picture)]
    assert names == ["squares_float32", "squares_float64", "skinny_float32", "skinny_float64"]
    assert "Of 52 products baregrad is the fastest in 52." in prose(page)
    assert "Four fifths of the peak in float32 at N = 2000 on one thread or more: baregrad, OpenBLAS." in prose(page)


def test_where_ours_is_behind_is_said() -> None:
    found = whole()
    for record in found:
        if record["kind"] == "product" and record["name"] == "openblas" and (record["m"], record["threads"]) == (1, 2):
            record["median_ns"] /= 3
            record["gflop_per_s"] *= 3
    said = prose(build(found)[0])
    assert "Of 52 products baregrad is the fastest in 50." in said
    assert "furthest behind at 1 × 1024 by 1024 × 1024 in float32 on 2 threads: 2.67× the time of OpenBLAS" in said


def test_memory_traffic_of_few_rows() -> None:
    page, _ = build(whole())
    skinny = [block for block in page.blocks if isinstance(block, Table) and "GB/s" in block.headings]
    assert len(skinny) == 2
    # 1 x 1024: 2 MFLOP at 9 GFLOP/s, 4 MB in that time.
    assert skinny[0].rows[0][:4] == ["1 × 1024", "233 µs", "18.0", "9.00 %"]


def test_a_quick_run_on_one_core_without_peers() -> None:
    page, _ = build(records([1], ["baregrad"], [32, 128], [1]))
    assert page.result == (
        "At N = 128 on one thread baregrad reaches 90.0 % of the peak in float32 and 90.0 % of the peak in float64."
    )
    assert "furthest behind" not in prose(page)


def test_wrong_results_are_named() -> None:
    found = whole()
    assert "none is further off" in prose(build(found)[0])
    found[-1]["max_error"] = 1e308
    assert "**Results beyond what rounding can explain**: NumPy" in prose(build(found)[0])


def test_nothing_measured() -> None:
    assert build([])[0].result == "Nothing was measured."
