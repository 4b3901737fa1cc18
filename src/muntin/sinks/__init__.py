"""Where results go: files, databases, memory, the terminal, a function; and reading them back."""

from muntin.sinks.callback import CallbackSink, callback
from muntin.sinks.console import ConsoleSink, console
from muntin.sinks.databases.duckdb import DuckDBSink, duckdb
from muntin.sinks.databases.postgres import PostgresSink, postgres
from muntin.sinks.files.manifest import FileEntry
from muntin.sinks.files.parquet import ParquetSink, ParquetWriter, parquet
from muntin.sinks.files.reader import Output, read
from muntin.sinks.memory import MemorySink, memory
from muntin.sinks.schemas import key_of, with_key
from muntin.sinks.sink import DriverSink, RowsEntry, Sink, SinkError, Writer

__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "DriverSink",
    "DuckDBSink",
    "FileEntry",
    "MemorySink",
    "Output",
    "ParquetSink",
    "ParquetWriter",
    "PostgresSink",
    "RowsEntry",
    "Sink",
    "SinkError",
    "Writer",
    "callback",
    "console",
    "duckdb",
    "key_of",
    "memory",
    "parquet",
    "postgres",
    "read",
    "with_key",
]
