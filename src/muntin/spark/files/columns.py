"""Columns of files as Spark's readers would give them, or the refusal to guess."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import MuntinError
from muntin.expressions.binding.literals import MICROS_PER_SECOND
from muntin.expressions.zones import UTC, Zone


class UnlikeSparkError(MuntinError):
    """A file that workers would not read exactly as Spark's reader does."""


# What a value must look like to mean the same to Arrow and to Spark.
_PLAIN = {
    "integer": r"^-?[0-9]{1,18}$",
    "floating": r"^(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?|NaN)$",
    "decimal": r"^-?[0-9]+(\.[0-9]+)?$",
    "boolean": r"^(?i:true|false)$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "local time": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$",
}
_ZONED = r"(Z|[+-][0-9]{2}:[0-9]{2})$"

# Where Spark widens what Parquet files hold to the type of a table's column.
_WIDER = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64(), pa.float64()),
    pa.int16(): (pa.int32(), pa.int64(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
    pa.uint8(): (pa.int16(), pa.int32(), pa.int64()),
    pa.uint16(): (pa.int32(), pa.int64()),
    pa.uint32(): (pa.int64(),),
    pa.uint64(): (pa.decimal128(20, 0),),
    pa.large_string(): (pa.string(),),
    pa.string_view(): (pa.string(),),
    pa.large_binary(): (pa.binary(),),
    pa.binary_view(): (pa.binary(),),
}


def as_stored(
    column: pa.ChunkedArray, kind: pa.DataType, *, instants: bool, called: str = "a column"
) -> pa.ChunkedArray:
    """A column of a Parquet file as a type; ``instants`` if its times without a zone are UTC."""
    stored = column.type
    if stored == kind:
        return column
    if pa.types.is_dictionary(stored):
        return as_stored(column.cast(stored.value_type), kind, instants=instants, called=called)
    if pa.types.is_null(stored):
        return pa.chunked_array([pa.nulls(len(column), kind)])
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(kind) and stored.unit != "ns":
        if (stored.tz is None) == (kind.tz is None):
            return column.cast(kind)
        if instants and kind.tz is not None:
            return column.cast(pa.timestamp(stored.unit, "UTC")).cast(kind)
    if kind in _WIDER.get(stored, ()):
        return column.cast(kind)
    raise UnlikeSparkError(f"{called} holds {stored} where {kind} is read")


def as_parsed(column: pa.ChunkedArray, kind: pa.DataType, zone: Zone = UTC) -> pa.ChunkedArray:
    """A column of text as a type; every value must be written plainly.

    Times without a zone are in ``zone``.
    """
    if column.type == kind:
        return column
    try:
        if pa.types.is_timestamp(kind):
            return _times(column, kind, zone)
        _check(column, _PLAIN[_family(kind)])
        if pa.types.is_boolean(kind):
            column = pc.utf8_lower(column)
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise UnlikeSparkError(f"a value is not a {kind}: {error}") from error


def _family(kind: pa.DataType) -> str:
    families = {
        "integer": pa.types.is_signed_integer,
        "floating": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date32,
    }
    for name, belongs in families.items():
        if belongs(kind):
            return name
    raise UnlikeSparkError(f"text is not read as {kind}")


def _times(column: pa.ChunkedArray, kind: pa.DataType, zone: Zone) -> pa.ChunkedArray:
    zoned = pc.match_substring_regex(column, _ZONED)
    if pc.any(zoned).as_py():
        if kind.tz is None or not pc.all(zoned).as_py():
            raise UnlikeSparkError("times with a zone and without one meet in a column")
        _check(pc.replace_substring_regex(column, _ZONED, ""), _PLAIN["local time"])
        return column.cast(pa.timestamp("us", "UTC")).cast(kind)
    _check(column, _PLAIN["local time"])
    local = column.cast(pa.timestamp("us"))
    if kind.tz is None:
        return local
    return _instants(local.cast(pa.int64()), zone).cast(kind)


def _instants(local: pa.ChunkedArray, zone: Zone) -> pa.ChunkedArray:
    """Microseconds on the clock of a zone as timestamps."""
    if not zone.is_utc:
        known = local.fill_null(0).to_numpy()
        seconds = np.floor_divide(known, MICROS_PER_SECOND)
        moved = (zone.instants_of(seconds) - seconds) * MICROS_PER_SECOND
        local = pc.add(local, pa.array(moved))
    return local.cast(pa.timestamp("us", "UTC"))


def _check(column: pa.ChunkedArray, pattern: str) -> None:
    plain = pc.match_substring_regex(column, pattern)
    if pc.all(plain).as_py() is False:
        odd = column.filter(pc.invert(plain))[0]
        raise UnlikeSparkError(f"the value {odd} is written in an unusual way")
