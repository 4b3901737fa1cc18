"""What the driver does with every batch: write its record, run it, commit it, write its outcome."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin import faults
from muntin.engine.watermarks import HolderWarning
from muntin.plan.routes import RoutedPlan
from muntin.sinks import Sink, Writer
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.arrivals import Arrivals
from muntin.spark.streaming.checkpoint.asks import KeepRecord
from muntin.spark.streaming.checkpoint.audit import Delivery, check_repeat, check_states
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.checkpoint.files import missing
from muntin.spark.streaming.checkpoint.records import BatchOutcome, BatchRecord, StreamRecord
from muntin.spark.streaming.driver.hot_keys import HotKeys
from muntin.spark.streaming.driver.keeps import RunKeeps
from muntin.spark.streaming.driver.plans import Planner, result_schemas
from muntin.spark.streaming.driver.shares import BatchMerger
from muntin.spark.streaming.driver.watermarks import Pace, ended, moments, reached
from muntin.spark.streaming.problems import RunError
from muntin.spark.streaming.reports import REPORT_SCHEMA, BatchReport, BucketReport
from muntin.spark.streaming.tasks.job import PROPERTY, Job, worker_cache
from muntin.spark.streaming.tasks.last_batch import close_buckets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PRUNE_EVERY = 64
_DROP_EVERY = 8


@dataclass(frozen=True)
class Limits:
    """How far ahead rows may be, in microseconds, and whether what fails ends the run."""

    max_ahead: int | None = None
    fail_on_bad_rows: bool = False
    fail_on_errors: bool = False


@dataclass
class Timing:
    """How the last batch went."""

    rows: int = 0
    seconds: float = 0.0
    ended: float = field(default_factory=time.time)


class BatchRunner:
    """Runs batches on the driver, one after the other."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        planner: Planner,
        sink: Sink[Any],
        aside: Sink[Any] | None,
        limits: Limits,
        paces: Sequence[Pace] = (Pace(),),
        keeps: RunKeeps | None = None,
    ) -> None:
        self._checkpoint, self._planner, self._limits = checkpoint, planner, limits
        self._paces, self._keeps = paces, keeps
        self.outcome = checkpoint.records.before(checkpoint.last_committed() + 1)
        self._sink = Delivery(sink, dict(self.outcome.delivered))
        self._aside = None if aside is None else Delivery(aside, dict(self.outcome.set_aside))
        self.timing = Timing()
        self.hot = HotKeys(checkpoint.buckets)
        self._shipped: set[str] = set()
        self._merge = BatchMerger(planner, checkpoint.buckets)
        self._declared: tuple[str | None, ...] = ()
        self._cache = worker_cache()
        self._warning = HolderWarning()

    def resume(self, *, accepts_gaps: bool) -> None:
        """Let the sinks go on behind the last batch; results that they lack are refused."""
        for each in (self._sink, self._aside):
            if each is not None:
                each.resume(self.outcome.batch, self._checkpoint.run, accepts_gaps=accepts_gaps)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Run one batch, from its record to its outcome."""
        begun = time.monotonic()
        record = self._record(frame.sparkSession, batch)
        self._declare(record)
        self._ship(frame.sparkSession, record)
        reports = _collected(frame)
        self._check_complete(record, reports)
        self._check_states(record, reports)
        self._merge(record, reports, self._rows(record), self._sink.sink.writer())
        self._check_failures(record, reports)
        outcome = self._sum_up(record, reports)
        # Before any result is committed: a repeat that is another batch is seen, and refused.
        self._checkpoint.records.write_outcome(outcome)
        if self._aside is not None:
            self._aside.commit(batch, reports.aside)
        self._sink.sink.reach(reached(self._rows(record), outcome.streams))
        self._sink.commit(batch, reports.written)
        if self._keeps is not None:
            self._keeps.commit(record, self.outcome, outcome, reports.kept)
        self.hot.count(self._rows(record), record.splits, reports)
        self.timing = Timing(outcome.rows - self.outcome.rows, time.monotonic() - begun)
        self.outcome = outcome
        self._warn(record)
        self._planner.adopt(outcome)
        self._planner.review()
        if batch % _DROP_EVERY == 0:
            self._checkpoint.states.drop(self._checkpoint.records.state_files(), batch)
        if batch % _PRUNE_EVERY == 0:
            self._prune()

    def _prune(self) -> None:
        """Forget plans and tables; nobody may save one meanwhile that nothing names yet."""
        keeping = nullcontext() if self._keeps is None else self._keeps.lock
        with self._planner.lock, keeping:
            needed = [*self._planner.tables.versions.values()]
            needed += [] if self._keeps is None else self._keeps.plans()
            self._checkpoint.prune(needed)

    def finish(self, session: SparkSession, writer: Writer[Any]) -> None:
        """Answer the windows that are open, as a last batch, and close the checkpoint.

        The intention is written first: a batch of that number must not be run instead.
        """
        records, last = self._checkpoint.records, self._checkpoint.last_committed()
        record = records.record(last + 1)
        if record is None or not record.is_closing:
            if records.outcome(last + 1) is not None:
                raise RunError(
                    f"batch {last + 1} had begun when an earlier run ended, and its results may be "
                    "committed",
                    hint="start again with the same checkpoint, let the batch finish, and then "
                    "stop with flush=True",
                )
            record = self._closing(last)
            records.write_record(record)
        reports = BatchReport()
        if any(stream.before is not None for stream in record.streams):
            job = self._job(session, record)
            folder = str(self._checkpoint.spark_folder)
            reports = _flush(session, folder, job, self._checkpoint.buckets, writer)
            self._check_states(record, reports)
            self._merge(record, reports, self._rows(record), writer)
            self._check_failures(record, reports)
        self._sink.sink.reach(ended(self._rows(record), record.streams))
        self._sink.commit(record.batch, reports.written)
        self.outcome = self._sum_up(record, reports)
        # This closes the checkpoint.
        records.write_outcome(self.outcome)

    def _closing(self, last: int) -> BatchRecord:
        """The record of the last batch: it has no rows, and answers with the plan of the state."""
        record = self._decide(last + 1, (), (), ())
        streams = tuple(
            replace(stream, plan=stream.before or stream.plan) for stream in record.streams
        )
        return replace(
            record, streams=streams, is_closing=True, row_plan=record.row_before, keeps=()
        )

    def _record(self, session: SparkSession, batch: int) -> BatchRecord:
        """The record of a batch: the one it has, if it is over the same rows, or another."""
        records, logs = self._checkpoint.records, self._checkpoint.logs
        record, before = records.record(batch), records.record(batch - 1)
        if before is None and batch:
            raise missing(records.path(batch - 1, "record"))
        offsets = logs.offsets(batch)
        arrivals = Arrivals(logs, before.offsets if before else (), offsets)
        arrived = arrivals.added_to(before.arrivals if before else ())
        if record is not None:
            check_repeat(record, offsets, arrived)
        arrivals.refuse_missing(session, batch)
        if record is None:
            record = self._decide(batch, offsets, arrived, before.splits if before else ())
            records.write_record(record)
        return record

    def _decide(
        self,
        batch: int,
        offsets: Sequence[str],
        arrivals: Sequence[str],
        splits: Sequence[Mapping[str, Any]],
    ) -> BatchRecord:
        plans = self._planner.next()
        clock, known = time.time_ns() // 1000, self.outcome.streams
        brought = moments(self._paces, known, clock)
        streams = tuple(
            StreamRecord(
                plan,
                before.state,
                before.seen,
                before.watermark,
                pace.lateness,
                self._horizon(pace, clock),
                moment,
            )
            for plan, before, pace, moment in zip(
                plans.streams, known, self._paces, brought, strict=True
            )
        )
        return BatchRecord(
            batch,
            streams,
            clock,
            plans.tables,
            plans.changes,
            offsets,
            arrivals,
            row_plan=plans.rows,
            row_before=self.outcome.row_state,
            keeps=() if self._keeps is None else self._keeps.decide(self.outcome),
            declared=0 if self._keeps is None else self._keeps.version,
            splits=self._splits(plans.rows, splits),
        )

    def _splits(
        self, plan: str | None, before: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """The hot keys that a batch splits, given those of the batch before."""
        if plan is None:
            return ()
        return self.hot.split(self._planner.rows.named(plan), before, self.outcome.streams)

    def _horizon(self, pace: Pace, clock: int) -> int | None:
        ahead = None if pace.is_plain else self._limits.max_ahead
        return None if ahead is None else clock + ahead

    def _declare(self, record: BatchRecord) -> None:
        plans = tuple(stream.plan for stream in record.streams)
        if (*plans, record.row_plan) != self._declared:
            schemas = result_schemas(map(self._planner.named, plans), self._rows(record))
            self._sink.sink.declare(schemas)
            self._declared = (*plans, record.row_plan)

    def _rows(self, record: BatchRecord) -> RoutedPlan | None:
        """The plan of queries over rows, if a batch has one."""
        return None if record.row_plan is None else self._planner.rows.named(record.row_plan)

    def _warn(self, record: BatchRecord) -> None:
        """Say who holds the other streams back, where that decides how many rows are kept."""
        rows = self._rows(record)
        if rows is not None:
            names = list(rows.asked.streams)
            marks = [each.watermark for each in self.outcome.streams]
            paced = [
                n for n, pace in zip(names, self._paces, strict=True) if pace.moves_when_silent
            ]
            self._warning.check(dict(zip(names, marks, strict=True)), rows.asked, paced)

    def _buckets(self, record: BatchRecord) -> Buckets:
        buckets = self._checkpoint.buckets
        return buckets if record.row_plan is None else buckets.with_rows

    def _ship(self, session: SparkSession, record: BatchRecord) -> None:
        """Tell the tasks of this batch what it is, and bring them the files they need."""
        job = self._job(session, record)
        session.sparkContext.setLocalProperty(PROPERTY, job.to_text())

    def _job(self, session: SparkSession, record: BatchRecord) -> Job:
        checkpoint, files = self._checkpoint, self._add_files(session, record)
        return Job(checkpoint.run, record, files, str(checkpoint.states.path), self._cache)

    def _add_files(self, session: SparkSession, record: BatchRecord) -> dict[str, str]:
        files = {
            name: str(self._checkpoint.plan_path(name))
            for stream in record.streams
            for name in (stream.plan, stream.before)
            if name is not None
        }
        for name in (record.row_plan, record.row_before):
            if name is not None:
                files[name] = str(self._checkpoint.plan_path(name))
        for keep in record.keeps:
            files[keep["plan"]] = str(self._checkpoint.plan_path(keep["plan"]))
        for name in record.tables.values():
            files[name] = str(self._checkpoint.table_path(name))
        for path in files.values():
            if path not in self._shipped:
                session.sparkContext.addFile(path)
                self._shipped.add(path)
        return files

    def _check_complete(self, record: BatchRecord, reports: BatchReport) -> None:
        """Refuse a batch that not all buckets took part in."""
        total = self._buckets(record).total
        if reports and not reports.covers(total):
            raise RunError(
                f"batch {record.batch} came back with {len(reports.buckets)} of {total} buckets, "
                f"{reports.covered} of them written",
                hint="this is a bug in Muntin: nothing of the batch is committed, please report it",
            )

    def _check_states(self, record: BatchRecord, reports: BatchReport) -> None:
        """Refuse a batch that did not start from the state that the batch before left."""
        if reports or record.is_closing:
            folder, tokens = self._checkpoint.logs.folder, self.outcome.tokens
            check_states(folder, record.batch, tokens, reports.found)

    def _check_failures(self, record: BatchRecord, reports: BatchReport) -> None:
        """Refuse a batch with bad rows or failed values, if asked to: nothing is committed."""
        counts = reports.counts
        if counts.bad_rows and self._limits.fail_on_bad_rows:
            hint = 'start again with on_bad_row="skip" to count them and leave them out'
            raise faults.bad_rows(counts.bad_rows, f"batch {record.batch}", hint)
        if counts.errors.total() and self._limits.fail_on_errors:
            hint = 'start again with on_error="null", or with a query that guards the expression'
            raise faults.failed_values(counts.errors, f" of batch {record.batch}", hint)

    def _sum_up(self, record: BatchRecord, reports: BatchReport) -> BatchOutcome:
        before, buckets = self.outcome, self._checkpoint.buckets
        plans = [self._planner.named(stream.plan) for stream in record.streams]
        names = {final.name for plan in plans for final in plan.finals}
        rows = self._rows(record)
        names |= set() if rows is None else rows.names
        names |= {KeepRecord(**each).counted_as for each in record.keeps}
        results, counts = Counter(before.results), reports.counts
        partial, final, cell = before.aggregations
        for report in reports:
            results.update(report.results)
        # Behind the buckets of all streams are those that none of them owns.
        streams = (
            reports.of_buckets(buckets.of_stream(number)).stream(stream, known, record.clock)
            for number, (stream, known) in enumerate(
                zip(record.streams, before.streams, strict=True)
            )
        )
        return BatchOutcome(
            record.batch,
            tuple(streams),
            dict(results),
            dict(Counter(before.errors) + counts.errors),
            sum(report.state_bytes for report in reports) if reports else before.state_bytes,
            self._sink.after(record.batch, reports.written),
            before.set_aside
            if self._aside is None
            else self._aside.after(record.batch, reports.aside),
            reports.tokens or before.tokens,
            reports.files(buckets.partitions) if reports else before.files,
            [
                partial + counts.partial_aggregations,
                final + counts.final_aggregations,
                cell + counts.cell_aggregations,
            ],
            record.row_plan if reports else before.row_state,
            reports.since or before.since,
        ).without_others(names)


def _flush(
    session: SparkSession, folder: str, job: Job, buckets: Buckets, writer: Writer[Any]
) -> BatchReport:
    """Close every bucket of the last batch that Spark committed, in its folder."""

    def close(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return close_buckets(batches, buckets, writer)

    states = session.read.format("statestore").load(folder)
    columns = states.selectExpr(
        "key.bucket",
        *(f"value.groupState.{name}" for name in ("token", "written", "plan", "data")),
    )
    session.sparkContext.setLocalProperty(PROPERTY, job.to_text())
    return _collected(columns.mapInArrow(close, REPORT_SCHEMA))


def _collected(frame: DataFrame) -> BatchReport:
    """The reports in a frame; this runs its job."""
    return BatchReport([BucketReport.of_bytes(bytes(row.report)) for row in frame.collect()])
