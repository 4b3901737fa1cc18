"""Results as readable rows on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muntin.sinks.sink import DriverSink, SinkError


class ConsoleSink(DriverSink):
    """Prints each query's rows of a batch; a batch that is repeated is printed again.

    Args:
        rows: How many rows of a query to print for each batch; the rest is counted.
        file: Where to print; standard output by default.
    """

    def __init__(self, rows: int = 20, file: IO[str] | None = None) -> None:
        if rows < 1:
            raise SinkError(
                f"rows must be 1 or more, not {rows}", hint="give how many to print of each result"
            )
        self.rows = rows
        self._file = file

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Print the batch."""
        # Made for each batch, so that output that was redirected meanwhile goes where it should.
        console = Console(file=self._file, highlight=False, soft_wrap=self._file is not None)
        for query, table in tables.items():
            console.print(self._shown(batch_id, query, table))

    def _shown(self, batch_id: int, query: str, table: pa.Table) -> Table:
        count = f"{table.num_rows:,} {'row' if table.num_rows == 1 else 'rows'}"
        title = Text(f"batch {batch_id} · {query}: {count}")
        shown = Table(title=title, title_justify="left")
        for field in table.schema:
            numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
            shown.add_column(Text(field.name), justify="right" if numeric else "left")
        columns = [_texts(column) for column in table.slice(0, self.rows).columns]
        for row in zip(*columns, strict=True):
            shown.add_row(*map(Text, row))
        if table.num_rows > self.rows:
            shown.caption = Text(f"... and {table.num_rows - self.rows:,} more")
        return shown


def _texts(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_temporal(column.type):
        # Arrow writes years beyond 9999, which Python's datetime does not have.
        column = column.cast(pa.string())
    return ["NULL" if value is None else str(value) for value in column.to_pylist()]


def console(rows: int = 20, file: IO[str] | None = None) -> ConsoleSink:
    """Print results as they come."""
    return ConsoleSink(rows, file)
