"""How a folder of results is laid out: whose it is, and how its files are named."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.sinks.durable import TEMPORARY, make_folder, seal, write_atomically
from muntin.sinks.files.manifest import FORMAT, FileEntry, opened
from muntin.sinks.schemas import fingerprint
from muntin.sinks.sink import SinkError

MARKER = "_muntin.json"
COMMITS = "_commits"
QUERIES = "_queries.json"
# b for the results of a batch, c for a compaction up to a batch.
_DATA_NAME = re.compile(r"[bc](\d{20})-[0-9A-Za-z_.-]+\.parquet")
_QUERY_NAME = re.compile(r"[0-9A-Za-z_]+")


def folder_of(query: str) -> str:
    """The folder of a query's files; names that differ only in case share it.

    Folders that begin with ``_`` are not data to most readers, and some are Muntin's own; no
    query's name has a ``-``.

    >>> folder_of("Spikes"), folder_of("_commits")
    ('spikes', 'q-_commits')
    """
    if not _QUERY_NAME.fullmatch(query):
        raise SinkError(
            f"{query!r} is not a valid query name", hint="names have letters, digits and _ only"
        )
    name = query.lower()
    return f"q-{name}" if name.startswith("_") else name


def file_name(kind: str, batch: int, attempt: int | str) -> str:
    """A name that no other attempt uses, in this run or in one before a restart."""
    shown = re.sub(r"[^0-9A-Za-z_.]", "_", str(attempt))
    return f"{kind}{batch:020d}-{shown}-{uuid4().hex[:12]}.parquet"


def data_files(root: Path) -> Iterator[tuple[Path, int]]:
    """Every file of results in the folder, committed or not, with its batch."""
    for folder in root.iterdir():
        if folder.is_dir() and not folder.name.startswith(("_", ".")):
            for path in folder.iterdir():
                found = _DATA_NAME.fullmatch(path.name)
                if found is not None:
                    yield path, int(found[1])


def read_marker(root: Path) -> str | None:
    """The run that writes to the folder; None where nobody does."""
    path = root / MARKER
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return str(opened(content, str(path)).get("run", ""))


def claim(root: Path, run: str) -> None:
    """Make the folder one for results of this run; one that holds anything else is refused."""
    owner = check_owner(root, run)
    if owner is None or (run and not owner):
        make_folder(root)
        if not (root / QUERIES).exists():
            # Before the marker: where that is, readers expect the queries.
            _write_queries(root, {})
        write_atomically(root / MARKER, seal({"format": FORMAT, "run": run}))


def check_owner(root: Path, run: str) -> str | None:
    """The run that writes to the folder, if any; refuse what is not for results of this run."""
    owner = read_marker(root)
    if owner is None:
        names = (path.name for path in root.iterdir()) if root.exists() else ()
        foreign = sorted(name for name in names if not name.startswith(".") and name != QUERIES)
        if COMMITS in foreign:
            raise SinkError(
                f"{root} holds results of Muntin, but its {MARKER} is gone",
                hint="restore it from a copy",
            )
        if foreign:
            raise SinkError(
                f"{root} holds files other than results of Muntin, such as {foreign[0]}",
                hint="choose an empty folder, or one that does not exist",
            )
    elif run and owner and owner != run:
        raise SinkError(
            f"{root} holds the results of another run",
            hint="continue with that run's checkpoint, or choose another folder",
        )
    return owner


def remove_temporary(root: Path) -> None:
    """Remove what a crash left between writing a file and naming it."""
    for path in root.glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)


def declared(root: Path) -> dict[str, pa.Schema]:
    """The queries whose columns are known, whether they have results or not."""
    path = root / QUERIES
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise SinkError(
            f"{path} is missing, so that queries without results are not known",
            hint="restore it from a copy; the run creates it again when it starts",
        ) from None
    return {
        name: pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema)))
        for name, schema in opened(content, str(path))["queries"].items()
    }


def declare(root: Path, schemas: Mapping[str, pa.Schema]) -> None:
    """Add queries to those that are known; a name in another case replaces the one before."""
    known = declared(root) if (root / QUERIES).exists() else {}
    added = {name.lower() for name in schemas}
    merged = {name: schema for name, schema in known.items() if name.lower() not in added}
    merged |= schemas
    if merged != known:
        _write_queries(root, merged)


def _write_queries(root: Path, schemas: Mapping[str, pa.Schema]) -> None:
    encoded = {
        name: base64.b64encode(schema.serialize().to_pybytes()).decode()
        for name, schema in schemas.items()
    }
    write_atomically(root / QUERIES, seal({"format": FORMAT, "queries": encoded}))


_SMALL = 10_000  # rows
_SAMPLE = 1000  # rows that tell whether values of a column are repeated


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
    if is_small:
        pq.write_table(table, stream, use_dictionary=False, compression="none")
    else:
        pq.write_table(table, stream, compression="zstd", **_encodings(table))
    content = stream.getvalue()
    with path.open("xb") as file:
        file.write(content)
    relative = path.relative_to(root).as_posix()
    columns = fingerprint(table.schema)
    return FileEntry(query, relative, table.num_rows, content.size, columns, _checksum(content))


def _encodings(table: pa.Table) -> dict[str, Any]:
    """How columns are written: with a dictionary if, of a sample, half of the values are repeated.

    For others it costs more than all the rest, and makes files larger. Differences of numbers and
    times take few bits, which a compressor has little to do with. Columns inside of others have
    what Parquet has by itself.
    """
    if any(pa.types.is_nested(field.type) for field in table.schema):
        return {}
    step = max(table.num_rows // _SAMPLE, 1)
    chosen = pa.array(range(0, table.num_rows, step))
    repeating = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if 2 * len(column.take(chosen).unique()) <= len(chosen)
    ]
    numbers = {field.name for field in table.schema if _is_whole(field.type)}
    differences = dict.fromkeys(numbers.difference(repeating), "DELTA_BINARY_PACKED")
    return {"use_dictionary": repeating, "column_encoding": differences or None}


def _is_whole(kind: pa.DataType) -> bool:
    tests = pa.types.is_integer, pa.types.is_timestamp, pa.types.is_date
    return any(is_of(kind) for is_of in tests)


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
