"""docs/lab: pages follow from the committed records, and every number in them is in these records.

BAREGRAD_LAB_DOCS names another folder to check, before it is committed.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from docs_numbers import Known, unknown_numbers  # noqa: E402
from lab_samples import END, RECORDS, fake_page, header, sample_page, write_run  # noqa: E402

from baregrad.lab.docs import without_paths, write_docs  # noqa: E402
from baregrad.lab.records import ORDER  # noqa: E402

DOCS = pathlib.Path(os.environ.get("BAREGRAD_LAB_DOCS", pathlib.Path(__file__).resolve().parents[3] / "docs" / "lab"))
MOST_BYTES_OF_A_PICTURE = 150_000


def read_records(path: pathlib.Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def known_to(folder: pathlib.Path, page: str) -> Known:
    """The records of a page: those of its experiment and derived values; for the overview, all."""
    names = ORDER if page == "README" else (page,)
    records = read_records(folder / "data" / "derived.jsonl")
    for name in names:
        records += read_records(folder / "data" / f"{name}.jsonl")
    return Known(records)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Writes docs/lab again from its own records."""
    assert (DOCS / "data").is_dir(), "docs/lab is missing: python -m baregrad.lab docs RUN docs/lab"
    folder = tmp_path_factory.mktemp("docs")
    write_docs(DOCS / "data", folder)
    return folder


class TestCommitted:
    def test_pages_follow_from_the_records(self, again: pathlib.Path) -> None:
        for name in ("README", *ORDER):
            committed, written = ((folder / f"{name}.md").read_text(encoding="utf-8") for folder in (DOCS, again))
            assert committed == written
        for path in (DOCS / "data").iterdir():
            assert path.read_bytes() == (again / "data" / path.name).read_bytes(), path.name

    def test_pictures_follow_from_the_records(self, again: pathlib.Path) -> None:
        committed = {path.name: path for path in (DOCS / "pictures").iterdir()}
        drawn = {path.name: path for path in (again / "pictures").iterdir()}
        assert set(committed) == set(drawn)
        for name, path in committed.items():
            assert_same_drawing(path.read_text(encoding="utf-8"), drawn[name].read_text(encoding="utf-8"), name)
            assert path.stat().st_size < MOST_BYTES_OF_A_PICTURE, name

    @pytest.mark.parametrize("page", ["README", *ORDER])
    def test_every_number_stands_in_a_record(self, page: str) -> None:
        markdown = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        assert unknown_numbers(markdown, known_to(DOCS, page)) == []

    def test_links_lead_somewhere(self) -> None:
        for path in (DOCS / f"{name}.md" for name in ("README", *ORDER)):
            for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
                assert (DOCS / target).exists(), f"{path.name}: {target}"


def assert_same_drawing(one: str, other: str, name: str) -> None:
    """Equal except for the last digits of coordinates, which depend on the C library, and names
    made from them."""
    parts = [re.split(r"(-?\d+\.?\d*)", re.sub(r"\b[a-z][0-9a-f]{10}\b", "id", text)) for text in (one, other)]
    assert parts[0][::2] == parts[1][::2], name
    for a, b in zip(parts[0][1::2], parts[1][1::2], strict=True):
        assert float(a) == pytest.approx(float(b), abs=0.02), name


@pytest.fixture
def docs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Docs of a hand-made run of one experiment."""
    fake_page(monkeypatch, "energy", sample_page)
    write_run(tmp_path / "run", "energy", [header("energy"), *RECORDS, END])
    write_docs(tmp_path / "run", tmp_path / "docs")
    return tmp_path / "docs"


class TestGenerator:
    def test_all_files(self, docs: pathlib.Path) -> None:
        names = sorted(str(path.relative_to(docs)) for path in docs.rglob("*") if path.is_file())
        assert names == [
            "README.md",
            "data/derived.jsonl",
            "data/energy.jsonl",
            "energy.md",
            "pictures/energy-squares.svg",
        ]

    def test_a_page_says_everything(self, docs: pathlib.Path) -> None:
        page = (docs / "energy.md").read_text(encoding="utf-8")
        for said in [r"# A sample \| of \<pages\>", "*Is 1 \\< 2 & so on?*", "> **1** was seen, 7.25 times.",
                     r"- **Method**: By \<looking\>.", "- **Command**: `baregrad lab energy --quick`", "## A & B",
                     r"and `x<y>` and \*stars\* stay \[as they are\](nowhere).", "(pictures/energy-squares.svg)",
                     "| who | how \\<much\\> |\n|---|---:|\n| a\\|b | 1,234 |", "```cpp\nif (a < b) go();\n```",
                     r"## What it teaches", r"Do not \<trust\> it.", r"- A \<warm\> day",
                     "- Joules: Meter is not there.", "[energy.jsonl](data/energy.jsonl)"]:  # fmt: skip
            assert said in page, said
        story = (docs / "README.md").read_text(encoding="utf-8")
        assert r"[A sample \| of \<pages\>.](energy.md)" in story

    def test_written_again_from_its_own_records(self, docs: pathlib.Path) -> None:
        before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
        (docs / "pictures" / "energy-stale.svg").write_text("<svg/>")
        write_docs(docs / "data", docs)
        assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == before

    def test_files_follow_the_repositorys_rules(self, docs: pathlib.Path) -> None:
        for path in docs.rglob("*"):
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                assert text.endswith("\n") and not re.search(r"[ \t]$", text, flags=re.MULTILINE), path.name

    def test_unfinished_runs_are_refused(self, tmp_path: pathlib.Path) -> None:
        write_run(tmp_path / "run", "energy", [header("energy"), *RECORDS])
        with pytest.raises(ValueError, match="not finished: energy"):
            write_docs(tmp_path / "run", tmp_path / "docs")
        assert not (tmp_path / "docs").exists()

    def test_machine_paths_are_cut(self) -> None:
        record = {"a": ["/opt/x/bin/python3 failed: (/tmp/y/z.so)", 1], "b": "/sys/class/powercap and GB/s, a/b/c"}
        assert without_paths(record) == {"a": ["python3 failed: (z.so)", 1], "b": "/sys/class/powercap and GB/s, a/b/c"}


class TestNumbers:
    KNOWN = Known(
        [{"ns": 12345.6, "share": 0.9312, "n": 2000}, {"bytes": 3 * 2**20, "why": "GCC 12.2.0", "rate": 87.65}]
    )

    @pytest.mark.parametrize(
        "markdown",
        [
            "12,346 ns or 12.3 µs or 0.0123 ms, and 93.1 %.",
            "N = 2000, or 2,000; 3 MiB by GCC 12.2.0; 87.7 GFLOP/s.",
            "`17` and [a link](17.md) and L1, float32, AVX-512, p90, 2³².",
            "```\n17\n```",
            "| time, µs | share, % |\n|---|---:|\n| 12.3 | 93 |\n",
            "Percent of the peak.\n\n| N | a |\n|---|---:|\n| 2000 | 93 |\n",
            r"\(2000\) \| 2000",
        ],
    )
    def test_true_pages(self, markdown: str) -> None:
        assert unknown_numbers(markdown, self.KNOWN) == []

    @pytest.mark.parametrize(
        ("markdown", "wrong"),
        [
            ("12.4 µs", "12.4 µs"),
            ("12.3 ms", "12.3 ms"),
            ("It is 17.", "17"),
            ("93.2 %", "93.2 %"),
            ("2,001", "2,001"),
            ("GCC 12.2.1", "12.2.1"),
            ("| time, ms |\n|---|\n| 12.3 |", "12.3"),
            ("| µs | ms |\n|---|---|\n| 12.3 | 12.3 |", "12.3"),
        ],
    )
    def test_wrong_pages(self, markdown: str, wrong: str) -> None:
        found = unknown_numbers(markdown, self.KNOWN)
        assert len(found) == 1 and found[0].startswith(repr(wrong)), found
