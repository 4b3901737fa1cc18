"""``muntin.run``: any number of queries over one stream, which join and leave while it runs."""

from __future__ import annotations

import os
import tempfile
import time as clock
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from muntin.aggregators.choice import Prefer
from muntin.display import count
from muntin.errors import DataError, WindowError
from muntin.expressions.zones import Zone
from muntin.plan import Strategy, Timeline
from muntin.planner.placement.optimizers import check_method
from muntin.planner.sharing import OptimizerName
from muntin.planner.techniques import Preferences
from muntin.queries import QueriesLike
from muntin.queries import queries as read_queries
from muntin.sinks import Sink, memory
from muntin.spark.environment.existing import require_session
from muntin.spark.environment.zones import session_zone
from muntin.spark.problems import SparkWarning
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint, zone_kept
from muntin.spark.streaming.driver.batches import BatchRunner, Limits
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.driver.heartbeat import Heartbeat, Idleness
from muntin.spark.streaming.driver.plans import Planner
from muntin.spark.streaming.driver.source import StreamSource, session_of, stream_source
from muntin.spark.streaming.driver.tables import StaticTables
from muntin.spark.streaming.problems import CheckpointError
from muntin.spark.streaming.tasks.rows import SideOutput, read_side_output
from muntin.windows import DurationLike, duration
from muntin.windows.duration import is_plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Run", "run"]


def run(
    stream: Any,
    queries: QueriesLike,
    time: str = "ts",
    *,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    lateness: DurationLike = 0,
    advance_when_idle: DurationLike | None = None,
    trigger: str | timedelta | None = None,
    sink: Sink[Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_error: Literal["null", "fail"] = "null",
    on_bad_row: Literal["skip", "fail"] = "skip",
    on_gap: Literal["fail", "accept"] = "fail",
    side_output: SideOutput | None = None,
    max_ahead: DurationLike | None = "1 day",
    partitions: int | None = None,
    buckets: int | None = None,
    strategy: Strategy = "cells",
    optimizer: OptimizerName = "auto",
    placement: str | None = None,
    timezone: str | None = None,
    technique: str | None = None,
    prefer: Prefer = "throughput",
) -> Run:
    """Answer many sliding-window queries over a stream in one shared pass.

    Let W be the largest event time of all earlier batches minus ``lateness``. A row below W is
    late: it is dropped and counted. A window is answered once, in the first batch after which W
    has reached its end.

    A run that is started again with the same checkpoint resumes where it left off, with the
    queries it had. Differences between the ``queries`` argument and that of the last start are
    applied: a new name joins, a missing name leaves, a changed query is replaced.

    Args:
        stream: A streaming DataFrame, from any source that Spark can read; or files that arrive in
            a folder, which Spark's workers read themselves (:func:`muntin.files`).
        queries: SQL text, a path to a ``.sql`` file, queries, or a list of these.
        time: The column of event times: timestamps, dates or integers.
        name: What FROM must call the stream; by default FROM may use any name.
        tables: Frames that queries may join, by name; each is read when the run starts, and
            again by :meth:`Run.refresh`.
        lateness: How far rows may be out of order: a duration, or a number if times are numbers.
        advance_when_idle: How long the stream may be silent before the clock moves W: it is then
            the largest event time plus the time elapsed since, minus ``lateness``, until a row
            arrives. By default only rows move W. A checkpoint has it from its first start, or
            never.
        trigger: How often a batch begins, as in "10 seconds"; "available_now" to process what
            there is and end; by default, as fast as possible.
        sink: Where results go, from ``muntin.sinks``; by default, the driver's memory.
        checkpoint: A folder that belongs to this run; by default, a temporary one.
        on_error: What happens to a value that fails (overflow, division by zero): ``null`` makes
            it NULL and counts it, ``fail`` ends the run.
        on_bad_row: What happens to a row without a usable time: ``skip`` leaves it out and counts
            it, ``fail`` ends the run.
        on_gap: What happens if results are missing from the sink, though an earlier batch
            delivered them: ``fail`` refuses the start, ``accept`` continues without them. Sinks
            that keep nothing themselves (memory, console, callback) have no gaps.
        side_output: Where late and bad rows go, with all their columns: a folder, a sink, or a
            function of the batch id, ``late_rows`` or ``bad_rows``, and the rows.
        max_ahead: How far ahead of the clock a time may be; a row beyond that is a bad row. None
            for no limit. Times that are numbers have no clock.
        partitions: How many tasks keep state, about the number of cores; fixed by the checkpoint.
        buckets: How many pieces state is split into; fixed by the checkpoint.
        strategy: What queries share; see ``muntin.aggregate``.
        optimizer: Who decides which queries share slices; see ``muntin.aggregate``. A stream
            shares all until batches have told how many rows come. ``auto`` and ``tri_weave``
            then move queries to other trees, between two batches, where that takes at least a
            tenth off the estimated cost; ``weave_share`` weighs the costs for queries that join,
            and those that run stay in their trees, as with ``all_share`` and ``no_share``.
        placement: Who places trees without groups on buckets when a stream begins; see
            ``muntin.aggregate``. What joins later goes where the costliest bucket ends up
            cheapest, and what runs stays where its state is.
        timezone: Where the local times are that expressions ask for, as in ``hour(ts)`` or
            ``ts >= '2013-10-07 10:00:00'``, and those in text files that name no zone: a region
            such as ``America/New_York``, or an offset such as ``+01:00``. The Spark session's
            unless said otherwise; fixed by the checkpoint. Windows are aligned in UTC.
        technique: The final technique of queries that name none themselves, by its name in
            ``muntin.aggregators.names()``; the planner chooses if not given. It changes no answer,
            and another one may be given when the run is started again.
        prefer: What the planner chooses techniques by: ``throughput``, or ``latency`` where no step
            may be slow.

    Returns:
        The running stream.

    Raises:
        MuntinError: If anything is wrong with the arguments, the session or the checkpoint.
    """
    if placement is not None:
        check_method(placement)
    session = require_session(session_of(stream))
    zone = _zone(session, timezone, checkpoint)
    source = stream_source(stream, zone)
    limits = read_limits(
        source.schema,
        time,
        lateness,
        max_ahead,
        fail_on_bad_rows=is_fail("on_bad_row", on_bad_row, "skip"),
        fail_on_errors=is_fail("on_error", on_error, "null"),
    )
    destination = memory() if sink is None else sink
    aside = read_side_output(side_output, destination)
    chosen = read_trigger(trigger)
    accepts_gaps = not is_fail("on_gap", on_gap, "accept")
    listening = None if "availableNow" in chosen else clock.time_ns() // 1000
    idleness = read_idleness(source.schema, time, advance_when_idle, limits, listening)
    asked = read_queries(queries)
    spread = _spread(source, partitions, buckets)
    folder = _temporary() if checkpoint is None else checkpoint
    kept = Checkpoint(folder, spread, beats=idleness is not None, timezone=zone.name)
    try:
        kept.check()
        kept.refuse_closed()
        known = kept.changes()
        static = StaticTables(tables, kept, known.tables if known else {}, zone.name)
        planner = Planner(
            source,
            time,
            kept,
            static,
            name=name,
            strategy=strategy,
            optimizer=optimizer,
            zone=zone,
            placement=placement,
            told=Preferences(technique, prefer),
        )
        runner = BatchRunner(kept, planner, destination, aside, limits, idleness)
        heartbeat = _heartbeat(kept, planner, runner, idleness)
        runner.resume(accepts_gaps=accepts_gaps)
        planner.start(asked, runner.outcome)
        started = Run(source, kept, planner, runner, destination, aside, chosen, heartbeat)
        if "availableNow" not in chosen:
            # It may have done no more than to finish what a stop with flush=True had begun.
            kept.refuse_closed()
        return started
    except BaseException:
        for each in (destination, aside):
            if each is not None:
                each.close()
        kept.release()
        raise


def _zone(
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


def _spread(source: StreamSource, partitions: int | None, buckets: int | None) -> Buckets:
    count = partitions or source.session.sparkContext.defaultParallelism
    return bucket_count(count, buckets)


def _heartbeat(
    checkpoint: Checkpoint, planner: Planner, runner: BatchRunner, idleness: Idleness | None
) -> Heartbeat | None:
    if not checkpoint.beats:
        if idleness is None:
            return None
        raise CheckpointError(
            f"the run in {checkpoint.root} was begun without advance_when_idle, and Spark cannot "
            "add a source to a checkpoint",
            hint="continue without it, or start with an empty checkpoint",
        )
    return Heartbeat(checkpoint.root, idleness, lambda: (runner.outcome, planner.current.windows))


def _temporary() -> str:
    folder = tempfile.mkdtemp(prefix="muntin-checkpoint-")
    warnings.warn(
        f"the run keeps its checkpoint in {folder}, a temporary folder: it cannot be continued "
        "for long. Give it a folder with checkpoint=",
        SparkWarning,
        stacklevel=4,
    )
    return folder


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
        raise WindowError(f"max_ahead must be 0 or more, or None, not {max_ahead!r}")
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
            f"advance_when_idle must be a positive duration, not {limit!r}",
            hint="write it as in '1 minute'",
        )
    return Idleness(duration(limit), limits.lateness, started)


def is_fail(option: str, value: str, other: str) -> bool:
    """Whether an option says that the run is to fail; it may say one other thing."""
    if value not in (other, "fail"):
        raise DataError(f"{option} must be {other} or fail, not {value!r}")
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
