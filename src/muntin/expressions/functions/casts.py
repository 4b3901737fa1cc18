"""CAST: which pairs of types convert, and when a value fails to."""

from __future__ import annotations

import math
from collections.abc import Callable

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.literals import (
    BLANK,
    DAYS_PER_ERA,
    FALSE_TEXTS,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    TRUE_TEXTS,
)
from muntin.expressions.evaluation.parts import (
    Part,
    constant,
    physical,
    quotient,
    strict_or_null,
    wide,
)
from muntin.expressions.functions.dates import (
    CLOCK_PARTS,
    DAY_PARTS,
    SECONDS_PER_DAY,
    clock_part,
    computed,
    day_of,
    from_local,
    to_local,
    wall,
)
from muntin.expressions.functions.decimals import rounded, scaled_up, truncated
from muntin.expressions.registry import Function
from muntin.expressions.tree import BindingError, Call, Node
from muntin.expressions.types import DATE, STRING
from muntin.expressions.zones import Zone


def _bind(name: str, args: list[Node]) -> Node:
    """The second argument only carries the target type."""
    source, target = args[0].type, args[1].type
    pair = family(source), family(target)
    if source != target and pair not in CONVERSIONS and pair not in IN_ZONE:
        raise BindingError(
            f"CAST of {t.name_of(source)} to {t.name_of(target)} is not supported",
            hint=f"leave it a {t.name_of(source)}, and convert it outside of the query",
        )
    return Call(name, (args[0],), target)


def _cast(call: Call, parts: list[Part]) -> Part:
    source, target = call.args[0].type, call.type
    if source == target:
        return parts[0]
    pair = family(source), family(target)
    if pair in IN_ZONE:
        assert call.zone is not None, "a conversion that was bound without a zone"
        there, fails_there = IN_ZONE[pair]
        value, fails = there(parts[0].value, call.zone), fails_there(call.zone)
    else:
        convert, can_fail = CONVERSIONS[pair]
        value, fails = convert(parts[0].value, source, target), can_fail(source, target)
    return strict_or_null(value, parts) if fails else Part(value, parts[0].failed)


def _try_cast(call: Call, parts: list[Part]) -> Part:
    return Part(_cast(call, parts).value, parts[0].failed)


FUNCTIONS = (
    Function("cast", 2, 2, _bind, _cast),
    Function("try_cast", 2, 2, _bind, _try_cast),
)


def from_integer(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """Decimal digits."""
    return value.cast(pl.String)


def from_boolean(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """The words true and false."""
    return pl.when(value).then(pl.lit("true")).when(~value).then(pl.lit("false"))


def from_decimal(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """All digits of the scale, never an exponent."""
    if source.scale == 0:
        return value.cast(pl.String)
    unit = wide(10**source.scale)
    sign = pl.when(value < wide(0)).then(pl.lit("-")).otherwise(pl.lit(""))
    whole = value.abs().floordiv(unit).cast(pl.String)
    fraction = value.abs().mod(unit).cast(pl.String).str.zfill(source.scale)
    return pl.concat_str([sign, whole, pl.lit("."), fraction], ignore_nulls=False)


def from_date(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """yyyy-MM-dd; years beyond four digits have a sign."""
    year = DAY_PARTS["year"](value)
    size = year.abs().cast(pl.String).str.zfill(4)
    sign = pl.when(year > 9999).then(pl.lit("+")).when(year < 0).then(pl.lit("-"))
    parts = [_two(DAY_PARTS[name](value)) for name in ("month", "day")]
    dash = pl.lit("-")
    pieces = [sign.otherwise(pl.lit("")), size, dash, parts[0], dash, parts[1]]
    return pl.concat_str(pieces, ignore_nulls=False)


def from_timestamp(value: pl.Expr, zone: Zone | None) -> pl.Expr:
    """yyyy-MM-dd HH:mm:ss on a zone's clock, and the fraction without its final zeros."""
    local, unit = wall(value, zone)
    day = from_date(day_of(local, unit), DATE, STRING)
    hour, minute, second = (_two(clock_part(local, unit, name)) for name in CLOCK_PARTS)
    micros = value.mod(pl.lit(MICROS_PER_SECOND, dtype=pl.Int64))
    digits = micros.cast(pl.String).str.zfill(6).str.strip_chars_end("0")
    fraction = pl.when(micros > 0).then(pl.concat_str([pl.lit("."), digits])).otherwise(pl.lit(""))
    colon = pl.lit(":")
    pieces = [day, pl.lit(" "), hour, colon, minute, colon, second, fraction]
    return pl.concat_str(pieces, ignore_nulls=False)


def _two(value: pl.Expr) -> pl.Expr:
    return value.cast(pl.String).str.zfill(2)


INTEGER = r"\A[+-]?[0-9]+\z"
NUMBER = r"\A([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?\z"
DAY = r"(?s)\A([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?\z"
INFINITE = ("inf", "infinity", "+inf", "+infinity")
BASE_YEAR = 2001  # the first of 400 years that stand for all others


def to_integer(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """Digits with an optional sign, nothing else."""
    text = value.str.strip_chars(BLANK)
    digits = pl.when(text.str.contains(INTEGER)).then(text)
    return digits.cast(pl.Int64, strict=False).cast(physical(target), strict=False)


def to_float(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """A decimal number, perhaps with an exponent or Java's suffix d or f; NaN and infinities."""
    text = value.str.strip_chars(BLANK)
    word = text.str.to_lowercase()
    dtype = physical(target)
    return (
        pl.when(word.is_in(INFINITE))
        .then(pl.lit(math.inf, dtype=dtype))
        .when(word.is_in(["-inf", "-infinity"]))
        .then(pl.lit(-math.inf, dtype=dtype))
        .when(word.eq("nan"))
        .then(pl.lit(math.nan, dtype=dtype))
        .otherwise(text.str.extract(NUMBER, 1).cast(dtype, strict=False))
    )


def to_boolean(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """t, true, y, yes, 1 and their opposites, in any case."""
    word = value.str.strip_chars(BLANK).str.to_lowercase()
    return (
        pl.when(word.is_in(sorted(TRUE_TEXTS)))
        .then(pl.lit(value=True))
        .when(word.is_in(sorted(FALSE_TEXTS)))
        .then(pl.lit(value=False))
    )


def to_date(value: pl.Expr, source: pa.DataType, target: pa.DataType) -> pl.Expr:
    """yyyy, yyyy-m or yyyy-m-d, the latter perhaps followed by a time that is ignored."""
    text = value.str.strip_chars(BLANK)
    year = text.str.extract(DAY, 1).cast(pl.Int64, strict=False)
    month = text.str.extract(DAY, 2).cast(pl.Int64, strict=False).fill_null(1)
    day = text.str.extract(DAY, 3).cast(pl.Int64, strict=False).fill_null(1)
    cycle = (year - BASE_YEAR).floordiv(pl.lit(400, dtype=pl.Int64))
    inside = year - cycle * 400
    # polars raises on a bad date, so the first of a month that exists is asked for.
    first = pl.date(inside.fill_null(BASE_YEAR), month.clip(1, 12), 1)
    valid = month.is_between(1, 12) & (day >= 1) & (day <= first.dt.days_in_month())
    days = first.cast(pl.Int32).cast(pl.Int64) + (day - 1) + cycle * DAYS_PER_ERA
    return pl.when(valid & year.is_not_null()).then(days).cast(pl.Int32, strict=False)


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
    return from_timestamp(value, None)


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
    ("integer", "string"): (from_integer, _never),
    ("integer", "timestamp"): (_integer_to_timestamp, _never),
    ("boolean", "integer"): (_plain, _never),
    ("boolean", "float"): (_plain, _never),
    ("boolean", "decimal"): (_boolean_to_decimal, _has_no_whole_digit),
    ("boolean", "string"): (from_boolean, _never),
    ("float", "float"): (_plain, _never),
    ("float", "integer"): (_float_to_integer, _always),
    ("float", "boolean"): (_to_boolean, _never),
    ("decimal", "decimal"): (_decimal_to_decimal, _loses),
    ("decimal", "integer"): (_decimal_to_integer, _always),
    ("decimal", "float"): (_decimal_to_float, _never),
    ("decimal", "boolean"): (_to_boolean, _never),
    ("decimal", "string"): (from_decimal, _never),
    ("string", "integer"): (to_integer, _always),
    ("string", "float"): (to_float, _always),
    ("string", "boolean"): (to_boolean, _always),
    ("string", "date"): (to_date, _always),
    ("string", "binary"): (_plain, _never),
    ("date", "string"): (from_date, _never),
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
    ("timestamp", "string"): (from_timestamp, lambda zone: False),
    ("timestamp", "timestamp_ntz"): (to_local, lambda zone: not zone.is_utc),
    ("timestamp_ntz", "timestamp"): (from_local, lambda zone: not zone.is_utc),
}
