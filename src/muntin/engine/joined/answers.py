"""Queries over joined streams: answers of sides wait for each other, and are combined when due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.answers.families import FIRST_WINDOW, LAST_WINDOW
from muntin.engine.joined.finish import Finish, Totals
from muntin.engine.joined.intervals import Intervals
from muntin.engine.joined.merge import packed
from muntin.engine.joined.pairs import Pairs
from muntin.engine.joined.sides import Sides, window_numbers
from muntin.plan.joined import JoinFinal

Held = tuple[pa.Table, Ints]
Form: TypeAlias = Sides | Pairs | Intervals


@dataclass
class _Waiting:
    """What a query keeps: the answers of each side that are not combined yet."""

    sides: list[list[Held]]
    next: int = FIRST_WINDOW
    gap: int | None = None
    errors: int = 0


@dataclass
class JoinAnswers:
    """Combines what sides, and row queries, answer into the results of queries over joins.

    The answers of a side come when its own stream's watermark passes; those of the query when the
    least watermark of its streams does. Queries that are ``spanning`` have groups of which others
    have a share as well: they give accumulators, for `muntin.engine.joined.merge.merged`.
    """

    finals: tuple[JoinFinal, ...] = ()
    spanning: frozenset[str] = frozenset()
    errors: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _forms: dict[str, Form] = field(default_factory=dict)
    _finish: dict[str, Finish] = field(default_factory=dict)

    def adopt(
        self,
        finals: tuple[JoinFinal, ...],
        following: Mapping[str, int],
        spanning: frozenset[str] = frozenset(),
    ) -> None:
        """Go on with other queries.

        Args:
            finals: The queries; those that stay keep what waits.
            following: The number of the next window that each query of a side answers: one that
                joins begins with the largest of its sides.
            spanning: Those of which only a share is known here.
        """
        known = {final.name: final for final in self.finals}
        waiting, forms, finish = {}, {}, {}
        for final in finals:
            if known.get(final.name) == final:
                waiting[final.name] = self._waiting[final.name]
                forms[final.name] = self._forms[final.name]
                finish[final.name] = self._finish[final.name]
                continue
            first = max((following[side.query.name] for side in final.sides), default=FIRST_WINDOW)
            waiting[final.name] = _Waiting([[] for _ in final.sides], first)
            # Whoever has all shares knows which windows have no rows.
            own = replace(final, emit_empty=False) if final.name in spanning else final
            forms[final.name] = _form(own)
            finish[final.name] = Finish(final)
        self.finals, self.spanning = finals, spanning
        self._waiting, self._forms, self._finish = waiting, forms, finish

    @property
    def gaps(self) -> dict[str, int]:
        """By query that shows windows without rows, the first window of the gap it is in."""
        return {name: each.gap for name, each in self._waiting.items() if each.gap is not None}

    def take(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """Take the answers of sides out of some results, and of pairs; what is left of them.

        Rows of pairs come when they are due, so they are combined at once.
        """
        shown: dict[str, pa.Table] = {}
        for final in self.finals:
            if final.way == "pairs":
                table = found.pop(final.pairs, None)
                if table is not None and table.num_rows:
                    self._take_rows(final, table, shown)
                continue
            for place, side in enumerate(final.sides):
                table = found.get(side.query.name)
                if table is not None and table.num_rows:
                    end = side.query.bounds[1]
                    numbers = window_numbers(final, final.timeline, table, end)
                    self._waiting[final.name].sides[place].append((table, numbers))
        names = {side.query.name for final in self.finals for side in final.sides}
        return {name: table for name, table in found.items() if name not in names} | shown

    def _take_rows(self, final: JoinFinal, table: pa.Table, shown: dict[str, pa.Table]) -> None:
        """Keep rows with lifetimes; those of window ends are due, and shown."""
        form, waiting = self._forms[final.name], self._waiting[final.name]
        if isinstance(form, Intervals):
            self.errors[final.name] += form.take(table, waiting.next)
            return
        assert isinstance(form, Pairs)
        numbers = window_numbers(final, final.timeline, table, "window_end")
        shown[final.name] = self._settled(final, waiting, form(table, numbers, waiting.gap))

    def due(self, watermarks: Mapping[str, int]) -> dict[str, pa.Table]:
        """The results of windows that all streams of their query have passed."""
        found = {}
        for final in self.finals:
            known = [watermarks.get(stream) for stream in final.streams]
            if None not in known:
                watermark = min(each for each in known if each is not None)
                last = (watermark - final.phase) // final.slide
                table = self._until(final, last)
                if table is not None:
                    found[final.name] = table
        return found

    def close(self) -> dict[str, pa.Table]:
        """The results of all windows that are left."""
        found = {final.name: self._until(final, LAST_WINDOW) for final in self.finals}
        return {name: table for name, table in found.items() if table is not None}

    def _until(self, final: JoinFinal, last: int) -> pa.Table | None:
        """The results of the windows up to one, where there may be some."""
        waiting, form = self._waiting[final.name], self._forms[final.name]
        if isinstance(form, Pairs) or last < waiting.next:
            return None
        if isinstance(form, Intervals):
            found = form.until(waiting.next, last, waiting.gap)
            waiting.next = last + 1
            return None if found is None else self._settled(final, waiting, found)
        taken = []
        for place, held in enumerate(waiting.sides):
            tables, left = [], []
            for table, numbers in held:
                inside = (numbers >= waiting.next) & (numbers <= last)
                tables.append(_part(table, numbers, inside))
                later = numbers > last
                if later.any():
                    left.append(_part(table, numbers, later))
            waiting.sides[place] = left
            taken.append(_joined(tables))
        waiting.next = last + 1
        # Without a row of a side that must have one there is nothing to show.
        pairs = zip(final.sides, taken, strict=True)
        if any(each is None and not side.optional for side, each in pairs):
            return None
        whole = [
            (side.schema.empty_table(), np.empty(0, np.int64)) if each is None else each
            for side, each in zip(final.sides, taken, strict=True)
        ]
        totals = form([table for table, _ in whole], [n for _, n in whole], waiting.gap)
        return self._settled(final, waiting, totals)

    def _settled(self, final: JoinFinal, waiting: _Waiting, totals: Totals) -> pa.Table:
        if totals.last is not None and final.emit_empty:
            waiting.gap = totals.last + 1
        if final.name in self.spanning:
            self.errors[final.name] += totals.errors
            return packed(final, totals)
        answered = self._finish[final.name](totals)
        self.errors[final.name] += answered.errors
        return answered.table

    def snapshot(self) -> dict[str, Any]:
        """What is kept, for `resume` with the same queries."""
        return {
            name: (self._held(name), each.next, each.gap, self.errors[name])
            for name, each in self._waiting.items()
        }

    def _held(self, name: str) -> list[Any]:
        form = self._forms[name]
        return form.held if isinstance(form, Intervals) else self._waiting[name].sides

    def resume(self, held: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name, (kept, following, gap, errors) in held.items():
            form = self._forms[name]
            if isinstance(form, Intervals):
                form.held = kept
            sides = [] if isinstance(form, Intervals) else kept
            self._waiting[name] = _Waiting(sides, following, gap)
            self.errors[name] = errors


def _form(final: JoinFinal) -> Form:
    if final.way == "sides":
        return Sides(final)
    return Intervals(final) if final.lived else Pairs(final)


def _part(table: pa.Table, numbers: Ints, kept: Any) -> Held:
    if kept.all():
        return table, numbers
    return table.filter(pa.array(kept)), numbers[kept]


def _joined(held: list[Held]) -> Held | None:
    filled = [each for each in held if each[1].size]
    if not filled:
        return None
    if len(filled) == 1:
        return filled[0]
    return pa.concat_tables([table for table, _ in filled]), np.concatenate([n for _, n in filled])
