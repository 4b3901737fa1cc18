"""Where results go: files, databases, memory, the terminal, a function; and reading them back."""

from muntin.sinks.callback import CallbackSink, callback
from muntin.sinks.console import ConsoleSink, console
from muntin.sinks.duckdb_file import DuckDBSink, duckdb
from muntin.sinks.keys import key_of, with_key
from muntin.sinks.manifest import FileEntry
from muntin.sinks.memory import MemorySink, memory
from muntin.sinks.parquet import ParquetSink, ParquetWriter, parquet
from muntin.sinks.postgres_server import PostgresSink, postgres
from muntin.sinks.problems import SinkError
from muntin.sinks.reading import Output, read
from muntin.sinks.rows import DriverSink, RowsEntry
from muntin.sinks.sink import Sink, Writer

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
