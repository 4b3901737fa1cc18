"""The options of a run, checked before anything starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from muntin.display import count
from muntin.errors import DataError, WindowError
from muntin.plan import Timeline
from muntin.spark.streaming.batches import Limits
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.heartbeat import Idleness
from muntin.windows import DurationLike, duration
from muntin.windows.duration import is_plain

_AVAILABLE_NOW = ("available_now", "availablenow")


def read_limits(
    schema: pa.Schema,
    time: str,
    lateness: DurationLike,
    max_ahead: DurationLike | None,
    *,
    fail_on_bad_rows: bool,
    fail_on_errors: bool,
) -> Limits:
    """Lateness and the horizon in ticks of the time column."""
    late = Timeline.of(schema, time).lateness(lateness)
    ahead = None if max_ahead is None else duration(max_ahead)
    if ahead is not None and ahead < 0:
        raise WindowError(f"max_ahead is {max_ahead!r}", hint="use 0 or more, or None")
    return Limits(late, ahead, fail_on_bad_rows, fail_on_errors)


def read_idleness(
    schema: pa.Schema, time: str, limit: DurationLike | None, limits: Limits, started: int | None
) -> Idleness | None:
    """When the stream counts as silent; None where only rows move it."""
    if limit is None:
        return None
    timeline = Timeline.of(schema, time)
    if timeline.plain:
        raise WindowError(
            f"the time column {timeline.column!r} is a plain integer, which no clock moves",
            hint="leave out advance_when_idle, or read times from a TIMESTAMP column",
        )
    if is_plain(limit) or duration(limit) <= 0:
        raise WindowError(
            f"advance_when_idle is {limit!r}", hint="write a duration, as in '1 minute'"
        )
    return Idleness(duration(limit), limits.lateness, started)


def is_fail(option: str, value: str, other: str) -> bool:
    """Whether an option says that the run is to fail; it may say one other thing."""
    if value not in (other, "fail"):
        raise DataError(f"{option} is {value!r}", hint=f"use {other} or fail")
    return value == "fail"


def read_trigger(trigger: str | timedelta | None) -> dict[str, Any]:
    """What Spark's writer is told about when batches begin.

    >>> read_trigger("10 seconds"), read_trigger("available_now")
    ({'processingTime': '10000 milliseconds'}, {'availableNow': True})
    """
    if trigger is None:
        return {}
    if isinstance(trigger, str) and trigger.lower() in _AVAILABLE_NOW:
        return {"availableNow": True}
    if is_plain(trigger):
        raise WindowError(
            f"trigger is {trigger!r}, which has no unit", hint="write it as in '10 seconds'"
        )
    ticks = duration(trigger)
    if ticks < 0:
        raise WindowError(f"trigger is {trigger!r}", hint="use 0 or more")
    return {"processingTime": f"{ticks // 1000} milliseconds"}


def bucket_count(partitions: int, buckets: int | None) -> Buckets:
    """How state is spread."""
    for option, value in (("partitions", partitions), ("buckets", buckets)):
        if value is not None and not (is_plain(value) and 1 <= value <= 1 << 16):
            raise DataError(f"{option} is {value!r}", hint="use a number from 1 to 65536")
    if buckets is None:
        return Buckets.by_default(partitions)
    if buckets < partitions:
        raise DataError(
            f"{count(buckets, 'bucket')} for {count(partitions, 'partition')}",
            hint="use at least one bucket for each partition",
        )
    return Buckets(partitions, buckets)
