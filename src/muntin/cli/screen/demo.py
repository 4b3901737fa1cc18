"""What the demo shows of its stream: the live table, or a few lines now and then."""

from __future__ import annotations

import sys
from typing import IO, Any

import pyarrow as pa
from rich.console import Console

from muntin.cli.screen.lines import TextLines
from muntin.cli.screen.live import LiveScreen
from muntin.cli.screen.screen import Screen, plain_rows, row_text, window_text
from muntin.spark.streaming.driver.progress import RunProgress

_SHOWN = 3


class SampledLines(TextLines):
    """Lines of progress with the last results of a few queries: all of them would flood."""

    def __init__(self, out: IO[str]) -> None:
        super().__init__(out, out)
        self._last: dict[str, dict[str, Any]] = {}

    def results(self, batch: int, query: str, table: pa.Table) -> None:
        """Keep the last result of each query, the latest queries last."""
        del batch
        with self._lock:
            self._last.pop(query, None)
            self._last[query] = plain_rows(table.slice(table.num_rows - 1))[0]

    def progress(self, stream: str, progress: RunProgress, rate: float | None) -> None:
        """Write the line, and some results below."""
        super().progress(stream, progress, rate)
        with self._lock:
            latest = list(self._last.items())[-_SHOWN:]
        lines = [f"  {name}  {window_text(row)}  {row_text(row)}" for name, row in latest]
        self._write(self._results, lines)


def make_demo_screen(console: Console) -> Screen:
    """The screen for where standard output goes."""
    if console.is_terminal:
        return LiveScreen(console, footer="synthetic trades, on Spark on this machine")
    return SampledLines(sys.stdout)
