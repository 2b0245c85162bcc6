"""The page of `flags` from records made by hand."""

import pytest

pytest.importorskip("matplotlib")

from baregrad.lab.page import Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import flags  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402

MACHINE_FLAGS = ("-O0", "-O3", "-Ofast", "-O3 -march=native")


def record_of(rung: str, name: str, ms: float, **fields: object) -> Record:
    return {
        "kind": "build",
        "rung": rung,
        "flags": name,
        "n": 100,
        "flops": 2e6,
        "median_ns": ms * 1e6,
        "p10_ns": ms * 0.9e6,
        "p90_ns": ms * 1.2e6,
        "gflop_per_s": 2 / ms,
        "max_error": 2.0**-23,
        "elements": 10000,
        **fields,
    }


def code(bits: int = 32, fused: int = 0) -> Record:
    packed = {f"packed{each}_instructions": 3 if each == bits else 0 for each in (128, 256, 512)}
    counts = {"scalar_instructions": 7, "fused_instructions": fused, "widest_bits": bits}
    return {"code_bytes": 200 + bits, **counts, **packed}


def same(changed: int = 0) -> Record:
    return {"changed_elements": changed, "max_ulps": 40 * changed}


def promises(name: str, breaks: bool) -> Record:
    return {
        "kind": "promises",
        "flags": name,
        "numbers": 1024,
        "compensated_sum": 1.0 if breaks else 1.00003,
        "true_sum": 1.00003,
        "nans_found": 0 if breaks else 1024,
        "denormals_kept": 0 if breaks else 1024,
        "flushes_denormals": breaks,
    }


def whole() -> Experiment:
    records: list[Record] = [
        {"kind": "compiler", "program": "c++", "version": "c++ 99.1"},
        {"kind": "peak", "gflop_per_s": 80.0},
    ]
    for rung, slow, native in (("naive", 8.0, 10), ("reordered", 6.0, 60)):
        records += [
            record_of(rung, "-O0", slow, **code(), **same()),
            record_of(rung, "-O3", slow / 4, **code(128), **same()),
            record_of(rung, "-Ofast", slow / 8, **code(128), **(same(2500) | {"max_error": 2.0**-24})),
            record_of(rung, "-O3 -march=native", slow / native, **code(512, fused=3), **same(5000)),
            record_of(rung, "this program", slow / 4, **same()),
        ]
    records += [promises(name, name == "-Ofast") for name in MACHINE_FLAGS]
    return Experiment("flags", {}, records, finished=True)


def prose(page: Page) -> str:
    return " ".join(block.text for block in page.blocks if isinstance(block, Text))


def table_with(page: Page, words: str) -> Table:
    return next(block for block in page.blocks if isinstance(block, Table) and words in block.caption)


def test_a_whole_run_is_told() -> None:
    experiment = whole()
    page = flags.build(experiment, {"flags": experiment})
    assert "up to 60.0× faster" in page.result
    assert "the naive loop only 10.0× (`-O3 -march=native`)" in page.result
    assert "25.0 % of what one core" in page.result  # 2 / (6 / 60) of 80
    assert experiment.derived["gain/reordered/-Ofast"] == 8
    shares = [row[1] for row in table_with(page, "Share of the elements").rows]
    assert shares == ["none (2.00)", "none (2.00)", "25.0 % (1.00)", "50.0 % (2.00)", "none (2.00)"]
    assert table_with(page, "Size of a rung").rows[3][2] == "712 B: 7 scalar + 3 × 512 bit, 3 fused"
    text = prose(page)
    assert "`-O3` is the first that has vectors of 128 bits" in text
    assert "the vectors grow to 512 bits" in text
    assert "200,000 floats away" in text
    assert "in 2 of the 4 builds" in text
    assert "`isnan` finds nothing" in text
    assert "crtfastmath" in text and "restores it" in text
    assert sum(isinstance(block, Picture) for block in page.blocks) == 1


def test_a_compiler_that_does_not_flush_is_not_blamed() -> None:
    experiment = whole()
    for record in experiment.of("promises"):
        record["flushes_denormals"] = False
    text = prose(flags.build(experiment, {}))
    assert "left the processor's control register (MXCSR) as it was" in text
    assert "puts it back" not in text


def test_a_naive_loop_that_gains_most_is_not_told_as_the_exception() -> None:
    experiment = whole()
    experiment.records = [record for record in experiment.records if record.get("rung") != "reordered"]
    assert "naive loop only" not in flags.build(experiment, {}).result


def test_no_bits_changed() -> None:
    experiment = whole()
    for record in experiment.of("build"):
        record.update(same())
    text = prose(flags.build(experiment, {}))
    assert "No set of flags changed a single bit" in text
    assert "fused multiply-add rounds once" not in text


def test_without_objdump_there_are_sizes_and_no_widths() -> None:
    experiment = whole()
    for record in experiment.of("build"):
        record.pop("widest_bits", None)
    page = flags.build(experiment, {})
    table = table_with(page, "Size of a rung's code.")
    assert table.rows[0][1] == "232 B"
    assert "instructions" not in table.caption
    assert "vectors of 128 bits" not in prose(page)


def test_without_a_compiler_there_are_the_programs_own_times() -> None:
    own = [record_of(rung, "this program", 2.0) for rung in ("naive", "tiled")]
    experiment = Experiment("flags", {}, own, finished=True)
    page = flags.build(experiment, {})
    assert "only this program's own times" in page.result
    assert page.blocks[2].rows == [["this program", "2.00 ms", "2.00 ms"]]  # type: ignore[union-attr]
    assert len(page.blocks) == 3  # there is nothing to compare bits, sizes or promises with


def test_nothing_at_all() -> None:
    assert flags.build(Experiment("flags", {}, [], finished=True), {}).blocks == []
