"""Answers of the sides of a join, multiplied per key and added over keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.kept import add_multiples, decode
from muntin.aggregates.kept import kept
from muntin.engine.joined.finish import FEW, ROOM, Cells, Totals, cells_of, dense
from muntin.engine.joined.products import Met, array_of, product_sums
from muntin.expressions import Evaluator
from muntin.operators.state.keys import KeyTable, has_null
from muntin.plan.joined import JoinCall, JoinFinal
from muntin.plan.timeline import Timeline

# Beyond this many codes they are made small again, so that products of two numbers of them fit.
_MOST_CODES = 1 << 31
# Whole numbers that lie so close together, on average, are codes as they are.
_SPREAD = 2


class Sides:
    """Combines the answers of sides to the same windows.

    Rows of the sides that have one window and one key are *met*: each combination of one entry of
    every side stands for as many rows of the join as their counts multiply to.
    """

    def __init__(self, final: JoinFinal) -> None:
        self._final = final
        self._keys = [Evaluator(side.keys) for side in final.sides]
        self._kept = [None if call.side is None else kept(call.aggregate) for call in final.calls]
        self._pads = [_pad(final, call) for call in final.calls]
        self._padded = _padded_groups(final)
        self._required = [n for n, side in enumerate(final.sides) if not side.optional]

    def __call__(
        self, tables: Sequence[pa.Table], numbers: Sequence[Ints], gap: int | None
    ) -> Totals:
        """The totals of some windows.

        Args:
            tables: The answers of each side.
            numbers: The window numbers of their rows.
            gap: The first window of a gap that is still to be shown, for EMIT EMPTY.
        """
        met = self._meet(tables, numbers)
        totals, overflows = products(met.counts)
        groups, codes = self._groups(tables, met)
        cells = cells_of(self._final, met.numbers, codes, gap)
        size = cells.numbers.size
        rows = np.zeros(size, np.int64)
        overflowed = np.zeros(size, np.bool_)
        add_totals(rows, overflowed, cells.cells, totals, overflows)
        # Where the number of rows does not fit, nothing that depends on it is shown.
        times = np.where(overflows, 1, totals)
        columns: list[list[PartColumn]] = []
        failed: dict[int, Bools] = {}
        for number, call in enumerate(self._final.calls):
            if call.factors:
                found, failed[number] = product_sums(call, tables, met, times, cells)
                columns.append(found)
            else:
                columns.append(self._column(number, tables, met, times, cells, rows))
        flags = overflowed if overflowed.any() else None
        shown = [each(cells.firsts) for each in groups]
        return Totals(cells, shown, columns, rows, flags, failed)

    def _meet(self, tables: Sequence[pa.Table], numbers: Sequence[Ints]) -> Met:
        """The combinations of entries with one window and one key."""
        codes, windows_of = self._codes(tables, numbers)
        starts = np.zeros((len(tables), windows_of.size + 1), np.int64)
        orders = [sort_codes(each, starts[s]) for s, each in enumerate(codes)]
        optional = np.array([side.optional for side in self._final.sides])
        pads = np.array([table.num_rows for table in tables])
        offsets = np.cumsum([0, *(each.size for each in orders)])[:-1]
        order = np.concatenate(orders)
        entries, owners = combinations(starts, order, offsets, pads, optional)
        windows = windows_of[owners]
        if len(self._required) == 1:
            # A NULL key meets nothing, which leaves its row to a LEFT JOIN.
            only = self._required[0]
            alone = np.flatnonzero(codes[only] < 0)
            padded = np.repeat(pads[:, None], alone.size, axis=1)
            padded[only] = alone
            entries = np.concatenate((entries, padded), axis=1)
            windows = np.concatenate((windows, numbers[only][alone]))
        counts = np.ones(entries.shape, np.int64)
        for side, table in enumerate(tables):
            own = np.ones(table.num_rows + 1, np.int64)
            own[:-1] = array_of(table, self._final.sides[side].query.select[0].name).field(0)
            counts[side] = own[entries[side]]
        return Met(entries, windows, counts)

    def _codes(
        self, tables: Sequence[pa.Table], numbers: Sequence[Ints]
    ) -> tuple[list[Ints], Ints]:
        """A code for the window and key of each entry, -1 for a NULL key; the window of each."""
        found = [
            [each.values for each in evaluate(table)]
            for evaluate, table in zip(self._keys, tables, strict=True)
        ]
        sizes = [table.num_rows for table in tables]
        columns = tuple(pa.concat_arrays(each) for each in zip(*found, strict=True))
        codes, width = key_codes(columns)
        windows = np.concatenate(numbers)
        places, firsts = dense(windows - windows.min(initial=2**62))
        codes = np.where(codes < 0, -1, codes + places * width)
        if firsts.size * width <= ROOM * windows.size + FEW:
            windows_of = np.repeat(windows[firsts], width)
        else:
            held = np.flatnonzero(codes >= 0)
            codes[held], firsts = dense(codes[held])
            windows_of = windows[held[firsts]]
        return np.split(codes, np.cumsum(sizes)[:-1]), windows_of

    def _groups(self, tables: Sequence[pa.Table], met: Met) -> tuple[list[Taken], Ints]:
        """The group columns, and a code of the group of each combination."""
        codes = np.zeros(met.numbers.size, np.int64)
        columns: dict[tuple[int, str], pa.Array] = {}
        for side, table in enumerate(tables):
            names = [each.column for each in self._final.groups if each.side == side]
            if not names:
                continue
            # The last one is what a padded row has.
            own = [
                pa.concat_arrays([array_of(table, name), self._padded[side, name]])
                for name in names
            ]
            columns |= {(side, name): each for name, each in zip(names, own, strict=True)}
            known = KeyTable([each.type for each in own])
            found = known.codes(tuple(own), table.num_rows + 1)
            codes = codes * int(known.size) + found[met.entries[side]]
            if codes.size and int(codes.max()) >= _MOST_CODES:
                codes, _ = dense(codes)
        taken = []
        for group in self._final.groups:
            assert group.side is not None
            taken.append(Taken(columns[group.side, group.column], met.entries[group.side]))
        return taken, codes

    def _column(
        self,
        number: int,
        tables: Sequence[pa.Table],
        met: Met,
        times: Ints,
        cells: Cells,
        rows: Ints,
    ) -> list[PartColumn]:
        """The accumulators of one aggregate for every cell."""
        call, form = self._final.calls[number], self._kept[number]
        if call.side is None or form is None:
            return [CountColumn(call.aggregate.parts[0], rows)]
        held = decode(form, array_of(tables[call.side], call.column))
        found = [empty(part, cells.numbers.size) for part in call.aggregate.parts]
        pads = self._pads[number]
        entries = met.entries[call.side]
        others = times // met.counts[call.side]
        for place, (into, column) in enumerate(zip(found, held, strict=True)):
            column.resize(len(column) + 1)
            if pads is not None:
                column.merge(np.array([len(column) - 1]), pads[place])
            add_multiples(into, cells.cells, column, entries, others)
        return found


class Taken(NamedTuple):
    """A group column of a side, and the entry of each combination."""

    values: pa.Array
    entries: Ints

    def __call__(self, rows: Ints) -> pa.Array:
        """The values of some combinations."""
        return self.values.take(pa.array(self.entries[rows]))


def key_codes(columns: Sequence[pa.Array]) -> tuple[Ints, int]:
    """A code for each row's key, -1 where it has a NULL, and a number above all codes.

    >>> codes, above = key_codes([pa.array(["a", "b", None, "a"])])
    >>> codes.tolist(), above
    ([0, 1, -1, 0], 2)
    """
    codes = np.zeros(len(columns[0]), np.int64)
    width = 1
    nulls = np.zeros(codes.size, np.bool_)
    for column in columns:
        own, size = _codes_of(column)
        nulls |= own < 0
        codes, width = codes * size + np.maximum(own, 0), width * size
        if width > _MOST_CODES:
            codes, firsts = dense(codes)
            width = firsts.size
    return np.where(nulls, -1, codes), max(width, 1)


def _codes_of(column: pa.Array) -> tuple[Ints, int]:
    """Codes of the values of one column, -1 for NULL, and a number above them."""
    if pa.types.is_floating(column.type):
        # NaN equals NaN, and 0.0 equals -0.0.
        known = KeyTable([column.type])
        codes = known.codes((column,), len(column))
        return np.where(has_null((column,), len(column)), -1, codes), max(int(known.size), 1)
    if pa.types.is_integer(column.type) and not column.null_count and len(column):
        values = column.cast(pa.int64(), safe=False).to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low < _SPREAD * values.size:
            return values - low, high - low + 1
    encoded = column.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return indices.astype(np.int64), max(len(encoded.dictionary), 1)


def window_numbers(final: JoinFinal, timeline: Timeline, table: pa.Table, end: str) -> Ints:
    """The numbers of the windows of a table's rows, by the column of window ends."""
    column = table.column(end).combine_chunks()
    typed = Timeline(timeline.column, column.type)
    ticks: Ints = typed.to_ticks(column).to_numpy()
    return (ticks - final.phase) // final.slide


def _nulls(final: JoinFinal) -> pa.Table:
    """A row of the join in which all is NULL."""
    return pa.table([pa.nulls(1, each.type) for each in final.rows], schema=final.rows)


def _padded_groups(final: JoinFinal) -> dict[tuple[int, str], pa.Array]:
    """What a row of NULLs has in the group columns: not NULL, where they make something of it."""
    found = Evaluator([each.value for each in final.groups])(_nulls(final)) if final.groups else []
    return {
        (group.side, group.column): each.values
        for group, each in zip(final.groups, found, strict=True)
        if group.side is not None
    }


def _pad(final: JoinFinal, call: JoinCall) -> list[PartColumn] | None:
    """What a row of NULLs adds to an aggregate of a side that is padded; None if nothing."""
    if call.side is None or not final.sides[call.side].optional:
        return None
    bounds = (*call.args, *(() if call.filter is None else (call.filter,)))
    values = [each.values for each in Evaluator(bounds)(_nulls(final))] if bounds else []
    passes = call.filter is None or bool(values[-1][0].as_py())
    pads = []
    for part in call.aggregate.parts:
        column = empty(part, 1)
        # Rows that are not there have no time by which they could be the first.
        if passes and not part.timed:
            column.update(np.zeros(1, np.int64), tuple(values[i] for i in part.args))
        pads.append(column)
    return pads


@compiled
def sort_codes(codes: Ints, starts: Ints) -> Ints:
    """The entries in order of their codes; ``starts`` gets the first of each. -1 is left out."""
    for i in range(codes.size):
        if codes[i] >= 0:
            starts[codes[i] + 1] += 1
    for code in range(1, starts.size):
        starts[code] += starts[code - 1]
    order = np.empty(starts[-1], np.int64)
    ends = starts[:-1].copy()
    for i in range(codes.size):
        if codes[i] >= 0:
            order[ends[codes[i]]] = i
            ends[codes[i]] += 1
    return order


@compiled
def combinations(
    starts: Ints, order: Ints, offsets: Ints, pads: Ints, optional: Bools
) -> tuple[Ints, Ints]:
    """All combinations of entries of one code, one of each side, and their codes.

    A side that is optional takes its pad where it has no entry; without an entry of another side
    there are none.
    """
    sides, size = starts.shape[0], starts.shape[1] - 1
    counts = np.empty(size, np.int64)
    total = 0
    for code in range(size):
        many = 1
        for side in range(sides):
            own = starts[side, code + 1] - starts[side, code]
            many *= 1 if own == 0 and optional[side] else own
        counts[code] = many
        total += many
    entries = np.empty((sides, total), np.int64)
    owners = np.empty(total, np.int64)
    place = 0
    for code in range(size):
        for number in range(counts[code]):
            rest = number
            for side in range(sides):
                own = starts[side, code + 1] - starts[side, code]
                if own == 0:
                    entries[side, place] = pads[side]
                    continue
                at = offsets[side] + starts[side, code] + rest % own
                entries[side, place] = order[at]
                rest //= own
            owners[place] = code
            place += 1
    return entries, owners


_MOST = np.int64(2**63 - 1)


@compiled
def products(counts: Ints) -> tuple[Ints, Bools]:
    """The product of each column of counts, all at least 1, and which do not fit 64 bits."""
    sides, size = counts.shape
    out = np.ones(size, np.int64)
    overflows = np.zeros(size, np.bool_)
    for i in range(size):
        product = np.int64(1)
        for side in range(sides):
            if product > _MOST // counts[side, i]:
                overflows[i] = True
                break
            product *= counts[side, i]
        out[i] = product
    return out, overflows


@compiled
def add_totals(rows: Ints, overflowed: Bools, cells: Ints, totals: Ints, overflows: Bools) -> None:
    """Add up numbers of rows, and mark the cells where they do not fit 64 bits."""
    for i in range(cells.size):
        cell = cells[i]
        if overflows[i] or rows[cell] > _MOST - totals[i]:
            overflowed[cell] = True
        else:
            rows[cell] += totals[i]
