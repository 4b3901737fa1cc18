"""Results that travel to the driver as rows, for the sinks that live there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from muntin.sinks.sink import Sink, Writer


@dataclass(frozen=True)
class RowsEntry:
    """The rows of one query from one task, as an Arrow IPC stream."""

    query: str
    rows: int
    blob: bytes

    @classmethod
    def of(cls, query: str, table: pa.Table) -> RowsEntry:
        """Pack a table."""
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as file:
            file.write_table(table)
        return cls(query, table.num_rows, stream.getvalue().to_pybytes())

    def table(self) -> pa.Table:
        """Unpack the table.

        >>> RowsEntry.of("q", pa.table({"a": [1, 2]})).table().num_rows
        2
        """
        return pa.ipc.open_stream(self.blob).read_all()


class RowsWriter(Writer[RowsEntry]):
    """Packs the rows and writes nothing: what is not committed is gone by itself."""

    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[RowsEntry]:
        """Pack every table that has rows."""
        del batch_id, attempt_id
        return [RowsEntry.of(query, table) for query, table in results.items() if table.num_rows]


class DriverSink(Sink[RowsEntry]):
    """A sink that gets each query's rows of a batch as one table, on the driver."""

    def writer(self) -> RowsWriter:
        """The half that runs in tasks."""
        return RowsWriter()

    def commit(self, batch_id: int, entries: Sequence[RowsEntry]) -> None:
        """Hand over one table for each query, in the order of their names."""
        tables: dict[str, list[pa.Table]] = {}
        for entry in entries:
            tables.setdefault(entry.query, []).append(entry.table())
        self.deliver(batch_id, {name: pa.concat_tables(tables[name]) for name in sorted(tables)})

    @abstractmethod
    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Take the results of a batch; the same batch may come again."""
