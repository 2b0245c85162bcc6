"""The output of to_dot, rendered to SVG by Graphviz and parsed.

BAREGRAD_GRAPH_SAMPLES names the program that draws the graphs (tests/graph/samples).
"""

import os
import pathlib
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = os.environ.get(
    "BAREGRAD_GRAPH_SAMPLES", str(ROOT / "build" / "release" / "tests" / "graph_samples")
)
SVG = "{http://www.w3.org/2000/svg}"


def draw(*arguments: str | bytes) -> bytes:
    return subprocess.run(
        [SAMPLES, *arguments], check=True, stdout=subprocess.PIPE, timeout=120
    ).stdout


class Picture:
    """An SVG of Graphviz: groups of a class, each with a title and lines of text."""

    def __init__(self, dot: bytes):
        done = subprocess.run(
            ["dot", "-Tsvg"], input=dot, capture_output=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b"", done.stderr.decode()
        self.root = ElementTree.fromstring(done.stdout)

    def groups(self, kind: str) -> dict[str, ElementTree.Element]:
        found = {}
        for group in self.root.iter(f"{SVG}g"):
            if group.get("class") == kind:
                title = group.findtext(f"{SVG}title")
                assert title not in found
                found[title] = group
        return found


def lines(group: ElementTree.Element) -> list[str]:
    """The text in a group; Graphviz writes spaces as non-breaking ones."""
    return [
        "".join(text.itertext()).replace("\xa0", " ") for text in group.iter(f"{SVG}text")
    ]


def test_network():
    picture = Picture(draw("network"))
    nodes = {title: lines(group) for title, group in picture.groups("node").items()}
    texts = [" ".join(text) for text in nodes.values()]
    for expected in ["W1 float32[3,4]", "W2 float32[4,2]", "tanh float32[5,4]", "root",
                     "vanishing: below 1e-07", "exploding: above 1e+03", "NaN or infinite"]:
        assert expected in texts
    assert texts.count("matmul float32[5,4]") == 1
    assert texts.count("matmul float32[5,2]") == 1
    ops = {title for title in nodes if title.startswith("n")}
    assert ops == {f"n{i}" for i in range(15)}  # 4 leaves, 11 ops

    frames = [lines(group) for group in picture.groups("cluster").values()]
    assert sorted(frames) == [["layer 1"], ["layer 2"], ["model"], ["norm of the gradient"]]

    by_name = {text: title for title, text in zip(nodes, texts)}
    colours = {}
    for title, group in picture.groups("edge").items():
        source = title.split("->")[0]
        colours.setdefault(source, set()).add(group.find(f"{SVG}path").get("stroke").lower())
    assert colours[by_name["W1 float32[3,4]"]] == {"#d55e00"}
    assert colours[by_name["tiny float32[2]"]] == {"#0072b2"}
    assert colours[by_name["broken float32[2]"]] == {"#cc79a7"}


def test_deep():
    picture = Picture(draw("deep"))
    nodes = {title: lines(group) for title, group in picture.groups("node").items()}
    assert len(nodes) == 52
    assert nodes["more"] == ["... and 99,951 more"]
    assert len(picture.groups("edge")) == 51


@pytest.mark.parametrize(
    "text",
    [
        'quote " in',
        '"',
        "back\\slash",
        "ends in \\",
        "\\N \\G \\l \\n",
        "{brace|bar}",
        "<b>html</b>",
        "<<table>>",
        "&amp; &lt; &#65; & ;",
        "héllo 数学 😀 \u202eright to left",
        "semi; [attr=\"x\"] -> n1 }",
        "// comment /* */ # x",
        "  spaces  ",
        "%s %n",
    ],
)
def test_any_text(text: str):
    picture = Picture(draw("named", text))
    leaf = lines(picture.groups("node")["n0"])
    assert leaf == [text, "float32[1]"]
    # A slash in a label opens a frame in a frame.
    frames = [lines(group) for group in picture.groups("cluster").values()]
    assert sorted(frames) == sorted([part] for part in text.split("/") if part)


def test_lines():
    picture = Picture(draw("named", "one\ntwo\n\nfour"))
    assert lines(picture.groups("node")["n0"]) == ["one", "two", "four", "float32[1]"]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\x01\x1b[31m", b"a\xc3", b"\xed\xa0\x80"])
def test_bytes_that_are_no_text(text: bytes):
    picture = Picture(draw("named", text))
    assert "\ufffd" in lines(picture.groups("node")["n0"])[0]
