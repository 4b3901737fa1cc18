"""The pages: one file each, with everything in it, and nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from muntin_bench.pages import write_pages
from muntin_bench.report import Report

VOID = {"meta", "img"}


class Balanced(HTMLParser):
    """Fails where tags are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def folder(tiny: Report, tmp_path: Path) -> Path:
    tiny.save(tmp_path)
    failed = Report("sharing", "", failure="AssertionError: <sums> differ")
    failed.save(tmp_path)
    return tmp_path


def test_the_html_page_is_whole_and_needs_no_network(folder: Path) -> None:
    write_pages(folder, ("local", "sharing", "spark"))
    text = (folder / "report.html").read_text()
    page = Balanced()
    page.feed(text)
    assert page.open == []
    assert all(source.startswith(("#", "data:image/png;base64,iVBOR")) for source in page.sources)
    assert [source for source in page.sources if source[0] == "#"] == ["#local", "#sharing"]
    assert re.findall(r"https?:|@import|url\(|<script", text) == []
    for wanted in ("prefers-color-scheme: dark", "width=device-width", "an abacus", "0, 7"):
        assert wanted in text
    assert "panes &amp; pairs" in text
    assert "AssertionError: &lt;sums&gt; differ" in text
    assert "1,000.0 (900.0 to 1,100.0)" in text


def test_the_markdown_page_is_whole(folder: Path) -> None:
    write_pages(folder, ("local", "sharing"))
    text = (folder / "report.md").read_text()
    assert "| local | 1 of 2 | quick | 2026-01-02 03:04:05 | 1:01 |" in text
    assert "| sharing | failed |" in text
    assert "| held | 1.50× (1.40 to 1.60) | at most 2× | met |" in text
    assert "![local-rate](local-rate.png)" in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_reports_of_other_times_stay_on_the_page(tiny: Report, folder: Path) -> None:
    replace(tiny, name="spark").save(folder)
    write_pages(folder, ("local", "sharing", "spark"))
    text = (folder / "report.md").read_text()
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["local", "sharing", "spark"]


def test_what_cannot_be_read_is_left_out_and_said(folder: Path) -> None:
    (folder / "spark.json").write_text("{}")
    _, problems = write_pages(folder, ("local", "spark"))
    assert [problem.message for problem in problems] == [
        f"{folder / 'spark.json'} is no report of a benchmark: it has no 'name'"
    ]
    assert "## local" in (folder / "report.md").read_text()


def test_missing_pictures_are_drawn_again(folder: Path) -> None:
    (folder / "local-rate.png").unlink()
    write_pages(folder, ("local",))
    assert "data:image/png" in (folder / "report.html").read_text()
