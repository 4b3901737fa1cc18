"""Parts of dates and timestamps, truncation, and times as numbers."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import coerce, require
from muntin.expressions.binding.literals import DAYS_PER_ERA, MICROS_PER_DAY, MICROS_PER_SECOND
from muntin.expressions.evaluation.parts import Part, strict_or_null, wide
from muntin.expressions.registry import Function
from muntin.expressions.tree import BindingError, Call, Literal, Node
from muntin.expressions.zones import Seconds, Zone


def wall(micros: pl.Expr, zone: Zone | None) -> tuple[pl.Expr, int]:
    """The local time of timestamps, and how many of its units make a second.

    Without a zone the timestamps are local times themselves.
    """
    if zone is None or zone.is_utc:
        return micros, MICROS_PER_SECOND
    seconds = floored(micros, MICROS_PER_SECOND)
    if zone.fixed is not None:
        return seconds + pl.lit(zone.fixed, dtype=pl.Int64), 1
    return computed(seconds, lambda instants: instants + zone.offsets_at(instants)), 1


def to_local(micros: pl.Expr, zone: Zone) -> pl.Expr:
    """Timestamps as local times, both in microseconds; NULL where that overflows."""
    if zone.is_utc:
        return micros
    return _with_fraction(wall(micros, zone)[0], micros)


def from_local(micros: pl.Expr, zone: Zone) -> pl.Expr:
    """Local times as timestamps, both in microseconds; NULL where that overflows."""
    if zone.is_utc:
        return micros
    seconds = floored(micros, MICROS_PER_SECOND)
    return _with_fraction(computed(seconds, zone.instants_of), micros)


def computed(seconds: pl.Expr, function: Callable[[Seconds], Seconds]) -> pl.Expr:
    """A numpy function of seconds, NULL where they are."""

    def compute(column: pl.Series) -> pl.Series:
        return pl.Series(function(column.to_numpy()), dtype=pl.Int64)

    known = seconds.fill_null(0)
    found = known.map_batches(compute, return_dtype=pl.Int64, is_elementwise=True)
    return pl.when(seconds.is_not_null()).then(found)


def _with_fraction(seconds: pl.Expr, micros: pl.Expr) -> pl.Expr:
    fraction = micros.mod(pl.lit(MICROS_PER_SECOND, dtype=pl.Int64))
    whole = seconds.cast(pl.Int128) * wide(MICROS_PER_SECOND)
    return (whole + fraction.cast(pl.Int128)).cast(pl.Int64, strict=False)


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


EPOCHS = {"unix_seconds": UNITS["second"], "unix_millis": 1000, "unix_micros": 1}
FROM_EPOCHS = {
    "timestamp_seconds": UNITS["second"],
    "timestamp_millis": UNITS["millisecond"],
    "timestamp_micros": 1,
}


def _times(name: str, arg: Node, kind: pa.DataType) -> Node:
    if t.is_time(arg.type):
        return coerce(arg, kind)
    return require(arg, kind, name)


def _bind_day_part(name: str, args: list[Node]) -> Node:
    return Call(name, (_times(name, args[0], t.DATE),), t.INT)


def _day_part(call: Call, parts: list[Part]) -> Part:
    return Part(DAY_PARTS[call.function](parts[0].value), parts[0].failed)


def _bind_clock_part(name: str, args: list[Node]) -> Node:
    kind = t.TIMESTAMP_NTZ if args[0].type == t.TIMESTAMP_NTZ else t.TIMESTAMP
    return Call(name, (_times(name, args[0], kind),), t.INT)


def _clock_part(call: Call, parts: list[Part]) -> Part:
    assert (call.zone is None) == (call.args[0].type == t.TIMESTAMP_NTZ), "bound without a zone"
    return Part(clock_part(*wall(parts[0].value, call.zone), call.function), parts[0].failed)


def _bind_epoch(name: str, args: list[Node]) -> Node:
    # A local time counts from the midnight of 1970 on its own clock, wherever that is.
    kind = t.TIMESTAMP_NTZ if args[0].type == t.TIMESTAMP_NTZ else t.TIMESTAMP
    return Call(name, (_times(name, args[0], kind),), t.BIGINT)


def _epoch(call: Call, parts: list[Part]) -> Part:
    return Part(floored(parts[0].value, EPOCHS[call.function]), parts[0].failed)


def _bind_from_epoch(name: str, args: list[Node]) -> Node:
    return Call(name, (require(args[0], t.BIGINT, name),), t.TIMESTAMP)


def _from_epoch(call: Call, parts: list[Part]) -> Part:
    unit = FROM_EPOCHS[call.function]
    if unit == 1:
        return parts[0]
    micros = parts[0].value.cast(pl.Int128) * wide(unit)
    return strict_or_null(micros.cast(pl.Int64, strict=False), parts)


def _unit(name: str, arg: Node, known: list[str]) -> Literal:
    unit = arg.value if isinstance(arg, Literal) else None
    if not isinstance(unit, str) or unit.lower() not in known:
        shown = arg.text if isinstance(arg, Literal) else "an expression"
        raise BindingError(
            f"{name} wants a constant unit, not {shown}", hint=f"one of {', '.join(known)}"
        )
    return Literal(unit.lower(), t.STRING, f"'{unit.lower()}'")


def _bind_date_trunc(name: str, args: list[Node]) -> Node:
    unit = _unit(name, args[0], [*PERIODS, *UNITS])
    return Call(name, (unit, _times(name, args[1], t.TIMESTAMP)), t.TIMESTAMP)


def _date_trunc(call: Call, parts: list[Part]) -> Part:
    unit = str(call.args[0].value if isinstance(call.args[0], Literal) else "")
    assert call.zone is not None, "bound without a zone"
    value, zone = parts[1].value, call.zone
    if unit not in UNITS:
        days = first_day(day_of(*wall(value, zone)), unit).cast(pl.Int64)
        micros = _day_starts(days, zone)
    elif zone.is_utc or UNITS[unit] <= MICROS_PER_SECOND:
        # Offsets are whole seconds.
        micros = _scaled(floored(value, UNITS[unit]), UNITS[unit])
    else:
        seconds = floored(value, MICROS_PER_SECOND)
        size = UNITS[unit] // MICROS_PER_SECOND
        truncated = computed(seconds, lambda instants: zone.truncated(instants, size))
        micros = _scaled(truncated, MICROS_PER_SECOND)
    return strict_or_null(micros, parts[1:])


def _day_starts(days: pl.Expr, zone: Zone) -> pl.Expr:
    if zone.is_utc:
        return _scaled(days, MICROS_PER_DAY)
    midnights = days * pl.lit(SECONDS_PER_DAY, dtype=pl.Int64)
    return _scaled(computed(midnights, zone.starts_of), MICROS_PER_SECOND)


def _scaled(value: pl.Expr, unit: int) -> pl.Expr:
    """Times the unit; NULL for the one unit that starts before the first timestamp."""
    lowest = -(2**63) // unit + 1 if unit != 1 else -(2**63)
    fits = value.ge(pl.lit(lowest, dtype=pl.Int64))
    return pl.when(fits).then(value * pl.lit(unit, dtype=pl.Int64))


def _bind_trunc(name: str, args: list[Node]) -> Node:
    return Call(name, (_times(name, args[0], t.DATE), _unit(name, args[1], [*PERIODS])), t.DATE)


def _trunc(call: Call, parts: list[Part]) -> Part:
    unit = call.args[1].value if isinstance(call.args[1], Literal) else ""
    return Part(first_day(parts[0].value, str(unit)), parts[0].failed)


FUNCTIONS = (
    *(Function(name, 1, 1, _bind_day_part, _day_part) for name in DAY_PARTS),
    *(Function(name, 1, 1, _bind_clock_part, _clock_part) for name in CLOCK_PARTS),
    *(Function(name, 1, 1, _bind_epoch, _epoch) for name in EPOCHS),
    *(Function(name, 1, 1, _bind_from_epoch, _from_epoch) for name in FROM_EPOCHS),
    Function("date_trunc", 2, 2, _bind_date_trunc, _date_trunc),
    Function("trunc", 2, 2, _bind_trunc, _trunc),
)
