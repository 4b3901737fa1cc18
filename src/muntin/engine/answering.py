"""From kept partials to the tables that users see, for all queries that have windows due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.answers.moving import MovingStage
from muntin.engine.families import Due, Family, families
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.stage_b import Answer, StageB
from muntin.engine.store import SliceStore
from muntin.engine.window_columns import Shown
from muntin.engine.window_kernels import window_bounds
from muntin.expressions import Bound, Evaluator
from muntin.plan.nodes import SharedPlan
from muntin.queries import BOUNDS

Ints = npt.NDArray[np.int64]
# From the positions of ROWS windows' bounds to the times of their first and last row.
RowTimes = Callable[[Ints, Ints], tuple[Ints, Ints]]


@dataclass
class Answered:
    """Results by query, their last window that holds a row, failed values, aggregations."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    steps: int = 0


class Answerer:
    """Answers queries of a plan; expressions over results are compiled once."""

    def __init__(self, plan: SharedPlan, row_times: RowTimes) -> None:
        self.plan = plan
        self._row_times = row_times
        self._evaluators: dict[tuple[object, ...], Evaluator] = {}

    def __call__(self, stores: Sequence[SliceStore], due: Due) -> Answered:
        """The windows that are due, query by query."""
        answered = Answered()
        asked: dict[int, list[Family]] = {}
        for family in families(self.plan, due):
            asked.setdefault(family.finals[0].partials, []).append(family)
        for index, wanted in asked.items():
            moving = stores[index].moving
            if moving is not None:
                wanted = self._answer_moving(moving, wanted, answered)  # noqa: PLW2901
            if not wanted:
                continue
            node = self.plan.partials[index]
            stage = StageB(node, stores[index].table(), self.plan.slicings[node.slicing])
            for family in wanted:
                self._show(family, stage.answer(family), answered)
            answered.steps += stage.steps
        return answered

    def _answer_moving(
        self, moving: MovingSlices, wanted: list[Family], answered: Answered
    ) -> list[Family]:
        """Answer families from finals that move on; those that are better answered otherwise."""
        stage = MovingStage(moving)
        listed = [(family, stage.rows_of(family)) for family in wanted]
        found = [(family, rows) for family, rows in listed if rows is not None]
        answers = stage.answer([each[0] for each in found], [each[1] for each in found])
        for (family, _), answer in zip(found, answers, strict=True):
            self._show(family, answer, answered)
        answered.steps += stage.steps + moving.taken_steps()
        return [family for family, rows in listed if rows is None]

    def _show(self, family: Family, answer: Answer, answered: Answered) -> None:
        """The answer as the users' columns, filtered by HAVING."""
        first = family.finals[0]
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
        columns = [each.values for each in evaluated[: len(shown)]]
        rows = answer.rows
        if having:
            kept = evaluated[-1].values.fill_null(False)
            columns = [column.filter(kept) for column in columns]
            rows = np.concatenate(([0], np.cumsum(kept.to_numpy(zero_copy_only=False))))[rows]
        starts, ends = np.empty_like(answer.windows), np.empty_like(answer.windows)
        window_bounds(answer.windows, answer.runs, family.windows, starts, ends)
        if first.window.measure == "rows":
            starts, ends = self._row_times(starts, ends)
        names = [output.name for output in first.outputs]
        results = Shown(starts, ends, rows, timeline, columns, names)
        self._split(family, answer, results, failed, answered)

    def _split(
        self,
        family: Family,
        answer: Answer,
        shown: Shown,
        failed: Ints | None,
        answered: Answered,
    ) -> None:
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

    def _evaluator(self, bounds: tuple[Bound, ...], schema: pa.Schema) -> Evaluator:
        # Lowered columns are numbered: one name may stand for different types.
        key = (bounds, tuple(schema.types))
        if key not in self._evaluators:
            self._evaluators[key] = Evaluator(bounds)
        return self._evaluators[key]
