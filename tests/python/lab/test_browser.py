"""The report in a real browser: on a desktop, on a phone, in dark mode.

BAREGRAD_LAB_REPORT names the folder of a report; without it one is made of hand-made records.
BAREGRAD_LAB_SCREENSHOTS names a folder for screenshots.
BAREGRAD_LAB_BROWSER_REQUIRED=1 makes a missing browser a failure.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from devtools import Browser, find_browser  # noqa: E402
from lab_samples import END, RECORDS, fake_page, header, sample_page, write_run  # noqa: E402

from baregrad.lab.facts import NOT_FINISHED  # noqa: E402
from baregrad.lab.page import Code, Page, Table, Text  # noqa: E402
from baregrad.lab.records import ORDER  # noqa: E402
from baregrad.lab.report import FAILED, write_report  # noqa: E402

REPORT = os.environ.get("BAREGRAD_LAB_REPORT")
SCREENSHOTS = os.environ.get("BAREGRAD_LAB_SCREENSHOTS")

LOOK = """(() => {
  const edge = document.documentElement.clientWidth;
  const scrolls = node => node.closest(".table, pre") !== null;
  return JSON.stringify({
    width: document.scrollingElement.scrollWidth,
    wide: [...document.body.querySelectorAll("*")]
      .filter(node => !scrolls(node) && node.getBoundingClientRect().right > edge + 1)
      .map(node => node.tagName + " " + node.textContent.slice(0, 60)),
    images: [...document.images].map(image => [image.complete, image.naturalWidth, image.width, image.alt]),
    headings: [...document.querySelectorAll("h1, h2, h3")].map(node => [node.tagName, node.textContent]),
    sections: [...document.querySelectorAll("main > section")].map(node => node.id),
    links: [...document.querySelectorAll("nav a")].map(node => node.getAttribute("href")),
    paper: getComputedStyle(document.body).backgroundColor,
    text: document.body.innerText,
  });
})()"""


@dataclass
class Screen:
    name: str
    width: int
    height: int
    dark: bool = False

    @property
    def phone(self) -> bool:
        return self.width < 600


SCREENS = [Screen("desk", 1280, 900), Screen("phone", 390, 844), Screen("phone-dark", 390, 844, dark=True)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        reason = "chromium is not installed: scripts/setup.sh --lab"
        if os.environ.get("BAREGRAD_LAB_BROWSER_REQUIRED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with Browser(program) as running:
        yield running


def wide_page(experiment: Any, run: Any) -> Page:
    """The elements that are most likely to be wider than a phone."""
    page = sample_page(experiment, run)
    cells = [f"{i}00,000 GFLOP/s" for i in range(12)]
    page.blocks += [Table(["rung", *cells], [["naive", *cells]] * 3), Code("x" * 300), Text("`" + "y" * 200 + "`")]
    return page


@pytest.fixture
def report(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    if REPORT:
        return (pathlib.Path(REPORT) / "index.html").resolve()
    for name in ("ceilings", "energy"):
        fake_page(monkeypatch, name, wide_page)
        write_run(tmp_path, name, [header(name), *RECORDS, END])
    write_run(tmp_path, "jitter", [header("jitter")])
    return write_report(tmp_path)


def screenshot(browser: Browser, session: str, screen: Screen) -> None:
    assert SCREENSHOTS
    folder = pathlib.Path(SCREENSHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    shot = browser.send("Page.captureScreenshot", session, format="png", captureBeyondViewport=True)
    (folder / f"{screen.name}.png").write_bytes(base64.b64decode(shot["data"]))


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_page_is_whole(browser: Browser, report: pathlib.Path, screen: Screen) -> None:
    tab = browser.new_tab()
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.send(f"{domain}.enable", tab)
    browser.send("Emulation.setDeviceMetricsOverride", tab, width=screen.width, height=screen.height,
                 deviceScaleFactor=2 if screen.phone else 1, mobile=screen.phone)  # fmt: skip
    scheme = {"name": "prefers-color-scheme", "value": "dark" if screen.dark else "light"}
    browser.send("Emulation.setEmulatedMedia", tab, features=[scheme])
    browser.send("Page.navigate", tab, url=report.as_uri())
    browser.wait_for("Page.loadEventFired", tab)
    seen = json.loads(browser.send("Runtime.evaluate", tab, expression=LOOK)["result"]["value"])
    if SCREENSHOTS:
        screenshot(browser, tab, screen)

    assert browser.events_of(tab, "Runtime.exceptionThrown") == []
    assert browser.events_of(tab, "Runtime.consoleAPICalled") == []
    assert browser.events_of(tab, "Log.entryAdded") == []
    asked = [event["request"]["url"] for event in browser.events_of(tab, "Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]

    assert seen["images"], "no pictures"
    for complete, natural_width, width, alt in seen["images"]:
        assert complete and natural_width > 0, alt
        assert 0 < width <= screen.width and alt
    assert seen["wide"] == []
    assert seen["width"] <= screen.width

    assert seen["headings"][0] == ["H1", "baregrad lab"]
    assert ["H2", "Contents"] in seen["headings"]
    assert seen["sections"] and seen["links"] == [f"#{name}" for name in seen["sections"]]
    assert FAILED not in seen["text"]
    if REPORT:
        assert seen["sections"] == list(ORDER) and NOT_FINISHED not in seen["text"]
    dark_paper = sum(int(part) for part in seen["paper"].removeprefix("rgb(").removesuffix(")").split(",")) < 200
    assert dark_paper == screen.dark
