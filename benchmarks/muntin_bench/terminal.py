"""A report on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from muntin_bench.report import Report, Section

_WIDE = 240
# What a failure has to say first; all of it is in the JSON.
_LINES = 12
QUICK_NOTE = "a quick run: promises are made for the full one"


def show(report: Report, console: Console) -> None:
    """Print what was measured on, all tables, and all promises."""
    about = f"bench {report.name}: {report.data}" if report.data else f"bench {report.name}"
    console.print(escape(about), highlight=False, soft_wrap=True)
    if report.failure is not None:
        lines = report.failure.splitlines()
        shown = "\n".join([*lines[:_LINES], *(["..."] if len(lines) > _LINES else [])])
        console.print(f"[red]failed[/red] {escape(shown)}", highlight=False, soft_wrap=True)
    for section in report.tables:
        title = f"[bold]bench {report.name}: {escape(section.title)}[/bold]"
        console.print(title, highlight=False, soft_wrap=True)
        show_table(section, console)
    for check in report.checks:
        verdict = "[green]met[/green]   " if check.met else "[red]missed[/red]"
        line = f"{check.promise}: {check.measured}, {check.bound}"
        console.print(f"{verdict} {escape(line)}", highlight=False, soft_wrap=True)
    if report.checks and report.conditions is not None and report.conditions.quick:
        console.print(QUICK_NOTE, highlight=False)


def show_table(section: Section, console: Console) -> None:
    """Print a table, wider than a narrow terminal rather than cut off."""
    table = Table()
    for i, column in enumerate(section.columns):
        table.add_column(escape(column), justify="left" if i == 0 else "right", no_wrap=True)
    for row in section.rows:
        table.add_row(*map(escape, row))
    shown, console.width = console.width, max(console.width, _WIDE)
    console.print(table, crop=False)
    console.width = shown
