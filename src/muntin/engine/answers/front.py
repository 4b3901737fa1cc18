"""From kept partials to the tables that users see, for all queries that have windows due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import USER
from muntin.engine.answers.families import Due, Family, families
from muntin.engine.answers.moving import MovingStage
from muntin.engine.answers.parts import Column, Rows, are_worth, joined
from muntin.engine.answers.stage_b import Answer, StageB
from muntin.engine.answers.unmerged import Unmerged
from muntin.engine.answers.windows import window_bounds
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.partials import PartialBatch, merge
from muntin.engine.slices.store import SliceStore
from muntin.expressions import Evaluator
from muntin.plan.nodes import SharedPlan
from muntin.plan.timeline import Timeline
from muntin.queries import BOUNDS

# From the positions of ROWS windows' bounds to the times of their first and last row.
RowTimes = Callable[[Ints, Ints], tuple[Ints, Ints]]


def no_rows(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The bounds as they are: there are no ROWS windows."""
    return starts, ends


@dataclass
class Answered:
    """Results by query, their last window that holds a row, failed values, aggregations.

    ``steps`` are those along time, ``cell_steps`` those along cells.
    """

    tables: dict[str, pa.Table] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    cell_steps: int = 0


class Answerer:
    """Answers queries of a plan; expressions over results are compiled once."""

    def __init__(self, plan: SharedPlan, row_times: RowTimes = no_rows, threads: int = 1) -> None:
        self.plan = plan
        self._row_times = row_times
        self._threads = threads
        self._evaluators: dict[tuple[object, ...], Evaluator] = {}

    def __call__(self, stores: Sequence[SliceStore], due: Due) -> Answered:
        """The windows that are due, query by query."""
        answered = Answered()
        asked: dict[int, list[Family]] = {}
        for family in families(self.plan, due):
            asked.setdefault(family.finals[0].partials, []).append(family)
        done = self._answer_trees(stores, asked)
        for index, wanted in asked.items():
            if index in done:
                for family, rows in zip(wanted, done[index][0], strict=True):
                    self._show(family, rows, answered)
                answered.steps += done[index][1]
                answered.cell_steps += done[index][2]
                continue
            moving = stores[index].moving
            if moving is not None:
                self._answer_moving(moving, wanted, answered)
                continue
            parts = stores[index].parts()
            if parts is not None and are_worth(parts, wanted):
                self._answer_parts(index, parts, wanted, answered)
                continue
            stage = self._stage(index, stores[index])
            for family in wanted:
                self.show(family, stage.answer(family), answered)
            answered.steps += stage.steps
            answered.cell_steps += stage.cell_steps
        return answered

    def _answer_trees(
        self, stores: Sequence[SliceStore], asked: Mapping[int, Sequence[Family]]
    ) -> dict[int, tuple[list[Rows], int, int]]:
        """Answer several sets of partials side by side, where threads are free to do so.

        Those that come from others' entries may share columns with them, so they take turns. Code
        of users keeps the interpreter's lock, and may keep more.
        """
        related = any(
            node.finer is not None or node.twin is not None for node in self.plan.partials
        )
        if self._threads == 1 or related:
            return {}
        plain = [
            index
            for index, wanted in asked.items()
            if stores[index].moving is None and not self._is_users(index)
            if (parts := stores[index].parts()) is None or not are_worth(parts, wanted)
        ]
        if len(plain) < 2:
            return {}
        for index in plain:
            for family in asked[index]:
                self._evaluator(family)

        def answer(index: int) -> tuple[list[Rows], int, int]:
            stage = self._stage(index, stores[index])
            rows = [self._rows(family, stage.answer(family)) for family in asked[index]]
            return rows, stage.steps, stage.cell_steps

        with ThreadPoolExecutor(self._threads, thread_name_prefix="muntin-tree") as pool:
            return dict(zip(plain, pool.map(answer, plain), strict=True))

    def _is_users(self, index: int) -> bool:
        accumulators = self.plan.partials[index].accumulators
        return any(each.part.kind.startswith(USER) for each in accumulators)

    def _stage(self, index: int, store: SliceStore) -> StageB:
        node = self.plan.partials[index]
        batches = store.batches()
        entries = Unmerged.of(batches) if batches is not None and not node.grouping else None
        slicing = self.plan.slicings[node.slicing]
        return StageB(node, store.table, slicing, entries, self._threads)

    def _answer_parts(
        self,
        index: int,
        parts: Sequence[Sequence[PartialBatch]],
        wanted: Sequence[Family],
        answered: Answered,
    ) -> None:
        """Answer families from the groups of each range of keys, side by side."""
        for family in wanted:
            # Compiled before several threads ask for it.
            self._evaluator(family)

        def answer(batches: Sequence[PartialBatch]) -> tuple[list[Rows], int, int]:
            node = self.plan.partials[index]
            stage = StageB(node, partial(merge, node, batches), self.plan.slicings[node.slicing])
            rows = [self._rows(family, stage.answer(family)) for family in wanted]
            return rows, stage.steps, stage.cell_steps

        with ThreadPoolExecutor(self._threads, thread_name_prefix="muntin-part") as pool:
            found = list(pool.map(answer, parts))
        for number, family in enumerate(wanted):
            self._show(family, joined([rows[number] for rows, _, _ in found]), answered)
        answered.steps += sum(steps for _, steps, _ in found)
        answered.cell_steps += sum(cells for _, _, cells in found)

    def _answer_moving(
        self, moving: MovingSlices, wanted: list[Family], answered: Answered
    ) -> None:
        """Answer families from finals that move on."""
        stage = MovingStage(moving)
        rows = [stage.rows_of(family) for family in wanted]
        for family, answer in zip(wanted, stage.answer(wanted, rows), strict=True):
            self.show(family, answer, answered)
        steps, cells = moving.taken_steps()
        answered.steps += stage.steps + steps
        answered.cell_steps += stage.cell_steps + cells

    def show(self, family: Family, answer: Answer, answered: Answered) -> None:
        """Add what a family's queries show of an answer."""
        self._show(family, self._rows(family, answer), answered)

    def _rows(self, family: Family, answer: Answer) -> Rows:
        """The answer as the users' columns, filtered by HAVING."""
        first = family.finals[0]
        evaluated = self._evaluator(family)(answer.lowered)
        failed = answer.failed
        for each in evaluated:
            if each.errors is not None:
                flags = each.errors.to_numpy(zero_copy_only=False).astype(np.int64)
                failed = flags if failed is None else failed + flags
        columns: list[Column] = [each.values for each in evaluated[: len(first.outputs)]]
        shown = answer.rows
        if first.having is not None:
            kept = evaluated[-1].values.fill_null(False)
            columns = [column.filter(kept) for column in columns]
            shown = np.concatenate(([0], np.cumsum(kept.to_numpy(zero_copy_only=False))))[shown]
        return Rows(answer.windows, answer.runs, answer.rows, shown, columns, failed)

    def _show(self, family: Family, found: Rows, answered: Answered) -> None:
        """The rows with the bounds of their windows, query by query."""
        first = family.finals[0]
        node = self.plan.partials[first.partials]
        timeline = self.plan.slicings[node.slicing].timeline
        starts, ends = np.empty_like(found.windows), np.empty_like(found.windows)
        window_bounds(found.windows, found.runs, family.windows, starts, ends)
        if first.window.measure == "rows":
            starts, ends = self._row_times(starts, ends)
        names = [output.name for output in first.outputs]
        shown = Shown(starts, ends, found.shown, timeline, found.columns, names)
        self._split(family, found, shown, answered)

    def _split(
        self,
        family: Family,
        answer: Rows,
        shown: Shown,
        answered: Answered,
    ) -> None:
        failed = answer.failed
        runs, rows = answer.runs.tolist(), answer.rows[answer.runs].tolist()
        last = answer.windows[np.maximum(answer.runs[1:] - 1, 0)].tolist() if rows[-1] else []
        names = [*BOUNDS, *(output.name for output in family.finals[0].outputs)]
        for number, final in enumerate(family.finals):
            result = shown.between(runs[number], runs[number + 1])
            own = [*final.query.bounds, *(output.name for output in final.outputs)]
            if own != names:
                result = result.rename_columns(own)
            name = final.name
            answered.tables[name] = result
            begin, end = rows[number], rows[number + 1]
            if end > begin:
                answered.last[name] = last[number]
            if failed is not None:
                answered.errors[name] += int(failed[begin:end].sum())

    def _evaluator(self, family: Family) -> Evaluator:
        """What makes a family's columns, and its HAVING, of lowered aggregates."""
        first = family.finals[0]
        having = () if first.having is None else (first.having,)
        bounds = (*(output.value for output in first.outputs), *having)
        # Lowered columns are numbered: one name may stand for different types.
        key = (bounds, tuple(family.schema.types))
        if key not in self._evaluators:
            self._evaluators[key] = Evaluator(bounds)
        return self._evaluators[key]


# Runs of this length, on average, are chunks of their own; shorter ones are written out.
_LONG = 64


class Shown:
    """Columns of many queries; run r, the rows from ``rows[r]`` on, is of one window.

    >>> starts, rows, timeline = np.array([5, 9]), np.array([0, 2, 3]), Timeline("t", pa.int64())
    >>> shown = Shown(starts, starts + 4, rows, timeline, [pa.array([1, 2, 3])], ["n"])
    >>> shown.between(0, 1).to_pydict()
    {'window_start': [5, 5], 'window_end': [9, 9], 'n': [1, 2]}
    """

    def __init__(
        self,
        starts: Ints,
        ends: Ints,
        rows: Ints,
        timeline: Timeline,
        columns: Sequence[pa.Array],
        names: Sequence[str],
    ) -> None:
        counts = np.diff(rows)
        self._rows = rows.tolist()
        self._bounds: list[_Repeated] = []
        if rows[-1] <= _LONG * starts.size:
            written = [timeline.from_ticks(np.repeat(ticks, counts)) for ticks in (starts, ends)]
            columns, names = [*written, *columns], [*BOUNDS, *names]
        else:
            self._bounds = [_Repeated(ticks, counts, timeline) for ticks in (starts, ends)]
        self._table = pa.Table.from_arrays(columns, list(names))

    def between(self, first: int, last: int) -> pa.Table:
        """The rows of the runs from ``first`` to ``last - 1``."""
        own = self._table.slice(self._rows[first], self._rows[last] - self._rows[first])
        if not self._bounds:
            return own
        bounds = [each.between(first, last) for each in self._bounds]
        return pa.Table.from_arrays([*bounds, *own.columns], [*BOUNDS, *own.column_names])


class _Repeated:
    """A tick for each run, as often as the run has rows.

    The rows of all runs with the same tick, of whatever query, are the same memory: as many as
    the longest of them has. Each run is a chunk.
    """

    def __init__(self, ticks: Ints, counts: Ints, timeline: Timeline) -> None:
        found, places = np.unique(ticks, return_inverse=True)
        longest = np.zeros(found.size, np.int64)
        np.maximum.at(longest, places, counts)
        self._values = timeline.from_ticks(np.repeat(found, longest))
        self._begins = (np.cumsum(longest) - longest)[places].tolist()
        self._counts = counts.tolist()

    def between(self, first: int, last: int) -> pa.ChunkedArray:
        begins, counts = self._begins[first:last], self._counts[first:last]
        chunks = [self._values.slice(*each) for each in zip(begins, counts, strict=True)]
        return pa.chunked_array(chunks, self._values.type)
