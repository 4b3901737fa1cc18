"""Arrow's types as PostgreSQL's."""

from __future__ import annotations

import pyarrow as pa

from muntin.sinks.problems import SinkError

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
