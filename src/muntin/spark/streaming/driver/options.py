"""The options of ``muntin.run``, as the driver takes them."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from muntin.display import count
from muntin.errors import DataError, WindowError
from muntin.expressions.zones import Zone
from muntin.spark.environment.zones import session_zone
from muntin.spark.problems import SparkWarning
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint, zone_kept
from muntin.spark.streaming.driver.batches import BatchRunner, Limits
from muntin.spark.streaming.driver.heartbeat import Heartbeat
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.plans import Planner
from muntin.spark.streaming.driver.source import log_places
from muntin.spark.streaming.driver.watermarks import Pace
from muntin.spark.streaming.problems import CheckpointError
from muntin.windows import DurationLike, duration
from muntin.windows.duration import is_plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AVAILABLE_NOW = ("available_now", "availablenow")


def run_zone(
    session: SparkSession, timezone: str | None, checkpoint: str | os.PathLike[str] | None
) -> Zone:
    """The zone that is asked for; but a run goes on in the one that it began with."""
    asked = session_zone(session, timezone)
    kept = None if checkpoint is None else zone_kept(checkpoint)
    if kept is None:
        return asked
    zone = session_zone(session, kept)
    if replace(asked, name=kept) != zone:
        whose = "the session has" if timezone is None else "it was asked for"
        warnings.warn(
            f"the run goes on in the time zone {kept} that its checkpoint {checkpoint} began "
            f"with, and {whose} {asked.name}; start with an empty checkpoint to change it",
            SparkWarning,
            stacklevel=3,
        )
    return zone


def spread_of(session: SparkSession, partitions: int | None, buckets: int | None) -> Buckets:
    """How state is spread: by default, over as many partitions as there are cores."""
    return bucket_count(partitions or session.sparkContext.defaultParallelism, buckets)


def log_places_of(inputs: Sequence[StreamInput], *, beats: bool) -> list[int | None]:
    """The logs of all sources; that of beats comes first."""
    found = log_places([given.source.frame for given in inputs], first=int(beats))
    return [0, *found] if beats else found


def heartbeat_of(
    checkpoint: Checkpoint, planner: Planner, runner: BatchRunner, paces: Sequence[Pace]
) -> Heartbeat | None:
    """The source of beats, by which the clock moves W; None where only rows move it."""
    if not checkpoint.beats:
        if all(pace.advance_when_idle is None for pace in paces):
            return None
        raise CheckpointError(
            f"the run in {checkpoint.root} was begun without advance_when_idle, and Spark cannot "
            "add a source to a checkpoint",
            hint="continue without it, or start with an empty checkpoint",
        )
    return Heartbeat(
        checkpoint.root,
        paces,
        lambda: (runner.outcome, planner.windows),
    )


def temporary_folder() -> str:
    """A folder for the checkpoint of a run that was given none."""
    folder = tempfile.mkdtemp(prefix="muntin-checkpoint-")
    warnings.warn(
        f"the run keeps its checkpoint in {folder}, a temporary folder: it cannot be continued "
        "for long. Give it a folder with checkpoint=",
        SparkWarning,
        stacklevel=3,
    )
    return folder


def read_limits(
    max_ahead: DurationLike | None, *, fail_on_bad_rows: bool, fail_on_errors: bool
) -> Limits:
    """The horizon in microseconds, and what ends the run."""
    ahead = None if max_ahead is None else duration(max_ahead)
    if ahead is not None and ahead < 0:
        raise WindowError(f"max_ahead must be 0 or more, or None, not {max_ahead!r}")
    return Limits(ahead, fail_on_bad_rows, fail_on_errors)


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
        raise WindowError(f"trigger must be 0 or more, not {trigger!r}")
    return {"processingTime": f"{ticks // 1000} milliseconds"}


def bucket_count(partitions: int, buckets: int | None) -> Buckets:
    """How state is spread."""
    for option, value in (("partitions", partitions), ("buckets", buckets)):
        if value is not None and not (is_plain(value) and 1 <= value <= 1 << 16):
            raise DataError(f"{option} must be a number from 1 to 65536, not {value!r}")
    if buckets is None:
        return Buckets.by_default(partitions)
    if buckets < partitions:
        raise DataError(
            f"{count(buckets, 'bucket')} for {count(partitions, 'partition')}",
            hint="use at least one bucket for each partition",
        )
    return Buckets(partitions, buckets)
