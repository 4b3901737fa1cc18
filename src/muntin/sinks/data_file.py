"""One Parquet file of results: written, and read back as its manifest says it was."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.sinks.durable import make_folder
from muntin.sinks.layout import folder_of
from muntin.sinks.manifest import FileEntry
from muntin.sinks.problems import SinkError
from muntin.sinks.schemas import fingerprint

_SMALL = 10_000  # rows


def data_path(root: Path, query: str, name: str) -> Path:
    """Where a file of a query lies, in a folder that is there."""
    folder = root / folder_of(query)
    make_folder(folder)
    return folder / name


def write_data(root: Path, path: Path, query: str, table: pa.Table, *, lasts: bool) -> FileEntry:
    """Write a file, and say what it holds; syncing it is left to the caller.

    Args:
        root: The folder of results.
        path: What `data_path` gave.
        query: The name of the query, as it was written.
        table: Its rows.
        lasts: Whether it is worth encoding well: small files are merged before long.
    """
    is_small = not lasts and table.num_rows < _SMALL
    stream = pa.BufferOutputStream()
    compression = "none" if is_small else "zstd"
    pq.write_table(table, stream, use_dictionary=not is_small, compression=compression)
    content = stream.getvalue()
    with path.open("xb") as file:
        file.write(content)
    relative = path.relative_to(root).as_posix()
    columns = fingerprint(table.schema)
    return FileEntry(query, relative, table.num_rows, content.size, columns, _checksum(content))


def read_data(root: Path, entry: FileEntry) -> pa.Table:
    """The rows of a committed file; one that has changed since is refused.

    Raises:
        FileNotFoundError: If it is not there.
    """
    path = root / entry.path
    content = path.read_bytes()
    if entry.checksum and (len(content) != entry.bytes or _checksum(content) != entry.checksum):
        raise SinkError(
            f"{path} is damaged: it is not the file that was committed",
            hint="restore it from a copy",
        )
    # Not a dataset: that would take folders named key=value above it for columns.
    return pq.ParquetFile(pa.BufferReader(content)).read()


def _checksum(content: bytes | pa.Buffer) -> str:
    return f"{zlib.crc32(content):08x}"
