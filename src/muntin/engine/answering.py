"""From kept partials to the tables that users see, for all queries that have windows due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.families import Asked, Family, families
from muntin.engine.stage_b import Answer, StageB
from muntin.engine.store import SliceStore
from muntin.expressions import Bound, Evaluator
from muntin.plan.nodes import Final, SharedPlan
from muntin.plan.timeline import Timeline

Ints = npt.NDArray[np.int64]
Bounds = Callable[[Final, Ints], tuple[Ints, Ints]]


@dataclass
class Answered:
    """Results by query, their last window that holds a row, failed values, aggregations."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    steps: int = 0


class Answerer:
    """Answers queries of a plan; expressions over results are compiled once."""

    def __init__(self, plan: SharedPlan, bounds: Bounds) -> None:
        self.plan = plan
        self._bounds = bounds
        self._evaluators: dict[tuple[object, ...], Evaluator] = {}

    def __call__(self, stores: Sequence[SliceStore], asked: Iterable[Asked]) -> Answered:
        """The windows that are due, query by query; a query without any has no rows."""
        answered = Answered()
        by_node: dict[int, list[Asked]] = {}
        for each in asked:
            by_node.setdefault(each.final.partials, []).append(each)
        for index, members in by_node.items():
            stage_b = StageB(self.plan.partials[index], stores[index].table())
            for family in families(members):
                self._show(family, stage_b.answer(family), answered)
            answered.steps += stage_b.steps
        return answered

    def _show(self, family: Family, answer: Answer, answered: Answered) -> None:
        """The answer as the users' columns, filtered by HAVING."""
        first = family.asked[0].final
        shown = [output.value for output in first.outputs]
        having = [] if first.having is None else [first.having]
        evaluated = self._evaluator((*shown, *having), family.schema)(answer.lowered)
        failed = answer.failed
        for each in evaluated:
            if each.errors is not None:
                flags = each.errors.to_numpy(zero_copy_only=False).astype(np.int64)
                failed = flags if failed is None else failed + flags
        node = self.plan.partials[first.partials]
        timeline = self.plan.slicings[node.slicing].timeline
        columns = [
            *self._window_columns(family, answer, timeline),
            *(each.values for each in evaluated[: len(shown)]),
        ]
        offsets = answer.offsets
        if having:
            kept = evaluated[-1].values.fill_null(False)
            columns = [column.filter(kept) for column in columns]
            passed = np.concatenate(([0], np.cumsum(kept.to_numpy(zero_copy_only=False))))
            offsets = passed[offsets]
        names = ["window_start", "window_end", *(output.name for output in first.outputs)]
        table = pa.Table.from_arrays(columns, names=names)
        self._split(family, answer, table, offsets, failed, answered)

    def _split(
        self,
        family: Family,
        answer: Answer,
        table: pa.Table,
        offsets: Ints,
        failed: Ints | None,
        answered: Answered,
    ) -> None:
        names = table.column_names
        for number, each in enumerate(family.asked):
            low, high = int(offsets[number]), int(offsets[number + 1])
            result = table.slice(low, high - low)
            own = [output.name for output in each.final.outputs]
            if own != names[2:]:
                result = result.rename_columns([*names[:2], *own])
            name = each.final.name
            answered.tables[name] = result
            begin, end = int(answer.offsets[number]), int(answer.offsets[number + 1])
            if end > begin:
                answered.last[name] = int(answer.windows[end - 1])
            if failed is not None:
                answered.errors[name] += int(failed[begin:end].sum())

    def _window_columns(self, family: Family, answer: Answer, timeline: Timeline) -> list[pa.Array]:
        starts, ends = np.empty(answer.windows.size, np.int64), answer.windows.copy()
        for number, each in enumerate(family.asked):
            own = slice(int(answer.offsets[number]), int(answer.offsets[number + 1]))
            starts[own], ends[own] = self._bounds(each.final, answer.windows[own])
        return [timeline.from_ticks(starts), timeline.from_ticks(ends)]

    def _evaluator(self, bounds: tuple[Bound, ...], schema: pa.Schema) -> Evaluator:
        # Lowered columns are numbered: one name may stand for different types.
        key = (bounds, tuple(schema.types))
        if key not in self._evaluators:
            self._evaluators[key] = Evaluator(bounds)
        return self._evaluators[key]
