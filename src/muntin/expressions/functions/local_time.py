"""Instants on the clock of a zone, and back, as polars expressions.

Offsets from UTC are whole seconds, and so are these times: adding an offset to the microseconds of
the first or the last timestamp would overflow.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from muntin.expressions.functions.calendar import floored
from muntin.expressions.literals import MICROS_PER_SECOND
from muntin.expressions.parts import wide
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
