"""Shares of groups that several buckets hold: accumulators as tables, merged and shown.

A bucket has some keys of a join. Where groups are not made of keys, rows of one group lie in many
buckets. Each gives the accumulators of its windows and groups, whoever has them all merges them:
accumulators of sums are exact, so that the result has the same bits whatever the buckets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.kept import decode, encode
from muntin.aggregates.kept import kept
from muntin.engine.joined.finish import Answered, Cells, Finish, Totals, cells_of
from muntin.engine.joined.sides import add_totals
from muntin.operators.state.keys import KeyTable
from muntin.plan.joined import JoinCall, JoinFinal


def packed(final: JoinFinal, totals: Totals) -> pa.Table:
    """The accumulators of windows and groups as a table, one row for each."""
    size = totals.cells.numbers.size
    marks = np.zeros(size, np.bool_) if totals.overflowed is None else totals.overflowed
    columns = {
        "window": pa.array(totals.cells.numbers),
        "rows": pa.array(totals.rows),
        "overflowed": pa.array(marks),
    }
    columns |= {f"g{place}": each for place, each in enumerate(totals.groups)}
    for place, (call, parts) in enumerate(zip(final.calls, totals.columns, strict=True)):
        columns[f"c{place}"] = encode(kept(call.aggregate), parts)
    columns |= {f"f{place}": pa.array(flags) for place, flags in totals.failed.items()}
    return pa.table(columns)


def merged(final: JoinFinal, shares: Sequence[pa.Table], gap: int | None = None) -> Answered:
    """The results of some windows, from the shares of all who have some.

    Args:
        final: The query.
        shares: What `packed` gave, in an order that does not depend on chance.
        gap: The first window of a gap that is still to be shown, for EMIT EMPTY.
    """
    whole = pa.concat_tables(shares).combine_chunks()
    numbers = ints(whole, "window")
    cells = cells_of(final, numbers, group_codes(final, whole), gap)
    return Finish(final)(totals_of(final, whole, np.arange(numbers.size), cells))


def group_codes(final: JoinFinal, whole: pa.Table) -> Ints:
    """A code of the group of each row of what `packed` gave."""
    groups = _groups(final, whole)
    if not groups:
        return np.zeros(whole.num_rows, np.int64)
    return KeyTable([each.type for each in groups]).codes(tuple(groups), whole.num_rows)


def totals_of(final: JoinFinal, whole: pa.Table, entries: Ints, cells: Cells) -> Totals:
    """Rows of what `packed` gave, brought together: row ``entries[i]`` goes to cell ``i`` names."""
    rows = np.zeros(cells.numbers.size, np.int64)
    overflowed = np.zeros(cells.numbers.size, np.bool_)
    marks = _column(whole, "overflowed").to_numpy(zero_copy_only=False)[entries]
    add_totals(rows, overflowed, cells.cells, ints(whole, "rows")[entries], marks)
    columns = [
        _merged(call, _column(whole, f"c{place}"), entries, cells)
        for place, call in enumerate(final.calls)
    ]
    firsts = pa.array(entries[cells.firsts] if entries.size else entries)
    shown = [each.take(firsts) for each in _groups(final, whole)]
    flags = overflowed if overflowed.any() else None
    failed = {}
    for place, call in enumerate(final.calls):
        if call.factors:
            failed[place] = np.zeros(cells.numbers.size, np.bool_)
            given = _column(whole, f"f{place}").to_numpy(zero_copy_only=False)[entries]
            failed[place][cells.cells[given]] = True
    return Totals(cells, shown, columns, rows, flags, failed)


def _merged(call: JoinCall, values: pa.Array, entries: Ints, cells: Cells) -> list[PartColumn]:
    found = [empty(part, cells.numbers.size) for part in call.aggregate.parts]
    for into, column in zip(found, decode(kept(call.aggregate), values), strict=True):
        into.merge(cells.cells, column.take(entries))
    return found


def ints(table: pa.Table, name: str) -> Ints:
    """A column of numbers, which may be written to."""
    return np.array(_column(table, name))


def _groups(final: JoinFinal, whole: pa.Table) -> list[pa.Array]:
    return [_column(whole, f"g{place}") for place in range(len(final.groups))]


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
