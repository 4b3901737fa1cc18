"""What a running pipeline shows: a live table on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console

from muntin.cli.files import Output
from muntin.spark.streaming.driver.progress import RunProgress
from muntin.windows import moment_text

if TYPE_CHECKING:
    from muntin.pipelines import PipelineRun


class Screen(ABC):
    """Shows results and progress; called from the threads of streams as well.

    Attributes:
        is_closed: Whether nobody reads what is written any more, as after ``| head``.
    """

    is_closed = False

    @abstractmethod
    def say(self, message: str, level: str = "info") -> None:
        """Tell of something that happened."""

    @abstractmethod
    def results(self, batch: int, query: str, table: pa.Table) -> None:
        """Show a query's results of a batch, which no sink takes."""

    @abstractmethod
    def tick(self, running: PipelineRun) -> None:
        """Show how it goes; called several times per second."""

    @abstractmethod
    def finish(self, running: PipelineRun, *, going_on: bool) -> None:
        """Show how it went, and whether it can go on."""

    def last_row(self, batch: int, query: str, table: pa.Table) -> None:
        """Take note of the last result of a query whose results go to a sink."""
        del batch, query, table

    @contextmanager
    def shown(self, running: PipelineRun) -> Iterator[None]:
        """Be on the screen for a block."""
        del running
        yield


def make_screen(log_format: Output) -> Screen:
    """The screen for where standard output goes, and what was asked for."""
    from muntin.cli.screen.lines import JsonLines, TextLines  # noqa: PLC0415  they import this
    from muntin.cli.screen.live import LiveScreen  # noqa: PLC0415

    if log_format == Output.JSON:
        return JsonLines(sys.stdout, sys.stderr)
    console = Console()
    return LiveScreen(console) if console.is_terminal else TextLines(sys.stdout, sys.stderr)


_SPAN = 5.0  # seconds


class Meter:
    """Rows a second over the last few seconds.

    >>> meter = Meter()
    >>> [meter.rate(float(second), 100 * second) for second in range(4)]
    [0.0, 100.0, 100.0, 100.0]
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, moment: float, rows: int) -> float:
        """The rate, given the rows so far at a moment."""
        self._seen.append((moment, rows))
        while len(self._seen) > 2 and self._seen[1][0] <= moment - _SPAN:
            self._seen.popleft()
        begun, before = self._seen[0]
        return (rows - before) / (moment - begun) if moment > begun else 0.0


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of values that JSON has: times are text, and so is what is not finite.

    >>> plain_rows(pa.table({"a": [1.5, float("nan")], "b": [b"x", None]}))
    [{'a': 1.5, 'b': '78'}, {'a': 'nan', 'b': None}]
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            # Arrow writes years beyond 9999, which Python's datetime does not have.
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def value_text(value: Any) -> str:
    """A value in a few letters.

    >>> value_text(1234567.891), value_text(0.00012), value_text(None), value_text(12)
    ('1,234,567.89', '0.00012', 'NULL', '12')
    """
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1 or value == 0 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def row_text(row: dict[str, Any]) -> str:
    """The columns of a result but its window, in one line."""
    values = list(row.items())[2:]
    return "  ".join(f"{name} {value_text(value)}" for name, value in values)


def window_text(row: dict[str, Any]) -> str:
    """The window of a result: its day where it is not today, and its times.

    >>> window_text({"s": "2013-10-07 13:30:00.000000Z", "e": "2013-10-07 13:45:00.500000Z"})
    '2013-10-07 13:30:00 - 13:45:00.5'
    >>> window_text({"s": 5, "e": 10})
    '5 - 10'
    """
    start, end = (_moment(value) for value in list(row.values())[:2])
    day, _, clock = end.partition(" ")
    return f"{start} - {clock if clock and start.startswith(day) else end}"


def _moment(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    whole, point, rest = value.removesuffix("Z").partition(".")
    digits = rest.rstrip("0")
    return f"{whole}.{digits}" if point and digits else whole


def watermark_text(progress: RunProgress) -> str:
    """Up to where windows are answered."""
    if progress.lag is None and progress.watermark is not None:
        return f"{progress.watermark:,}"
    return "-" if progress.watermark is None else moment_text(progress.watermark)
