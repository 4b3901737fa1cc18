"""Rows whose time can be used, told from those that are set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.plan.timeline import MAX_TICK, Timeline

_DAY = 86_400_000_000


@dataclass(frozen=True)
class Usable:
    """The rows of a batch that have a time, their largest tick, and how many others there were."""

    rows: pa.Table
    latest: int | None
    bad_rows: int


def usable_rows(batch: pa.Table, timeline: Timeline, horizon: int | None) -> Usable:
    """Leave out rows without a time, and rows whose time lies beyond the horizon.

    The horizon is a tick, or None where any time will do that window arithmetic can take.

    >>> times = pa.table({"ts": pa.array([1, None, 7, 2**62])})
    >>> found = usable_rows(times, Timeline("ts", pa.int64()), 6)
    >>> found.latest, found.bad_rows
    (1, 3)
    """
    units = _units(batch[timeline.column].combine_chunks(), timeline)
    unit = _unit(timeline)
    high = MAX_TICK if horizon is None else min(horizon, MAX_TICK)
    bounds = pc.min_max(units)
    low_unit, high_unit = -(MAX_TICK // unit), high // unit
    fits = bounds["max"].is_valid and (
        bounds["min"].as_py() >= low_unit and bounds["max"].as_py() <= high_unit
    )
    if fits and not units.null_count:
        return Usable(batch, bounds["max"].as_py() * unit, 0)
    kept = pc.and_(
        pc.greater_equal(units, pa.scalar(low_unit)), pc.less_equal(units, pa.scalar(high_unit))
    ).fill_null(False)
    rows = batch.filter(kept)
    largest = pc.max(units.filter(kept)).as_py()
    latest = None if largest is None else largest * unit
    return Usable(rows, latest, batch.num_rows - rows.num_rows)


def count_late(batch: pa.Table, timeline: Timeline, watermark: int | None) -> int:
    """How many rows of usable times lie below the watermark."""
    if watermark is None or not batch.num_rows:
        return 0
    ticks = timeline.to_ticks(batch[timeline.column].combine_chunks()).to_numpy()
    return int(np.count_nonzero(ticks < watermark))


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
