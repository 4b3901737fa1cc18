"""The directory of a version: where its blocks have what, so that one kernel reads all of them.

A question takes a few entries of each of many blocks. Block by block and part by part that would
be dozens of array operations, all of which hold the interpreter's lock or give it up for
microseconds; here it is one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.aggregates.columns.sums import LOAD_LIMIT, SumColumn
from muntin.aggregates.exact.limbs import running_totals

# A block's line: its first and last slice, how many runs it has, where their groups, cells and
# ends are, and the slices of entries; then for each part where its numbers are, how many an entry
# has, the first limb's weight, and where running totals are.
_FIRST, _LAST, _RUNS, _GROUPS, _CODES, _ENDS, _SLICES = range(7)
_HEAD = 7
_NUMBERS, _WIDTH, _BASE, _TOTALS = range(4)
_STEP = 4
# Widths that stand for an extreme, and for a part that only its own column can combine.
_EXTREME, _OTHER = -1, -2
# Blocks of so many entries have running totals once so many questions have added up their groups:
# by then that took as long as making them. Short runs are added up as fast.
_MANY = 1 << 18
_OFTEN = 4
_SHORT = 32


class Line:
    """What a directory has of one block. It holds the arrays that its addresses point at."""

    def __init__(
        self, bounds: tuple[int, int], runs: Sequence[Ints], columns: Sequence[PartColumn]
    ) -> None:
        groups, codes, ends, slices = runs
        self._held: list[Ints] = []
        # What is added up, by the place of its part, and its running totals.
        self._rows: dict[int, Ints] = {}
        self._totals: dict[int, Ints] = {}
        self._asked: Counter[int] = Counter()
        line = [*bounds, groups.size, *map(self._address, (groups, codes, ends, slices))]
        for place, column in enumerate(columns):
            line += self._part(place, column)
        self.numbers = np.array(line, np.int64)
        self.is_long = slices.size >= _MANY

    def _part(self, place: int, column: PartColumn) -> tuple[int, int, int, int]:
        if isinstance(column, CountColumn):
            return self._added(place, column.counts[:, None], 0)
        if type(column) is SumColumn and column.specials is None and column.load <= 1:
            return self._added(place, column.limbs, column.base)
        if isinstance(column, ExtremeColumn) and column.marks is None and not column.values.moves:
            return self._address(column.least), _EXTREME, 0, 0
        return 0, _OTHER, 0, 0

    def _added(self, place: int, rows: Ints, base: int) -> tuple[int, int, int, int]:
        address = self._address(rows)
        self._rows[place] = self._held[-1]
        return address, rows.shape[1], base, 0

    def _address(self, array: Ints) -> int:
        self._held.append(np.ascontiguousarray(array, np.int64))
        return _address(self._held[-1])

    def note(self, places: Sequence[int]) -> bool:
        """Take note that all groups of some parts were read; whether there are totals anew."""
        due = []
        for place in places:
            self._asked[place] += 1
            if self._asked[place] >= _OFTEN and place in self._rows and place not in self._totals:
                due.append(place)
        for place in due:
            self._totals.setdefault(place, running_totals(self._rows[place]))
        return bool(due)

    def totals(self) -> list[tuple[int, int]]:
        """The parts that have running totals, and where these are."""
        return [(place, _address(totals)) for place, totals in list(self._totals.items())]


def _address(array: Ints) -> int:
    return int(array.__array_interface__["data"][0])


class Numbers(list[list[int]]):
    """The numbers of one group, part by part: a count, a code, or the limbs of a sum."""

    bases: list[int]


class Directory:
    """The lines of some blocks, and what reads parts of groups from all of them."""

    def __init__(self, lines: Sequence[Line], columns: Sequence[PartColumn], entries: int) -> None:
        self._lines = lines
        self._table = np.concatenate([line.numbers for line in lines]).reshape(len(lines), -1)
        self._columns = columns
        self._entries = entries
        self._long = [(at, line) for at, line in enumerate(lines) if line.is_long]
        for at, line in self._long:
            self._fill(at, line)

    def gather(
        self,
        columns: Ints,
        wanted: Bools,
        rows: tuple[Ints | None, Ints | None, int],
        window: tuple[int, int],
    ) -> list[PartColumn | None]:
        """Columns of some parts, one cell for each row of an answer; None where that takes more.

        Args:
            columns: The places of the parts.
            wanted: By the number of a cell whether it is taken.
            rows: The groups (all if None), the row of every group (0 if None), how many rows.
            window: The first slice, and the one behind the last.
        """
        chosen, numbers, size = rows
        places = columns.tolist()
        if size > 1:
            self._note(places)
        found, forms = _gather(
            self._table,
            columns,
            wanted,
            _NONE if chosen is None else chosen,
            chosen is None,
            _NONE if numbers is None else numbers,
            size,
            *window,
        )
        at = 0
        parts: list[PartColumn | None] = []
        for place, (width, base) in zip(places, forms.tolist(), strict=True):
            taken = size * (1 if width == _EXTREME else max(width, 0))
            values = found[at : at + taken]
            parts.append(self._part(self._columns[place], values, (size, width), base))
            at += taken
        return parts

    def numbers(
        self, columns: Ints, wanted: Bools, group: Ints, window: tuple[int, int]
    ) -> Numbers | None:
        """As `gather`, of one group: the numbers themselves; None where one takes more."""
        found, forms = _gather(self._table, columns, wanted, group, False, _NONE, 1, *window)
        numbers, at = found.tolist(), 0
        parts = Numbers()
        parts.bases = []
        for width, base in forms.tolist():
            if width == _OTHER or self._entries > LOAD_LIMIT:
                return None
            taken = 1 if width == _EXTREME else width
            parts.append(numbers[at : at + taken])
            parts.bases.append(base)
            at += taken
        return parts

    def _note(self, places: Sequence[int]) -> None:
        """Take note that parts of many groups are read: long blocks get totals of them."""
        for at, line in self._long:
            if line.note(places):
                self._fill(at, line)

    def _fill(self, at: int, line: Line) -> None:
        for place, address in line.totals():
            # One number: a reader meanwhile has it or adds up.
            self._table[at, _HEAD + _STEP * place + _TOTALS] = address

    def _part(
        self, like: PartColumn, values: Ints, shape: tuple[int, int], base: int
    ) -> PartColumn | None:
        if shape[1] == _OTHER:
            return None
        if isinstance(like, ExtremeColumn):
            return like.of_codes(values)
        if isinstance(like, CountColumn):
            return CountColumn(like.part, values)
        if self._entries > LOAD_LIMIT:
            return None
        return SumColumn(like.part, values.reshape(shape), base, self._entries, None)


_NONE = np.empty(0, np.int64)


_POINTER: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]


def _pointers() -> Any:
    """A function for kernels that makes a pointer to integers of an address."""

    @intrinsic
    def pointer(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return _POINTER(types.int64), generate

    return pointer


_pointer = _pointers()


@compiled
def _array(address: int, size: int) -> Ints:
    """The integers at an address, whose holder outlives the call."""
    found: Ints = carray(_pointer(address), size)
    return found


@compiled
def _gather(
    table: Ints,
    columns: Ints,
    wanted: Bools,
    groups: Ints,
    every: bool,
    rows: Ints,
    size: int,
    low: int,
    high: int,
) -> tuple[Ints, Ints]:
    """The numbers of each part, part by part and row by row; and the width and base of each."""
    forms = _forms(table, columns)
    out = _blank(forms, size)
    for b in range(table.shape[0]):
        line = table[b]
        runs = line[_RUNS]
        if runs == 0 or line[_FIRST] >= high or line[_LAST] < low:
            continue
        run_groups = _array(line[_GROUPS], runs)
        run_codes = _array(line[_CODES], runs)
        ends = _array(line[_ENDS], runs + 1)
        slices = _array(line[_SLICES], ends[runs])
        for i in range(runs if every else groups.shape[0]):
            group = run_groups[i] if every else groups[i]
            row = int(rows[group]) if rows.shape[0] else 0
            if row < 0:
                continue
            run = i if every else int(np.searchsorted(run_groups, group))
            while run < runs and run_groups[run] == group:
                if wanted[run_codes[run]]:
                    start, stop = ends[run], ends[run + 1]
                    if low > line[_FIRST]:
                        start = _first_from(slices, start, stop, low)
                    if high <= line[_LAST]:
                        stop = _first_from(slices, start, stop, high)
                    if start < stop:
                        _take(line, columns, forms, start, stop, row, size, out)
                run += 1
                if every:
                    break
    return out, forms


@compiled
def _forms(table: Ints, columns: Ints) -> Ints:
    """How wide the numbers of each part are over all blocks, and where they begin."""
    forms = np.zeros((columns.shape[0], 2), np.int64)
    for i in range(columns.shape[0]):
        at = _HEAD + _STEP * columns[i]
        low, high = np.int64(1 << 62), np.int64(0)
        for b in range(table.shape[0]):
            width = table[b, at + _WIDTH]
            if width < 0:
                forms[i, 0] = min(forms[i, 0], width)
            elif width > 0:
                low = min(low, table[b, at + _BASE])
                high = max(high, table[b, at + _BASE] + width)
        if forms[i, 0] == 0 and high > 0:
            forms[i, 0], forms[i, 1] = high - low, low
    return forms


@compiled
def _blank(forms: Ints, size: int) -> Ints:
    """Room for the numbers of all parts: zeros, and no value for extremes."""
    total = 0
    for i in range(forms.shape[0]):
        total += size if forms[i, 0] == _EXTREME else size * max(forms[i, 0], 0)
    out = np.zeros(total, np.int64)
    at = 0
    for i in range(forms.shape[0]):
        if forms[i, 0] == _EXTREME:
            out[at : at + size] = NOTHING
            at += size
        else:
            at += size * max(forms[i, 0], 0)
    return out


@compiled
def _first_from(slices: Ints, start: int, stop: int, bound: int) -> int:
    """The first of some ascending numbers that is not below a bound."""
    while start < stop:
        middle = (start + stop) >> 1
        if slices[middle] < bound:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _take(
    line: Ints, columns: Ints, forms: Ints, start: int, stop: int, row: int, size: int, out: Ints
) -> None:
    """Combine a range of entries into a row, part by part."""
    at = 0
    for i in range(columns.shape[0]):
        part = _HEAD + _STEP * columns[i]
        wide = forms[i, 0]
        if wide == _EXTREME:
            codes = _array(line[part + _NUMBERS], stop)
            best = out[at + row]
            for place in range(start, stop):
                best = min(best, codes[place])
            out[at + row] = best
            at += size
        elif wide > 0:
            width = line[part + _WIDTH]
            target = at + row * wide + line[part + _BASE] - forms[i, 1]
            if line[part + _TOTALS] != 0 and stop - start > _SHORT:
                totals = _array(line[part + _TOTALS], (stop + 1) * width)
                for k in range(width):
                    out[target + k] += totals[stop * width + k] - totals[start * width + k]
            else:
                numbers = _array(line[part + _NUMBERS], stop * width)
                for k in range(width):
                    total = np.int64(0)
                    for place in range(start, stop):
                        total += numbers[place * width + k]
                    out[target + k] += total
            at += size * wide
