"""All reports of a folder in one Markdown file, and in one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from muntin_bench.pages.html_page import html_page
from muntin_bench.pages.markdown import markdown_page
from muntin_bench.plots import can_draw, draw
from muntin_bench.reading import ReportError, read_report
from muntin_bench.report import Report


def write_pages(folder: Path, names: Iterable[str]) -> tuple[list[Path], list[ReportError]]:
    """Write ``report.md`` and ``report.html`` with the reports of a folder, in the given order.

    A benchmark that was run at another time, with the same folder, is on the page too: every
    report says when and under what it was made. Returns the files, and what could not be read.
    """
    reports: list[Report] = []
    problems: list[ReportError] = []
    for name in names:
        path = folder / f"{name}.json"
        if path.is_file():
            try:
                reports.append(read_report(path))
            except ReportError as error:
                problems.append(error)
    pictures = {report.name: _pictures(report, folder) for report in reports}
    markdown, page = folder / "report.md", folder / "report.html"
    markdown.write_text(markdown_page(reports, pictures))
    page.write_text(html_page(reports, pictures))
    return [markdown, page], problems


def _pictures(report: Report, folder: Path) -> Sequence[Path]:
    """The plots' files; those that are missing are drawn, where that is possible."""
    found: list[Path] = []
    for plot in report.plots:
        path = folder / f"{report.name}-{plot.name}.png"
        if not path.is_file() and can_draw():
            draw(plot, path)
        if path.is_file():
            found.append(path)
    return found
