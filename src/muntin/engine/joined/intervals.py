"""Rows of a join that live to see several windows, aggregated once: by the first and the last.

A row is alive at the window ends between its birth and its end. Rows that see the same first and
the same last of them are one cell for each group, and a window's answer combines the cells around
it. So a row is looked at once, however many windows it lives to see. The thesis's synopses of joins
keep results by the interval in which they end; here windows of one query are the intervals.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.joined.finish import Cells, Totals, cells_of, dense
from muntin.engine.joined.merge import group_codes, ints, packed, totals_of
from muntin.engine.joined.pairs import Pairs
from muntin.plan.joined import JoinFinal
from muntin.plan.timeline import Timeline

# So many batches are kept apart before their cells are brought together.
_MOST = 8


class Intervals:
    """The rows of a join by the windows they see, until no window sees them any more."""

    def __init__(self, final: JoinFinal) -> None:
        self._final = final
        self._pairs = Pairs(final)
        self.held: list[pa.Table] = []

    def take(self, table: pa.Table, following: int) -> int:
        """Take in rows with lifetimes; how many values failed.

        Args:
            table: The rows; what no window from ``following`` on sees is left out.
            following: The number of the next window to be answered.
        """
        first, last = self._seen(table, following)
        alive = last >= first
        if not alive.all():
            table = table.filter(pa.array(alive))
            first, last = first[alive], last[alive]
        if not table.num_rows:
            return 0
        grouped = self._pairs.groups(table)
        cells, lasts = _by_interval(first, last, grouped.codes)
        totals = self._pairs.totals(table, grouped, cells)
        self._keep(packed(self._final, totals).append_column("last", pa.array(lasts)))
        return totals.errors

    def _seen(self, table: pa.Table, following: int) -> tuple[Ints, Ints]:
        """The numbers of the first and the last window that each row is alive at the end of."""
        final = self._final
        starts, ends = (_ticks(final.timeline, table, each) for each in ("valid_from", "valid_to"))
        first = (starts - final.phase) // final.slide + 1
        return np.maximum(first, following), (ends - final.phase) // final.slide

    def _keep(self, cells: pa.Table) -> None:
        self.held.append(cells)
        if len(self.held) >= _MOST:
            whole = pa.concat_tables(self.held).combine_chunks()
            codes = group_codes(self._final, whole)
            found, lasts = _by_interval(ints(whole, "window"), ints(whole, "last"), codes)
            totals = totals_of(self._final, whole, np.arange(whole.num_rows), found)
            one = packed(self._final, totals).append_column("last", pa.array(lasts))
            self.held = [one]

    def until(self, following: int, last: int, gap: int | None) -> Totals | None:
        """The totals of the windows from one to another, after which none of them is asked for."""
        if not self.held:
            return None
        whole = pa.concat_tables(self.held).combine_chunks()
        begins, ends = ints(whole, "window"), ints(whole, "last")
        self.held = [whole.filter(pa.array(ends > last))] if (ends > last).any() else []
        first = np.maximum(begins, following)
        counts = np.maximum(np.minimum(ends, last) - first + 1, 0)
        entries = np.repeat(np.arange(begins.size), counts)
        if not entries.size:
            return None
        within = np.arange(entries.size) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers = first[entries] + within
        codes = group_codes(self._final, whole)[entries]
        return totals_of(self._final, whole, entries, cells_of(self._final, numbers, codes, gap))


def _by_interval(first: Ints, last: Ints, codes: Ints) -> tuple[Cells, Ints]:
    """The cells of rows by first window, last window and group; the last window of each."""
    begins, _ = dense(first - int(first.min()))
    ends, _ = dense(last - int(last.min()))
    spans, _ = dense(begins * (int(ends.max()) + 1) + ends)
    cells, firsts = dense(spans * (int(codes.max()) + 1) + codes)
    return Cells(cells, first[firsts], firsts), last[firsts]


def _ticks(timeline: Timeline, table: pa.Table, name: str) -> Ints:
    column = table.column(name).combine_chunks()
    found: Ints = Timeline(timeline.column, column.type).to_ticks(column).to_numpy()
    return found
