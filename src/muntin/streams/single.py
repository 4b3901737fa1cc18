"""A stream in this process, without Spark: batches in, answers of windows that are due out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from muntin.counts import Counts
from muntin.display import count
from muntin.engine import Progress
from muntin.engine.slices.snapshot import token_of
from muntin.engine.slices.store import REMEMBERED
from muntin.errors import DataError, Problem, QueryError
from muntin.faults import is_fail
from muntin.frames import read_frame, read_tables
from muntin.plan import SharedPlan
from muntin.planner.sharing import Optimizer
from muntin.queries import (
    AnyKeep,
    Catalog,
    CreateKeep,
    DropKeep,
    DropQuery,
    Keep,
    QueriesLike,
    Query,
    Statement,
    statements_of,
)
from muntin.queries.routes import routed
from muntin.results import Results, TableAnswer
from muntin.streams.group import StreamGroup
from muntin.streams.intake import Intake
from muntin.streams.keeper import Keeper
from muntin.streams.lifecycle import Lifecycle
from muntin.streams.live import LiveEngine
from muntin.streams.query_slices import QuerySlices, asking_of
from muntin.streams.snapshots import is_group, packed, token_in, unpacked
from muntin.streams.start import resume_group
from muntin.synopses import Askable, Asking, Moment
from muntin.windows import DurationLike, duration


class Stream(Lifecycle, Askable):
    """Any number of queries over one stream of batches, which join and leave while it runs.

    Made by :func:`muntin.stream`. Let W be the largest event time of all earlier batches less the
    lateness. A row below W is late: it is dropped and counted. A window is answered once, by the
    first :meth:`feed` after which W has reached its end.
    """

    def __init__(
        self,
        engine: LiveEngine,
        *,
        name: str | None = None,
        on_error: Literal["null", "fail"] = "null",
        on_bad_row: Literal["skip", "fail"] = "skip",
        max_ahead: int | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(on_error, on_bad_row)
        self._engine = engine
        self._name = name
        self._intake = Intake(engine.plan.source, engine.plan.timeline, max_ahead)
        self._catalog = Catalog(final.query for final in engine.plan.finals)
        self._restore = read_frame(engine.plan.source.empty_table()).restore
        self._batches = 0
        plan = engine.plan
        self._keeper = keeper or Keeper(plan.source, plan.timeline.column, plan.zone, engine.tables)
        self._slices = QuerySlices(engine)
        self._asking = asking_of(
            lambda: self._keeper.versions,
            self._slices.versions,
            self._keeper.schemas,
            several=False,
            restore=lambda: self._restore,
        )
        # The plans of the last snapshots, by their tokens.
        self._plans: dict[bytes, SharedPlan] = {}
        # What was kept at them: the blocks of each keep, by number.
        self._blocks: dict[bytes, dict[int, set[int]]] = {}
        check_sources(self._catalog, name)

    @classmethod
    def restore(
        cls,
        data: bytes | Sequence[bytes],
        tables: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        on_error: Literal["null", "fail"] = "null",
        on_bad_row: Literal["skip", "fail"] = "skip",
        max_ahead: DurationLike | None = "1 day",
    ) -> Stream | StreamGroup:
        """A stream that resumes from snapshots alone: they hold queries, columns and keeps.

        Several streams, and queries over rows, resume as the :class:`StreamGroup` that they were.

        Args:
            data: What :meth:`snapshot` gave: a whole one, or a list of a whole one and those since.
            tables: The frames that its queries join, by name, which snapshots do not hold.
            name: As in :func:`muntin.stream`, like those that follow. Several streams have names.
            on_error: What a value that fails does.
            on_bad_row: What a row without a time that can be used does.
            max_ahead: How far ahead of the clock a time may be.

        >>> import muntin
        >>> query = "SELECT sum(vol) AS vol FROM trades [RANGE 10 SLIDE 5]"
        >>> stream = muntin.stream(query, {"ts": "int64", "vol": "int64"})
        >>> answers = stream.feed(pa.table({"ts": [1, 4], "vol": [10, 20]}))
        >>> resumed = muntin.Stream.restore(stream.snapshot())
        >>> resumed.feed(pa.table({"ts": [10], "vol": [1]}))["q1"]["vol"].to_pylist()
        [30, 30]
        """
        is_fail("on_error", on_error, "null")
        is_fail("on_bad_row", on_bad_row, "skip")
        ahead = None if max_ahead is None else duration(max_ahead)
        if is_group(data):
            if name is not None:
                raise DataError(
                    f"name is {name!r}, and the streams of the snapshot have names of their own",
                    hint="leave name= out",
                )
            return resume_group(
                data, tables, on_error=on_error, on_bad_row=on_bad_row, max_ahead=ahead
            )
        plan, states, kept = unpacked(data)
        joined = read_tables(tables, plan.zone.name)
        engine = LiveEngine.restore(plan, states, tables=joined, optimizer=Optimizer("auto"))
        engine.threads = pa.cpu_count()
        opened = cls(engine, name=name, on_error=on_error, on_bad_row=on_bad_row, max_ahead=ahead)
        opened.resume_keeps(kept)
        return opened

    def feed(self, batch: Any) -> Results:
        """Take in a batch, and answer the windows that it makes due.

        Args:
            batch: A pyarrow Table or RecordBatch, a pandas or polars frame.

        Returns:
            The answers of every query, in the kind of frame the batch came in; empty for those
            that have no window due.

        Raises:
            DataError: If the batch cannot be read, which changes nothing; or if it holds what
                ``on_error`` or ``on_bad_row`` let fail, which ends the stream.
        """
        self._check()
        given = self._intake.read(batch)
        self._restore = given.restore
        self._check_rows(self._intake, given)
        before = Counter(self._engine.statistics.errors)
        watermark, threads = self._engine.watermark, self._engine.threads
        kept = self._keeper.prepared(given.kept, watermark, threads)
        with self._slices.lock:
            found = self._engine.feed(given.kept)
            self._batches += 1
            self._slices.moved(self._moment)
        self._keeper.commit(kept, self._moment, given.kept.num_rows)
        # Rows too far ahead were not shown to the engine, and count like those without a time.
        self._engine.statistics += Counts(
            rows=given.ahead, bad_rows=given.ahead, errors=kept.errors
        )
        return self._results(found, given.rows, before)

    def advance(self, to: Any) -> Results:
        """Answer the windows that end at or before a time, without waiting for a row to say so.

        Rows before it are late from then on. A time that has passed changes nothing.

        Args:
            to: A timestamp, a date or a number, as in the time column.
        """
        self._check()
        tick = self._intake.tick(to)
        before = Counter(self._engine.statistics.errors)
        with self._slices.lock:
            found = self._engine.advance(tick)
            self._slices.moved(self._moment)
        self._keeper.advance(self._moment)
        return self._results(found, 0, before)

    @property
    def _moment(self) -> Moment:
        return Moment(self._batches, self._engine.seen, self._engine.watermark)

    def add(self, queries: QueriesLike) -> None:
        """Let queries join, from the next batch on: all of them, or none if one is refused.

        They answer at least every window that starts after the largest event time so far, and
        earlier ones where what is kept holds all their rows. No other query's answers change by a
        bit. ``CREATE OR REPLACE QUERY`` replaces the one of its name, ``DROP QUERY`` removes one.
        """
        self._apply(statements_of(queries, [query.name for query in self._catalog]))

    def remove(self, name: str) -> None:
        """Let a query leave: it answers nothing more, not even its open windows."""
        self._apply([DropQuery(name)])

    def _apply(self, statements: Iterable[Statement]) -> None:
        self._check()
        catalog = Catalog(self._catalog)
        catalog.apply(statements)
        check_sources(catalog, self._name)
        with self._slices.lock:
            self._engine.replace(list(catalog))
            self._slices.moved(self._moment)
        self._catalog = catalog

    def _apply_keeps(self, statements: Sequence[CreateKeep | DropKeep]) -> None:
        self._check()
        check_keep_sources(statements, self._name)
        self._keeper.apply(statements)

    def keeps(self) -> list[AnyKeep]:
        """What is kept, in the order it joined."""
        return self._keeper.keeps()

    def explain_keeps(self) -> str:
        """What is kept, and what it takes: entries per row, entries and bytes."""
        return self._keeper.explain()

    def _asked(self) -> Asking:
        return self._asking

    def update_table(self, name: str, frame: Any) -> None:
        """Join rows from the next batch on with another version of a table; those before stay.

        A name that is new adds a table, for queries that join later.
        """
        self._check()
        table = read_frame(frame).table()
        self._engine.update_table(name, table)
        self._keeper.update_table(name, table)

    def queries(self) -> list[Query]:
        """The queries that run, in the order they joined."""
        return list(self._catalog)

    def plan(self) -> SharedPlan:
        """What the queries share."""
        return self._engine.plan

    def explain(self) -> str:
        """What the queries share, and what is kept."""
        kept = self.explain_keeps()
        return self._engine.plan.explain() + (f"\n{kept}" if kept else "")

    def progress(self) -> Progress:
        """What the stream has seen and done, and what it keeps."""
        return self._engine.progress()

    def snapshot(self, since: bytes | None = None) -> bytes:
        """The stream as bytes, with which :func:`muntin.stream` resumes identically.

        They hold a pickled plan: resume only from bytes that come from where you trust.

        Args:
            since: An earlier snapshot of this stream: one of the last 16, or the one that it was
                resumed from. The bytes then hold only what changed in the meantime, which is what
                came in and not what is kept, and are given to :func:`muntin.stream` in a list,
                after the earlier ones. Its first 64 bytes are enough. After queries joined or left
                what that touched is in it as a whole.

        Raises:
            DataError: If ``since`` is not such a snapshot.

        >>> import muntin
        >>> columns = {"ts": "int64", "vol": "int64"}
        >>> query = "SELECT sum(vol) AS vol FROM trades [RANGE 10 SLIDE 5]"
        >>> stream = muntin.stream(query, columns)
        >>> answers = stream.feed(pa.table({"ts": [1, 4], "vol": [10, 20]}))
        >>> whole = stream.snapshot()
        >>> answers = stream.feed(pa.table({"ts": [7], "vol": [30]}))
        >>> kept = [whole, stream.snapshot(since=whole)]
        >>> resumed = muntin.stream(query, columns, snapshot=kept)
        >>> resumed.feed(pa.table({"ts": [10], "vol": [1]}))["q1"]["vol"].to_pylist()
        [60]
        """
        self._check()
        earlier = None if since is None else token_in(since)
        plan, state = self._engine.plan, self._engine.snapshot(earlier)
        is_known = earlier is not None and self._plans.get(earlier) is plan
        blocks = None if earlier is None else self._blocks.get(earlier)
        kept, numbers = self._keeper.snapshot(blocks)
        token = token_of(state)
        self._remember(token, numbers)
        return packed(token, (None if is_known else plan, state, (self._batches, kept)))

    def _remember(self, token: bytes, blocks: dict[int, set[int]]) -> None:
        self._plans.pop(token, None)
        self._plans[token] = self._engine.plan
        self._blocks[token] = blocks
        while len(self._plans) > REMEMBERED:
            oldest = next(iter(self._plans))
            del self._plans[oldest]
            self._blocks.pop(oldest, None)

    def resume_keeps(self, kept: Sequence[Any]) -> None:
        """Go on with what was kept when snapshots were taken."""
        self._batches = kept[-1][0]
        self._keeper.restore([each for _, each in kept])
        self._slices.moved(self._moment)

    def close(self) -> Results:
        """Answer every window that holds a row and has no answer yet, and end the stream."""
        self._check()
        before = Counter(self._engine.statistics.errors)
        with self._slices.lock:
            found = self._engine.close()
            self._slices.moved(self._moment)
        self._failure = "the stream is closed: its open windows are answered"
        return self._results(found, 0, before)

    def __repr__(self) -> str:
        seen = self._engine.statistics.rows
        return f"<Stream of {count(len(self._catalog), 'query')} over {count(seen, 'row')}>"

    def _results(self, found: Mapping[str, pa.Table], rows: int, before: Counter[str]) -> Results:
        errors = self._engine.statistics.errors - before
        self._check_values(errors)
        plan = self._engine.plan
        answers = {}
        for final in plan.finals:
            table = found.get(final.name)
            if table is None:
                table = plan.result_schema(final).empty_table()
            answers[final.name] = TableAnswer(table, self._restore)
        return Results(answers, plan, rows=rows, errors=errors)


def check_keep_sources(statements: Iterable[CreateKeep | DropKeep], name: str | None) -> None:
    """Refuse keeps of another stream than the one of this name."""
    kept = [one.keep for one in statements if isinstance(one, CreateKeep)]
    check_sources([keep.query for keep in kept if isinstance(keep, Keep)], name)
    for keep in kept:
        if name is not None and keep.source.lower() != name.lower():
            raise QueryError([Problem(f"there is no stream {keep.source}", f"write FROM {name}")])


def check_sources(queries: Iterable[Query], name: str | None) -> None:
    """Refuse queries over another stream than the one of this name."""
    if name is None:
        return
    if not isinstance(name, str):
        raise DataError(f"name is {name!r}", hint='give a name, as in name="trades"')
    routed(queries, [name])
