"""Rows as the text that PostgreSQL's COPY reads, made a column at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.sinks.databases.ledger import Load
from muntin.sinks.sink import SinkError

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
        if not batch.num_rows:
            # The memory of no text need not be empty.
            continue
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
            hint="filter such rows out with WHERE",
        )
    # Many rows share few windows, and a time is slow to write out.
    times = exact.dictionary_encode()
    return times.dictionary.cast(TEXT).take(times.indices)


def _checked(table: str, name: str, array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring(array, "\0")).as_py():
        raise SinkError(
            f"column {name} of table {table} has a string with a NUL character, which "
            "PostgreSQL cannot hold",
            hint="filter such rows out with WHERE, or write to a parquet or duckdb sink",
        )
    return array


def _escaped(array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(array, _NEEDS_ESCAPE)).as_py():
        for character, escape in _ESCAPED.items():
            array = pc.replace_substring(array, character, escape)
    return array


TEXT = pa.large_string()
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    **{chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in "\n\r\t"},
}
_NOT_IN_JSON = ("nan", "inf", "-inf")


def text(value: str) -> pa.Scalar:
    """A string as Arrow's functions of large strings take it."""
    return pa.scalar(value, TEXT)


def joined(*parts: Any, between: str = "", null: str | None = None) -> pa.Array:
    """Strings put together row by row; a NULL makes the row NULL, unless it is shown as such."""
    handling = {} if null is None else {"null_handling": "replace", "null_replacement": null}
    return pc.binary_join_element_wise(*parts, text(between), **handling)


def json_text(array: pa.Array) -> pa.Array:
    """Each value as JSON; NULL stays NULL inside lists and structs, and is none outside.

    NaN and the infinities, which JSON lacks, become strings, as do times and bytes.

    >>> json_text(pa.array([{"a": [1.5, None, float("nan")]}, None])).to_pylist()
    ['{"a":[1.5,null,"nan"]}', None]
    """
    kind = array.type
    if is_list(kind):
        return _lists(array)
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_null(kind):
        return array.cast(TEXT)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return array.cast(TEXT)
    if pa.types.is_floating(kind):
        numbers = array.cast(TEXT)
        odd = pc.is_in(numbers, pa.array(_NOT_IN_JSON, TEXT))
        return pc.if_else(odd, _strings(numbers), numbers)
    return _strings(array.cast(TEXT))


def _strings(array: pa.Array) -> pa.Array:
    for character, escape in _ESCAPES.items():
        array = pc.replace_substring(array, character, escape)
    return joined(text('"'), array, text('"'))


def _lists(array: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(array).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths.fill_null(0))])
    values = json_text(array.flatten()).fill_null("null")
    inner = pc.binary_join(pa.LargeListArray.from_arrays(offsets, values), text(","))
    return pc.if_else(lengths.is_valid(), joined(text("["), inner, text("]")), text_null())


def _structs(array: pa.Array) -> pa.Array:
    members = [
        joined(
            _strings(pa.array([field.name], TEXT))[0],
            json_text(child).fill_null("null"),
            between=":",
        )
        for field, child in zip(array.type, array.flatten(), strict=True)
    ]
    inner = joined(*members, between=",") if members else pa.array([""] * len(array), TEXT)
    return pc.if_else(array.is_valid(), joined(text("{"), inner, text("}")), text_null())


def text_null() -> pa.Scalar:
    """No string."""
    return pa.scalar(None, TEXT)


# What no column of a table may be called: every row has these already.
_SYSTEM = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
_SIMPLE = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "smallint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_uint16, "integer"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_uint32, "bigint"),
    (pa.types.is_uint64, "numeric(20,0)"),
    (pa.types.is_float16, "real"),
    (pa.types.is_float32, "real"),
    (pa.types.is_float64, "double precision"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "interval"),
    (pa.types.is_struct, "jsonb"),
    (pa.types.is_null, "text"),
)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, however Arrow keeps them."""
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are byte strings, however Arrow keeps them."""
    return any(
        test(kind)
        for test in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        )
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, however Arrow keeps them."""
    return any(
        test(kind)
        for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def sql_type(query: str, field: pa.Field) -> str:
    """The type of a column that holds every value of an Arrow type, and its meaning.

    >>> [sql_type("q", pa.field("a", kind)) for kind in (pa.timestamp("us", "UTC"), pa.date32())]
    ['timestamp with time zone', 'date']
    """
    kind = field.type
    if pa.types.is_dictionary(kind):
        return sql_type(query, pa.field(field.name, kind.value_type))
    if pa.types.is_timestamp(kind):
        return f"timestamp {'with' if kind.tz else 'without'} time zone"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if is_text(kind):
        return "text"
    if is_bytes(kind):
        return "bytea"
    if is_list(kind):
        return "jsonb"
    for test, name in _SIMPLE:
        if test(kind):
            return name
    raise SinkError(
        f"column {field.name} of query {query} is {kind}, and PostgreSQL has no such type",
        hint="cast it in the query, for example to STRING",
    )


def is_system_column(name: str) -> bool:
    """Whether PostgreSQL keeps a column name to itself."""
    return name in _SYSTEM
