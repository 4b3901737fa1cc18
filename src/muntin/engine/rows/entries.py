"""The entry that each row updates: one for every slice, group and cell that rows fall into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Bitmaps, Ints
from muntin.engine.rows.dictionary import compact, pairs
from muntin.engine.rows.selection import Scope, Selected, Selector
from muntin.engine.tables.loops import gather
from muntin.plan.nodes import Partials

# Looking through the table of all cells once a slice pays while that costs less than this a row.
_LOOKS_PER_ROW = 64
# A table of all cells beats a hash table while it has at most so many places a row.
_PLACES_PER_ROW = 8
_KEY_LIMIT = 1 << 62


@dataclass(frozen=True)
class Cut:
    """The slice of every row as a small number (-1 for none), slices' starts, rows' times.

    ``rows`` are the places of these rows among those that ``times`` has; None if they are all.
    """

    slices: Ints
    starts: Ints
    times: Ints
    rows: Ints | None = None

    @cached_property
    def ticks(self) -> Ints:
        """The time of every row."""
        return self.times if self.rows is None else self.times[self.rows]

    def joined(self, rows: Ints | None) -> Cut:
        """The same for rows that come from these by a join."""
        if rows is None:
            return self
        return Cut(gather(self.slices, rows), self.starts, self.times, rows)


@dataclass(frozen=True)
class Entries:
    """The entry of every row (-1 for none), and of each entry its slice, group and code."""

    ids: Ints
    slices: Ints
    groups: Ints
    codes: Ints | None
    signatures: Bitmaps | None = None


def find_entries(node: Partials, selector: Selector, cut: Cut, scope: Scope) -> Entries:
    """Number the slices, groups and cells that rows of a batch fall into."""
    selected = selector.codes(scope)
    if selected is None:
        return _slices_and_groups(node, selector, cut, scope)
    if not node.grouping:
        entries = _in_order(cut, selected)
        if entries is not None:
            return entries
    groups = scope.groups(node.grouping)
    slots, slices, owners = pairs(cut.slices, cut.starts.size, groups.codes, groups.count)
    numbers, distinct = selected.codes, None
    size = selected.size
    if slices.size * size > _KEY_LIMIT:
        numbers, distinct = compact(numbers)
        size = distinct.size
    ids, outer, codes = pairs(slots, slices.size, numbers, size, numbers >= 0)
    codes = codes if distinct is None else distinct[codes]
    return Entries(ids, slices[outer], owners[outer], codes, selected.signatures)


def _slices_and_groups(node: Partials, selector: Selector, cut: Cut, scope: Scope) -> Entries:
    where = selector.where(scope)
    count = cut.starts.size
    # A join may leave slices without rows, and those are no entries.
    if not node.grouping and where is None and cut.rows is None:
        return Entries(cut.slices, np.arange(count), np.zeros(count, np.int64), None)
    groups = scope.groups(node.grouping)
    return Entries(*pairs(cut.slices, count, groups.codes, groups.count, where), None)


def _in_order(cut: Cut, selected: Selected) -> Entries | None:
    """Rows that come slice by slice: entries in order of slice, without sorting or hashing.

    Where few cells are possible, those of a slice are in order of their codes, too.
    """
    rows = cut.slices.size
    if np.any(np.diff(cut.starts) < 0):
        return None
    if cut.starts.size * selected.size <= _LOOKS_PER_ROW * (rows + 1024):
        number = number_cells
    elif selected.size <= _PLACES_PER_ROW * rows:
        number = number_rare_cells
    else:
        return None
    ids, slices, codes = number(cut.slices, selected.codes, selected.size)
    if ids.size < cut.slices.size:
        return None
    groups = np.zeros(slices.size, np.int64)
    return Entries(ids, slices, groups, codes, selected.signatures)


@compiled
def number_runs(starts: Ints) -> tuple[Ints, Ints]:
    """Number the different starts of rows in time order, and list them; nothing if out of order."""
    ids = np.empty(starts.size, np.int64)
    found = np.empty(starts.size, np.int64)
    count = 0
    for i in range(starts.size):
        if i == 0 or starts[i] != starts[i - 1]:
            if i > 0 and starts[i] < starts[i - 1]:
                return np.empty(0, np.int64), np.empty(0, np.int64)
            found[count] = starts[i]
            count += 1
        ids[i] = count - 1
    return ids, found[:count].copy()


@compiled
def number_cells(slices: Ints, codes: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Number the pairs of slice and code of rows that come slice by slice, in that order.

    Returns the number of every row (-1 for a code of -1), and the slice and code of each number.
    Returns nothing where a row belongs to an earlier slice than the row before it, or to none.
    """
    ids = np.empty(slices.size, np.int64)
    owners = np.empty(slices.size, np.int64)
    found = np.empty(slices.size, np.int64)
    # Places are codes plus one, so that -1 has a place and rows need no branch. They are read
    # eight at a time: most cells are not seen in a slice.
    seen = np.zeros((size + 8) // 8 * 8, np.uint8)
    eights = seen.view(np.uint64)
    numbers = np.empty(seen.size, np.int32)
    numbers[0] = -1
    nothing = np.empty(0, np.int64)
    count = 0
    begin = 0
    while begin < slices.size:
        current = slices[begin]
        end = begin
        while end < slices.size and slices[end] == current:
            seen[np.uint64(codes[end] + 1)] = 1
            end += 1
        if current < 0 or (end < slices.size and slices[end] < current):
            return nothing, nothing, nothing
        seen[0] = 0
        for eight in range(eights.size):
            if eights[eight] == 0:
                continue
            for place in range(8 * eight, 8 * eight + 8):
                if seen[place]:
                    numbers[place] = count
                    owners[count], found[count] = current, place - 1
                    count += 1
            eights[eight] = 0
        for i in range(begin, end):
            ids[i] = numbers[np.uint64(codes[i] + 1)]
        begin = end
    return ids, owners[:count].copy(), found[:count].copy()


@compiled
def number_rare_cells(slices: Ints, codes: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """As `number_cells`, where slices see few of all cells: these are in order of appearance."""
    ids = np.empty(slices.size, np.int64)
    owners = np.empty(slices.size, np.int64)
    found = np.empty(slices.size, np.int64)
    # The number of a cell's latest entry: of this slice if it is not below the slice's first.
    latest = np.full(size, -1, np.int32)
    count = first = 0
    for i in range(slices.size):
        if i == 0 or slices[i] != slices[i - 1]:
            if slices[i] < 0 or (i > 0 and slices[i] < slices[i - 1]):
                nothing = np.empty(0, np.int64)
                return nothing, nothing, nothing
            first = count
        if codes[i] < 0:
            ids[i] = -1
            continue
        place = np.uint64(codes[i])
        if latest[place] < first:
            latest[place] = count
            owners[count], found[count] = slices[i], codes[i]
            count += 1
        ids[i] = latest[place]
    return ids, owners[:count].copy(), found[:count].copy()


@compiled
def ascending(groups: Ints, starts: Ints, codes: Ints) -> bool:
    """Whether entries lie in order of group, start and code, and no two are equal.

    ``codes`` is empty where entries have none.
    """
    for i in range(1, starts.size):
        if groups[i] != groups[i - 1]:
            if groups[i] < groups[i - 1]:
                return False
        elif starts[i] != starts[i - 1]:
            if starts[i] < starts[i - 1]:
                return False
        elif codes.size == 0 or codes[i] <= codes[i - 1]:
            return False
    return True


@compiled
def distinct_in_order(order: Ints, groups: Ints, starts: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """For sorted entries, the number of each among the different ones, and one of each.

    ``order`` sorts the entries; numbers are given to the entries as they stand.
    """
    numbers = np.empty(order.size, np.int64)
    kept = np.empty(order.size, np.int64)
    count = 0
    for i in range(order.size):
        at = order[i]
        if i > 0:
            before = order[i - 1]
            same = groups[at] == groups[before] and starts[at] == starts[before]
            if same and (codes.size == 0 or codes[at] == codes[before]):
                numbers[at] = count - 1
                continue
        numbers[at] = count
        kept[count] = at
        count += 1
    return numbers, kept[:count].copy()


@compiled
def number_neighbours(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Number the pairs of two sorted columns, equal neighbours alike; and where each begins."""
    numbers = np.empty(left.size, np.int64)
    begins = np.empty(left.size, np.int64)
    count = 0
    for i in range(left.size):
        if i == 0 or left[i] != left[i - 1] or right[i] != right[i - 1]:
            begins[count] = i
            count += 1
        numbers[i] = count - 1
    return numbers, begins[:count].copy()
