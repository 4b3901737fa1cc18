"""How input columns are stored, and how they become the types that Spark knows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError, MuntinError
from muntin.expressions import types as t
from muntin.expressions.tree import BindingError

SIGNED = {pa.uint8(): t.SMALLINT, pa.uint16(): t.INT, pa.uint32(): t.BIGINT}
STRINGS = (pa.string(), pa.large_string(), pa.string_view())
BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
NANOS_PER_MICRO = 1000
# The note on a column of a frame that Arrow cannot hold: why, and what to do, NUL between them.
UNREADABLE = b"muntin.unreadable"


def spark_type(stored: pa.DataType) -> pa.DataType:
    """The Spark type that holds a stored type's values.

    Unsigned integers widen to the next signed type (uint64 to DECIMAL(20,0)), dictionaries to
    their values, timestamps to microseconds; a zone is kept only as "has a zone", because
    expressions are evaluated in UTC.

    >>> spark_type(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_dictionary(stored) or pa.types.is_run_end_encoded(stored):
        return spark_type(stored.value_type)
    if stored in t.NAMES:
        return stored
    if stored in SIGNED:
        return SIGNED[stored]
    if pa.types.is_timestamp(stored):
        return t.TIMESTAMP_NTZ if stored.tz is None else t.TIMESTAMP
    if stored in STRINGS:
        return t.STRING
    if stored in BINARIES or pa.types.is_fixed_size_binary(stored):
        return t.BINARY
    if stored == pa.uint64():
        return pa.decimal128(20, 0)
    if stored == pa.float16():
        return t.FLOAT
    if stored == pa.date64():
        return t.DATE
    if pa.types.is_decimal(stored) and _is_spark_decimal(stored):
        return pa.decimal128(stored.precision, stored.scale)
    raise BindingError(f"a column of type {stored} cannot be used", hint=_hint(stored))


def check_readable(field: pa.Field, error: type[MuntinError] = BindingError) -> None:
    """Refuse a column that could not be read from the user's frame."""
    note = (field.metadata or {}).get(UNREADABLE)
    if note is not None:
        why, _, hint = note.decode().partition("\0")
        raise error(f"column {field.name} cannot be read: {why}", hint=hint)


def column_type(stored: pa.DataType) -> pa.DataType:
    """The type of a column selected as it is: Spark's, but a timestamp keeps its zone."""
    kind = spark_type(stored)
    return pa.timestamp("us", stored.tz) if kind == t.TIMESTAMP and _zoned(stored) else kind


def standard(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column as `kind`, one of `spark_type` or `column_type` of its own type.

    No copy where the stored type already is that type. Finer timestamps are floored.
    """
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        return standard(column.cast(column.type.value_type), kind)
    if pa.types.is_run_end_encoded(column.type):
        return standard(pc.run_end_decode(column), kind)
    if pa.types.is_timestamp(column.type):
        return _micros(column).cast(kind)
    return column.cast(kind)


def _micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole microseconds; nanoseconds are floored, also before 1970."""
    zone = column.type.tz
    if column.type.unit != "ns":
        try:
            return column.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid as error:
            raise DataError(
                f"a timestamp does not fit into microseconds: {error}",
                hint="timestamps range over 290,000 years around 1970",
            ) from error
    nanos = column.cast(pa.int64())
    micros = pc.divide(nanos, NANOS_PER_MICRO)
    early = pc.less(nanos, pc.multiply(micros, NANOS_PER_MICRO))
    return pc.subtract(micros, early.cast(pa.int64())).cast(pa.timestamp("us", zone))


def _zoned(stored: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(stored) and stored.tz is not None)


def _is_spark_decimal(stored: pa.DataType) -> bool:
    return bool(0 <= stored.scale <= stored.precision <= t.MAX_DIGITS)


def _hint(stored: pa.DataType) -> str:
    if pa.types.is_struct(stored) and stored.num_fields:
        return f"name a field of it, such as .{stored.field(0).name}"
    if pa.types.is_list(stored) or pa.types.is_large_list(stored):
        return "name an element of it, such as [0], or element_at(..., 1)"
    if pa.types.is_nested(stored):
        return "select the values you need into columns of their own first"
    if pa.types.is_decimal(stored):
        return f"cast it to a decimal of at most {t.MAX_DIGITS} digits first"
    return "cast it to a number, string, date or timestamp first"
