"""How a value of one type becomes one of another; NULL where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.functions import formatting, parsing
from muntin.expressions.functions.calendar import SECONDS_PER_DAY, day_of
from muntin.expressions.functions.decimals import rounded, scaled_up, truncated
from muntin.expressions.functions.local_time import computed, from_local, to_local, wall
from muntin.expressions.literals import MICROS_PER_DAY, MICROS_PER_SECOND
from muntin.expressions.parts import constant, physical, quotient, wide
from muntin.expressions.zones import Zone

Convert = Callable[[pl.Expr, pa.DataType, pa.DataType], pl.Expr]
CanFail = Callable[[pa.DataType, pa.DataType], bool]
ConvertInZone = Callable[[pl.Expr, Zone], pl.Expr]

EXACT_DIGITS = 15  # decimals of so many digits, and their powers of ten, are exact in a DOUBLE
LONG_DIGITS = 18  # decimals of more digits are no 64-bit integers in Spark


def family(kind: pa.DataType) -> str:
    """The kind of type that conversions are listed by."""
    if t.is_integer(kind):
        return "integer"
    if t.is_float(kind):
        return "float"
    if t.is_decimal(kind):
        return "decimal"
    return t.name_of(kind).lower()


def _plain(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return value.cast(physical(target), strict=False)


def _integer_to_decimal(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return _within(scaled_up(_limited(value.cast(pl.Int128), target), target.scale), target)


def _limited(value: pl.Expr, target: pa.DataType) -> pl.Expr:
    """NULL where scaling the integer up could leave 128 bits."""
    bound = wide(10 ** (target.precision - target.scale))
    return pl.when(value.abs() < bound).then(value)


def _within(value: pl.Expr, target: pa.DataType) -> pl.Expr:
    return pl.when(value.abs() < wide(10**target.precision)).then(value)


def _decimal_to_decimal(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    if target.scale < source.scale:
        return _within(rounded(value, wide(10 ** (source.scale - target.scale))), target)
    room = wide(10 ** (target.precision - (target.scale - source.scale)))
    return scaled_up(pl.when(value.abs() < room).then(value), target.scale - source.scale)


def _decimal_to_integer(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """Truncated; Spark takes a long DECIMAL through a DOUBLE on its way to INT and below."""
    if source.precision > LONG_DIGITS and target != t.BIGINT:
        return _decimal_to_float(value, source, t.DOUBLE).cast(physical(target), strict=False)
    return truncated(value, wide(10**source.scale)).cast(physical(target), strict=False)


def _decimal_to_float(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    if source.precision <= EXACT_DIGITS and target == t.DOUBLE:
        return quotient(value.cast(pl.Float64), pl.lit(10.0**source.scale))
    # Reading the digits rounds once; dividing a rounded integer would round twice.
    digits = value.cast(pl.String) + pl.lit(f"e-{source.scale}")
    return digits.cast(physical(target), strict=False)


def _float_to_integer(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """Truncated; out of range is NULL, but 2**63 itself saturates, as Spark compares doubles."""
    whole = value.cast(pl.Float64)
    result = whole.cast(physical(target), strict=False)
    if target != t.BIGINT:
        return result
    return pl.when(whole.eq(2.0**63)).then(constant(2**63 - 1, target)).otherwise(result)


def _to_boolean(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return value.ne(constant(0, source))


def _date_to_local(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return scaled(value, MICROS_PER_DAY)


def scaled(value: pl.Expr, unit: int) -> pl.Expr:
    """So many units in microseconds; NULL where that overflows."""
    return (value.cast(pl.Int128) * wide(unit)).cast(pl.Int64, strict=False)


def _local_to_date(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return day_of(value, MICROS_PER_SECOND)


def _local_to_string(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return formatting.from_timestamp(value, None)


def _day_start(value: pl.Expr, zone: Zone) -> pl.Expr:
    if zone.is_utc:
        return _date_to_local(value, t.DATE, t.TIMESTAMP)
    midnights = value.cast(pl.Int64) * constant(SECONDS_PER_DAY, t.BIGINT)
    return scaled(computed(midnights, zone.starts_of), MICROS_PER_SECOND)


def _date_there(value: pl.Expr, zone: Zone) -> pl.Expr:
    return day_of(*wall(value, zone))


def _timestamp_to_integer(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    seconds = value.floordiv(constant(MICROS_PER_SECOND, t.BIGINT))
    return seconds.cast(physical(target), strict=False)


def _timestamp_to_float(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    seconds = quotient(value.cast(pl.Float64), pl.lit(float(MICROS_PER_SECOND)))
    return seconds.cast(physical(target))


def _integer_to_timestamp(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """Seconds since 1970; what is out of range becomes the nearest timestamp."""
    micros = value.cast(pl.Int128) * wide(MICROS_PER_SECOND)
    low, high = t.BOUNDS[t.BIGINT]
    return micros.clip(wide(low), wide(high)).cast(pl.Int64)


def _boolean_to_decimal(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    return _within(value.cast(pl.Int128) * wide(10**target.scale), target)


def _never(source: pa.DataType, target: pa.DataType) -> bool:
    return False


def _always(source: pa.DataType, target: pa.DataType) -> bool:
    return True


def _narrows(source: pa.DataType, target: pa.DataType) -> bool:
    return t.INTEGERS.index(target) < t.INTEGERS.index(source)


def _has_no_whole_digit(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(target.precision == target.scale)


def _loses(source: pa.DataType, target: pa.DataType) -> bool:
    held = t.as_decimal(source)
    fewer_digits = target.precision - target.scale < held.precision - held.scale
    return bool(fewer_digits or target.scale < held.scale)


TYPES = ("boolean", "integer", "float", "decimal", "string", "binary", "date", "timestamp")

# By the families of source and target: how, and whether a value can fail.
CONVERSIONS: dict[tuple[str, str], tuple[Convert, CanFail]] = {
    ("integer", "integer"): (_plain, _narrows),
    ("integer", "float"): (_plain, _never),
    ("integer", "decimal"): (_integer_to_decimal, _loses),
    ("integer", "boolean"): (_to_boolean, _never),
    ("integer", "string"): (formatting.from_integer, _never),
    ("integer", "timestamp"): (_integer_to_timestamp, _never),
    ("boolean", "integer"): (_plain, _never),
    ("boolean", "float"): (_plain, _never),
    ("boolean", "decimal"): (_boolean_to_decimal, _has_no_whole_digit),
    ("boolean", "string"): (formatting.from_boolean, _never),
    ("float", "float"): (_plain, _never),
    ("float", "integer"): (_float_to_integer, _always),
    ("float", "boolean"): (_to_boolean, _never),
    ("decimal", "decimal"): (_decimal_to_decimal, _loses),
    ("decimal", "integer"): (_decimal_to_integer, _always),
    ("decimal", "float"): (_decimal_to_float, _never),
    ("decimal", "boolean"): (_to_boolean, _never),
    ("decimal", "string"): (formatting.from_decimal, _never),
    ("string", "integer"): (parsing.to_integer, _always),
    ("string", "float"): (parsing.to_float, _always),
    ("string", "boolean"): (parsing.to_boolean, _always),
    ("string", "date"): (parsing.to_date, _always),
    ("string", "binary"): (_plain, _never),
    ("date", "string"): (formatting.from_date, _never),
    ("timestamp", "integer"): (_timestamp_to_integer, _always),
    ("timestamp", "float"): (_timestamp_to_float, _never),
    ("date", "timestamp_ntz"): (_date_to_local, _always),
    ("timestamp_ntz", "date"): (_local_to_date, _never),
    ("timestamp_ntz", "string"): (_local_to_string, _never),
    **{("void", target): (_plain, _never) for target in (*TYPES, "timestamp_ntz")},
}

# Those that read or make local times, and whether a value can fail.
IN_ZONE: dict[tuple[str, str], tuple[ConvertInZone, Callable[[Zone], bool]]] = {
    ("date", "timestamp"): (_day_start, lambda zone: True),
    ("timestamp", "date"): (_date_there, lambda zone: False),
    ("timestamp", "string"): (formatting.from_timestamp, lambda zone: False),
    ("timestamp", "timestamp_ntz"): (to_local, lambda zone: not zone.is_utc),
    ("timestamp_ntz", "timestamp"): (from_local, lambda zone: not zone.is_utc),
}
