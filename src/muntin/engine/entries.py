"""The entry that each row updates: one for every slice, group and cell that rows fall into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from muntin.engine.encoding import compact
from muntin.engine.entry_kernels import number_cells
from muntin.engine.grouping import pairs
from muntin.engine.relation_kernels import gather
from muntin.engine.selecting import Scope, Selected, Selector
from muntin.plan.nodes import Partials

Ints = npt.NDArray[np.int64]
Bitmaps = npt.NDArray[np.uint8]

# Looking through the table of all cells once a slice pays while that costs less than this a row.
_LOOKS_PER_ROW = 64
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
    """Rows that come slice by slice: entries in order of slice, then code, without sorting."""
    if cut.starts.size * selected.size > _LOOKS_PER_ROW * (cut.slices.size + 1024):
        return None
    if np.any(np.diff(cut.starts) < 0):
        return None
    ids, slices, codes = number_cells(cut.slices, selected.codes, selected.size)
    if ids.size < cut.slices.size:
        return None
    groups = np.zeros(slices.size, np.int64)
    return Entries(ids, slices, groups, codes, selected.signatures)
