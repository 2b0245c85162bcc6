"""The page of `pages` from records made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("matplotlib")

import matplotlib.pyplot as plt

from baregrad.lab.page import Page, Picture, Table, Text
from baregrad.lab.pages import pages
from baregrad.lab.records import Experiment

MIB = 2**20
FRESH = ("std::vector", "malloc", "mmap, small pages", "mmap, huge pages", "pool")
USED = ("malloc, again", "pool, again", "arena")


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    yield
    plt.close("all")


def stretch(name: str, what: str, size: int, faults: int, ns_per_byte: float) -> dict[str, Any]:
    return {"kind": "block", "name": name, "fresh": name not in USED, "stretch": what, "bytes": size, "faults": faults,
            "ns_per_byte": ns_per_byte, "median_ns": ns_per_byte * size, "p10_ns": 0.0, "p90_ns": 0.0, "repeats": 3}


def faults_of(name: str, size: int, huge: bool, kept: int) -> int:
    if name in ("pool, again", "arena") or (name == "malloc, again" and size <= kept):
        return 0
    if huge and name in ("mmap, huge pages", "pool") and size >= 2 * MIB:
        return size // (2 * MIB)
    return size // 4096


def experiment(sizes: tuple[int, ...] = (1, 16, 256), setting: str = "madvise", kept: int = 16) -> Experiment:
    records: list[dict[str, Any]] = [{"kind": "pages", "page_bytes": 4096, "huge_pages": setting}]
    for size in (count * MIB for count in sizes):
        for name in FRESH + USED:
            faults = faults_of(name, size, setting == "madvise", kept * MIB)
            # 409.6 ns for a small page, 20 µs for a huge one, over a write of 0.05 ns per byte.
            extra = faults * (409.6 if faults >= size // 4096 else 20_000) / size
            early = name == "std::vector"
            records += [
                stretch(name, "get", size, faults if early else 0, extra if early else 0.0),
                stretch(name, "first", size, 0 if early else faults, 0.05 + (0.0 if early else extra)),
                stretch(name, "second", size, 0, 0.05),
                stretch(name, "back", size, 0, 0.001),
            ]
        records.append(stretch("arena", "prepare", size, size // (2 * MIB), 0.1))
    return Experiment("pages", {"threads": 2, "quick": False}, records, True)


def prose(page: Page) -> str:
    return " ".join([page.result, *(block.text for block in page.blocks if isinstance(block, Text)), page.lesson])


def table(page: Page) -> dict[str, list[str]]:
    (found,) = [block for block in page.blocks if isinstance(block, Table)]
    return {row[0]: row[1:] for row in found.rows}


def test_whole() -> None:
    asked = experiment()
    page = pages.build(asked, {})
    assert [block.name for block in page.blocks if isinstance(block, Picture)] == ["pages_time", "pages_faults"]
    rows = table(page)
    assert rows["malloc"] == ["65,536", "0.150", "0.0500", "3.00×", "0.00100"]
    assert rows["arena"][0] == "0"
    assert rows["std::vector"][:2] == ["65,536", "0.150"]
    text = prose(page)
    assert asked.derived[f"fault_ns/mmap, small pages/{256 * MIB}"] == pytest.approx(409.6)
    assert "410 ns per fault" in text
    assert "one fault brings 2 MiB. It takes 20.0 µs" in text
    assert "a second block of 16 MiB does not fault" in text
    assert "65,536 times again" in text
    assert "set to `madvise`" in text


def test_huge_pages_off() -> None:
    text = prose(pages.build(experiment(setting="never"), {}))
    assert "Transparent huge pages are off here" in text
    assert "one fault brings" not in text


@pytest.mark.parametrize(("kept", "said"), [(256, "up to 256 MiB does not fault"), (0, "faults like the first")])
def test_what_malloc_keeps(kept: int, said: str) -> None:
    assert said in prose(pages.build(experiment(kept=kept), {}))


def test_quick_with_explicit_huge_pages_for_the_smaller_size_only() -> None:
    asked = experiment(sizes=(1, 32))
    name = "mmap, MAP_HUGETLB"
    asked.records += [stretch(name, what, MIB, 1 if what == "first" else 0, 0.06)
                      for what in ("get", "first", "second", "back")]
    page = pages.build(asked, {})
    assert name not in table(page)
    assert "32 MiB" in page.result


def test_nothing_measured() -> None:
    assert pages.build(Experiment("pages", {"threads": 1}, [], False), {}).result == "Nothing was measured."
