"""The directory of a version: where its blocks have what, so that one kernel reads all of them.

A question takes a few entries of each of many blocks. Block by block and part by part that would
be dozens of array operations, all of which hold the interpreter's lock or give it up for
microseconds; here it is one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muntin._typing import Bools, Ints
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.aggregates.columns.sums import LOAD_LIMIT, SumColumn
from muntin.aggregates.exact.limbs import running_totals
from muntin.synopses.keeps.gathering import (
    EXTREME,
    HEAD,
    OTHER,
    STEP,
    TOTALS,
    gather,
    one_group,
    one_group_short,
)

# Blocks of so many entries have running totals once so many questions have added up their groups:
# by then that took as long as making them.
_MANY = 1 << 18
_OFTEN = 4
# The slices of one group that are read without giving up the interpreter's lock.
_BRIEF = 1 << 14


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
            return self._address(column.least), EXTREME, 0, 0
        return 0, OTHER, 0, 0

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


# The numbers of one group, part by part: a count, a code, or the limbs of a sum.
Numbers = list[list[int]]


class OneGroup(NamedTuple):
    """What a window has of one group: in all slices it touches, and in those inside it.

    ``bases`` are the weights of the first limbs.
    """

    outer: Numbers
    inner: Numbers
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
        found, forms = gather(
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
            taken = size * (1 if width == EXTREME else max(width, 0))
            values = found[at : at + taken]
            parts.append(self._part(self._columns[place], values, (size, width), base))
            at += taken
        return parts

    def one_group(
        self,
        columns: Ints,
        wanted: Bools,
        group: int,
        outer: tuple[int, int],
        inner: tuple[int, int],
    ) -> OneGroup | None:
        """As `gather`, of one group: the numbers themselves; None where one takes more."""
        read = one_group_short if outer[1] - outer[0] <= _BRIEF else one_group
        found = read(self._table, columns, wanted, group, *outer, *inner).tolist()
        if self._entries > LOAD_LIMIT:
            return None
        parts = OneGroup([], [], [])
        count = columns.size
        at = 2 * count
        half = (len(found) - at) // 2
        for place in range(count):
            width = found[place]
            if width == OTHER:
                return None
            end = at + (1 if width == EXTREME else width)
            parts.outer.append(found[at:end])
            parts.inner.append(found[at + half : end + half])
            parts.bases.append(found[count + place])
            at = end
        return parts

    def _note(self, places: Sequence[int]) -> None:
        """Take note that parts of many groups are read: long blocks get totals of them."""
        for at, line in self._long:
            if line.note(places):
                self._fill(at, line)

    def _fill(self, at: int, line: Line) -> None:
        for place, address in line.totals():
            # One number: a reader meanwhile has it or adds up.
            self._table[at, HEAD + STEP * place + TOTALS] = address

    def _part(
        self, like: PartColumn, values: Ints, shape: tuple[int, int], base: int
    ) -> PartColumn | None:
        if shape[1] == OTHER:
            return None
        if isinstance(like, ExtremeColumn):
            return like.of_codes(values)
        if isinstance(like, CountColumn):
            return CountColumn(like.part, values)
        if self._entries > LOAD_LIMIT:
            return None
        return SumColumn(like.part, values.reshape(shape), base, self._entries, None)


_NONE = np.empty(0, np.int64)
