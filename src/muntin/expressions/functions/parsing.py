"""Strings read as numbers, booleans and dates, as strictly as ANSI CAST does; NULL if bad."""

from __future__ import annotations

import math

import polars as pl
import pyarrow as pa

from muntin.expressions.literals import BLANK, DAYS_PER_ERA, FALSE_TEXTS, TRUE_TEXTS
from muntin.expressions.parts import physical

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
