"""Where results go: Parquet files, memory, the terminal, a function; and reading them back."""

from muntin.sinks.callback import CallbackSink, callback
from muntin.sinks.console import ConsoleSink, console
from muntin.sinks.manifest import FileEntry
from muntin.sinks.memory import MemorySink, memory
from muntin.sinks.parquet import ParquetSink, ParquetWriter, parquet
from muntin.sinks.problems import SinkError
from muntin.sinks.reading import Output, read
from muntin.sinks.rows import DriverSink, RowsEntry
from muntin.sinks.sink import Sink, Writer

__all__ = [
    "CallbackSink",
    "ConsoleSink",
    "DriverSink",
    "FileEntry",
    "MemorySink",
    "Output",
    "ParquetSink",
    "ParquetWriter",
    "RowsEntry",
    "Sink",
    "SinkError",
    "Writer",
    "callback",
    "console",
    "memory",
    "parquet",
    "read",
]
