"""The report of `baregrad lab`: records in, one HTML page and pictures out."""

from __future__ import annotations

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lab_samples import END, RECORDS, fake_page, failing_page, header, sample_page, write_run  # noqa: E402

from baregrad.lab import text, to_html, to_markdown  # noqa: E402
from baregrad.lab.files import write_file  # noqa: E402
from baregrad.lab.pictures import shrink_svg  # noqa: E402
from baregrad.lab.records import ORDER, load_experiment, load_run  # noqa: E402
from baregrad.lab.report import FAILED, write_report  # noqa: E402


class TestRecords:
    def test_a_whole_file(self, tmp_path: pathlib.Path) -> None:
        experiment = load_experiment(write_run(tmp_path, "energy", [header("energy"), *RECORDS, END]))
        assert experiment.finished and experiment.seconds == 2.5
        assert [record["kind"] for record in experiment.records] == ["seen", "note", "absent"]
        assert experiment.notes == ["A <warm> day"]
        assert experiment.absent[0]["what"] == "joules"
        assert experiment.one("seen", n=64) == RECORDS[0]
        assert experiment.one("seen", n=65) is None

    def test_what_no_part_closes_does_not_count(self, tmp_path: pathlib.Path) -> None:
        path = write_run(tmp_path, "energy", [header("energy"), *RECORDS, {"kind": "seen", "n": 65}])
        experiment = load_experiment(path)
        assert not experiment.finished
        assert [record["n"] for record in experiment.of("seen")] == [64]

    @pytest.mark.parametrize(
        "tail", ['{"kind":"part","ke', '{"kind":"part","key":"x"}', "\0\0\0\n", "[1]\n", "{}\n", "\n"]
    )
    def test_torn_lines_end_it(self, tmp_path: pathlib.Path, tail: str) -> None:
        records = [header("energy"), *RECORDS, {"kind": "seen", "n": 65}]
        experiment = load_experiment(write_run(tmp_path, "energy", records, tail))
        assert not experiment.finished
        assert [record["n"] for record in experiment.of("seen")] == [64]

    def test_bytes_that_are_no_text(self, tmp_path: pathlib.Path) -> None:
        path = write_run(tmp_path, "energy", [header("energy"), *RECORDS])
        path.write_bytes(path.read_bytes() + b"\xff\xfe\n")
        assert len(load_experiment(path).records) == 3

    def test_unknown_kinds_are_kept_and_harm_nobody(self, tmp_path: pathlib.Path) -> None:
        records = [header("energy"), {"kind": "later", "x": 1}, {"kind": "part", "key": "a"}, END]
        experiment = load_experiment(write_run(tmp_path, "energy", records))
        assert experiment.of("later") == [{"kind": "later", "x": 1}]

    def test_line_separators_inside_of_texts(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "energy.jsonl"
        records = [header("energy"), {"kind": "note", "text": "a\u2028b\x85c"}, {"kind": "part", "key": "a"}]
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
        assert load_experiment(path).notes == ["a\u2028b\x85c"]

    @pytest.mark.parametrize("content", ["", "a diary\n", '{"kind":"part","key":"a"}\n', '{"kind":"header"'])
    def test_files_of_others_are_refused(self, tmp_path: pathlib.Path, content: str) -> None:
        path = tmp_path / "energy.jsonl"
        path.write_text(content)
        with pytest.raises(ValueError, match="does not begin with a header"):
            load_experiment(path)

    def test_runs_are_in_the_order_of_reading(self, tmp_path: pathlib.Path) -> None:
        for name in ("energy", "ceilings", "ladder"):
            write_run(tmp_path, name, [header(name)])
        assert list(load_run(tmp_path)) == ["ceilings", "ladder", "energy"]
        with pytest.raises(ValueError, match="holds no results"):
            load_run(tmp_path / "nowhere")


class TestText:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (0, "0"),
            (-0.0, "0"),
            (1, "1.00"),
            (0.1, "0.100"),
            (0.001, "0.00100"),
            (0.012345, "0.0123"),
            (1.23456, "1.23"),
            (12.3456, "12.3"),
            (123.456, "123"),
            (0.99949, "0.999"),
            (0.9996, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.6, "1,000"),
            (1234.5678, "1,235"),
            (1e6, "1,000,000"),
            (-12.3456, "-12.3"),
            (float("nan"), "not a number"),
            (float("-inf"), "infinite"),
        ],
    )
    def test_number(self, value: float, expected: str) -> None:
        assert text.number(value) == expected

    @pytest.mark.parametrize(
        ("ns", "expected"),
        [
            (0.5, "0.500 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (12345, "12.3 µs"),
            (999.6e3, "1.00 ms"),
            (2.5e9, "2.50 s"),
        ],
    )
    def test_time(self, ns: float, expected: str) -> None:
        assert text.time(ns) == expected

    @pytest.mark.parametrize(
        ("count", "expected"),
        [(0, "0 B"), (64, "64 B"), (1023, "1023 B"), (1024, "1 KiB"), (1.5 * 2**20, "1.5 MiB"), (2**40, "1024 GiB")],
    )
    def test_size(self, count: float, expected: str) -> None:
        assert text.size(count) == expected

    def test_ratios_and_sentences(self) -> None:
        assert text.times(41.26) == "41.3×"
        assert text.percent(0.9312) == "93.1 %"
        assert text.sentence("so it is") == "So it is."
        assert text.sentence("Is it?") == "Is it?"
        assert text.sentence("") == ""


class TestMarks:
    def test_html_escapes_all_but_the_two_marks(self) -> None:
        assert to_html.inline("a < b & `<i>` **so \"it\"** is") == (
            "a &lt; b &amp; <code>&lt;i&gt;</code> <strong>so &quot;it&quot;</strong> is"
        )
        assert to_html.inline("`**not strong**`") == "<code>**not strong**</code>"

    def test_markdown_escapes_all_but_the_two_marks(self) -> None:
        assert to_markdown.inline("a < b, `x|<y>` **so** [x](y) a_b *c*") == (
            r"a \< b, `x|<y>` **so** \[x\](y) a\_b \*c\*"
        )


class Elements(html.parser.HTMLParser):
    """Checks that the tags of a page are closed in order."""

    VOID = {"meta", "link", "img", "br"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture
def run_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Three experiments: one with a page of all kinds of blocks, one whose page fails, one interrupted."""
    folder = tmp_path / "run"
    fake_page(monkeypatch, "energy", sample_page)
    fake_page(monkeypatch, "jitter", failing_page)
    write_run(folder, "energy", [header("energy"), *RECORDS, END])
    write_run(folder, "jitter", [header("jitter"), *RECORDS, END])
    write_run(folder, "ceilings", [header("ceilings", quick=False), *RECORDS[:3]])
    (folder / "energy.trace.json").write_text("{}")
    return folder


class TestReport:
    def test_the_page_is_whole_and_says_everything(self, run_folder: pathlib.Path) -> None:
        assert write_report(run_folder) == run_folder / "index.html"
        page = (run_folder / "index.html").read_text(encoding="utf-8")
        elements = Elements(page)
        assert elements.open == []
        assert not elements.all("script")
        for said in ["Is 1 &lt; 2 &amp; so on?", "By &lt;looking&gt;.", "baregrad lab energy --quick",
                     "Abacus &lt;9000&gt; &amp; Sons", "2001-02-03", "A sample | of &lt;pages&gt;",
                     "<strong>1</strong> was seen, 7.25 times.", "<code>x&lt;y&gt;</code>", "Do not &lt;trust&gt; it.",
                     "A &lt;warm&gt; day", "Joules: /opt/here/bin/meter is not there.", "if (a &lt; b) go();",
                     "L1 48 KiB data and 32 KiB instruction, L2 2 MiB", "8 GiB of memory"]:  # fmt: skip
            assert said in page, said
        assert "<looking>" not in page and "<warm>" not in page
        assert page.count("Not finished") == 1
        assert f"{FAILED}: KeyError: &#x27;nothing here&#x27;" in page

    def test_links_lead_somewhere_and_nothing_is_fetched(self, run_folder: pathlib.Path) -> None:
        elements = Elements(write_report(run_folder).read_text(encoding="utf-8"))
        ids = {attributes["id"] for _, attributes in elements.tags if "id" in attributes}
        links = [attributes["href"] or "" for attributes in elements.all("a")]
        assert "#energy" in links and "energy.trace.json" in links
        for link in links:
            assert link[1:] in ids if link.startswith("#") else (run_folder / link).exists(), link
        for _, attributes in elements.tags:
            assert (attributes.get("src") or "data:").startswith("data:")
        assert all((each["href"] or "").startswith("data:") for each in elements.all("link"))

    def test_it_can_be_read_without_eyes(self, run_folder: pathlib.Path) -> None:
        elements = Elements(write_report(run_folder).read_text(encoding="utf-8"))
        assert [each["alt"] for each in elements.all("img")] == ['Squares "grow" <quickly>']
        assert {each.get("scope") for each in elements.all("th")} == {"col", "row"}
        assert all(each["tabindex"] == "0" and each["aria-label"] for each in elements.all("div"))
        levels = [int(tag[1]) for tag, _ in elements.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
        assert elements.all("html") == [{"lang": "en"}]

    def test_pictures_and_derived_numbers_are_files(self, run_folder: pathlib.Path) -> None:
        write_report(run_folder)
        assert sorted(path.name for path in (run_folder / "pictures").iterdir()) == [
            "energy-squares.png",
            "energy-squares.svg",
        ]
        root = xml.etree.ElementTree.parse(run_folder / "pictures" / "energy-squares.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert (run_folder / "pictures" / "energy-squares.png").read_bytes().startswith(b"\x89PNG")
        derived = [json.loads(line) for line in (run_folder / "derived.jsonl").read_text().splitlines()]
        assert {"kind": "derived", "experiment": "energy", "key": "ratio", "value": 7.25} in derived

    def test_the_same_records_give_the_same_bytes(self, run_folder: pathlib.Path) -> None:
        def contents() -> dict[str, bytes]:
            write_report(run_folder)
            return {str(path): path.read_bytes() for path in run_folder.rglob("*") if path.is_file()}

        assert contents() == contents()

    def test_pictures_of_one_name_are_refused(self, run_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def twice(experiment, run):  # type: ignore[no-untyped-def]
            page = sample_page(experiment, run)
            page.blocks *= 2
            return page

        fake_page(monkeypatch, "energy", twice)
        with pytest.raises(ValueError, match="two pictures 'squares'"):
            write_report(run_folder)
        assert not (run_folder / "index.html").exists()

    def test_every_experiment_has_a_page_module(self) -> None:
        from baregrad.lab import pages, story

        folder = pathlib.Path(pages.__file__).parent
        assert {path.stem for path in folder.glob("*.py")} - {"__init__"} >= set(ORDER)
        assert set(story.CHAPTERS) == set(ORDER)


class TestFiles:
    def test_a_file_is_replaced_whole(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "new" / "file"
        write_file(path, "first")
        write_file(path, b"second")
        assert path.read_bytes() == b"second"
        assert list(path.parent.iterdir()) == [path]

    def test_a_failure_leaves_what_was_there(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "file"
        write_file(path, "first")
        with pytest.raises(UnicodeEncodeError):
            write_file(path, "\ud800")
        assert path.read_text() == "first"
        assert list(tmp_path.iterdir()) == [path]

    def test_svg_is_shrunk_but_not_changed(self) -> None:
        text = '<!-- x -->\n<svg>\n <path d="M 1.23456 -0.0001 \nL 2 3" style="a: 1.2345"/>\n</svg>\n'
        assert shrink_svg(text) == '<svg>\n<path d="M 1.23 0\nL 2 3" style="a: 1.2345"/>\n</svg>\n'


class TestCommand:
    def run(self, *arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
        start = f"{code}\nimport sys\nfrom baregrad.lab.__main__ import main\nsys.exit(main(sys.argv[1:]))"
        return subprocess.run(
            [sys.executable, "-B", "-c", start, *arguments], capture_output=True, text=True, timeout=300, check=False
        )

    def test_interrupted_experiments_make_a_report(self, tmp_path: pathlib.Path) -> None:
        for name in ORDER:
            write_run(tmp_path, name, [header(name), *RECORDS[:3]])
        done = self.run("report", str(tmp_path))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'index.html'}\n", "")
        assert (tmp_path / "index.html").read_text(encoding="utf-8").count("Not finished") == len(ORDER)

    def test_nothing_to_report(self, tmp_path: pathlib.Path) -> None:
        done = self.run("report", str(tmp_path))
        assert done.returncode == 1
        assert done.stderr == f"lab: '{tmp_path}' holds no results of `baregrad lab`\n"

    def test_without_matplotlib(self, tmp_path: pathlib.Path) -> None:
        write_run(tmp_path, "energy", [header("energy"), *RECORDS, END])
        hidden = "import sys\nsys.modules['matplotlib'] = None"
        done = self.run("report", str(tmp_path), code=hidden)
        assert done.returncode == 1
        assert done.stderr == (
            "lab: pictures are drawn with matplotlib, which is not installed; `make lab` sets it up\n"
        )
        assert not (tmp_path / "index.html").exists()
