"""Tests of draw_rooms.py: the arrows that it keeps, and that docs/rooms.svg is up to date."""

import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

import check_layers
import draw_rooms

SVG = "{http://www.w3.org/2000/svg}"


class DrawRoomsTest(unittest.TestCase):
    def test_the_committed_picture_is_up_to_date(self):
        committed = (draw_rooms.ROOT / draw_rooms.PICTURE).read_text(encoding="utf-8")
        self.assertEqual(committed, draw_rooms.picture(), "run tests/tools/draw_rooms.py")

    def test_graph_of_includes(self):
        files = {
            "src/core/a.h": "",
            "src/parallel/a.cpp": '#include "core/a.h"\n// #include "ops/a.h"\n',
            "src/ops/a.h": '#include "core/a.h"\n#include "ops/b.h"\n',
            "src/ops/b.h": "#include <vector>\n",
        }
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                (pathlib.Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / path).write_text(text)
            graph = draw_rooms.include_graph(pathlib.Path(folder), sorted(files))
        self.assertEqual(graph, {"core": set(), "parallel": {"core"}, "ops": {"core"}})

    def test_arrows_that_follow_from_others_are_left_out(self):
        graph = {"core": set(), "parallel": {"core"}, "ops": {"core", "parallel"},
                 "cli": {"core", "bench"}, "bench": {"ops", "cli"}}
        self.assertEqual(draw_rooms.thinned(graph), {
            "core": set(), "parallel": {"core"}, "ops": {"parallel"}, "cli": {"core", "bench"},
            "bench": {"ops", "cli"}})

    def test_every_room_has_a_box_inside_the_picture_and_its_text_inside_the_box(self):
        root = xml.etree.ElementTree.fromstring(draw_rooms.picture())
        boxes = [{name: float(box.get(name)) for name in ("x", "y", "width", "height")}
                 for box in root.iter(f"{SVG}rect")]
        titles = {text.text for text in root.iter(f"{SVG}text") if text.get("font-weight") == "bold"}
        files = draw_rooms.list_files()
        self.assertEqual(titles, {room for room in map(check_layers.room_of, files) if room})
        self.assertEqual(len(boxes), len(titles))
        for box in boxes:
            self.assertGreaterEqual(box["x"], 0)
            self.assertLessEqual(box["x"] + box["width"], float(root.get("width")))
            self.assertLessEqual(box["y"] + box["height"], float(root.get("height")))
        for one in boxes:
            for other in boxes:
                apart = (one is other or one["y"] != other["y"] or one["x"] + one["width"] < other["x"]
                         or other["x"] + other["width"] < one["x"])
                self.assertTrue(apart, (one, other))
        for text in root.iter(f"{SVG}text"):
            if not text.get("font-weight"):
                x, length = float(text.get("x")), 5.6 * len(text.text)
                self.assertTrue(any(box["x"] < x - length / 2 and x + length / 2 < box["x"] + box["width"]
                                    for box in boxes), text.text)

    def test_no_arrow_passes_behind_a_box(self):
        root = xml.etree.ElementTree.fromstring(draw_rooms.picture())
        boxes = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in root.iter(f"{SVG}rect")]
        arrows = root.find(f"{SVG}g")
        self.assertGreater(len(arrows), 10)
        for arrow in arrows:
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", arrow.get("d"))]
            points = list(zip(numbers[::2], numbers[1::2]))
            for (x, y), (to_x, to_y) in zip(points, points[1:]):
                for left, top, width, height in boxes:
                    self.assertFalse(
                        min(x, to_x) < left + width - 1 and max(x, to_x) > left + 1
                        and min(y, to_y) < top + height - 1 and max(y, to_y) > top + 1, arrow.get("d"))


if __name__ == "__main__":
    unittest.main()
