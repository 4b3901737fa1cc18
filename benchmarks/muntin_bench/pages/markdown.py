"""Reports as one Markdown file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from muntin_bench.pages.facts import PROMISES, SUMMARY, facts, promises, summary
from muntin_bench.report import Report
from muntin_bench.terminal import QUICK_NOTE

READING = (
    "Times are medians of several runs, with the fastest and the slowest behind them. Sides that "
    "are compared took turns, in alternating order, and their answers were compared first."
)


def markdown_page(reports: Sequence[Report], pictures: Mapping[str, Sequence[Path]]) -> str:
    """All reports, after an overview; pictures are linked by name, from the same folder."""
    lines = ["# Benchmarks of Muntin", "", READING, ""]
    lines += table(SUMMARY, map(summary, reports))
    for report in reports:
        lines += _report(report, pictures.get(report.name, ()))
    return "\n".join(lines) + "\n"


def _report(report: Report, pictures: Sequence[Path]) -> Iterator[str]:
    yield from ("", f"## {report.name}", "")
    yield from (f"- {name}: {value}" for name, value in facts(report))
    if report.failure is not None:
        yield from ("", "**Failed.**", "", "```", *report.failure.splitlines(), "```")
    if report.checks:
        quick = report.conditions is not None and report.conditions.quick
        note = f" ({QUICK_NOTE})" if quick else ""
        yield from ("", f"### promises{note}", "", *table(PROMISES, promises(report)))
    for section in report.tables:
        yield from ("", f"### {section.title}", "", *table(section.columns, section.rows))
    for path in pictures:
        yield from ("", f"![{path.stem}]({path.name})")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    r"""A table: the first column to the left, the others to the right.

    >>> print("\n".join(table(("side", "ms"), [("a|b", "1.5")])))
    | side | ms |
    |:--|--:|
    | a\|b | 1.5 |
    """
    yield _row(columns)
    yield f"|:--|{'--:|' * (len(columns) - 1)}"
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
