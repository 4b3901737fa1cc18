"""The streams of a group, each with its intake and engine; and the relations beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.watermarks import StreamClock
from muntin.errors import DataError, did_you_mean
from muntin.expressions.zones import Zone
from muntin.frames import read_frame
from muntin.plan import SharedPlan
from muntin.plan.operators import RowPlan, StreamSchema, leaves
from muntin.planner.rows import SAMPLE, StreamRate
from muntin.planner.steps.bind import bind_query
from muntin.queries import AnyQuery, Query
from muntin.queries.routes import routed
from muntin.streams.intake import Batch, Intake
from muntin.streams.live import LiveEngine
from muntin.streams.progress import StreamProgress


class Member:
    """One of the streams: what takes its batches in, and the engine of its aggregates."""

    def __init__(self, engine: LiveEngine, max_ahead: int | None) -> None:
        self.engine = engine
        self.intake = Intake(engine.plan.source, engine.plan.timeline, max_ahead)
        self._latest = engine.plan.source.empty_table()

    @property
    def rate(self) -> StreamRate | None:
        """How fast its rows come, and what the latest look like; None before that is known."""
        rate = self.engine.recent.rate
        return None if rate is None else StreamRate.of(self._latest, self.schema.timeline, rate)

    @property
    def schema(self) -> StreamSchema:
        """Its columns and its time."""
        return StreamSchema(self.engine.plan.source, self.engine.plan.timeline)

    def feed(self, batch: Batch) -> dict[str, pa.Table]:
        """Answers of its aggregates that a batch makes due."""
        found = self.engine.feed(batch.kept)
        if batch.kept.num_rows:
            some = batch.kept.slice(max(batch.kept.num_rows - SAMPLE, 0))
            # A part of a large batch is copied, so that the rest need not stay in memory.
            whole = 2 * some.num_rows >= batch.kept.num_rows
            self._latest = some if whole else some.take(pa.array(range(some.num_rows)))
        self.engine.statistics += Counts(rows=batch.ahead, bad_rows=batch.ahead)
        return found


class Members(dict[str, Member]):
    """All streams of a group, by name."""

    @property
    def schemas(self) -> dict[str, StreamSchema]:
        """The columns and times of all."""
        return {name: member.schema for name, member in self.items()}

    @property
    def rates(self) -> dict[str, StreamRate]:
        """What is known of streams that have moved on already."""
        found = {name: member.rate for name, member in self.items()}
        return {name: each for name, each in found.items() if each is not None}

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """What rows may be joined with; all streams have the same."""
        return next(iter(self.values())).engine.tables

    @property
    def plans(self) -> dict[str, SharedPlan]:
        """What the aggregates over each share."""
        return {name: member.engine.plan for name, member in self.items()}

    @property
    def errors(self) -> Counter[str]:
        """Failed values of aggregates, by query."""
        return sum((each.engine.statistics.errors for each in self.values()), Counter[str]())

    def named(self, name: str | None) -> str:
        """The stream that a caller means."""
        if name is None and len(self) == 1:
            return next(iter(self))
        known = {each.lower(): each for each in self}.get(str(name).lower())
        if known is None:
            what = (
                "the batch does not name a stream"
                if name is None
                else f"there is no stream {name!r}"
            )
            hint = did_you_mean(str(name), self)
            raise DataError(what, hint=hint or f"the streams are {', '.join(self)}")
        return known

    def replace(self, asked: Mapping[str, Sequence[Query]], zone: Zone) -> None:
        """Take up other aggregates; all are bound before any engine changes."""
        for name, found in asked.items():
            engine = self[name].engine
            tables = {each: table.schema for each, table in engine.tables.items()}
            for query in found:
                bind_query(query, engine.plan.source, engine.plan.timeline, tables, zone)
        for name, found in asked.items():
            engine = self[name].engine
            if list(found) != [final.query for final in engine.plan.finals]:
                engine.replace(list(found))

    def advance(self, watermarks: Mapping[str, int]) -> dict[str, pa.Table]:
        """What is due where a watermark is ahead of its engine."""
        found: dict[str, pa.Table] = {}
        for name, watermark in watermarks.items():
            engine = self[name].engine
            if engine.watermark is None or engine.watermark < watermark:
                found |= engine.advance(watermark)
        return found

    def next_windows(self) -> dict[str, int]:
        """The number of the next window of every query that runs over a single stream."""
        found: dict[str, int] = {}
        for member in self.values():
            found |= member.engine.next_windows()
        return found

    def progress(
        self, clocks: Mapping[str, StreamClock], silent: Collection[str]
    ) -> dict[str, StreamProgress]:
        """What each has seen and done; ``silent`` are those that hold nobody back."""
        found = {}
        for name, member in self.items():
            done, own = member.engine.progress(), clocks[name]
            found[name] = StreamProgress(
                rows=done.rows,
                late_rows=done.late_rows,
                bad_rows=done.bad_rows,
                watermark=own.watermark,
                seen=own.seen,
                idle=name in silent,
                aggregates=done,
                plain=member.engine.plan.timeline.plain,
            )
        return found


def aggregates_of(
    queries: Iterable[AnyQuery], streams: Iterable[str], plan: RowPlan
) -> dict[str, list[Query]]:
    """The aggregate queries over each stream, the sides of joins among them."""
    return routed((each for each in (*queries, *plan.sides) if isinstance(each, Query)), streams)


def relation_schemas(
    streams: Mapping[str, StreamSchema], relations: Mapping[str, pa.Table] | None
) -> dict[str, StreamSchema]:
    """Relations by name, beside the streams whose times they change by."""
    taken = {name.lower() for name in streams}
    for name in relations or {}:
        if name.lower() in taken:
            raise DataError(
                f"{name} is both a stream and a relation", hint="give the relation another name"
            )
    first = next(iter(streams.values()))
    return {
        name: StreamSchema(table.schema, first.timeline, retroactive=True)
        for name, table in (relations or {}).items()
    }


def relation_named(name: str, relations: Mapping[str, StreamSchema]) -> str:
    """The relation that a caller means."""
    known = {each.lower(): each for each in relations}.get(str(name).lower())
    if known is None:
        hint = did_you_mean(str(name), relations)
        names = ", ".join(relations) or "none: give them in relations="
        raise DataError(f"there is no relation {name!r}", hint=hint or f"the relations are {names}")
    return known


def rows_of_relation(schema: pa.Schema, frame: Any) -> pa.Table:
    """Rows of a frame with the columns of a relation."""
    table = read_frame(frame).table()
    if set(table.column_names) != set(schema.names):
        raise DataError(
            f"the rows have the columns {', '.join(table.column_names)}, and the relation "
            f"{', '.join(schema.names)}",
            hint="give the columns of the relation, all of them and no others",
        )
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise DataError(
            f"the rows do not have the types of the relation: {error}", hint="cast them first"
        ) from error


def columns_read(plan: RowPlan, stream: str) -> Iterator[str]:
    """The columns of a stream that row queries read."""
    for final in plan.finals:
        for leaf in leaves(final.root):
            if leaf.stream == stream:
                yield from leaf.reads


def result_schemas(rows: RowPlan, plans: Iterable[SharedPlan]) -> dict[str, pa.Schema]:
    """The columns of all results, by query."""
    found = {final.name: final.schema for final in rows.finals}
    found |= {final.name: final.schema for final in rows.joined}
    for plan in plans:
        found |= {final.name: plan.result_schema(final) for final in plan.finals}
    return found
