"""A running pipeline as lines: results on one output, what happens on the other."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from muntin.cli.screen.screen import (
    Meter,
    Screen,
    plain_rows,
    row_text,
    watermark_text,
    window_text,
)
from muntin.display import count
from muntin.pipelines.control import numbers
from muntin.spark.streaming.driver.progress import RunProgress

if TYPE_CHECKING:
    from muntin.pipelines import PipelineRun

_EVERY = 5.0  # seconds


class Lines(Screen):
    """Writes results as they come, and progress every few seconds in which something came.

    Args:
        results: Where results go.
        events: Where progress and messages go.
        every: Seconds between two lines of progress.
    """

    def __init__(self, results: IO[str], events: IO[str], every: float = _EVERY) -> None:
        self._results, self._events, self._every = results, events, every
        self._lock = Lock()
        self._due = 0.0
        self._meters: dict[str, Meter] = {}
        self._shown: dict[str, int] = {}

    def tick(self, running: PipelineRun) -> None:
        """Tell how it goes when it is time to."""
        moment = time.monotonic()
        if moment < self._due:
            return
        self._due = moment + self._every
        for stream, progress in running.progress().items():
            rate = self._meters.setdefault(stream, Meter()).rate(moment, progress.rows)
            if self._shown.get(stream) != progress.batches:
                self._shown[stream] = progress.batches
                self.progress(stream, progress, rate)

    def finish(self, running: PipelineRun, *, going_on: bool) -> None:
        """Tell how it went."""
        for stream, progress in running.progress().items():
            self.progress(stream, progress, None)
        self.say("stopped; start it again to resume" if going_on else "done")

    @abstractmethod
    def progress(self, stream: str, progress: RunProgress, rate: float | None) -> None:
        """Tell how a stream goes; without a rate after its end."""

    def _write(self, file: IO[str], lines: list[str]) -> None:
        try:
            with self._lock:
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
        except BrokenPipeError:
            self.is_closed = True


class TextLines(Lines):
    """Lines for people and their logs."""

    def say(self, message: str, level: str = "info") -> None:
        """Write the message, with its level if that matters."""
        self._write(self._events, [message if level == "info" else f"{level}: {message}"])

    def results(self, batch: int, query: str, table: pa.Table) -> None:
        """Write a line for each row."""
        del batch
        rows = plain_rows(table)
        self._write(
            self._results, [f"{query}  {window_text(row)}  {row_text(row)}" for row in rows]
        )

    def progress(self, stream: str, progress: RunProgress, rate: float | None) -> None:
        """Write a line for each stream."""
        parts = [
            count(progress.rows, "row"),
            *([] if rate is None else [f"{rate:,.0f} rows/s"]),
            f"watermark {watermark_text(progress)}",
            # Of old rows it is the day that they have come to.
            progress.lag_text
            if progress.lag_text.startswith("at ")
            else f"lag {progress.lag_text}",
            f"{progress.late_rows:,} late",
            *([f"{progress.bad_rows:,} bad"] if progress.bad_rows else []),
            count(progress.queries, "query"),
            count(sum(progress.results.values()), "result"),
        ]
        self._write(self._events, [f"{stream}: {', '.join(parts)}"])


class JsonLines(Lines):
    """Lines for machines: an object each, with its ``event``."""

    def say(self, message: str, level: str = "info") -> None:
        """Write a message."""
        self._event(self._events, "message", level=level, message=message)

    def results(self, batch: int, query: str, table: pa.Table) -> None:
        """Write an object for each row."""
        lines = [
            _json("result", query=query, batch=batch, row=row, time=time.time())
            for row in plain_rows(table)
        ]
        self._write(self._results, lines)

    def progress(self, stream: str, progress: RunProgress, rate: float | None) -> None:
        """Write an object for each stream."""
        found = {"rate": rate, "results": progress.results, **numbers(progress)}
        self._event(self._events, "progress", stream=stream, **found)

    def _event(self, file: IO[str], event: str, **found: Any) -> None:
        self._write(file, [_json(event, time=time.time(), **found)])


def _json(event: str, **found: Any) -> str:
    return json.dumps({"event": event, **found}, ensure_ascii=False)
