"""Queries over joined streams: answers of sides wait for each other, and are combined when due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.answers.families import FIRST_WINDOW, LAST_WINDOW
from muntin.engine.joined.finish import Answered
from muntin.engine.joined.pairs import Pairs
from muntin.engine.joined.sides import Sides, window_numbers
from muntin.plan.joined import JoinFinal

Held = tuple[pa.Table, Ints]


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
    least watermark of its streams does.
    """

    finals: tuple[JoinFinal, ...] = ()
    errors: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _forms: dict[str, Sides | Pairs] = field(default_factory=dict)

    def adopt(self, finals: tuple[JoinFinal, ...], following: Mapping[str, int]) -> None:
        """Go on with other queries.

        Args:
            finals: The queries; those that stay keep what waits.
            following: The number of the next window that each query of a side answers: one that
                joins begins with the largest of its sides.
        """
        known = {final.name: final for final in self.finals}
        waiting, forms = {}, {}
        for final in finals:
            if known.get(final.name) == final:
                waiting[final.name] = self._waiting[final.name]
                forms[final.name] = self._forms[final.name]
                continue
            first = max((following[side.query.name] for side in final.sides), default=FIRST_WINDOW)
            waiting[final.name] = _Waiting([[] for _ in final.sides], first)
            forms[final.name] = Sides(final) if final.way == "sides" else Pairs(final)
        self.finals, self._waiting, self._forms = finals, waiting, forms

    def take(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """Take the answers of sides out of some results, and of pairs; what is left of them.

        Rows of pairs come when they are due, so they are combined at once.
        """
        shown: dict[str, pa.Table] = {}
        for final in self.finals:
            if final.way == "pairs":
                table = found.pop(final.pairs, None)
                if table is not None and table.num_rows:
                    shown[final.name] = self._aggregated(final, table)
                continue
            for place, side in enumerate(final.sides):
                table = found.get(side.query.name)
                if table is not None and table.num_rows:
                    end = side.query.bounds[1]
                    numbers = window_numbers(final, final.timeline, table, end)
                    self._waiting[final.name].sides[place].append((table, numbers))
        names = {side.query.name for final in self.finals for side in final.sides}
        return {name: table for name, table in found.items() if name not in names} | shown

    def _aggregated(self, final: JoinFinal, table: pa.Table) -> pa.Table:
        form, waiting = self._forms[final.name], self._waiting[final.name]
        assert isinstance(form, Pairs)
        numbers = window_numbers(final, final.timeline, table, "window_end")
        return self._settled(final, waiting, form(table, numbers, waiting.gap))

    def due(self, watermarks: Mapping[str, int]) -> dict[str, pa.Table]:
        """The results of windows that all streams of their query have passed."""
        found = {}
        for final in self.finals:
            known = [watermarks.get(stream) for stream in final.streams]
            if final.way == "sides" and None not in known:
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
        if not isinstance(form, Sides) or last < waiting.next:
            return None
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
        answered = form([table for table, _ in whole], [n for _, n in whole], waiting.gap)
        return self._settled(final, waiting, answered)

    def _settled(self, final: JoinFinal, waiting: _Waiting, answered: Answered) -> pa.Table:
        if answered.last is not None and final.emit_empty:
            waiting.gap = answered.last + 1
        self.errors[final.name] += answered.errors
        return answered.table

    def snapshot(self) -> dict[str, Any]:
        """What is kept, for `resume` with the same queries."""
        return {
            name: (each.sides, each.next, each.gap, self.errors[name])
            for name, each in self._waiting.items()
        }

    def resume(self, held: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name, (sides, following, gap, errors) in held.items():
            self._waiting[name] = _Waiting(sides, following, gap)
            self.errors[name] = errors


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
