"""The answer at window ends, and what entered or left it since the one before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.operators.output import Joined, Kept, with_leads
from muntin.operators.rows import ALWAYS, NEVER, NONE, Changes, Columns, Rows, concat, take
from muntin.operators.state.keys import KeyTable, check_keys, moved
from muntin.operators.state.pending import Pending
from muntin.plan.operators import RowFinal


class Grid:
    """Instants at which a query is answered: all window ends, or all instants without SLIDE.

    A window end ``t`` shows the rows with ``start < t <= end``. The instant ``i`` is the window
    end ``i + 1`` of a slide of one tick.
    """

    def __init__(self, final: RowFinal) -> None:
        self._slide = final.slide or 1
        self._phase = final.phase if final.slide is not None else 0

    def after(self, times: Ints) -> Ints:
        """The first window end after each time; none where there is none."""
        found = (times - self._phase) // self._slide * self._slide + self._phase + self._slide
        return np.where(times >= NEVER, NEVER, np.minimum(found, NEVER))

    def until(self, times: Ints) -> Ints:
        """The last window end at or before each time."""
        return (times - self._phase) // self._slide * self._slide + self._phase

    def between(self, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        """All window ends from the first to the last of each row: the rows' places, the ends."""
        counts = np.maximum((last - first) // self._slide + 1, 0)
        places = np.repeat(np.arange(first.size), counts)
        within = np.arange(places.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, first[places] + within * self._slide


class WindowEnds:
    """The rows alive at each window end."""

    STATE = ("_joined", "_pending", "_kept", "_short", "_told")

    def __init__(self, final: RowFinal, lifetime: int, since: int, *, strict: bool) -> None:
        self._final = final
        self._grid = Grid(final)
        self._joined = Joined(since)
        self._pending = Pending()
        self._kept = Kept(final, lifetime, strict=strict)
        # Rows that no window end saw, at the next one.
        self._short = Pending()
        self._told = ALWAYS
        # The last time at which some row begins or ends: once no more rows come, those that never
        # end are shown up to the window end after it.
        self.horizon = ALWAYS

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """The answers at the window ends that the watermark has reached."""
        changes = self._pending.release(self._joined.cut(changes, watermark), watermark)
        kept = self._kept
        kept.add(changes)
        ends = kept.members.ends(changes, watermark + 1)
        shown = self._due(watermark)
        if self._final.restore:
            shown = _appended(shown, self._restored(ends.slots, ends.at, watermark))
        kept.free(ends)
        places, at = shown
        order = np.argsort(at, kind="stable")
        return window_table(self._final, take(places, order), at[order])

    def _due(self, watermark: int) -> tuple[Columns, Ints]:
        """The rows of each window end since the last that was told."""
        kept, grid = self._kept, self._grid
        last = watermark
        if watermark == NEVER:
            last = int(grid.after(np.array([self.horizon]))[0])
        slots = NONE
        if self._told == ALWAYS or grid.until(np.array([last]))[0] > self._told:
            slots = kept.alive()
        first = grid.after(np.maximum(kept.members.start[slots], self._told))
        until = grid.until(np.minimum(kept.members.end[slots], last))
        self._told = max(self._told, watermark)
        places, at = grid.between(first, until)
        return kept.values(slots[places]), at

    def _restored(self, slots: Ints, ends: Ints, watermark: int) -> tuple[Columns, Ints]:
        """Rows that lived between two window ends only, at the later one."""
        first = self._grid.after(self._kept.members.start[slots])
        missed = np.flatnonzero(first > ends)
        at = first[missed]
        rows = Rows(self._kept.values(slots[missed]), at, at, at)
        due = self._short.release(Changes.births(rows), watermark + 1).born
        return due.columns, due.start


class Differences:
    """What entered the answer, or left it, netted by value from one instant to the next."""

    STATE = ("_joined", "_pending", "_kept", "_short", "_waiting", "_leaving")

    def __init__(self, final: RowFinal, lifetime: int, since: int, *, strict: bool) -> None:
        types = [field.type for field in final.root.schema]
        check_keys(types, final.show.capitalize())
        self._final = final
        self._grid = Grid(final)
        self._joined = Joined(since)
        # What a query that joined later finds at its first instant has not entered then.
        self._first = ALWAYS
        if since > ALWAYS:
            self._first = int(self._grid.after(np.array([since]))[0])
        self._pending = Pending()
        self._kept = Kept(final, lifetime, strict=strict)
        self._short = Pending()
        # Slots that no window end has seen yet, and rows that some later one will miss.
        self._waiting = NONE
        self._leaving = Pending()

    def step(self, changes: Changes, watermark: int) -> pa.Table:
        """The differences at the window ends that the watermark has reached."""
        changes = self._pending.release(self._joined.cut(changes, watermark), watermark)
        kept, grid, members = self._kept, self._grid, self._kept.members
        waiting = np.concatenate((self._waiting, kept.add(changes)))
        ends = members.ends(changes, watermark + 1)
        seen = grid.after(members.start[waiting])
        entered = (seen <= watermark) & (seen <= members.end[waiting])
        entering = kept.values(waiting[entered]), seen[entered]
        over = members.end[waiting] <= watermark
        self._waiting = waiting[~entered & ~over]
        leaving = self._left(ends.slots, ends.at, watermark)
        shown = self._netted(entering, leaving)
        if self._final.restore and self._final.show == "istream":
            shown = _appended(shown, self._restored(ends.slots, ends.at, watermark))
        held = kept.free(ends)
        if held is not None:
            self._waiting = moved(self._waiting, held)
        columns, at = shown
        order = np.flatnonzero(at > self._first)
        order = order[np.argsort(at[order], kind="stable")]
        if self._final.slide is not None:
            return window_table(self._final, take(columns, order), at[order])
        times = self._final.timeline.from_ticks(at[order] - 1)
        return with_leads(self._final, [times], take(columns, order))

    def _left(self, slots: Ints, ends: Ints, watermark: int) -> tuple[Columns, Ints]:
        """Rows that were shown and are missed by a window end that is due."""
        first = self._grid.after(self._kept.members.start[slots])
        shown = np.flatnonzero(first <= ends)
        at = self._grid.after(ends[shown])
        rows = Rows(self._kept.values(slots[shown]), at, at, at)
        due = self._leaving.release(Changes.births(rows), watermark + 1).born
        return due.columns, due.start

    def _restored(self, slots: Ints, ends: Ints, watermark: int) -> tuple[Columns, Ints]:
        """Rows that lived between two window ends only, at the later one."""
        first = self._grid.after(self._kept.members.start[slots])
        missed = np.flatnonzero(first > ends)
        at = first[missed]
        rows = Rows(self._kept.values(slots[missed]), at, at, at)
        due = self._short.release(Changes.births(rows), watermark + 1).born
        return due.columns, due.start

    def _netted(
        self, entering: tuple[Columns, Ints], leaving: tuple[Columns, Ints]
    ) -> tuple[Columns, Ints]:
        """Values by how many more of them entered than left, or left than entered."""
        columns, at = _appended(entering, leaving)
        sign = 1 if self._final.show == "istream" else -1
        signs = np.full(at.size, -sign)
        signs[: entering[1].size] = sign
        codes = KeyTable([column.type for column in columns]).codes(columns, at.size)
        order = np.lexsort((codes, at))
        if not order.size:
            return columns, at
        codes, times = codes[order], at[order]
        begins = np.flatnonzero(np.r_[True, (np.diff(codes) != 0) | (np.diff(times) != 0)])
        net = np.maximum(np.add.reduceat(signs[order], begins), 0)
        chosen = np.repeat(order[begins], net)
        return take(columns, chosen), at[chosen]


def _appended(first: tuple[Columns, Ints], second: tuple[Columns, Ints]) -> tuple[Columns, Ints]:
    rows = [Rows(columns, at, at, at) for columns, at in (first, second)]
    joined = concat(rows)
    return joined.columns, joined.start


def window_table(final: RowFinal, columns: Columns, ends: Ints) -> pa.Table:
    """Rows behind the bounds of their windows."""
    starts = ends - (final.range or 0)
    bounds = [final.timeline.from_ticks(starts), final.timeline.from_ticks(ends)]
    return with_leads(final, bounds, columns)
