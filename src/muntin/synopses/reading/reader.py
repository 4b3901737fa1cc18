"""One question read from one version: exact where it can be, else with bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.errors import QuestionError
from muntin.synopses.fit import Fit, FittedCall, would_do
from muntin.synopses.keeps.replica import Version
from muntin.synopses.reading.bounds import (
    BORDERED,
    FALLING,
    GROWING,
    Border,
    Enclosed,
    enclose,
)
from muntin.synopses.reading.gathered import NOTHING, Budget, Gathered, Piece, Window
from muntin.synopses.reading.grams import enclosed_by_gram, estimate
from muntin.synopses.reading.groups import answer_rows
from muntin.synopses.reading.having import may_hold
from muntin.synopses.reading.table import (
    ALIGNED_HINT,
    Read,
    answer_table,
    check_widths,
    in_order,
)


class Reading:
    """One question read from one version."""

    def __init__(
        self, version: Version, fit: Fit, keys: Sequence[Any], window: Window | None, budget: Budget
    ) -> None:
        self._fit = fit
        self._budget = budget
        self._rows = answer_rows(version, fit, keys)
        if not fit.bound.having and not fit.question.limit:
            budget.check_rows(self._rows.size)
        self._gathered = Gathered(version, fit, self._rows, window or NOTHING, budget)

    def read(self, limit: int | None) -> Read:
        """The answer."""
        fit, gathered = self._fit, self._gathered
        conditions = range(len(fit.conditions))
        outer = gathered.counts(gathered.pieces("outer", 0))
        held = self._held(outer)
        # Where no row lies between what is inside and what is touched, both are the same rows.
        borders = (gathered.pieces("border", place) for place in conditions)
        exact = not fit.is_bounded and not any(
            gathered.counts(pieces).any() for pieces in borders if pieces
        )
        values = [
            self._lower(each, gathered.pieces("outer", each.condition), held).values
            for each in fit.calls
        ]
        shown, passed = self._shown(values, held)
        bounds: dict[int, tuple[pa.Array, pa.Array]] | None = None
        if not exact:
            bounds = self._bounds(values, held)
            having = fit.bound.having
            passed = None if having is None else may_hold(having, self._by_name(bounds))
        table = answer_table(fit, shown, bounds)
        if passed is not None:
            table = table.filter(pa.array(passed))
        table = in_order(table, fit, limit, is_sorted=self._rows.in_order)
        if bounds is not None:
            check_widths(fit, table)
        self._budget.check_rows(table.num_rows)
        return Read(table, exact, int(outer.sum()))

    def _held(self, counts: Ints) -> Ints | None:
        """The rows that the answer shows: groups that have a row of the stream; None for all."""
        if not self._fit.groups or counts.all():
            return None
        return np.flatnonzero(counts)

    def _lower(self, each: FittedCall, pieces: list[Piece], held: Ints | None) -> Lowered:
        columns = [self._part(column, pieces, held) for column in each.columns]
        if each.is_gram:
            return Lowered(estimate(each.call.aggregate, columns[0]))
        return each.call.aggregate.lower(columns)

    def _part(self, column: int, pieces: list[Piece], held: Ints | None) -> PartColumn:
        found = self._gathered.part(column, pieces)
        return found if held is None else found.take(held)

    def _shown(
        self, values: Sequence[pa.Array], held: Ints | None
    ) -> tuple[list[pa.Array], Bools | None]:
        """The columns as the question shows them, and which rows satisfy its HAVING."""
        bound = self._fit.bound
        keys = list(self._rows.keys)
        if held is not None:
            keys = [key.take(pa.array(held)) for key in keys]
        if self._fit.straight is not None:
            columns = [*keys, *values]
            return [columns[place] for place in self._fit.straight], None
        batch = pa.RecordBatch.from_arrays([*keys, *values], schema=bound.lowered_schema)
        found = [each.values for each in self._fit.shower(batch)]
        if bound.having is None:
            return found, None
        kept = found.pop().fill_null(False)
        return found, kept.to_numpy(zero_copy_only=False)

    def _bounds(
        self, values: Sequence[pa.Array], held: Ints | None
    ) -> dict[int, tuple[pa.Array, pa.Array]]:
        """The bounds of every aggregate, by its place."""
        shown = self._fit.plain[len(self._fit.groups) :]
        names = [output.name for output in self._fit.bound.outputs[len(self._fit.groups) :]]
        for name, place in zip(names, shown, strict=True):
            if place is None:
                raise QuestionError(
                    f"the answer is not exact, and {name} is computed from several aggregates",
                    hint="select the aggregates on their own"
                    + ("" if self._fit.is_bounded else f", or {ALIGNED_HINT}"),
                )
        return {
            place: self._enclosed(each, values[place], held)
            for place, each in enumerate(self._fit.calls)
        }

    def _enclosed(
        self, each: FittedCall, outer: pa.Array, held: Ints | None
    ) -> tuple[pa.Array, pa.Array]:
        name = each.call.aggregate.name
        inside = self._gathered.pieces("inner", each.condition)
        if each.is_gram:
            kinds = (inside, self._gathered.pieces("border", each.condition))
            return enclosed_by_gram(
                each.call.aggregate, *(self._part(each.columns[0], some, held) for some in kinds)
            )
        if name in GROWING | FALLING:
            inner = self._lower(each, inside, held).values
            return enclose(name, Enclosed(inner, outer))
        if name not in BORDERED:
            raise QuestionError(
                f"the answer is not exact, and nothing bounds {name}", hint=ALIGNED_HINT
            )
        places = {kind: self._fit.extreme(each.call, kind) for kind in ("count", "min", "max")}
        if None in places.values():
            argument = each.call.args[0].key
            extremes = [f"{kind}({argument})" for kind in ("min", "max")]
            would = would_do(self._fit.question, self._fit.kept, items=extremes)
            raise QuestionError(
                f"the answer is not exact, and {name}({argument}) has no bounds without the "
                "extremes of what is added",
                hint=f"keep {' and '.join(extremes)} too: {would}; or {ALIGNED_HINT}",
            )
        border = self._gathered.pieces("border", each.condition)
        found = Enclosed(
            self._lower(each, inside, held).values,
            outer,
            self._column(places["count"], inside, held),
            Border(*(self._column(place, border, held) for place in places.values())),
        )
        return enclose(name, found)

    def _column(self, place: int | None, pieces: list[Piece], held: Ints | None) -> list[Any]:
        """Counts or extremes as Python values."""
        assert place is not None
        column: Any = self._part(place, pieces, held)
        if isinstance(column, CountColumn):
            counts: list[Any] = column.counts.tolist()
            return counts
        found: list[Any] = column.result().to_pylist()
        return found

    def _by_name(
        self, bounds: dict[int, tuple[pa.Array, pa.Array]]
    ) -> dict[str, tuple[pa.Array, pa.Array]]:
        return {each.call.name: bounds[place] for place, each in enumerate(self._fit.calls)}
