"""The overview of a run: its numbers follow from the ladder's records, its sentences from its
numbers."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lab_samples import header  # noqa: E402

from baregrad.lab import story  # noqa: E402
from baregrad.lab.page import Page  # noqa: E402
from baregrad.lab.records import Experiment  # noqa: E402


def product(name: str, n: int, ns: float, **more: Any) -> dict[str, Any]:
    return {"kind": "product", "group": "rungs", "name": name, "n": n, "threads": 1, "median_ns": ns,
            "gflop_per_s": 2 * n**3 / ns, **more}  # fmt: skip


def ladder(naive_ns: float = 2e9, top_ns: float = 2.5e7) -> Experiment:
    """At N = 1000: a GFLOP per second, 80 of them, of a peak of 100."""
    records = [
        {"kind": "rung", "name": "naive", "title": "Naive loops"},
        {"kind": "rung", "name": "engine", "title": "The engine's own"},
        *({"kind": "ceiling", "dtype": "float32", "threads": 1, "gflop_per_s": rate} for rate in (99.0, 100.0, 98.0)),
        {"kind": "ceiling", "dtype": "float32", "threads": 2, "gflop_per_s": 200.0},
        product("naive", 10, 5e3),
        product("naive", 1000, naive_ns),
        product("engine", 1000, top_ns),
        product("engine", 2000, 1.0, group="libraries"),
    ]
    return Experiment("ladder", header("ladder"), records, finished=True, seconds=30)


def test_the_headline_is_the_ladders_foot_and_top() -> None:
    experiment = ladder()
    (said,) = story.opening({"ladder": experiment})
    for part in ["1,000 × 1,000", "takes 2.00 s: **1.00 % of its peak**", "25.0 ms: **80.0 %**, 80.0× as fast"]:
        assert part in said, part
    assert experiment.derived["story: share of the peak, naive"] == 0.01
    assert experiment.derived["story: foot over top"] == 80


def test_it_does_not_boast() -> None:
    (said,) = story.opening({"ladder": ladder(naive_ns=1e7)})
    assert "no faster than the loops here" in said


def test_without_a_ladder_there_is_no_headline() -> None:
    assert story.opening({}) == []
    empty = Experiment("ladder", header("ladder"), [], finished=False)
    assert story.opening({"ladder": empty}) == []


def test_the_story_has_every_page_and_the_way_up() -> None:
    run = {"ladder": ladder(), "energy": Experiment("energy", header("energy"), [], finished=True, seconds=2)}
    pages = {"ladder": Page("The ladder", "It was climbed."), "energy": Page("Joules", "")}
    text = story.readme(run, pages)
    for part in ["**[The ladder.](ladder.md)**", "It was climbed.", "**[Joules.](energy.md)**", "in 32.0 s",
                 "| Naive loops | 2.00 s | 1.00 | 1.00 % |  |",
                 "| The engine's own | 25.0 ms | 80.0 | 80.0 % | 80.0× |",
                 "- [energy](energy.md): Is 1 \\< 2 & so on? `baregrad lab energy --quick`"]:  # fmt: skip
        assert part in text, part
    # The text contains only derived or recorded numbers, and this sum of seconds is derived too.
    assert run["ladder"].derived["story: seconds of all experiments"] == 32
