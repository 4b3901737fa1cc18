"""Several streams in this process: queries over one or more of them, each stream with its W."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.counts import Counts
from muntin.display import count
from muntin.engine.joined import JoinAnswers
from muntin.engine.tables.feeds import TableFeeds
from muntin.engine.watermarks import Watermarks
from muntin.errors import DataError, did_you_mean
from muntin.expressions.zones import Zone
from muntin.frames import read_frame
from muntin.operators import RowEngine
from muntin.plan import SharedPlan
from muntin.plan.joined import by_owner
from muntin.plan.operators import RowPlan, StreamSchema, leaves
from muntin.plan.relations import table_named
from muntin.planner.rows import row_plan
from muntin.planner.steps.bind import bind_query
from muntin.queries import (
    AnyQuery,
    DropQuery,
    MixedCatalog,
    QueriesLike,
    Query,
    RowQuery,
    Statement,
    statements_of,
)
from muntin.queries.routes import routed
from muntin.results import Results, TableAnswer
from muntin.streams.intake import Batch, Intake
from muntin.streams.lifecycle import Lifecycle
from muntin.streams.live import LiveEngine
from muntin.streams.progress import GroupProgress, HolderWarning, StreamProgress
from muntin.streams.snapshots import packed_group


class _Member:
    """One of the streams: what takes its batches in, and the engine of its aggregates."""

    def __init__(self, engine: LiveEngine, max_ahead: int | None) -> None:
        self.engine = engine
        self.intake = Intake(engine.plan.source, engine.plan.timeline, max_ahead)

    @property
    def schema(self) -> StreamSchema:
        return StreamSchema(self.engine.plan.source, self.engine.plan.timeline)

    def feed(self, batch: Batch) -> dict[str, pa.Table]:
        found = self.engine.feed(batch.kept)
        self.engine.statistics += Counts(rows=batch.ahead, bad_rows=batch.ahead)
        return found

    def timely(self, batch: Batch, watermark: int | None) -> tuple[pa.Table, int | None]:
        """The rows that have a time and are not late, and the largest time of them."""
        ticks = self.intake.timeline.to_ticks(
            batch.kept[self.intake.timeline.column].combine_chunks()
        )
        wanted = ticks.is_valid()
        if watermark is not None:
            wanted = pc.and_kleene(wanted, pc.greater_equal(ticks, watermark)).fill_null(False)
        largest: int | None = pc.max(ticks.filter(wanted)).as_py()
        return batch.kept.filter(wanted), largest


class StreamGroup(Lifecycle):
    """Any number of queries over several streams, which join and leave while they run.

    Made by :func:`muntin.stream`. Each stream has its own W, the largest event time of its earlier
    batches less its lateness; a row below it is late: it is dropped and counted. A query moves by
    the least W of the streams that it reads.
    """

    def __init__(
        self,
        engines: Mapping[str, LiveEngine],
        queries: Iterable[AnyQuery],
        *,
        idle: int | None = None,
        zone: Zone,
        on_error: Literal["null", "fail"] = "null",
        on_bad_row: Literal["skip", "fail"] = "skip",
        max_ahead: int | None = None,
    ) -> None:
        super().__init__(on_error, on_bad_row)
        self._members = {name: _Member(engine, max_ahead) for name, engine in engines.items()}
        self._zone = zone
        self._catalog = MixedCatalog(queries)
        lateness = {name: engine.lateness or 0 for name, engine in engines.items()}
        self._watermarks = Watermarks(lateness, idle, _now())
        self._rows = RowEngine(self._planned(self._catalog))
        # Keys of tables that failed, by query.
        self._failed: Counter[str] = Counter()
        self._feeds = TableFeeds(self._rows.plan, self._tables, self._failed)
        self._joins = JoinAnswers()
        self._joins.adopt(self._rows.plan.joined, self._next_windows())
        first = next(iter(self._members.values()))
        self._restore = read_frame(first.engine.plan.source.empty_table()).restore
        self._warning = HolderWarning()

    def feed(self, batch: Any, name: str | None = None) -> Results:
        """Take in a batch of one stream, and answer what it makes due.

        Args:
            batch: A pyarrow Table or RecordBatch, a pandas or polars frame.
            name: The stream; may be left out where there is only one.

        Returns:
            The answers of every query, in the kind of frame the batch came in; empty for those
            that have nothing due.

        Raises:
            DataError: If the batch cannot be read, which changes nothing; or if it holds what
                ``on_error`` or ``on_bad_row`` let fail, which ends the stream.
        """
        self._check()
        name = self._named(name)
        member = self._members[name]
        given = member.intake.read(batch)
        self._check_columns(name, given)
        self._restore = given.restore
        self._check_rows(member.intake, given)
        rows, largest = member.timely(given, self._watermarks.clocks[name].watermark)
        before = self._errors()
        found = member.feed(given)
        with self._changing():
            self._watermarks.take(name, largest, _now())
            found |= self._settled()
            joined = self._feeds.join({name: rows})
            found |= self._rows.feed({name: rows}, self._watermarks.watermarks, joined)
            found = self._combined(found)
        self._warning.check(self._watermarks, self._rows.plan)
        return self._results(found, given.rows, before)

    def advance(self, to: Any, name: str | None = None) -> Results:
        """Answer what ends at or before a time, without waiting for rows to say so.

        Rows before it are late from then on. A time that has passed changes nothing.

        Args:
            to: A timestamp, a date or a number, as in the time column.
            name: The stream to move; all of them if not given.
        """
        self._check()
        before = self._errors()
        names = self._members if name is None else [self._named(name)]
        ticks = {each: self._members[each].intake.tick(to) for each in names}
        with self._changing():
            for each, tick in ticks.items():
                self._watermarks.advance(each, tick)
            found = self._settled()
            found |= self._rows.feed({}, self._watermarks.watermarks)
            found = self._combined(found)
        return self._results(found, 0, before)

    def _combined(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """What is found, with the aggregates over joins that are due in place of their sides."""
        shown = self._joins.take(found)
        return shown | self._joins.due(self._watermarks.watermarks)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What fails in here has changed some streams and not others: nothing can go on then."""
        try:
            yield
        except BaseException:
            self._failure = "the streams failed while they answered a batch"
            raise

    def _settled(self) -> dict[str, pa.Table]:
        """What is due after idle streams kept up with the others."""
        self._watermarks.settle(_now())
        found: dict[str, pa.Table] = {}
        for name, watermark in self._watermarks.watermarks.items():
            engine = self._members[name].engine
            if engine.watermark is None or engine.watermark < watermark:
                found |= engine.advance(watermark)
        return found

    def add(self, queries: QueriesLike) -> None:
        """Let queries join, from the next batch on: all of them, or none if one is refused.

        A query over rows is complete from its first whole instant on: the largest event time of
        the streams it reads, plus its longest RANGE; earlier where enough was kept for others.
        """
        self._apply(statements_of(queries, [query.name for query in self._catalog]))

    def remove(self, name: str) -> None:
        """Let a query leave: it answers nothing more."""
        self._apply([DropQuery(name)])

    def replace(self, queries: Iterable[AnyQuery]) -> None:
        """Run these queries from the next batch on; those that run already keep what they have."""
        self._change(MixedCatalog(queries))

    def _apply(self, statements: Iterable[Statement]) -> None:
        self._check()
        catalog = MixedCatalog(self._catalog)
        catalog.apply(statements)
        self._change(catalog)

    def _change(self, catalog: MixedCatalog) -> None:
        """Takes up other queries; all are bound before any engine changes."""
        plan = self._planned(catalog)
        asked = aggregates_of(catalog, self._members, plan)
        for name, found in asked.items():
            engine = self._members[name].engine
            tables = {each: table.schema for each, table in engine.tables.items()}
            for query in found:
                bind_query(query, engine.plan.source, engine.plan.timeline, tables, self._zone)
        for name, found in asked.items():
            engine = self._members[name].engine
            if found != [final.query for final in engine.plan.finals]:
                engine.replace(found)
        if plan != self._rows.plan:
            feeds = TableFeeds(plan, self._tables, self._failed)
            self._rows.adopt(plan)
            self._feeds = feeds
            self._joins.adopt(plan.joined, self._next_windows())
        self._catalog = catalog

    def _next_windows(self) -> dict[str, int]:
        """The number of the next window of every query that runs over a single stream."""
        found: dict[str, int] = {}
        for member in self._members.values():
            found |= member.engine.next_windows()
        return found

    def _planned(self, catalog: Iterable[AnyQuery]) -> RowPlan:
        rows = [query for query in catalog if isinstance(query, RowQuery)]
        streams = {name: member.schema for name, member in self._members.items()}
        tables = {name: table.schema for name, table in self._tables.items()}
        return row_plan(rows, streams, self._zone, tables)

    @property
    def _tables(self) -> Mapping[str, pa.Table]:
        """What rows may be joined with; all streams have the same."""
        return next(iter(self._members.values())).engine.tables

    def update_table(self, name: str, frame: Any) -> None:
        """Join rows from the next batch on with another version of a table; those before stay."""
        self._check()
        table = read_frame(frame).table()
        tables = {**self._tables, table_named(name, self._tables): table}
        feeds = TableFeeds(self._rows.plan, tables, self._failed)
        for member in self._members.values():
            member.engine.update_table(name, table)
        self._feeds = feeds

    def queries(self) -> list[AnyQuery]:
        """The queries that run, in the order they joined."""
        return list(self._catalog)

    def plan(self) -> dict[str, SharedPlan]:
        """What the aggregates over each stream share."""
        return {name: member.engine.plan for name, member in self._members.items()}

    def row_plan(self) -> RowPlan:
        """The operators of the queries over rows."""
        return self._rows.plan

    def progress(self) -> GroupProgress:
        """What the streams have seen and done, what is kept, and who holds the others back."""
        silent = self._watermarks.silent(_now())
        streams = {}
        for name, member in self._members.items():
            found, own = member.engine.progress(), self._watermarks.clocks[name]
            streams[name] = StreamProgress(
                rows=found.rows,
                late_rows=found.late_rows,
                bad_rows=found.bad_rows,
                watermark=own.watermark,
                seen=own.seen,
                idle=name in silent,
                aggregates=found,
            )
        rows = self._rows.statistics
        holder, gap = self._watermarks.holder(), self._watermarks.gap()
        kept, results = by_owner(rows.kept), by_owner(rows.results)
        return GroupProgress(streams, holder, gap, dict(kept), dict(results))

    def reached(self) -> dict[str, pa.Scalar]:
        """How far each row query has come: the least W of the streams it reads, as a time.

        For sinks with live tables, before a batch is delivered: ``sink.reach(stream.reached())``.
        Queries that wait for a stream's first row are missing.
        """
        found = {}
        for final in self._rows.plan.finals:
            least = self._watermarks.least(final.streams)
            if least is not None:
                found[final.name] = final.timeline.from_ticks(np.array([least]))[0]
        return found

    def snapshot(self) -> bytes:
        """The streams as bytes, with which :func:`muntin.stream` resumes identically.

        They hold pickled plans: resume only from bytes that come from where you trust.
        """
        self._check()
        content = {
            "queries": list(self._catalog),
            "zone": self._zone,
            "engines": {
                name: (member.engine.plan, member.engine.snapshot())
                for name, member in self._members.items()
            },
            "clocks": self._watermarks.clocks,
            "rows": (self._rows.plan, self._rows.snapshot()),
            "joins": self._joins.snapshot(),
        }
        return packed_group(content)

    def resume(self, held: Mapping[str, Any]) -> None:
        """Go on from what :func:`muntin.streams.snapshots.unpacked_group` gave."""
        now = _now()
        for name, each in held["clocks"].items():
            self._watermarks.clocks[name] = replace(each, spoke=now)
        self._rows = RowEngine.restore(*held["rows"])
        self._feeds = TableFeeds(self._rows.plan, self._tables, self._failed)
        self._joins.adopt(self._rows.plan.joined, self._next_windows())
        self._joins.resume(held["joins"])

    def close(self) -> Results:
        """Answer all that is left, and end the streams."""
        self._check()
        before = self._errors()
        found: dict[str, pa.Table] = {}
        for member in self._members.values():
            found |= member.engine.close()
        found |= self._rows.close()
        found = self._joins.take(found)
        found |= self._joins.close()
        self._failure = "the stream is closed: its open windows are answered"
        return self._results(found, 0, before)

    def __repr__(self) -> str:
        names = ", ".join(self._members) or "one stream"
        return f"<StreamGroup of {count(len(self._catalog), 'query')} over {names}>"

    def _named(self, name: str | None) -> str:
        if name is None and len(self._members) == 1:
            return next(iter(self._members))
        lowered = {each.lower(): each for each in self._members}
        known = lowered.get(str(name).lower())
        if known is None:
            what = "the batch names no stream" if name is None else f"there is no stream {name!r}"
            hint = did_you_mean(str(name), self._members)
            raise DataError(what, hint=hint or f"the streams are {', '.join(self._members)}")
        return known

    def _check_columns(self, name: str, batch: Batch) -> None:
        """Whether a batch has the columns that row queries read."""
        timeline = self._members[name].intake.timeline
        needed = dict.fromkeys([timeline.column])
        for final in self._rows.plan.finals:
            for leaf in leaves(final.root):
                if leaf.stream == name:
                    needed |= dict.fromkeys(leaf.reads)
        missing = [each for each in needed if each not in batch.kept.column_names]
        if missing:
            raise DataError(
                f"the batch has no column {missing[0]!r}", hint="queries read it: add it, or NULLs"
            )

    def _errors(self) -> Counter[str]:
        found = Counter(self._rows.errors) + self._failed
        for member in self._members.values():
            found.update(member.engine.statistics.errors)
        found.update(self._joins.errors)
        return by_owner(found)

    def _results(self, found: Mapping[str, pa.Table], rows: int, before: Counter[str]) -> Results:
        errors = self._errors() - before
        self._check_values(errors)
        row_plan = self._rows.plan
        empty = {final.name: final.schema for final in row_plan.finals}
        empty |= {final.name: final.schema for final in row_plan.joined}
        for plan in self.plan().values():
            empty |= {final.name: plan.result_schema(final) for final in plan.finals}
        answers = {}
        for query in self._catalog:
            table = found.get(query.name)
            if table is None:
                table = empty[query.name].empty_table()
            answers[query.name] = TableAnswer(table, self._restore)
        plan_of = row_plan if row_plan.finals or row_plan.joined else None
        return Results(answers, self.plan(), rows=rows, errors=errors, row_plan=plan_of)


def _now() -> int:
    return clock.time_ns() // 1000


def aggregates_of(
    queries: Iterable[AnyQuery], streams: Iterable[str], plan: RowPlan
) -> dict[str, list[Query]]:
    """The aggregate queries over each stream, the sides of joins among them."""
    return routed((each for each in (*queries, *plan.sides) if isinstance(each, Query)), streams)
