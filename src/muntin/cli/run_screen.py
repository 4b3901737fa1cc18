"""What a running pipeline shows: a live table on a terminal, lines or JSON elsewhere."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console

from muntin.cli.files import Output

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
        """Show how it goes; called some times a second."""

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
    from muntin.cli.run_lines import JsonLines, TextLines  # noqa: PLC0415  they import this
    from muntin.cli.run_live import LiveScreen  # noqa: PLC0415

    if log_format == Output.JSON:
        return JsonLines(sys.stdout, sys.stderr)
    console = Console()
    return LiveScreen(console) if console.is_terminal else TextLines(sys.stdout, sys.stderr)
