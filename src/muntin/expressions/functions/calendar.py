"""The calendar on integers: days since 1970, and local times in any unit.

The Gregorian calendar repeats every 400 years, which are whole weeks. So a day is first moved
into the cycle from 1970 on, where polars' own calendar is in its range.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from muntin.expressions.literals import DAYS_PER_ERA, MICROS_PER_DAY, MICROS_PER_SECOND

MONDAY = 3  # 1970-01-01 was a Thursday
SECONDS_PER_DAY = 86_400

UNITS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": MICROS_PER_SECOND,
    "minute": 60 * MICROS_PER_SECOND,
    "hour": 3600 * MICROS_PER_SECOND,
    "day": MICROS_PER_DAY,
    "dd": MICROS_PER_DAY,
}
PERIODS = {
    "year": "1y",
    "yyyy": "1y",
    "yy": "1y",
    "quarter": "1q",
    "month": "1mo",
    "mon": "1mo",
    "mm": "1mo",
    "week": "1w",
}


def _date(days: pl.Expr) -> pl.Expr:
    """A date from 1970 on with the same month, day and weekday."""
    return days.mod(pl.lit(DAYS_PER_ERA, dtype=pl.Int32)).cast(pl.Date)


def _year(days: pl.Expr) -> pl.Expr:
    return _date(days).dt.year() + days.floordiv(pl.lit(DAYS_PER_ERA, dtype=pl.Int32)) * 400


# Every part of a date as an Int32 expression.
DAY_PARTS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": _year,
    "quarter": lambda days: _date(days).dt.quarter().cast(pl.Int32),
    "month": lambda days: _date(days).dt.month().cast(pl.Int32),
    "day": lambda days: _date(days).dt.day().cast(pl.Int32),
    "dayofyear": lambda days: _date(days).dt.ordinal_day().cast(pl.Int32),
    "weekofyear": lambda days: _date(days).dt.week().cast(pl.Int32),
    "dayofweek": lambda days: _date(days).dt.weekday().cast(pl.Int32) % 7 + 1,
    "weekday": lambda days: _date(days).dt.weekday().cast(pl.Int32) - 1,
}
# How many seconds each takes, and how many there are.
CLOCK_PARTS = {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}


def floored(value: pl.Expr, unit: int) -> pl.Expr:
    """Whole units, rounded down also before 1970."""
    return value.floordiv(pl.lit(unit, dtype=pl.Int64)) if unit != 1 else value


def clock_part(local: pl.Expr, second: int, name: str) -> pl.Expr:
    """Hour, minute or second of a local time, of which so many units make a second."""
    seconds, count = CLOCK_PARTS[name]
    units = floored(local, seconds * second)
    return units.mod(pl.lit(count, dtype=pl.Int64)).cast(pl.Int32)


def day_of(local: pl.Expr, second: int) -> pl.Expr:
    """The day that a local time is on, of which so many units make a second."""
    return floored(local, SECONDS_PER_DAY * second).cast(pl.Int32)


def first_day(days: pl.Expr, unit: str) -> pl.Expr:
    """The first day of the year, quarter, month or week (from Monday) that a day is in."""
    if PERIODS[unit] == "1w":
        return days - (days + MONDAY).mod(pl.lit(7, dtype=pl.Int32))
    inside = _date(days)
    return days - (inside.cast(pl.Int32) - inside.dt.truncate(PERIODS[unit]).cast(pl.Int32))
