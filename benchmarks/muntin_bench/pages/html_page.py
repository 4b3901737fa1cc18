"""Reports as one HTML page: no script, no network, pictures inside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from muntin_bench.pages.facts import PROMISES, SUMMARY, facts, promises, summary
from muntin_bench.pages.markdown import READING
from muntin_bench.report import Report
from muntin_bench.terminal import QUICK_NOTE

_TITLE = "Benchmarks of Muntin"


def html_page(reports: Sequence[Report], pictures: Mapping[str, Sequence[Path]]) -> str:
    """All reports, after an overview that leads to each."""
    style = (files("muntin_bench.pages") / "page.css").read_text()
    head = (
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_TITLE}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{_TITLE}</h1>",
        f"<p>{escape(READING)}</p>",
        *_overview(reports),
    )
    bodies = (_report(report, pictures.get(report.name, ())) for report in reports)
    lines = (line for body in bodies for line in body)
    return "\n".join((*head, *lines, "</main>", "</body>", "</html>", ""))


def _overview(reports: Iterable[Report]) -> Iterator[str]:
    rows = []
    for report in reports:
        name, *others = map(escape, summary(report))
        rows.append([f'<a href="#{name}">{name}</a>', *others])
    yield from _table(SUMMARY, rows)


def _report(report: Report, pictures: Iterable[Path]) -> Iterator[str]:
    yield f'<section id="{escape(report.name)}">'
    yield f"<h2>{escape(report.name)}</h2>"
    yield "<dl>"
    for name, value in facts(report):
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
    yield "</dl>"
    if report.failure is not None:
        yield f'<p class="missed">failed</p><pre>{escape(report.failure)}</pre>'
    if report.checks:
        yield "<h3>promises</h3>"
        if report.conditions is not None and report.conditions.quick:
            yield f"<p>{escape(QUICK_NOTE)}</p>"
        yield from _table(PROMISES, map(_promise, promises(report)))
    for section in report.tables:
        yield f"<h3>{escape(section.title)}</h3>"
        yield from _table(section.columns, (map(escape, row) for row in section.rows))
    for path in pictures:
        data = b64encode(path.read_bytes()).decode()
        source = f"data:image/png;base64,{data}"
        yield f'<figure><img alt="{escape(path.stem)}" loading="lazy" src="{source}"></figure>'
    yield "</section>"


def _promise(row: Sequence[str]) -> list[str]:
    *others, met = map(escape, row)
    return [*others, f'<span class="{met}">{met}</span>']


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table that scrolls by itself where it is wider than the screen; cells are HTML."""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    yield f'<div class="table"><table><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        first, *others = row
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        yield f'<tr><th scope="row">{first}</th>{cells}</tr>'
    yield "</tbody></table></div>"
