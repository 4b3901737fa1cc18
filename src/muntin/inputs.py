"""Bounded input: frames in this process or on Spark, by name, and the plans of their queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from muntin._garbage import uncollected
from muntin.errors import DataError
from muntin.expressions.zone_names import zone as zone_named
from muntin.expressions.zones import Zone
from muntin.frames import Input, is_frame, is_on_spark, read_frame
from muntin.plan import SharedPlan
from muntin.plan.timeline import Timeline
from muntin.planner import Draft, plan_draft
from muntin.planner.steps.bind import bind
from muntin.planner.steps.cells import undecided
from muntin.planner.steps.weigh import weigh, weighs_rate
from muntin.queries import Query
from muntin.queries.routes import routed
from muntin.results import Outcome, TableAnswer

if TYPE_CHECKING:
    from muntin.engine import LocalEngine


class Source(Protocol):
    """Bounded input of any kind: its columns, its zone, some rows of it, and a run over all."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        ...

    @property
    def zone(self) -> Zone:
        """Where local times are asked for."""
        ...

    @property
    def restore(self) -> Callable[[pa.Table], Any]:
        """What makes a table a frame of its kind."""
        ...

    def sample(self) -> pa.Table | None:
        """Some rows of it."""
        ...

    def placed(self, plan: SharedPlan, method: str | None, draft: Draft) -> SharedPlan:
        """The plan with its trees on buckets, where there are some."""
        ...

    def run(self, plan: SharedPlan, tables: Mapping[str, pa.Table]) -> Outcome:
        """What the queries of a plan give over all rows."""
        ...


class LocalSource:
    """Frames in this process, for the local engine."""

    def __init__(self, frame: Input, zone: Zone) -> None:
        self.schema = frame.schema
        self.zone = zone
        self.restore = frame.restore
        self._batches = iter(frame.batches)
        self._first = next(self._batches, frame.schema.empty_table())

    def sample(self) -> pa.Table:
        """The first rows."""
        return self._first

    def whole(self) -> pa.Table:
        """All rows, which stay to be read again."""
        rest = list(self._batches)
        self._batches = iter(rest)
        return pa.concat_tables([self.schema.empty_table(), self._first, *rest])

    def placed(self, plan: SharedPlan, method: str | None, draft: Draft) -> SharedPlan:
        """The plan as it is: there are no buckets."""
        if method is not None:
            raise DataError(
                f"placement is {method!r}, and data in this process has no buckets to place on",
                hint="leave it out, or give a Spark DataFrame",
            )
        return plan

    def run(self, plan: SharedPlan, tables: Mapping[str, pa.Table]) -> Outcome:
        """What the local engine gives."""
        return self.closed(self.fed(plan, tables))

    def fed(self, plan: SharedPlan, tables: Mapping[str, pa.Table]) -> LocalEngine:
        """The local engine with all rows, and no answers yet."""
        # The engine brings numba, which takes longer to import than everything else together.
        from muntin.engine import ENOUGH, LocalEngine, gathered, in_time_order  # noqa: PLC0415

        engine = LocalEngine(plan, tables=tables, threads=pa.cpu_count())
        batches = chain([self._first], self._batches)
        if plan.ordered:
            whole = pa.concat_tables([self.schema.empty_table(), *batches])
            engine.feed(in_time_order(whole, plan.timeline.column))
        else:
            columns = plan.columns()
            for batch in gathered((each.select(columns) for each in batches), ENOUGH):
                engine.feed(batch)
        return engine

    def closed(self, engine: LocalEngine) -> Outcome:
        """What an engine that was fed has yet to answer."""
        answers = {name: TableAnswer(table, self.restore) for name, table in engine.close().items()}
        found = engine.statistics
        return Outcome(answers, found.rows, found.bad_rows, found.errors)


def read_inputs(data: Any, name: str | None, timezone: str | None) -> dict[str, Source]:
    """Inputs by their names in lower case; one without a name has the empty one."""
    if not isinstance(data, Mapping) or is_frame(data):
        return {str(name or "").lower(): _read(data, timezone)}
    known = [str(key) for key in data]
    if not known:
        raise DataError(
            "data is an empty mapping", hint='name frames as FROM does, as in {"trades": frame}'
        )
    frames = {str(key).lower(): _read(frame, timezone) for key, frame in data.items()}
    if len(frames) < len(known):
        raise DataError(
            f"inputs {', '.join(known)} differ only in letter case", hint="rename one of them"
        )
    return frames


def _read(data: Any, timezone: str | None) -> Source:
    if is_on_spark(data):
        from muntin.spark.bounded.source import read_source  # noqa: PLC0415 - only for users of Spark

        return read_source(data, timezone)
    zone = zone_named("UTC" if timezone is None else timezone)
    return LocalSource(read_frame(data), zone)


def routed_inputs(
    frames: Mapping[str, Source], queries: Sequence[Query]
) -> dict[str, tuple[Source, list[Query]]]:
    """Which queries run over which input."""
    found = {name: own for name, own in routed(queries, frames).items() if own}
    order = sorted(found, key=lambda name: queries.index(found[name][0]))
    return {name: (frames[name], found[name]) for name in order}


def planned(
    draft: Draft, source: Source, tables: Mapping[str, pa.Table], placement: str | None
) -> SharedPlan:
    """The plan of a draft for a source: what its rows tell is found out before, where it matters.

    Rows are asked for once queries are bound: only these say what they join, and whether there
    is anything to choose. On Spark, a look at some rows takes a job.
    """
    with uncollected():
        draft = bind(draft)
        relations, weighs = undecided(draft), weighs_rate(draft)
    some = source.sample() if relations or weighs else None
    if some is not None and relations:
        from muntin.engine import sample_rows  # noqa: PLC0415 - it brings numba

        draft = replace(draft, sample=sample_rows(some, relations, tables))
    if some is not None and weighs:
        draft = replace(draft, rate=_rate(some, draft.timeline))
    return source.placed(plan_draft(draft, since=weigh), placement, draft)


def _rate(rows: pa.Table, timeline: Timeline) -> float | None:
    """Rows per tick, as far as some rows tell."""
    ticks = timeline.to_ticks(rows.column(timeline.column).combine_chunks())
    bounds = pc.min_max(ticks)
    if not bounds["min"].is_valid:
        return None
    span: int = bounds["max"].as_py() - bounds["min"].as_py()
    return float(rows.num_rows / max(span, 1))
