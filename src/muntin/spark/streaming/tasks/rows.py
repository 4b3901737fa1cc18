"""The rows of a batch sorted out: those that count, those that are late, those that are bad."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError
from muntin.plan.timeline import MAX_TICK, Timeline
from muntin.sinks import ParquetSink, Sink, callback, parquet

_DAY = 86_400_000_000


@dataclass(frozen=True)
class SortedOut:
    """The rows of a batch by what becomes of them, and the largest tick of any that can be used."""

    rows: pa.Table
    late: pa.Table
    bad: pa.Table
    latest: int | None


def sort_out(
    batch: pa.Table, timeline: Timeline, horizon: int | None, watermark: int | None
) -> SortedOut:
    """Tell apart the rows below the watermark, and those without a time or beyond the horizon.

    Both are ticks; None where any time will do that window arithmetic can take.

    >>> times = pa.table({"ts": pa.array([1, None, 7, 2**62, 5])})
    >>> found = sort_out(times, Timeline("ts", pa.int64()), 6, 3)
    >>> [part["ts"].to_pylist() for part in (found.rows, found.late, found.bad)], found.latest
    ([[5], [1], [None, 7, 4611686018427387904]], 5)
    """
    units = _units(batch[timeline.column].combine_chunks(), timeline)
    unit = _unit(timeline)
    high = MAX_TICK if horizon is None else min(horizon, MAX_TICK)
    low_unit, high_unit = -(MAX_TICK // unit), high // unit
    bounds = pc.min_max(units)
    lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
    nothing = batch.slice(0, 0)
    bad, late = nothing, nothing
    fits = highest is not None and lowest >= low_unit and highest <= high_unit
    if not fits or units.null_count:
        usable = _at_least(units, low_unit, pc.less_equal(units, pa.scalar(high_unit)))
        batch, bad = batch.filter(usable), batch.filter(pc.invert(usable))
        units = units.filter(usable)
        bounds = pc.min_max(units)
        lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
    if watermark is not None and lowest is not None and lowest * unit < watermark:
        # The first unit that begins at the watermark or after it.
        timely = _at_least(units, -(-watermark // unit))
        batch, late = batch.filter(timely), batch.filter(pc.invert(timely))
    return SortedOut(batch, late, bad, None if highest is None else highest * unit)


def _at_least(units: pa.Array, least: int, also: pa.Array | None = None) -> pa.Array:
    found = pc.greater_equal(units, pa.scalar(least))
    return (found if also is None else pc.and_(found, also)).fill_null(False)


def _units(values: pa.Array, timeline: Timeline) -> pa.Array:
    """Times as 64-bit integers in the unit of their column."""
    if pa.types.is_date32(timeline.type):
        return values.view(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(timeline.type):
        return values.view(pa.int64())
    return values.cast(pa.int64())


def _unit(timeline: Timeline) -> int:
    """The ticks of one unit; Spark has timestamps in microseconds only."""
    return _DAY if pa.types.is_date(timeline.type) else 1


@dataclass(frozen=True)
class AsideNames:
    """What the side output calls a stream's late and bad rows, where a sink has queries."""

    late: str = "late_rows"
    bad: str = "bad_rows"

    @classmethod
    def of_stream(cls, name: str) -> AsideNames:
        """The names where there are several streams, each with columns of its own."""
        return cls(f"late_rows_{name}", f"bad_rows_{name}")


SideOutput = Sink[Any] | str | os.PathLike[str] | Callable[[int, str, pa.Table], object]


def read_side_output(given: SideOutput | None, sink: Sink[Any]) -> Sink[Any] | None:
    """The sink that a folder, a function or a sink means; not the one that results go to.

    >>> read_side_output("aside", parquet("out")).root.name
    'aside'
    """
    if given is None:
        return None
    if isinstance(given, Sink):
        found = given
    elif isinstance(given, str | os.PathLike):
        found = parquet(given)
    elif callable(given):
        found = callback(given)
    else:
        raise DataError(
            f"the side output is of type {type(given).__name__}",
            hint="give a sink, a folder, or a function of the batch id, the kind of rows and rows",
        )
    both = (found, sink)
    if found is sink or (_folder(found) is not None and len({_folder(each) for each in both}) == 1):
        raise DataError(
            "the side output goes where the results go", hint="give each a folder of its own"
        )
    return found


def _folder(sink: Sink[Any]) -> object:
    return sink.root if isinstance(sink, ParquetSink) else None
