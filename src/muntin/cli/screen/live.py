"""A running pipeline on a terminal: one table of streams, one of queries and their last results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from muntin.cli.screen.screen import (
    Meter,
    Screen,
    plain_rows,
    row_text,
    watermark_text,
    window_text,
)

if TYPE_CHECKING:
    from muntin.pipelines import PipelineRun

_AROUND = 11  # lines that are not queries
_LEAST = 3


class LiveScreen(Screen):
    """A picture that is drawn again several times per second; messages scroll above it.

    Args:
        console: The terminal.
        footer: What stands below.
    """

    def __init__(self, console: Console, footer: str = "Ctrl-C stops after this batch") -> None:
        self._console, self._footer = console, footer
        self._lock = Lock()
        self._last: dict[str, tuple[int, dict[str, Any]]] = {}
        self._meters: dict[str, Meter] = {}
        self._first: set[str] | None = None
        self._live: Live | None = None

    def say(self, message: str, level: str = "info") -> None:
        """Print a message above the picture."""
        style = {"warning": "yellow", "error": "red"}.get(level, "dim")
        self._console.print(Text(message, style=style), soft_wrap=True)

    def results(self, batch: int, query: str, table: pa.Table) -> None:
        """Keep the last result, for the next picture."""
        del batch
        row = plain_rows(table.slice(max(table.num_rows - 1, 0)))
        with self._lock:
            self._last.pop(query.lower(), None)
            self._last[query.lower()] = (table.num_rows, row[0])

    def last_row(self, batch: int, query: str, table: pa.Table) -> None:
        """The same, for queries whose results go to a sink."""
        self.results(batch, query, table)

    @contextmanager
    def shown(self, running: PipelineRun) -> Iterator[None]:
        """Draw while a block runs, and leave the last picture there."""
        with Live(
            self.picture(running), console=self._console, auto_refresh=False, transient=False
        ) as self._live:
            yield
        self._live = None

    def tick(self, running: PipelineRun) -> None:
        """Draw."""
        if self._live is not None:
            self._live.update(self.picture(running), refresh=True)

    def finish(self, running: PipelineRun, *, going_on: bool) -> None:
        """Leave a last picture that says how it ended."""
        self._footer = "stopped; start it again to resume" if going_on else "done"
        self.tick(running)

    def picture(self, running: PipelineRun) -> RenderableType:
        """How it goes at this moment."""
        return Group(self._streams(running), self._queries(running), Text(self._footer, "dim"))

    def _streams(self, running: PipelineRun) -> Table:
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
        shown.add_column("stream", no_wrap=True)
        for name in ("rows", "rows/s", "late", "bad", "lag", "watermark"):
            shown.add_column(name, justify="right", no_wrap=True)
        moment = time.monotonic()
        for name, found in running.progress().items():
            rate = self._meters.setdefault(name, Meter()).rate(moment, found.rows)
            numbers = (found.rows, rate, found.late_rows, found.bad_rows)
            texts = [f"{number:,.0f}" for number in numbers]
            shown.add_row(Text(name), *texts, found.lag_text, watermark_text(found))
        return shown

    def _queries(self, running: PipelineRun) -> Table:
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
        shown.add_column("query", no_wrap=True, max_width=24)
        shown.add_column("results", justify="right", no_wrap=True)
        shown.add_column("last window", no_wrap=True)
        shown.add_column("last result", no_wrap=True, ratio=1)
        counts: dict[str, int] = {}
        for found in running.progress().values():
            counts |= found.results
        names = self._ordered(running)
        room = max(self._console.height - _AROUND - len(running.runs), _LEAST)
        with self._lock:
            last = dict(self._last)
        for name in names[:room]:
            shown.add_row(Text(name), f"{counts.get(name, 0):,}", *_shown(last.get(name.lower())))
        if len(names) > room:
            shown.add_row(Text(f"... {len(names) - room:,} more", "dim"))
        return shown

    def _ordered(self, running: PipelineRun) -> list[str]:
        """The names of queries; those that joined meanwhile come first, where they are seen."""
        names = [query.name for queries in running.queries().values() for query in queries]
        if self._first is None:
            self._first = set(names)
        joined = [name for name in names if name not in self._first]
        return joined[::-1] + [name for name in names if name in self._first]


def _shown(last: tuple[int, dict[str, Any]] | None) -> tuple[Text, Text]:
    if last is None:
        return Text("-", "dim"), Text("")
    window = window_text(last[1])
    # Today's windows need no day, and what most terminals have is 80 columns.
    return Text(window.removeprefix(time.strftime("%Y-%m-%d ", time.gmtime()))), Text(
        row_text(last[1])
    )
