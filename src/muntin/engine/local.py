"""The local engine: runs a shared plan on columnar batches in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.answering import Answerer
from muntin.engine.families import FIRST_WINDOW, LAST_WINDOW, Due
from muntin.engine.joining import OldCut, carry_cuts, carry_stores, check_streams, first_window
from muntin.engine.progress import Progress, Statistics
from muntin.engine.snapshot import pack, unpack
from muntin.engine.stage_a import StageA
from muntin.engine.store import BEGINNING, SliceStore
from muntin.errors import DataError, UnknownQueryError, did_you_mean
from muntin.plan import build_plan
from muntin.plan.nodes import SharedPlan
from muntin.plan.timeline import Timeline
from muntin.queries import Query

Ints = npt.NDArray[np.int64]
Results = dict[str, pa.Table]


class LocalEngine:
    """Takes batches of rows, keeps their partials, and answers windows when they are due.

    With a ``lateness`` (in ticks) the input is a stream. W is the largest event time of all
    earlier batches less the lateness. A row below W is late: it is dropped and counted. A window
    is answered once, by the first ``feed`` after which W has reached its end.

    Without one the input is bounded: no row is late, and ``close`` answers all windows. Batches
    of a plan with ROWS windows must then come in time order
    (:func:`muntin.engine.ordering.in_time_order`); all others may come in any order.
    """

    def __init__(
        self,
        plan: SharedPlan,
        lateness: int | None = None,
        *,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> None:
        self.plan = plan
        self.lateness = lateness
        self.tables = dict(tables or {})
        self.watermark: int | None = None
        self.statistics = Statistics()
        self._stage_a = StageA(plan, self.tables)
        self._answer = Answerer(plan, self._row_times)
        self._stores = [SliceStore(node) for node in plan.partials]
        # The number of each query's next window, and of the first one in an open gap.
        self._next = np.full(len(plan.finals), FIRST_WINDOW)
        self._gaps: dict[str, int] = {}
        # The largest event time so far, and the cuts of slices from before the plan changed.
        self._seen: int | None = None
        self._old_cuts: list[OldCut] = []
        self._by_rows = any(slicing.measure == "rows" for slicing in plan.slicings)
        if lateness is not None:
            check_streams(plan)
        # Bounds of ROWS windows are times of rows, so those times are kept.
        self._ticks: list[Ints] = []
        self._position = 0

    def feed(self, batch: pa.Table | pa.RecordBatch) -> Results:
        """Take in a batch; the new results of queries that have windows due."""
        if isinstance(batch, pa.RecordBatch):
            batch = pa.Table.from_batches([batch])
        output = self._stage_a(batch, self._position, self.watermark)
        for store, partials in zip(self._stores, output.partials, strict=True):
            store.add(partials)
        if self._by_rows:
            self._ticks.append(output.ticks)
        self._position += output.ticks.size
        self.statistics.take(output)
        if not output.ticks.size:
            return {}
        latest = int(output.ticks.max())
        self._seen = latest if self._seen is None else max(self._seen, latest)
        return {} if self.lateness is None else self.advance(latest - self.lateness)

    def advance(self, watermark: int) -> Results:
        """Answer the windows that end at or before a time; rows below it are late from now on."""
        if self.watermark is not None and watermark <= self.watermark:
            return {}
        self.watermark = watermark
        results = self._answer_until(watermark)
        self._evict()
        return results

    def close(self) -> Results:
        """Answer every window that holds a row and has no answer yet; all queries, by name."""
        results = self._answer_until(None)
        return {final.name: results[final.name] for final in self.plan.finals}

    def add(self, query: Query) -> None:
        """Let a query join, from the next batch on.

        It answers at least every window that starts after the largest event time so far, and
        earlier ones where the slices that are kept hold all their rows. No other query's answers
        change by a bit. A query of the same name is replaced.
        """
        others = [q for q in self._queries() if q.name.lower() != query.name.lower()]
        self._adopt([*others, query])

    def remove(self, name: str) -> None:
        """Let a query leave: it answers nothing more."""
        kept = [query for query in self._queries() if query.name.lower() != name.lower()]
        if len(kept) == len(self.plan.finals):
            known = [query.name for query in kept]
            raise UnknownQueryError(f"there is no query {name!r}", hint=did_you_mean(name, known))
        self._adopt(kept)

    def update_table(self, name: str, table: pa.Table) -> None:
        """Join rows that come from now on with another version of a table; those before stay."""
        if name not in self.tables:
            hint = did_you_mean(name, self.tables) or "give it with tables= at the start"
            raise DataError(f"there is no table {name!r}", hint=hint)
        tables = {**self.tables, name: table}
        self._stage_a = StageA(self.plan, tables)
        self.tables = tables

    def _queries(self) -> list[Query]:
        return [final.query for final in self.plan.finals]

    def _adopt(self, queries: list[Query]) -> None:
        old = self.plan
        plan = build_plan(
            queries,
            old.source,
            old.timeline.column,
            strategy=old.strategy,
            slicing=old.slicing,
            tables={name: table.schema for name, table in self.tables.items()},
            previous=old,
        )
        if self.lateness is not None:
            check_streams(plan)
        seen = BEGINNING - 1 if self._seen is None else self._seen
        self._stores = carry_stores(self._stores, plan, seen + 1)
        self._old_cuts = carry_cuts(old, self._old_cuts, plan, seen, self._stores)
        stay = {final.name for final in old.finals if final.query in queries}
        known = {final.name: k for final, k in zip(old.finals, self._next, strict=True)}
        self._gaps = {name: k for name, k in self._gaps.items() if name in stay}
        self.plan, self._stage_a = plan, StageA(plan, self.tables)
        self._answer = Answerer(plan, self._row_times)
        self._next = np.full(len(plan.finals), FIRST_WINDOW)
        for index, final in enumerate(plan.finals):
            if final.name in stay:
                self._next[index] = known[final.name]
            elif self._seen is not None:
                node = plan.partials[final.partials]
                self._next[index] = first_window(
                    final,
                    plan.slicings[node.slicing].identity,
                    self._stores[final.partials],
                    self._old_cuts,
                    self.watermark,
                )

    def snapshot(self) -> bytes:
        """The state of a stream as bytes, from which :meth:`restore` goes on identically."""
        state = {
            "lateness": self.lateness,
            "watermark": self.watermark,
            "next": self._next.tolist(),
            "gaps": self._gaps,
            "seen": self._seen,
            "cuts": [
                (cut.slicing[0], cut.slicing[1].column, cut.slicing[2], cut.until, cut.classes)
                for cut in self._old_cuts
            ],
            "statistics": vars(self.statistics),
        }
        return pack(state, self.plan, self._stores)

    @classmethod
    def restore(
        cls, plan: SharedPlan, data: bytes, *, tables: Mapping[str, pa.Table] | None = None
    ) -> LocalEngine:
        """An engine for the same plan in the state of a snapshot."""
        state, stores = unpack(data, plan)
        engine = cls(plan, state["lateness"], tables=tables)
        engine.watermark = state["watermark"]
        engine._next, engine._gaps = np.array(state["next"], np.int64), state["gaps"]
        engine._seen = state["seen"]
        engine._old_cuts = [
            OldCut(
                (measure, Timeline.of(plan.source, column), owner),
                until,
                tuple(map(tuple, classes)),
            )
            for measure, column, owner, until, classes in state["cuts"]
        ]
        counts = state["statistics"]
        engine.statistics = Statistics(**{**counts, "errors": Counter(counts["errors"])})
        engine._stores = stores
        return engine

    def _answer_until(self, watermark: int | None) -> Results:
        last = np.full(len(self.plan.finals), LAST_WINDOW)
        if watermark is not None:
            _, slides, phases = self.plan.windows.T
            last = (watermark - phases) // slides
        answered = self._answer(self._stores, Due(self._next, last, self._gaps))
        self.statistics.errors.update(answered.errors)
        self.statistics.final_aggregations += answered.steps
        self._next = np.maximum(self._next, last + 1)
        for final in self.plan.finals:
            if final.query.emit_empty and final.name in answered.last:
                self._gaps[final.name] = answered.last[final.name] + 1
        if watermark is None:
            return answered.tables
        return {name: answered.tables[name] for name in answered.tables if name in answered.last}

    def _evict(self) -> None:
        """Forget the slices that lie before the next window of every query."""
        ranges, slides, phases = self.plan.windows.T
        needed = phases + self._next * slides - ranges
        for index, store in enumerate(self._stores):
            owned = np.array([final.partials == index for final in self.plan.finals])
            store.evict(int(needed[owned].min()))

    def progress(self) -> Progress:
        """What the run has seen and done, and what it holds."""
        tables = [store.table() for store in self._stores]
        return Progress(
            **vars(self.statistics),
            watermark=self.watermark,
            slices=sum(store.slices for store in self._stores),
            cells=sum(table.starts.size for table in tables),
            groups=sum(len(table.keys[0]) if table.keys else 0 for table in tables),
            state_bytes=sum(store.nbytes for store in self._stores),
        )

    def _row_times(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The times of the first and the last row between positions."""
        ticks = np.concatenate(self._ticks) if self._ticks else np.zeros(0, np.int64)
        if not starts.size:
            return starts, ends
        return ticks[np.maximum(starts, 0)], ticks[np.minimum(ends, ticks.size) - 1]
