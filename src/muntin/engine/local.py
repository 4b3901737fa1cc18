"""The local engine: runs a shared plan on columnar batches in one process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.snapshot import pack, unpack
from muntin.engine.stage_a import StageA
from muntin.engine.stage_b import FIRST_WINDOW, LAST_WINDOW, Answer, Due, StageB
from muntin.engine.store import SliceStore
from muntin.errors import WindowError
from muntin.expressions import Evaluator
from muntin.plan.nodes import Final, SharedPlan

Ints = npt.NDArray[np.int64]
Results = dict[str, pa.Table]


@dataclass
class Statistics:
    """What a run has seen: rows, those too late or without a time, and failed values per query."""

    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)


class LocalEngine:
    """Takes batches of rows, keeps their partials, and answers windows when they are due.

    With a ``lateness`` (in ticks) the input is a stream. W is the largest event time of all
    earlier batches less the lateness. A row below W is late: it is dropped and counted. A window
    is answered once, by the first ``feed`` after which W has reached its end.

    Without one the input is bounded: no row is late, and ``close`` answers all windows. Batches
    of a plan with ROWS windows must then come in time order
    (:func:`muntin.engine.ordering.in_time_order`); all others may come in any order.
    """

    def __init__(self, plan: SharedPlan, lateness: int | None = None) -> None:
        self.plan = plan
        self.lateness = lateness
        self.watermark: int | None = None
        self.statistics = Statistics()
        self._stage_a = StageA(plan)
        self._stores = [SliceStore(node) for node in plan.partials]
        # The number of each query's next window, and of the first one in an open gap.
        self._next: dict[str, int] = {}
        self._gaps: dict[str, int] = {}
        self._by_rows = any(slicing.measure == "rows" for slicing in plan.slicings)
        if lateness is not None:
            _check_streams(plan)
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
        self.statistics.rows += output.rows
        self.statistics.late_rows += output.late_rows
        self.statistics.bad_rows += output.bad_rows
        self.statistics.errors.update(output.errors)
        if self.lateness is None or not output.ticks.size:
            return {}
        return self.advance(int(output.ticks.max()) - self.lateness)

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

    def snapshot(self) -> bytes:
        """The state of a stream as bytes, from which :meth:`restore` goes on identically."""
        state = {
            "lateness": self.lateness,
            "watermark": self.watermark,
            "next": self._next,
            "gaps": self._gaps,
            "statistics": vars(self.statistics),
        }
        return pack(state, self.plan, self._stores)

    @classmethod
    def restore(cls, plan: SharedPlan, data: bytes) -> LocalEngine:
        """An engine for the same plan in the state of a snapshot."""
        state, stores = unpack(data, plan)
        engine = cls(plan, state["lateness"])
        engine.watermark = state["watermark"]
        engine._next, engine._gaps = state["next"], state["gaps"]
        counts = state["statistics"]
        engine.statistics = Statistics(**{**counts, "errors": Counter(counts["errors"])})
        engine._stores = stores
        return engine

    def _answer_until(self, watermark: int | None) -> Results:
        results = {}
        for index, store in enumerate(self._stores):
            stage_b = StageB(store.table())
            for final in self.plan.finals:
                if final.partials == index:
                    due = self._due(final, watermark)
                    answer = stage_b.answer(final, due)
                    if watermark is None or answer.windows.size:
                        results[final.name] = self._show(final, answer)
                    self._advance(final, due, answer)
        return results

    def _due(self, final: Final, watermark: int | None) -> Due:
        last = LAST_WINDOW
        if watermark is not None:
            last = (watermark - final.window.phase) // final.window.period
        first = self._next.get(final.name, FIRST_WINDOW)
        return Due(first, last, self._gaps.get(final.name))

    def _advance(self, final: Final, due: Due, answer: Answer) -> None:
        self._next[final.name] = max(due.first, due.last + 1)
        if final.query.emit_empty and answer.windows.size:
            self._gaps[final.name] = int(answer.windows[-1]) + 1

    def _evict(self) -> None:
        """Forget the slices that lie before the next window of every query."""
        for index, store in enumerate(self._stores):
            finals = [final for final in self.plan.finals if final.partials == index]
            store.evict(min(final.window.start(self._next[final.name]) for final in finals))

    def _show(self, final: Final, answer: Answer) -> pa.Table:
        """The answer as the user's columns, filtered by HAVING."""
        bounds = [output.value for output in final.outputs]
        if final.having is not None:
            bounds.append(final.having)
        evaluated = Evaluator(bounds)(answer.lowered)
        failed = sum(0 if each.errors is None else each.errors.true_count for each in evaluated)
        self.statistics.errors[final.name] += answer.failed + failed
        timeline = self.plan.slicings[self.plan.partials[final.partials].slicing].timeline
        starts, ends = self._bounds(final, answer.windows)
        outputs = [each.values for each in evaluated[: len(final.outputs)]]
        result = pa.Table.from_arrays(
            [timeline.from_ticks(starts), timeline.from_ticks(ends), *outputs],
            names=["window_start", "window_end", *(output.name for output in final.outputs)],
        )
        return result if final.having is None else result.filter(evaluated[-1].values)

    def _bounds(self, final: Final, windows: Ints) -> tuple[Ints, Ints]:
        starts, ends = final.window.start(windows), final.window.end(windows)
        if final.window.measure == "time" or not windows.size:
            return starts, ends
        ticks = np.concatenate(self._ticks)
        return ticks[np.maximum(starts, 0)], ticks[np.minimum(ends, ticks.size) - 1]


def _check_streams(plan: SharedPlan) -> None:
    """Refuse windows that the progress of event time does not close."""
    for slicing in plan.slicings:
        if slicing.measure == "rows" or slicing.timeline != plan.timeline:
            what = "ROWS" if slicing.measure == "rows" else f"WATTR {slicing.timeline.column}"
            raise WindowError(
                f"{what} windows are answered over bounded data only",
                hint=f"use a RANGE of {plan.timeline.column}, or collect the rows first",
            )
