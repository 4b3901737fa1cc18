"""The local engine: runs a shared plan on columnar batches in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.counts import Counts
from muntin.engine.answers.front import Answered
from muntin.engine.progress import Progress, RecentRate
from muntin.engine.rows.batches import as_table, outputs
from muntin.engine.rows.key_ranges import KeyRanges
from muntin.engine.rows.stage_a import StageA, StageOutput
from muntin.engine.slices.newcomers import check_streams
from muntin.engine.slices.store import SliceStore
from muntin.engine.state import State
from muntin.engine.tables.relations import check_version
from muntin.errors import DataError
from muntin.plan.nodes import SharedPlan
from muntin.plan.relations import table_named

Results = dict[str, pa.Table]


class LocalEngine:
    """An engine that takes batches of rows, keeps their partials, and answers windows when due.

    With a ``lateness`` (in ticks) the input is a stream. W is the largest event time of all
    earlier batches minus the lateness. A row below W is late: it is dropped and counted. A window
    is answered once, by the first ``feed`` after which W has reached its end.

    Without one the input is bounded: no row is late, and ``close`` answers all windows. Batches
    of a plan with ROWS windows must then come in time order
    (:func:`muntin.engine.answers.group_keys.in_time_order`); all others may come in any order.

    The number of ``threads``, which process the blocks of a large batch in parallel, changes no
    answer. Other queries come with another plan (:meth:`adopt`); :class:`muntin.streams.LiveEngine`
    makes it.
    """

    def __init__(
        self,
        plan: SharedPlan,
        lateness: int | None = None,
        *,
        tables: Mapping[str, pa.Table] | None = None,
        threads: int = 1,
    ) -> None:
        if lateness is not None and (not isinstance(lateness, int) or lateness < 0):
            raise DataError(
                f"lateness must be a whole number, 0 or more, not {lateness!r}",
                hint="give ticks: microseconds, or units of an integer column",
            )
        self.lateness = lateness
        self.threads = threads
        self.tables = dict(tables or {})
        self.statistics = Counts()
        self.recent = RecentRate()
        self._stage_a = StageA(plan, self.tables)
        self._state = State(plan, self._row_times, threads)
        self._by_rows = any(slicing.measure == "rows" for slicing in plan.slicings)
        if lateness is not None:
            check_streams(plan)
        # A stream's batches are small, and what is kept of them is not told apart by key.
        self._ranges = None if lateness is not None else KeyRanges(plan)
        # Bounds of ROWS windows are times of rows, so those times are kept.
        self._ticks: list[Ints] = []
        self._position = 0
        self._closed = False
        self._failed = False

    @property
    def plan(self) -> SharedPlan:
        """The plan of the queries that run."""
        return self._state.plan

    @property
    def watermark(self) -> int | None:
        """The time up to which windows are answered; rows below it are late."""
        return self._state.watermark

    @property
    def seen(self) -> int | None:
        """The largest event time so far."""
        return self._state.seen

    @property
    def stores(self) -> Sequence[SliceStore]:
        """What is kept of each set of partials."""
        return self._state.stores

    def next_windows(self) -> dict[str, int]:
        """The number of the next window that each query answers."""
        return self._state.next_windows()

    def feed(self, batch: pa.Table | pa.RecordBatch) -> Results:
        """Take in a batch; the new results of queries that have windows due."""
        self._check_open()
        made: Iterable[StageOutput] = outputs(
            self._stage_a,
            as_table(batch, self.plan),
            self._position,
            self.watermark,
            self.threads,
            self._ranges,
        )
        if self.lateness is not None:
            # A batch that fails half way leaves no trace in a stream that goes on.
            made = list(made)
        before, rows = self.seen, self.statistics.rows
        with self._changing():
            latest = self._take(made)
            if latest is None or self.lateness is None:
                return {}
            results = self.advance(latest - self.lateness)
            if before is not None:
                moved = max(latest - before, 0)
                self.recent = self.recent.after(self.statistics.rows - rows, moved)
        return results

    def _take(self, made: Iterable[StageOutput]) -> int | None:
        """Keep what stage A made of a batch; its largest event time."""
        latest = None
        for output in made:
            if output.ticks.size:
                highest = int(output.ticks.max())
                latest = highest if latest is None else max(latest, highest)
            self._state.take(output.partials, latest)
            if self._by_rows:
                self._ticks.append(output.ticks)
            self._position += output.ticks.size
            self.statistics += output.counts
        return latest

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What fails in here leaves a state that is neither the old one nor the new one.

        An aggregate of a user's own may raise while windows are answered: then some queries have
        their answers, which nobody got, and to go on would lose them without a word.
        """
        try:
            yield
        except BaseException:
            self._failed = True
            raise

    def _check_whole(self) -> None:
        if self._failed:
            raise DataError(
                "the engine failed while it answered a batch, whose answers are lost",
                hint="restore the snapshot before that batch, and feed it again",
            )

    def _check_open(self) -> None:
        self._check_whole()
        if self._closed:
            raise DataError(
                "the engine is closed: its open windows are answered",
                hint="advance() answers those that are due; start another engine for other rows",
            )

    def advance(self, watermark: int) -> Results:
        """Answer the windows that end at or before a time; rows below it are late from now on."""
        self._check_whole()
        with self._changing():
            return self._results(self._state.advance(watermark))

    def idle(self, elapsed: int) -> Results:
        """Answer what the clock closes, if no row has come for some microseconds.

        The watermark becomes the largest event time plus the time elapsed since, minus the
        lateness; rows below it are late from now on.
        """
        if self.plan.timeline.plain:
            raise DataError(
                f"the time column {self.plan.timeline.column!r} is a plain integer, which no clock "
                "moves",
                hint="advance(tick) moves it",
            )
        if self.seen is None or self.lateness is None:
            return {}
        return self.advance(self.seen + elapsed - self.lateness)

    def close_some(self, names: Collection[str]) -> Results:
        """Answer every open window of some queries, which answer nothing after it."""
        self._check_open()
        with self._changing():
            return self._results(self._state.close(names))

    def close(self) -> Results:
        """Answer every window that holds a row and has no answer yet; all queries, by name.

        It is the end: nothing can be fed to the engine after it. Queries that were closed before
        are not among them.
        """
        self._check_open()
        self._closed = True
        with self._changing():
            results = self._results(self._state.close())
        return {each.name: results[each.name] for each in self.plan.finals if each.name in results}

    def _results(self, answered: Answered) -> Results:
        self.statistics += Counts(
            errors=answered.errors,
            final_aggregations=answered.steps,
            cell_aggregations=answered.cell_steps,
        )
        return answered.tables

    def adopt(self, plan: SharedPlan) -> None:
        """Run another plan from the next batch on, or refuse it and go on with this one.

        It was made for the state it meets, with this plan as the one before
        (:class:`muntin.planner.Replanner`): queries of both keep what is kept for them.
        """
        if self.lateness is not None:
            check_streams(plan)
        stage_a = StageA(plan, self.tables)
        self._state.adopt(plan)
        self._stage_a = stage_a

    def update_table(self, name: str, table: pa.Table) -> None:
        """Join rows that come from now on with another version of a table; those before stay.

        A name that is new adds a table, for queries that join later.
        """
        name = table_named(name, self.tables)
        if name in self.tables and self.plan.is_joined(name):
            check_version(name, self.tables[name].schema, table.schema)
        tables = {**self.tables, name: table}
        self._stage_a = StageA(self.plan, tables)
        self.tables = tables

    def snapshot(self, since: bytes | None = None) -> bytes:
        """The state of a stream as bytes, from which :meth:`restore` continues bit for bit.

        With an earlier snapshot of this engine, or the first 16 bytes of one, they hold only what
        changed since: :meth:`restore` takes them after the earlier one. It must be among the last
        16 that were taken, or the one that was restored.
        """
        self._check_whole()
        return self._state.snapshot(
            since,
            lateness=self.lateness,
            statistics=vars(self.statistics),
            recent=vars(self.recent),
        )

    @classmethod
    def restore(
        cls,
        plan: SharedPlan,
        data: bytes | Sequence[bytes],
        *,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> Self:
        """An engine for the same plan in the state of a snapshot.

        Instead of a whole one ``data`` may be several: a whole one and those taken since, in order,
        each since the one before; the plan is that of the last.
        """
        given = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        state, held = State.restore(plan, *map(bytes, given))
        extra: Any = held
        engine = cls(plan, extra["lateness"], tables=tables)
        engine.recent = RecentRate(**extra["recent"])
        counts = extra["statistics"]
        engine.statistics = Counts(**{**counts, "errors": Counter(counts["errors"])})
        engine._state = state
        return engine

    def progress(self) -> Progress:
        """What the run has seen and done, and what it holds."""
        return Progress.of(self.statistics, self._state)

    def _row_times(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The times of the first and the last row between positions."""
        ticks = np.concatenate(self._ticks) if self._ticks else np.zeros(0, np.int64)
        if not starts.size:
            return starts, ends
        return ticks[np.maximum(starts, 0)], ticks[np.minimum(ends, ticks.size) - 1]
