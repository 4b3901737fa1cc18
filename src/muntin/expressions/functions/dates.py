"""Parts of dates and timestamps, truncation, and times as numbers."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.coercion import coerce, require
from muntin.expressions.functions.calendar import (
    CLOCK_PARTS,
    DAY_PARTS,
    PERIODS,
    SECONDS_PER_DAY,
    UNITS,
    clock_part,
    day_of,
    first_day,
    floored,
)
from muntin.expressions.functions.local_time import computed, wall
from muntin.expressions.literals import MICROS_PER_DAY, MICROS_PER_SECOND
from muntin.expressions.parts import Part, strict_or_null, wide
from muntin.expressions.problems import BindingError
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Literal, Node
from muntin.expressions.zones import Zone

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
