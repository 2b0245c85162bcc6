"""The roofline's page and the placing of labels, from records made by hand."""

from __future__ import annotations

import itertools

import pytest

from baregrad.lab import labels
from baregrad.lab.page import Page, Picture, Table, Text
from baregrad.lab.pages import roofline
from baregrad.lab.records import Experiment, Record


def slope(name: str, rate: float) -> Record:
    return {
        "kind": "roof",
        "name": name,
        "bytes": 1024,
        "read_gb_per_s": rate,
        "copy_gb_per_s": 0.9 * rate,
        "add_gb_per_s": 0.8 * rate,
        "gb_per_s": rate,
    }


ROOFS: list[Record] = [
    {"kind": "roof", "name": "multiply-adds", "gflop_per_s": 100.0},
    slope("L1", 400.0),
    slope("L2", 100.0),
    slope("memory", 10.0),
]


def point(kind: str, name: str, level: str, intensity: float, rate: float) -> Record:
    return {
        "kind": kind,
        "name": name,
        "label": name,
        "title": f"what {name} is",
        "n": 500,
        "shape": "[8,8]",
        "level": level,
        "flops": 1000,
        "bytes": int(1000 / intensity),
        "flop_per_byte": intensity,
        "median_ns": 1000 / rate,
        "gflop_per_s": rate,
        "gb_per_s": rate / intensity,
        "max_error": 1e-7,
    }


KERNELS = [
    point("kernel", "add", "memory", 0.1, 0.9),
    point("kernel", "exp", "L2", 0.125, 5.0),
    point("kernel", "matmul", "L2", 50.0, 90.0),
]
RUNGS = [point("rung", "naive", "L2", 80.0, 1.0), point("rung", "packed", "L2", 80.0, 80.0)]


def measured(records: list[Record]) -> Experiment:
    return Experiment("roofline", {"machine": {}}, records, True)


def prose(page: Page) -> str:
    return "\n".join([page.result, *(block.text for block in page.blocks if isinstance(block, Text))])


def table(page: Page, heading: str) -> Table:
    return next(block for block in page.blocks if isinstance(block, Table) and block.headings[0] == heading)


def test_each_point_is_compared_with_the_lower_roof_of_its_level() -> None:
    experiment = measured(ROOFS + KERNELS + RUNGS)
    page = roofline.build(experiment, {})
    assert experiment.derived["share add"] == pytest.approx(0.9)
    assert experiment.derived["share exp"] == pytest.approx(5 / 12.5)
    assert experiment.derived["share matmul"] == pytest.approx(0.9)
    assert [row[6] for row in table(page, "Kernel").rows] == ["memory, 1.00", "L2, 12.5", "arithmetic, 100"]
    assert experiment.derived["ridge memory"] == 10
    assert "2 of 3 kernels reach 70.0 %" in page.result
    assert "20.0 for `exp`" in prose(page)
    assert "Above the roof" not in prose(page)


def test_rungs_and_their_gains() -> None:
    experiment = measured(ROOFS + KERNELS + RUNGS)
    page = roofline.build(experiment, {})
    assert [row[5] for row in table(page, "Rung").rows] == ["", "80.0×"]
    assert "`naive` reaches 1.00 % of its roof" in prose(page)
    assert [block.name for block in page.blocks if isinstance(block, Picture)] == ["kernels", "rungs"]


def test_points_above_their_roof_are_named() -> None:
    page = roofline.build(measured(ROOFS + [point("kernel", "add", "memory", 0.1, 1.5)]), {})
    assert "Above the roof drawn for it: `add`." in prose(page)


def test_who_writes_where_it_reads_has_a_roof_of_its_own() -> None:
    roofs = [roof | {"update_gb_per_s": 2 * roof["gb_per_s"]} if "gb_per_s" in roof else roof for roof in ROOFS]
    step = {**point("kernel", "AdamW", "memory", 0.5, 8.0), "in_place": True}
    experiment = measured([*roofs, *({**kernel, "in_place": False} for kernel in KERNELS), step])
    page = roofline.build(experiment, {})
    assert experiment.derived["share AdamW"] == pytest.approx(0.8)
    assert experiment.derived["share add"] == pytest.approx(0.9)
    assert table(page, "Kernel").rows[3][6] == "memory, in place, 10.0"
    assert table(page, "Roof").headings[5] == "Update, GB/s"
    assert table(page, "Roof").rows[1][5] == "800"
    (picture,) = [block for block in page.blocks if isinstance(block, Picture)]
    drawn = [line.get_label() for line in picture.figure.axes[1].lines]
    assert drawn == ["memory, 10.0 GB/s", "memory, in place, 20.0 GB/s", "multiply-adds, 100 GFLOP/s"]
    # Older records: the same roof for all kernels.
    old = measured([*ROOFS, step])
    assert "Above the roof drawn for it: `AdamW`." in prose(roofline.build(old, {}))
    assert old.derived["share AdamW"] == pytest.approx(1.6)


def test_what_only_moves_is_compared_by_its_bytes() -> None:
    copy = {**point("kernel", "copy", "memory", 1.0, 1.0), "flops": 0, "bytes": 16000, "flop_per_byte": 0.0}
    copy |= {"gflop_per_s": 0.0, "gb_per_s": 8.0, "median_ns": 2000.0}
    slow = {**copy, "name": "sort", "label": "sort", "level": "L2", "gb_per_s": 2.0}
    experiment = measured(ROOFS + KERNELS + [copy, slow])
    page = roofline.build(experiment, {})
    assert experiment.derived["share copy"] == pytest.approx(0.8)
    assert experiment.derived["share sort"] == pytest.approx(0.02)
    tables = [block for block in page.blocks if isinstance(block, Table) and block.headings[0] == "Kernel"]
    assert [row[0] for row in tables[0].rows] == ["`add`", "`exp`", "`matmul`"]
    assert [row[3:] for row in tables[1].rows] == [["8.00", "memory, 10.0", "80.0 %"], ["2.00", "L2, 100", "2.00 %"]]
    assert "3 of 5 kernels reach 70.0 %" in page.result
    assert "1 of 3 points are under the flat roof" in prose(page)


def test_one_panel_for_the_caches_and_one_for_memory() -> None:
    page = roofline.build(measured(ROOFS + KERNELS), {})
    (picture,) = [block for block in page.blocks if isinstance(block, Picture)]
    caches, memory = picture.figure.axes
    assert {child.get_text() for child in caches.texts} == {"exp", "matmul"}
    assert {child.get_text() for child in memory.texts} == {"add"}


def test_without_rungs_and_without_anything() -> None:
    page = roofline.build(measured(ROOFS + KERNELS), {})
    assert not any(isinstance(block, Picture) and block.name == "rungs" for block in page.blocks)
    assert roofline.build(measured([]), {}).result == "Nothing was measured."


def test_labels_keep_off_each_other_and_the_points() -> None:
    room = labels.Box(0, 0, 400, 300)
    points = [(100.0 + 3 * (i % 4), 100.0 + 9 * (i // 4)) for i in range(20)]
    texts = [f"kernel {i}" for i in range(20)]
    places = labels.choose_places(points, texts, room)
    boxes = [labels._text_box(text, *place) for text, place in zip(texts, places, strict=True)]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))
    assert all(box.inside(room) for box in boxes)
    assert not any(box.left < x < box.right and box.bottom < y < box.top for box in boxes for x, y in points)


def test_a_label_keeps_off_a_line_where_it_can() -> None:
    room = labels.Box(0, 0, 400, 300)
    (place,) = labels.choose_places([(200.0, 150.0)], ["a point"], room, [((0.0, 150.0), (400.0, 150.0))])
    box = labels._text_box("a point", *place)
    assert not box.bottom < 150 < box.top
    # A label's line does not cross the text beside it.
    ends = labels.choose_places([(100.0, 100.0), (100.0, 104.0)], ["a long name", "b"], room)
    first = labels._text_box("a long name", *ends[0])
    assert not labels._any_meet(labels._along((100.0, 104.0), ends[1]), [first])
    # No place beside the line: across it, but inside the axes.
    low = labels.Box(0, 140, 400, 160)
    (place,) = labels.choose_places([(200.0, 150.0)], ["a point"], low, [((0.0, 150.0), (400.0, 150.0))])
    assert labels._text_box("a point", *place).inside(low)
