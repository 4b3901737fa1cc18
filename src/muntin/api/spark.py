"""``muntin.run``: any number of queries over streams on Spark."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from muntin.aggregates.caps import Guarantees, OnCap
from muntin.aggregators.choice import Prefer
from muntin.errors import DataError
from muntin.faults import is_fail
from muntin.plan import Strategy
from muntin.planner.placement.optimizers import check_method
from muntin.planner.rows.routes import NO_RELATION, RELATION_HINT
from muntin.planner.sharing import OptimizerName
from muntin.planner.techniques import Preferences
from muntin.queries import KeepsLike, QueriesLike, all_queries, queries_and_keeps
from muntin.queries.spec import all_approximated, all_promised
from muntin.sinks import Sink, memory
from muntin.spark.environment.existing import require_session
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.driver.batches import BatchRunner
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.driver.inputs import Times, read_inputs, shared_session, streams_of
from muntin.spark.streaming.driver.keeps import RunKeeps
from muntin.spark.streaming.driver.options import (
    heartbeat_of,
    log_places_of,
    read_limits,
    read_trigger,
    run_zone,
    spread_of,
    temporary_folder,
)
from muntin.spark.streaming.driver.plans import Planner, Planning
from muntin.spark.streaming.driver.tables import StaticTables
from muntin.spark.streaming.tasks.rows import SideOutput, read_side_output
from muntin.windows import DurationLike


def run(
    stream: Any,
    queries: QueriesLike,
    time: str | Mapping[str, str] = "ts",
    *,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    relations: Mapping[str, Any] | None = None,
    lateness: DurationLike | Mapping[str, DurationLike] = 0,
    idle: DurationLike | Mapping[str, DurationLike] | None = None,
    advance_when_idle: DurationLike | Mapping[str, DurationLike] | None = None,
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
    bounds: bool = False,
    on_cap: OnCap = "null",
    cap_values: int | None = None,
    cap_bytes: int | None = None,
    approximate: bool = False,
    keeps: KeepsLike | None = None,
) -> Run:
    """Answer many sliding-window queries over a stream, or several, in one shared pass.

    Let W be the largest event time of all earlier batches minus ``lateness``. A row below W is
    late: it is dropped and counted. A window is answered once, in the first batch after which W
    has reached its end. Each stream has a W of its own, and a query moves by that of its stream.

    A run that is started again with the same checkpoint resumes where it left off, with the
    queries it had. Differences between the ``queries`` argument and that of the last start are
    applied: a new name joins, a missing name leaves, a changed query is replaced.

    Args:
        stream: A streaming DataFrame, from any source that Spark can read; or files that arrive in
            a folder, which Spark's workers read themselves (:func:`muntin.files`). Several streams
            are a mapping by the names that FROM calls them; the checkpoint fixes the names, and
            one Spark query carries all of them.
        queries: SQL text, a path to a ``.sql`` file, queries, or a list of these.
        time: The column of event times: timestamps, dates or integers. This and the next options
            may be mappings by the name of the stream.
        name: What FROM must call a single stream; by default FROM may use any name.
        tables: Frames that queries may join, by name; each is read when the run starts, and
            again by :meth:`Run.refresh`.
        relations: Refused: retroactive relations run in this process only, with
            :func:`muntin.stream`.
        lateness: How far rows may be out of order: a duration, or a number if times are numbers.
        idle: How long one of several streams may be silent before it holds none of the others
            back: it then takes the least W of those that are not idle, and rows below that are
            late. By default a stream waits for its rows.
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
            such as ``America/New_York``, or an offset such as ``+01:00``. By default, the
            Spark session's; fixed by the checkpoint. Windows are aligned in UTC.
        technique: The final technique of queries that name none themselves, by its name in
            ``muntin.aggregators.names()``; the planner chooses if not given. It changes no answer,
            and another one may be given when the run is started again.
        prefer: What the planner chooses techniques by: ``throughput``, or ``latency`` where no step
            may be slow.
        bounds: Whether approximate aggregates have columns for their bounds; see
            :func:`aggregate`, as for the next three options.
        on_cap: What a window over its cap gives: ``null``, ``fail`` or ``approximate``.
        cap_values: How many different values a window may have.
        cap_bytes: How many bytes these may have.
        approximate: Whether sums of products of several streams' DOUBLE columns are products of
            sums, for all queries given here; ``WITH (approximate = true)`` says so for one.
        keeps: What is kept to be asked (:meth:`Run.ask`), beside what the checkpoint has:
            ``CREATE KEEP`` statements, or what :func:`muntin.keep` makes. They may stand among the
            queries as well.

    Returns:
        The running stream.

    Raises:
        MuntinError: If anything is wrong with the arguments, the session or the checkpoint.
    """
    if placement is not None:
        check_method(placement)
    if relations:
        raise DataError(f"relations {', '.join(relations)}: {NO_RELATION}", hint=RELATION_HINT)
    streams = streams_of(stream, name)
    session = require_session(shared_session(streams))
    zone = run_zone(session, timezone, checkpoint)
    chosen = read_trigger(trigger)
    listening = None if "availableNow" in chosen else clock.time_ns() // 1000
    inputs = read_inputs(streams, zone, Times(time, lateness, idle, advance_when_idle), listening)
    limits = read_limits(
        max_ahead,
        fail_on_bad_rows=is_fail("on_bad_row", on_bad_row, "skip"),
        fail_on_errors=is_fail("on_error", on_error, "null"),
    )
    promised = Guarantees(bounds, on_cap, cap_values, cap_bytes)
    destination = memory() if sink is None else sink
    aside = read_side_output(side_output, destination)
    accepts_gaps = not is_fail("on_gap", on_gap, "accept")
    left, wanted = queries_and_keeps(queries, keeps)
    asked = all_promised(all_queries(left), promised)
    if approximate:
        asked = all_approximated(asked)
    spread = spread_of(session, partitions, buckets)
    folder = temporary_folder() if checkpoint is None else checkpoint
    paces = [given.pace for given in inputs]
    kept = Checkpoint(
        folder,
        spread,
        beats=any(pace.advance_when_idle is not None for pace in paces),
        timezone=zone.name,
        streams=[str(given.name) for given in inputs] if len(inputs) > 1 else (),
    )
    try:
        kept.logs.places = log_places_of(inputs, beats=kept.beats)
        kept.check()
        kept.refuse_closed()
        known = kept.changes()
        static = StaticTables(tables, kept, known.tables if known else {}, zone.name)
        told = Preferences(technique, prefer, promised)
        how = Planning(strategy, optimizer, zone, told, placement)
        planner = Planner(inputs, kept, static, how, destination.check_outputs)
        asks = RunKeeps(inputs, kept, static, zone)
        runner = BatchRunner(kept, planner, destination, aside, limits, paces, asks)
        heartbeat = heartbeat_of(kept, planner, runner, paces)
        runner.resume(accepts_gaps=accepts_gaps)
        planner.start(asked, runner.outcome)
        asks.start(wanted)
        started = Run(inputs, kept, planner, runner, destination, aside, chosen, heartbeat, asks)
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
