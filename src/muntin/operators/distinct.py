"""Each value once, for as long as some row has it: in pieces whose ends are known at birth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import ALWAYS, Changes, Rows
from muntin.operators.state.calendar import Calendar
from muntin.operators.state.keys import KeyTable, check_keys, grown
from muntin.operators.state.pending import Pending
from muntin.operators.state.radix_sort import order_of_codes
from muntin.plan.operators import Distinct


class Pieces:
    """Distinct values of rows whose ends are known: δ* of the thesis, section 3.5.2.

    The first piece of a value is the lifetime of its first row. When a piece ends, the next lasts
    to the latest end of the rows then alive. So two numbers are kept per value, whatever the
    number of its rows: the end of the piece, and the latest end. The thesis keeps the newest row
    instead, which is wrong where a newer row can end before an older one.
    """

    STATE = ("_pending", "_table", "_calendar", "_next", "_shown", "_latest")

    def __init__(self, node: Distinct, lifetime: int) -> None:
        types = [field.type for field in node.schema]
        check_keys(types, "DISTINCT")
        self._pending = Pending()
        self._table = KeyTable(types)
        self._calendar = Calendar(lifetime // 8)
        self._next = 0
        # By value: the end of the piece that is shown, and the latest end of all its rows.
        self._shown = self._latest = np.empty(0, np.int64)

    @property
    def kept(self) -> int:
        """How many rows are kept: one or two for each value, and those that wait."""
        return len(self._pending) + self.stored

    @property
    def stored(self) -> int:
        """How many ends are kept: that of each piece, and a later one where there is one."""
        shown = self._shown[: self._table.size]
        latest = self._latest[: self._table.size]
        return int((shown > ALWAYS).sum() + (latest > shown).sum())

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The pieces that begin below the watermark."""
        watermark = bounds[0]
        rows = self._pending.release(inputs[0], watermark).born
        codes = self._table.codes(rows.columns, len(rows))
        if self._table.size > self._shown.size:
            self._shown = grown(self._shown, self._table.size, ALWAYS)
            self._latest = grown(self._latest, self._table.size, ALWAYS)
        _, due, _ = self._calendar.pop(watermark)
        # Rows are in order of their starts, and stay so within a value.
        order = order_of_codes(codes, self._table.size)
        grouped = codes[order]
        touched = merged(grouped, due[order_of_codes(due, self._table.size)])
        found, starts, ends = next_pieces(
            *(touched, grouped, rows.start[order], rows.end[order]),
            *(self._shown, self._latest, watermark),
        )
        ids = np.arange(self._next, self._next + found.size)
        self._next += found.size
        born = Rows(self._table.values(found), ids, starts, ends)
        gone = touched[self._shown[touched] == ALWAYS]
        self._table.release(gone)
        shown = touched[self._shown[touched] > ALWAYS]
        self._calendar.add(self._shown[shown], shown, shown)
        return Changes.births(born)


@compiled
def merged(one: Ints, other: Ints) -> Ints:
    """The values of two sorted arrays, in order, each once."""
    found = np.empty(one.size + other.size, np.int64)
    count = i = j = 0
    while i < one.size or j < other.size:
        if j == other.size or (i < one.size and one[i] <= other[j]):
            value = one[i]
            i += 1
        else:
            value = other[j]
            j += 1
        if count == 0 or found[count - 1] != value:
            found[count] = value
            count += 1
    return found[:count].copy()


@compiled
def next_pieces(
    touched: Ints,
    codes: Ints,
    start: Ints,
    end: Ints,
    shown: Ints,
    latest: Ints,
    until: int,
) -> tuple[Ints, Ints, Ints]:
    """The pieces that begin before ``until``, of values in order: value, start and end.

    Rows are in order of value, then of start. A value without rows has no end.
    """
    room = codes.size + touched.size
    values = np.empty(room, np.int64)
    starts = np.empty(room, np.int64)
    ends = np.empty(room, np.int64)
    count = row = 0
    for i in range(touched.size):
        code = touched[i]
        while True:
            born = row < codes.size and codes[row] == code
            now = min(start[row], until) if born else until
            # Pieces that begin before the next row does.
            while ALWAYS < shown[code] < now:
                begin = shown[code]
                if latest[code] > begin:
                    values[count], starts[count], ends[count] = code, begin, latest[code]
                    count += 1
                    shown[code] = latest[code]
                else:
                    shown[code] = latest[code] = ALWAYS
            if not born:
                break
            while row < codes.size and codes[row] == code and start[row] == now:
                latest[code] = max(latest[code], end[row])
                row += 1
            if shown[code] == ALWAYS:
                values[count], starts[count], ends[count] = code, now, latest[code]
                count += 1
                shown[code] = latest[code]
    return values[:count].copy(), starts[:count].copy(), ends[:count].copy()
