"""Parts of dates and timestamps, truncation, and times as numbers; the zone is UTC."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.coercion import coerce, require
from muntin.expressions.functions.calendar import (
    CLOCK_PARTS,
    DAY_PARTS,
    PERIODS,
    UNITS,
    clock_part,
    first_day,
    floored,
)
from muntin.expressions.literals import MICROS_PER_DAY
from muntin.expressions.parts import Part, strict_or_null, wide
from muntin.expressions.problems import BindingError
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Literal, Node

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
    return Part(clock_part(parts[0].value, call.function), parts[0].failed)


def _bind_epoch(name: str, args: list[Node]) -> Node:
    return Call(name, (_times(name, args[0], t.TIMESTAMP),), t.BIGINT)


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
    unit = call.args[0].value if isinstance(call.args[0], Literal) else ""
    value = parts[1].value
    if unit in UNITS:
        micros = _scaled(floored(value, UNITS[str(unit)]), UNITS[str(unit)])
    else:
        days = floored(value, MICROS_PER_DAY).cast(pl.Int32)
        micros = _scaled(first_day(days, str(unit)).cast(pl.Int64), MICROS_PER_DAY)
    return strict_or_null(micros, parts[1:])


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
