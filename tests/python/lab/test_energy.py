"""The page of `energy` from records made by hand."""

import pytest

pytest.importorskip("matplotlib")

from baregrad.lab.page import Page, Picture, Table, Text  # noqa: E402
from baregrad.lab.pages import energy  # noqa: E402
from baregrad.lab.records import Experiment, Record  # noqa: E402


def energy_of(name: str, threads: int, joules: float, seconds: float) -> Record:
    return {
        "kind": "energy",
        "name": name,
        "work": "w",
        "threads": threads,
        "joules_per_call": joules,
        "least_joules_per_call": joules * 0.9,
        "most_joules_per_call": joules * 1.2,
        "seconds_per_call": seconds,
        "watts": joules / seconds,
    }


def race_of(name: str, slow: float, fast: float) -> Record:
    return {
        "kind": "race",
        "name": name,
        "slow_threads": 1,
        "fast_threads": 4,
        "slow_joules": slow,
        "fast_joules": fast,
    }


def page_of(races: list[Record]) -> Page:
    records: list[Record] = [
        {"kind": "counters", "zones": ["package-0", "dram"]},
        {"kind": "idle", "watts": 5.0},
        energy_of("product 256", 1, 0.004, 0.0002),
        energy_of("product 256", 4, 0.003, 0.0001),
        energy_of("step", 1, 0.0009, 0.00005),
        energy_of("step", 4, 2.0, 0.1),
        *races,
    ]
    return energy.build(Experiment("energy", {}, records, finished=True), {})


def prose(page: Page) -> str:
    return " ".join(block.text for block in page.blocks if isinstance(block, Text))


def test_joules_and_the_race() -> None:
    page = page_of([race_of("product 256", 0.004, 0.003), race_of("step", 1.0, 1.25)])
    assert "900 µJ on 1 thread, at 18.0 W" in page.result
    assert "took 5.00 W" in page.result
    assert "package-0, dram" in prose(page)
    assert "cheaper for product 256, and more expensive for the rest" in prose(page)
    tables = [block for block in page.blocks if isinstance(block, Table)]
    assert [row[3] for row in tables[0].rows] == ["4.00 mJ", "3.00 mJ", "900 µJ", "2.00 J"]
    assert [row[3] for row in tables[1].rows] == ["25.0 % less", "25.0 % more"]
    assert sum(isinstance(block, Picture) for block in page.blocks) == 1


@pytest.mark.parametrize(("fast", "answer"), [(0.5, "It is cheaper to hurry"), (1.5, "It is more expensive to hurry")])
def test_who_wins_the_race(fast: float, answer: str) -> None:
    assert answer in prose(page_of([race_of("step", 1.0, fast)]))


def test_on_one_thread_there_is_no_race() -> None:
    assert "Race" not in prose(page_of([])) and "hurry" not in prose(page_of([]))


def test_without_counters_there_is_no_number() -> None:
    absent: Record = {"kind": "absent", "what": "energy", "why": "this system has no '/sys/class/powercap'"}
    page = energy.build(Experiment("energy", {}, [absent], finished=True), {})
    assert "cannot be measured here, because this system has no '/sys/class/powercap'." in page.result
    assert all(isinstance(block, Text) for block in page.blocks)
    assert not any(character.isdigit() for character in page.result + prose(page) + page.lesson)
