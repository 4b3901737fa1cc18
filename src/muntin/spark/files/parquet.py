"""Parquet files read by workers: some row groups, some columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.spark.files.columns import UnlikeSparkError, as_stored
from muntin.spark.files.pieces import Piece

# Row groups are read together until they have so many rows, and cut where one has many more.
_ROWS, _MOST_ROWS = 200_000, 1 << 20
# Files whose old dates and times Spark moves from one calendar to another.
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_WRITER = b"org.apache.spark.version"


def read_parquet(piece: Piece, schema: pa.Schema, rows: int = _ROWS) -> Iterator[pa.Table]:
    """The rows of a piece as tables of a schema; columns that the file lacks are NULL."""
    try:
        with pq.ParquetFile(piece.path, pre_buffer=True, coerce_int96_timestamp_unit="us") as file:
            _check_calendar(file)
            for groups in _together(file, _groups_of(file, piece), rows):
                yield from _read(file, piece, schema, groups)
    except (pa.ArrowException, OSError) as error:
        raise UnlikeSparkError(f"{piece.path} cannot be read: {error}") from error


def _read(
    file: pq.ParquetFile, piece: Piece, schema: pa.Schema, groups: Sequence[int]
) -> Iterator[pa.Table]:
    stored = _stored_names(file.schema_arrow, [n for n in schema.names if n not in piece.values])
    instants = _int96_columns(file)
    for batch in file.iter_batches(_MOST_ROWS, groups, list(stored.values()), use_threads=False):
        columns = []
        for field in schema:
            if field.name in piece.values:
                columns.append(pa.repeat(piece.values[field.name], batch.num_rows))
            elif field.name in stored:
                name = stored[field.name]
                column = pa.chunked_array([batch.column(name)])
                is_instant, called = name in instants, f"column {name}"
                columns.append(as_stored(column, field.type, instants=is_instant, called=called))
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        yield pa.Table.from_arrays(columns, schema=schema)


def _groups_of(file: pq.ParquetFile, piece: Piece) -> list[int]:
    """The row groups whose middle row lies in the piece, if rows are as long as each other."""
    total = max(file.metadata.num_rows, 1)
    found, before = [], 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        middle = (2 * before + rows) * piece.size // (2 * total)
        if piece.start <= min(middle, piece.size - 1) < piece.end:
            found.append(group)
        before += rows
    return found


def _together(file: pq.ParquetFile, groups: Sequence[int], rows: int) -> Iterator[list[int]]:
    """Row groups to read at once: a batch that ends where a row group does is not copied."""
    held: list[int] = []
    count = 0
    for group in groups:
        held.append(group)
        count += file.metadata.row_group(group).num_rows
        if count >= rows:
            yield held
            held, count = [], 0
    if held:
        yield held


def _stored_names(stored: pa.Schema, wanted: Sequence[str]) -> dict[str, str]:
    """What the file calls the columns that it has: letter case makes no difference to Spark."""
    found: dict[str, str] = {}
    for name in wanted:
        matches = [each for each in stored.names if each.lower() == name.lower()]
        if len(matches) > 1:
            raise UnlikeSparkError(f"columns {', '.join(matches)} differ in letter case only")
        if matches:
            found[name] = matches[0]
    return found


def _int96_columns(file: pq.ParquetFile) -> set[str]:
    described = (file.schema.column(i) for i in range(len(file.schema)))
    return {each.path for each in described if each.physical_type == "INT96"}


def _check_calendar(file: pq.ParquetFile) -> None:
    metadata = file.metadata.metadata or {}
    version = metadata.get(_WRITER, b"3").split(b".")[0]
    if any(key in metadata for key in _LEGACY) or not version.isdigit() or int(version) < 3:
        raise UnlikeSparkError("the file may hold dates of another calendar")
