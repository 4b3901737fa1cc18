"""Values written as strings, as CAST(... AS STRING) does."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from muntin.expressions.functions.calendar import CLOCK_PARTS, DAY_PARTS, clock_part, day_of
from muntin.expressions.functions.local_time import wall
from muntin.expressions.literals import MICROS_PER_SECOND
from muntin.expressions.parts import wide
from muntin.expressions.types import DATE, STRING
from muntin.expressions.zones import Zone


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
