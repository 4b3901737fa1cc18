"""Several streams in this process: queries over one or more of them, each stream with its W."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from muntin.display import count
from muntin.engine.joined import JoinAnswers
from muntin.engine.tables.feeds import TableFeeds
from muntin.engine.watermarks import HolderWarning, Watermarks
from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.frames import read_frame
from muntin.operators import RowEngine
from muntin.plan import SharedPlan
from muntin.plan.joined import by_owner
from muntin.plan.operators import RowPlan
from muntin.plan.relations import table_named
from muntin.planner.rows import row_plan
from muntin.queries import (
    AnyKeep,
    AnyQuery,
    CreateKeep,
    DropKeep,
    DropQuery,
    MixedCatalog,
    QueriesLike,
    RowQuery,
    Statement,
    statements_of,
)
from muntin.results import Results, TableAnswer
from muntin.streams.hot import HotStreams
from muntin.streams.keepers import Keepers, keeper_of
from muntin.streams.lifecycle import Lifecycle
from muntin.streams.live import LiveEngine
from muntin.streams.members import (
    Member,
    Members,
    aggregates_of,
    columns_read,
    relation_named,
    relation_schemas,
    result_schemas,
    rows_of_relation,
)
from muntin.streams.progress import GroupProgress
from muntin.streams.query_slices import GroupSlices, asking_of
from muntin.streams.snapshots import packed_group
from muntin.synopses import Askable, Asking


class StreamGroup(Lifecycle, Askable):
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
        idle: Mapping[str, int | None] | None = None,
        by_clock: Mapping[str, int | None] | None = None,
        zone: Zone,
        on_error: Literal["null", "fail"] = "null",
        on_bad_row: Literal["skip", "fail"] = "skip",
        max_ahead: int | None = None,
        relations: Mapping[str, pa.Table] | None = None,
    ) -> None:
        super().__init__(on_error, on_bad_row)
        self._members = Members(
            {name: Member(engine, max_ahead) for name, engine in engines.items()}
        )
        self._zone = zone
        self._relations = relation_schemas(self._members.schemas, relations)
        self._catalog = MixedCatalog(queries)
        lateness = {name: engine.lateness or 0 for name, engine in engines.items()}
        self._silences = idle, by_clock
        self._watermarks = Watermarks(lateness, idle, _now(), by_clock)
        self._rows = RowEngine(self._planned(self._catalog, None))
        for name, table in (relations or {}).items():
            self._rows.update(name, table, None)
        # Keys of tables that failed, by query.
        self._failed: Counter[str] = Counter()
        self._feeds = TableFeeds(self._rows.plan, self._members.tables, self._failed)
        self._hot = HotStreams(self._rows.plan)
        self._joins = JoinAnswers()
        self._joins.adopt(self._rows.plan.joined, self._members.next_windows())
        first = next(iter(engines.values())).plan.source
        self._restore = read_frame(first.empty_table()).restore
        limits = [*(idle or {}).items(), *(by_clock or {}).items()]
        self._paced = frozenset(name for name, limit in limits if limit is not None)
        self._warning = HolderWarning()
        self._over = False
        self._keepers = Keepers({name: keeper_of(each) for name, each in engines.items()})
        self._slices = GroupSlices(engines)
        self._asking = asking_of(
            lambda: self._keepers.versions,
            self._slices.versions,
            lambda: {name: table.schema for name, table in self._members.tables.items()},
            several=len(self._members) > 1,
            restore=lambda: self._restore,
        )
        self._moved()

    def _moved(self) -> None:
        """Let questions see where the streams are, and the queries that run."""
        self._slices.moved(self._keepers.moments(self._watermarks.clocks), self._catalog)

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
        name = self._members.named(name)
        member = self._members[name]
        given = member.intake.read(batch)
        member.intake.check_columns(given, columns_read(self._rows.plan, name))
        self._restore = given.restore
        self._check_rows(member.intake, given)
        rows, largest = member.intake.timely(given, self._watermarks.clocks[name].watermark)
        before = self._errors()
        kept = self._keepers.prepared(name, given.kept, member.engine.watermark)
        with self._slices.lock:
            found = member.feed(given)
            with self._changing():
                self._watermarks.take(name, largest, _now())
                found |= self._settled()
                self._hot.see(name, rows)
                joined = self._feeds.join({name: rows})
                found |= self._rows.feed({name: rows}, self._watermarks.watermarks, joined)
                found = self._combined(found)
                self._keepers.commit(self._watermarks.clocks, name, kept, given.kept.num_rows)
                self._failed.update(kept.errors)
        marks = {each: own.watermark for each, own in self._watermarks.clocks.items()}
        self._warning.check(marks, self._rows.plan, self._paced)
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
        names = self._members if name is None else [self._members.named(name)]
        ticks = {each: self._members[each].intake.tick(to) for each in names}
        with self._changing():
            for each, tick in ticks.items():
                self._watermarks.advance(each, tick)
            found = self._settled()
            found |= self._rows.feed({}, self._watermarks.watermarks)
            found = self._combined(found)
            self._keepers.advance(self._watermarks.clocks)
        return self._results(found, 0, before)

    def _combined(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """What is found, with the aggregates over joins that are due in place of their sides."""
        shown = self._joins.take(found)
        return shown | self._joins.due(self._watermarks.watermarks)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What fails in here has changed some streams and not others: nothing can go on then."""
        try:
            with self._slices.lock:
                yield
                self._moved()
        except BaseException:
            self._failure = "the streams failed while they answered a batch"
            raise

    def _settled(self) -> dict[str, pa.Table]:
        """What is due after idle streams kept up with the others."""
        self._watermarks.settle(_now())
        return self._members.advance(self._watermarks.watermarks)

    def add(self, queries: QueriesLike) -> None:
        """Let queries join, from the next batch on: all of them, or none if one is refused.

        A query over rows is complete from its first whole instant on, which `progress` says: the
        largest event time of the streams it reads, plus its longest RANGE, or earlier where other
        queries keep the rows that it needs.
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
        plan = self._planned(catalog, self._rows.plan)
        with self._slices.lock:
            self._members.replace(aggregates_of(catalog, self._members, plan), self._zone)
            if plan != self._rows.plan:
                feeds = TableFeeds(plan, self._members.tables, self._failed)
                self._rows.adopt(plan)
                self._feeds = feeds
                self._hot.adopt(plan)
                self._joins.adopt(plan.joined, self._members.next_windows())
            self._catalog = catalog
            self._moved()

    def _planned(self, catalog: Iterable[AnyQuery], previous: RowPlan | None) -> RowPlan:
        rows = [query for query in catalog if isinstance(query, RowQuery)]
        tables = {name: table.schema for name, table in self._members.tables.items()}
        streams = self._members.schemas | self._relations
        return row_plan(rows, streams, self._zone, tables, self._members.rates, previous)

    def update_table(self, name: str, frame: Any) -> None:
        """Join rows from the next batch on with another version of a table; those before stay."""
        self._check()
        table = read_frame(frame).table()
        tables = {**self._members.tables, table_named(name, self._members.tables): table}
        feeds = TableFeeds(self._rows.plan, tables, self._failed)
        for member in self._members.values():
            member.engine.update_table(name, table)
        self._keepers.update_table(name, table)
        self._feeds = feeds

    def update(self, name: str, insert: Any = None, delete: Any = None) -> None:
        """Change a retroactive relation: rows are deleted, then others inserted.

        It takes effect at the instant after the largest event time seen, for rows that came before
        as well: pairs appear and end then, and are shown with the next batch.

        Args:
            name: The relation, one of ``relations=``.
            insert: A frame of rows, with the relation's columns.
            delete: A frame of rows that it holds, with all their columns. Equal rows are deleted
                one for one.

        Raises:
            DataError: If a row to delete is not there, or columns differ; nothing is changed then.
        """
        self._check()
        known = relation_named(name, self._relations)
        schema = self._relations[known].schema
        given = [
            None if each is None else rows_of_relation(schema, each) for each in (insert, delete)
        ]
        self._rows.update(known, *given)

    def keeps(self) -> list[AnyKeep]:
        """What is kept of all streams."""
        return self._keepers.keeps()

    def explain_keeps(self) -> str:
        """What is kept, and what it takes: entries per row, entries and bytes."""
        return self._keepers.explain()

    def _asked(self) -> Asking:
        return self._asking

    def _apply_keeps(self, statements: Sequence[CreateKeep | DropKeep]) -> None:
        self._check()
        self._keepers.apply(statements)

    def queries(self) -> list[AnyQuery]:
        """The queries that run, in the order they joined."""
        return list(self._catalog)

    def plan(self) -> dict[str, SharedPlan]:
        """What the aggregates over each stream share."""
        return self._members.plans

    def row_plan(self) -> RowPlan:
        """The operators of the queries over rows."""
        return self._rows.plan

    def explain(self) -> str:
        """What the aggregates over each stream share, the queries over rows, and what is kept."""
        parts = [
            f"stream {name}\n{plan.explain()}" for name, plan in self.plan().items() if plan.finals
        ]
        rows = self.row_plan()
        if rows.finals or rows.joined:
            parts.append(f"row queries\n{rows.explain()}")
        return "\n\n".join(filter(None, (*parts, self.explain_keeps())))

    def progress(self) -> GroupProgress:
        """What the streams have seen and done, what is kept, and who holds the others back."""
        silent = self._watermarks.silent(_now())
        streams = self._members.progress(self._watermarks.clocks, silent)
        rows, holder, gap = self._rows.statistics, self._watermarks.holder(), self._watermarks.gap()
        kept, results = dict(by_owner(rows.kept)), dict(by_owner(rows.results))
        made = {each.pairs for each in self.row_plan().joined}
        asked = [each.name for each in self.row_plan().finals if each.name not in made]
        since = {name: self._rows.since(name) for name in asked}
        return GroupProgress(streams, holder, gap, kept, results, self._hot.hottest(), since)

    def reached(self) -> dict[str, pa.Scalar]:
        """How far each row query has come: the least W of the streams it reads, as a time.

        For sinks with live tables, before a batch is delivered: ``sink.reach(stream.reached())``.
        Queries that wait for a stream's first row are missing. Once the stream is closed it is the
        largest event time: no row comes any more, so all is known up to the last one.
        """
        found = {}
        for final in self._rows.plan.finals:
            read = final.streams - self._relations.keys()
            mark = self._watermarks.largest(read) if self._over else self._watermarks.least(read)
            if mark is not None:
                found[final.name] = final.timeline.from_ticks(np.array([mark]))[0]
        return found

    def snapshot(self, since: bytes | None = None) -> bytes:
        """The streams as bytes, with which :func:`muntin.stream` resumes identically.

        They hold pickled plans: resume only from bytes that come from where you trust. They are
        always whole: there is none ``since`` an earlier one.
        """
        self._check()
        if since is not None:
            raise DataError(
                "several streams, or queries over rows, have no incremental snapshot",
                hint="leave out since= to take a full snapshot",
            )
        content = {
            "queries": list(self._catalog),
            "zone": self._zone,
            "silences": self._silences,
            "relations": {name: each.schema for name, each in self._relations.items()},
            "engines": {
                name: (member.engine.plan, member.engine.snapshot())
                for name, member in self._members.items()
            },
            "clocks": self._watermarks.clocks,
            "rows": (self._rows.plan, self._rows.snapshot()),
            "joins": self._joins.snapshot(),
            "keeps": self._keepers.snapshot(),
        }
        return packed_group(content)

    def resume(self, held: Mapping[str, Any]) -> None:
        """Go on from what :func:`muntin.streams.snapshots.unpacked_group` gave."""
        now = _now()
        for name, each in held["clocks"].items():
            self._watermarks.clocks[name] = replace(each, spoke=now)
        self._rows = RowEngine.restore(*held["rows"])
        self._feeds = TableFeeds(self._rows.plan, self._members.tables, self._failed)
        self._joins.adopt(self._rows.plan.joined, self._members.next_windows())
        self._joins.resume(held["joins"])
        self._keepers.restore(held["keeps"])
        self._moved()

    def close(self) -> Results:
        """Answer all that is left, and end the streams."""
        self._check()
        before = self._errors()
        found: dict[str, pa.Table] = {}
        with self._slices.lock:
            for member in self._members.values():
                found |= member.engine.close()
            found |= self._rows.close()
            found = self._joins.take(found)
            found |= self._joins.close()
            self._moved()
        self._failure = "the stream is closed: its open windows are answered"
        self._over = True
        return self._results(found, 0, before)

    def __repr__(self) -> str:
        names = ", ".join(self._members) or "one stream"
        return f"<StreamGroup of {count(len(self._catalog), 'query')} over {names}>"

    def _errors(self) -> Counter[str]:
        found = Counter(self._rows.errors) + self._failed + self._members.errors
        found.update(self._joins.errors)
        return by_owner(found)

    def _results(self, found: Mapping[str, pa.Table], rows: int, before: Counter[str]) -> Results:
        errors = self._errors() - before
        self._check_values(errors)
        row_plan = self._rows.plan
        empty = result_schemas(row_plan, self.plan().values())
        answers = {}
        for query in self._catalog:
            table = found[query.name] if query.name in found else empty[query.name].empty_table()
            answers[query.name] = TableAnswer(table, self._restore)
        plan_of = row_plan if row_plan.finals or row_plan.joined else None
        return Results(answers, self.plan(), rows=rows, errors=errors, row_plan=plan_of)


def _now() -> int:
    return clock.time_ns() // 1000
