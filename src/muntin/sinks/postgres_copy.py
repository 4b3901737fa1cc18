"""Rows as the text that PostgreSQL's COPY reads, made a column at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from muntin.sinks.database_ledger import Load
from muntin.sinks.postgres_json import TEXT, joined, json_text, text
from muntin.sinks.postgres_types import is_bytes, is_list
from muntin.sinks.problems import SinkError

_CHUNK = 50_000  # rows
# In COPY's text a backslash begins an escape, and these end a value or a row.
_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_NEEDS_ESCAPE = r"[\\\t\n\r]"
_NULL = "\\N"
_FIRST_YEAR = -62_135_596_800_000_000  # 0001-01-01 in microseconds


def copy_text(number: int, load: Load, width: int) -> Iterator[memoryview]:
    r"""Pieces of text: the number, the values, and NULLs up to a width, a line for each row.

    >>> load = Load("spikes", None, pa.table({"a": ["x\ty", None], "b": [1.5, float("nan")]}))
    >>> b"".join(copy_text(3, load, 3))
    b'3\tx\\ty\t1.5\t\\N\n3\t\\N\tnan\t\\N\n'
    """
    padding = [text(_NULL)] * (width - load.rows.num_columns)
    for batch in load.rows.to_batches(max_chunksize=_CHUNK):
        values = [
            _escaped(_checked(load.table, field.name, column_text(load.table, field.name, column)))
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        rows = joined(text(str(number)), *values, *padding, between="\t", null=_NULL)
        lines = joined(rows, text(""), between="\n")
        yield memoryview(lines.buffers()[2])


def column_text(table: str, name: str, array: pa.Array) -> pa.Array:
    r"""Values as PostgreSQL reads them.

    >>> column_text("t", "c", pa.array([0], pa.timestamp("us", "America/New_York"))).to_pylist()
    ['1970-01-01 00:00:00.000000Z']
    >>> column_text("t", "c", pa.array([b"ab"])).to_pylist()
    ['\\x6162']
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return column_text(table, name, array.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        return _timestamps(table, name, array)
    if is_list(kind) or pa.types.is_struct(kind):
        return json_text(array)
    if is_bytes(kind):
        return joined(text("\\x"), _hex(array.cast(pa.large_binary())))
    if pa.types.is_duration(kind):
        counts = array.cast(pa.duration("us")).cast(pa.int64())
        return joined(counts.cast(TEXT), text(" microseconds"))
    if pa.types.is_float16(kind):
        array = array.cast(pa.float32())
    return array.cast(TEXT)


def _hex(array: pa.Array) -> pa.Array:
    import polars as pl  # noqa: PLC0415  Arrow has no such function; slow to import

    return pl.Series(array).bin.encode("hex").to_arrow().cast(TEXT)


def _timestamps(table: str, name: str, array: pa.Array) -> pa.Array:
    try:
        exact = array.cast(pa.timestamp("us", "UTC" if array.type.tz else None))
    except pa.ArrowInvalid as error:
        raise SinkError(
            f"column {name} of table {table} has a time that microseconds cannot hold: {error}",
            hint="PostgreSQL keeps microseconds; round it in the query",
        ) from error
    lowest = pc.min(exact.cast(pa.int64())).as_py()
    if lowest is not None and lowest < _FIRST_YEAR:
        raise SinkError(
            f"column {name} of table {table} has a time before the year 1",
            hint="leave such rows out with WHERE",
        )
    # Many rows share few windows, and a time is slow to write out.
    times = exact.dictionary_encode()
    return times.dictionary.cast(TEXT).take(times.indices)


def _checked(table: str, name: str, array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring(array, "\0")).as_py():
        raise SinkError(
            f"column {name} of table {table} has a string with a zero character, which "
            "PostgreSQL cannot hold",
            hint="leave such rows out with WHERE, or write to a parquet or duckdb sink",
        )
    return array


def _escaped(array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(array, _NEEDS_ESCAPE)).as_py():
        for character, escape in _ESCAPED.items():
            array = pc.replace_substring(array, character, escape)
    return array
