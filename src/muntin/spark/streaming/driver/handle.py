"""A run: a stream that is under way, and the queries over it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Self

from muntin.display import count, html_facts
from muntin.errors import MuntinError
from muntin.plan import SharedPlan
from muntin.plan.routes import RoutedPlan
from muntin.queries import (
    AnyQuery,
    CreateKeep,
    DropKeep,
    DropQuery,
    Keep,
    QueriesLike,
    Statement,
    statements_of,
)
from muntin.sinks import Sink
from muntin.spark.interrupts import ctrl_c
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint, is_complete
from muntin.spark.streaming.checkpoint.records import StreamOutcome
from muntin.spark.streaming.driver.batches import BatchRunner
from muntin.spark.streaming.driver.heartbeat import Heartbeat
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.keeps import RunKeeps
from muntin.spark.streaming.driver.plans import Planner, columns_of, result_schemas
from muntin.spark.streaming.driver.progress import RunProgress, StreamProgress
from muntin.spark.streaming.driver.query import StreamDriver
from muntin.spark.streaming.problems import as_run_error
from muntin.synopses import Askable, Asking

_logger = logging.getLogger("muntin.spark")
_STEP = 0.25  # seconds


class Run(Askable):
    """A running stream; made by ``muntin.run``.

    Used as a context manager it is stopped at the end of the block.

    Attributes:
        sink: Where results go.
        side_output: Where late and bad rows go, if anywhere.
    """

    def __init__(
        self,
        inputs: Sequence[StreamInput],
        checkpoint: Checkpoint,
        planner: Planner,
        runner: BatchRunner,
        sink: Sink[Any],
        aside: Sink[Any] | None,
        trigger: Mapping[str, Any],
        heartbeat: Heartbeat | None = None,
        keeps: RunKeeps | None = None,
    ) -> None:
        self.sink, self.side_output = sink, aside
        self._keeps = keeps
        self._inputs, self._checkpoint = inputs, checkpoint
        self._planner, self._runner = planner, runner
        self._is_released = False
        self._changing = Lock()
        sink.declare(result_schemas(planner.current, planner.rows.current))
        if aside is not None:
            aside.declare(
                {
                    name: given.source.schema
                    for given in inputs
                    for name in (given.aside.late, given.aside.bad)
                }
            )
        set_aside = None if aside is None else aside.writer()
        writer = sink.writer()
        self._heartbeat = heartbeat
        self._driver = StreamDriver(
            inputs, checkpoint, writer, set_aside, trigger, runner, heartbeat
        )
        if checkpoint.is_closing:
            self._flush(None)
            self._release()
            _logger.warning(
                "the run in %s is complete: the open windows that a stop before had begun to "
                "answer are answered, and rows that came since are not read",
                checkpoint.root,
            )
        else:
            self._start()

    def add(self, query: QueriesLike) -> None:
        """Add queries, from the next batch on; the change is durable on return.

        They answer at least every window that starts after the largest event time of the batches
        before, and earlier ones if the state still holds all their rows. Several queries join
        together or not at all. ``CREATE OR REPLACE QUERY`` replaces the query of that name, which
        answers nothing more, not even its open windows; ``DROP QUERY`` removes one.

        Raises:
            MuntinError: If a query cannot be read, or its name is taken. The run continues.
        """
        self._apply(statements_of(query, [each.name for each in self._planner.catalog]))

    def remove(self, name: str) -> None:
        """Remove a query: from the next batch on it answers nothing."""
        self._apply([DropQuery(name)])

    def keeps(self) -> list[Keep]:
        """What the next batch keeps, in the order it joined."""
        return self._kept.keeps()

    def explain_keeps(self) -> str:
        """What is kept, and what it takes: entries per row, entries and bytes."""
        return self._kept.explain()

    def keep_facts(self) -> list[dict[str, Any]]:
        """The same by name, for every keep: its SQL, entries, bytes and entries per row."""
        return self._kept.facts()

    def _asked(self) -> Asking:
        return self._kept.asking

    @property
    def _kept(self) -> RunKeeps:
        assert self._keeps is not None
        return self._keeps

    def _apply_keeps(self, statements: Sequence[CreateKeep | DropKeep]) -> None:
        with self._changing:
            self._check_active()
            if self._kept.apply(statements, self._driver.columns):
                return
            # A keep reads a column that is not shipped: go on with it, between two batches.
            with self._driver.pause():
                self._kept.apply(statements, None)
                self._start()

    def refresh(self, table: str) -> None:
        """Read a static table again; rows from the next batch on are joined with what it holds."""
        self._check_active()
        self._planner.refresh(table)

    def update_table(self, name: str, frame: Any) -> None:
        """Give a static table another frame; rows from the next batch on are joined with it.

        A name that is new adds a table, for queries that join later: its columns are known then.
        The frame is read once; the run goes on with it, also after a restart.
        """
        self._check_active()
        self._planner.update_table(name, frame)

    def queries(self) -> list[AnyQuery]:
        """The queries that the next batch runs with, in the order they joined."""
        return list(self._planner.catalog)

    def plan(self, stream: str | None = None) -> SharedPlan:
        """What the queries over a stream share, as of the next batch; who moved, when and why.

        Args:
            stream: The name of the stream; it may be left out where there is a single one.
        """
        names = [given.name or "stream" for given in self._inputs]
        plans = dict(zip((name.lower() for name in names), self._planner.current, strict=True))
        if stream is None and len(plans) == 1:
            return next(iter(plans.values()))
        if stream is None or stream.lower() not in plans:
            told = "there are several streams" if stream is None else f"there is no {stream!r}"
            raise MuntinError(told, hint=f"name one of {', '.join(names)}")
        return plans[stream.lower()]

    def row_plan(self) -> RoutedPlan:
        """The operators of the queries over rows, as of the next batch, and where their rows go."""
        return self._planner.rows.current

    def progress(self) -> RunProgress:
        """What the run has seen and done."""
        outcome, timing = self._runner.outcome, self._runner.timing
        streams = dict(self._streams(outcome.streams))
        seen = max((each.seen for each in streams.values() if each.seen is not None), default=None)
        marks = [each.watermark for each in streams.values()]
        known = [each for each in marks if each is not None]
        lag = None
        if seen is not None and not any(given.timeline.plain for given in self._inputs):
            lag = time.time() - seen / 1e6
        partial, final, cell = outcome.aggregations
        return RunProgress(
            rows=outcome.rows,
            late_rows=sum(each.late_rows for each in streams.values()),
            bad_rows=sum(each.bad_rows for each in streams.values()),
            errors=Counter(outcome.errors),
            partial_aggregations=partial,
            final_aggregations=final,
            cell_aggregations=cell,
            is_active=self.is_active,
            queries=len(self._planner.catalog),
            batches=outcome.batch + 1,
            results=dict(outcome.results),
            seen=seen,
            watermark=min(known) if len(known) == len(marks) else None,
            lag=lag,
            state_bytes=outcome.state_bytes,
            batch_rows=timing.rows,
            batch_seconds=timing.seconds,
            streams=streams,
            since=dict(outcome.since or {}),
            hot_keys=self._runner.hot.hottest,
            split_keys=self._runner.hot.splitting,
        )

    def _streams(self, outcomes: Sequence[StreamOutcome]) -> Iterator[tuple[str, StreamProgress]]:
        clock = time.time_ns() // 1000
        for given, each in zip(self._inputs, outcomes, strict=True):
            yield (
                given.name or "stream",
                StreamProgress(
                    each.rows,
                    each.late_rows,
                    each.bad_rows,
                    each.seen,
                    each.watermark,
                    given.pace.is_idle(each, clock),
                ),
            )

    @property
    def is_active(self) -> bool:
        """Whether batches are run: not stopped, not failed, not at the end of its input."""
        query = self._driver.query
        if self._is_released or query is None:
            return False
        # A query that gives way to one with more columns is not the end.
        return bool(query.isActive) or self._driver.is_restarting or query is not self._driver.query

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run ends, or for some seconds; whether it has ended.

        Ctrl-C ends the wait with a ``KeyboardInterrupt``; the run continues until it is stopped.

        Raises:
            RunError: If it failed, with the reason.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with ctrl_c() as check:
            while not self._has_ended(deadline):
                check()
                if deadline is not None and time.monotonic() >= deadline:
                    return False
        return True

    def _has_ended(self, deadline: float | None) -> bool:
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415  when it is used

        query: Any = self._driver.query
        if self._is_released or query is None:
            return True
        left = _STEP if deadline is None else min(_STEP, max(deadline - time.monotonic(), 0.001))
        try:
            ended = bool(query.awaitTermination(left))
        except StreamingQueryException as error:
            self._release()
            raise self._error(self._driver.failure or error) from error
        # A query that gives way to one with more columns is not the end.
        if ended and query is self._driver.query and not self._driver.is_restarting:
            self._release()
            return True
        return False

    def stop(self, *, flush: bool = False) -> None:
        """Finish the running batch, and stop; the checkpoint can be resumed.

        Args:
            flush: Also answer the open windows, even of a run that has already ended. The
                checkpoint cannot be resumed then: further rows may belong to these windows.
        """
        if self._is_released:
            if not flush or is_complete(self._checkpoint.root):
                return
            self._checkpoint.hold_again()
            self._is_released = False
        try:
            query: Any = self._driver.query
            # What a source fails with ends Spark's query, and no batch sees it.
            failed = None if query is None else query.exception()
            self._driver.halt()
            if flush:
                self._flush(self._driver.failure or failed)
            elif failed is not None:
                _logger.warning("%s", self._error(self._driver.failure or failed))
        finally:
            self._release()

    def _flush(self, failed: BaseException | None) -> None:
        if failed is not None:
            raise self._error(failed)
        try:
            self._runner.finish(self._inputs[0].source.session, self.sink.writer())
        except Exception as error:
            raise self._error(error) from error

    def _error(self, error: BaseException) -> MuntinError:
        return as_run_error(error, self._checkpoint.root)

    def _apply(self, statements: Sequence[Statement]) -> None:
        # Two threads that each need another column must not both start Spark's query.
        with self._changing:
            self._check_active()
            if self._planner.apply(statements, self._driver.columns):
                return
            # A query reads a column that is not shipped: go on with it, between two batches.
            with self._driver.pause():
                self._planner.apply(statements, None)
                self._start()

    def _start(self) -> None:
        from py4j.protocol import Py4JError  # noqa: PLC0415  imported when it is used
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            self._driver.start(self._columns())
        except (Py4JError, PySparkException) as error:
            raise self._error(error) from error

    def _columns(self) -> list[list[str]]:
        """The columns to ship of each stream: those of its plan, and of a batch to be run again.

        Rows that are set aside keep all their columns.
        """
        record = self._checkpoint.records.record(self._checkpoint.last_committed() + 1)
        found = []
        needed = columns_of(self._planner.current, self._planner.rows.current)
        again: list[set[str]] = [set() for _ in needed]
        if record is not None:
            plans = [self._planner.named(stream.plan) for stream in record.streams]
            rows = self._planner.rows.current
            if record.row_plan is not None:
                rows = self._planner.rows.named(record.row_plan)
            again = columns_of(plans, rows)
        for number, (given, now, then) in enumerate(zip(self._inputs, needed, again, strict=True)):
            read = now | then
            if self._keeps is not None:
                read |= self._keeps.columns(number, record)
            if self.side_output is not None:
                read = set(given.source.schema.names)
            found.append([name for name in given.source.schema.names if name in read])
        return found

    def _check_active(self) -> None:
        if self._is_released:
            raise MuntinError("the run has ended", hint="start it again with its checkpoint")

    def _release(self) -> None:
        if not self._is_released:
            self._is_released = True
            if self._heartbeat is not None:
                self._heartbeat.stop()
            self.sink.close()
            if self.side_output is not None:
                self.side_output.close()
            if self._keeps is not None:
                self._keeps.close()
            self._checkpoint.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Run {self.progress()}>"

    def _repr_html_(self) -> str:
        """How it goes, and the queries with their rows of results, for notebooks."""
        progress = self.progress()
        results = {
            query.name: count(progress.results.get(query.name, 0), "row")
            for query in self.queries()
        }
        listed = html_facts("Results so far", results)
        return f"{progress._repr_html_()}\n<details>{listed}</details>"
