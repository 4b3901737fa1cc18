"""How the rows of a query's root are shown: as they come, once they have ended, or as changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Ints
from muntin.operators.rows import ALWAYS, NEVER, NONE, Changes, Columns, Route, Rows, concat, take
from muntin.operators.state.keys import grown
from muntin.operators.state.live_rows import LiveRows, by_end, ending
from muntin.operators.state.members import Ends, Members
from muntin.operators.state.pending import Pending
from muntin.operators.state.row_log import RowLog
from muntin.operators.state.segments import begins_of
from muntin.plan.operators import RowFinal


class Output(Protocol):
    """What shows the rows of one query."""

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """What is shown once the watermark is reached; ``NEVER`` says that nothing follows."""


class Arrivals:
    """Rows with lifetimes that are known when they are born, shown as they come."""

    def __init__(self, final: RowFinal, since: int) -> None:
        self._final = final
        self._since = since

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """The rows that are born."""
        del watermark
        rows = changes.born
        final = self._final
        if final.internal or final.lasts is not None:
            # These never end by their parts: what was born before a query joined is not its own.
            rows = rows.where(rows.start >= self._since)
            ends = np.full(len(rows), NEVER)
            if final.lasts is not None:
                ends = rows.start + final.lasts
            return lifetimes(final, rows.columns, rows.start, ends)
        if self._since == ALWAYS:
            return lifetimes(final, rows.columns, rows.start, rows.end)
        rows = rows.where(rows.end > self._since)
        return lifetimes(final, rows.columns, np.maximum(rows.start, self._since), rows.end)


class Kept:
    """Rows of a root that are alive, with their values."""

    STATE = ("members", "_log", "_numbers")

    def __init__(self, final: RowFinal, lifetime: int, *, strict: bool) -> None:
        self.members = Members(lifetime, strict=strict)
        self._log = RowLog([field.type for field in final.root.schema])
        self._numbers = NONE

    def add(self, changes: Changes) -> Ints:
        """Take in rows; their slots."""
        rows = changes.born
        slots = self.members.add(changes, np.zeros(len(rows), np.int64))
        if self.members.room > self._numbers.size:
            self._numbers = grown(self._numbers, self.members.room, -1)
        self._numbers[slots] = self._log.append(rows.columns, len(rows))
        return slots

    def values(self, slots: Ints) -> Columns:
        """The values of rows."""
        return self._log.take(self._numbers[slots])

    def free(self, ends: Ends) -> Ints | None:
        """Forget rows that ended; the others may move, as `Members.packed` says."""
        self._log.drop(self._numbers[ends.slots])
        self.members.free(ends.slots)
        held = self.members.packed()
        if held is not None:
            self._numbers = self._numbers[held]
        return held

    def alive(self) -> Ints:
        """The slots of all rows."""
        return np.flatnonzero(self.members.ids >= 0)


class Finals:
    """Rows shown once, when they have ended."""

    STATE = ("_kept",)

    def __init__(self, final: RowFinal, lifetime: int, since: int, *, strict: bool) -> None:
        self._final = final
        self._since = since
        self._kept = Kept(final, lifetime, strict=strict)

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """The rows whose ends the watermark has reached; at last, all."""
        kept = self._kept
        kept.add(changes)
        ends = kept.members.ends(changes, watermark + 1)
        slots, at = ends.slots, ends.at
        if watermark == NEVER:
            lasting = np.setdiff1d(kept.alive(), slots)
            slots = np.concatenate((slots, lasting))
            at = np.concatenate((at, np.full(lasting.size, NEVER)))
        chosen = at > self._since
        slots, at = slots[chosen], at[chosen]
        start = np.maximum(kept.members.start[slots], self._since)
        order = np.lexsort((start, at))
        shown = lifetimes(self._final, kept.values(slots[order]), start[order], at[order])
        kept.free(ends)
        return shown


class Endings:
    """Rows that end by themselves, shown once they have."""

    STATE = ("_rows", "_reached")

    def __init__(self, final: RowFinal, lifetime: int, since: int) -> None:
        self._final = final
        self._since = since
        self._rows = LiveRows(lifetime)
        self._reached = ALWAYS

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """The rows whose ends the watermark has reached; at last, all."""
        born = changes.born
        # Nobody looks them up.
        fresh = by_end(born.start, Rows(born.columns, born.start, born.start, born.end))
        held = self._rows.all()
        over = ending(held, self._reached, watermark)
        now = sum(map(len, held)) + ending([fresh], ALWAYS, watermark)
        segments = [*held, fresh]
        route = Route.of(begins_of(segments), np.concatenate((over, now)))
        start = np.maximum(route.ints([each.rows.start for each in segments]), self._since)
        at = route.ints([each.rows.end for each in segments])
        order = np.lexsort((start, at))
        order = order[at[order] > self._since]
        columns = [each.rows.columns for each in segments]
        values = tuple(route.column(arrays) for arrays in zip(*columns, strict=True))
        self._reached = max(self._reached, watermark)
        self._rows.keep(fresh, self._reached)
        return lifetimes(self._final, take(values, order), start[order], at[order])


class Joined:
    """Changes of a query that joined later: rows alive at its first whole instant begin there."""

    STATE = ("_held", "_is_open")

    def __init__(self, since: int) -> None:
        self._since = since
        self._is_open = since == ALWAYS
        self._held: list[Changes] = []

    def cut(self, changes: Changes, watermark: int) -> Changes:
        """The changes from the first whole instant on; nothing before the watermark passes it."""
        if self._is_open:
            return changes
        self._held.append(changes)
        if watermark <= self._since:
            return Changes.births(changes.born.slice(0, 0))
        self._is_open = True
        rows = concat([each.born for each in self._held])
        ended = np.concatenate([each.ended for each in self._held])
        at = np.concatenate([each.at for each in self._held])
        self._held = []
        gone = np.isin(rows.ids, ended[at <= self._since])
        rows = rows.where(~gone & (rows.end > self._since))
        start = np.maximum(rows.start, self._since)
        later = at > self._since
        return Changes(Rows(rows.columns, rows.ids, start, rows.end), ended[later], at[later])


class ChangeLog:
    """Rows shown when they are born, '+', and again when they end before their time, '-'."""

    STATE = ("_joined", "_pending", "_kept")

    def __init__(self, final: RowFinal, lifetime: int, since: int) -> None:
        self._final = final
        self._joined = Joined(since)
        self._pending = Pending()
        self._kept = Kept(final, lifetime, strict=True)

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """The changes below the watermark, in order of time, '-' before '+'."""
        changes = self._pending.release(self._joined.cut(changes, watermark), watermark)
        kept = self._kept
        born = kept.add(changes)
        ends = kept.members.ends(changes, watermark + 1)
        early = ends.slots[ends.early]
        slots = np.concatenate((early, born))
        start, end = kept.members.start[slots], kept.members.natural[slots]
        at = np.concatenate((ends.at[ends.early], start[early.size :]))
        added = np.arange(slots.size) >= early.size
        order = np.lexsort((added, at))
        slots = slots[order]
        shown = lifetimes(self._final, kept.values(slots), start[order], end[order])
        kept.free(ends)
        ops = pa.array(["-", "+"]).take(pa.array(added[order].astype(np.int64)))
        times = self._final.timeline.from_ticks(at[order])
        columns = [ops, times, *shown.columns]
        return pa.Table.from_arrays(columns, schema=self._final.schema)


def lifetimes(final: RowFinal, columns: Columns, start: Ints, end: Ints) -> pa.Table:
    """Rows behind their lifetimes; an end that is never reached is NULL."""
    if end.size and end.max() >= NEVER:
        never = end >= NEVER
        ends = final.timeline.from_ticks(np.where(never, start, end))
        ends = pc.if_else(pa.array(never), pa.scalar(None, ends.type), ends)
    else:
        ends = final.timeline.from_ticks(end)
    leads = [final.timeline.from_ticks(start), ends]
    return with_leads(final, leads, columns)


def with_leads(final: RowFinal, leads: Sequence[pa.Array], columns: Columns) -> pa.Table:
    """Times, then values, as a table."""
    fields = list(final.schema)[-(len(leads) + len(columns)) :]
    return pa.Table.from_arrays([*leads, *columns], schema=pa.schema(fields))
