"""A retroactive relation: an update holds for rows of streams that came before it as well."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.errors import DataError
from muntin.operators.rows import NEVER, NONE, Changes, Columns, Rows
from muntin.operators.select import Condition, Projection
from muntin.operators.state.keys import KeyTable, check_keys, grown
from muntin.operators.state.row_log import RowLog
from muntin.plan.operators import StreamSchema, Windowed

# Before every event: what a relation holds from the start.
BEGINNING = -(1 << 61)


class RelationRows:
    """The rows of a relation, each alive from the update that inserts it to that which deletes it.

    An update is held back until time moves on. Another one at the same instant may take back what
    has not begun by then.

    >>> relation = RelationRows(pa.schema({"k": pa.int64()}))
    >>> relation.update(pa.table({"k": [1, 2]}), None, at=5)
    >>> relation.update(None, pa.table({"k": [1]}), at=5)
    >>> relation.release().born.columns[0].to_pylist(), len(relation)
    ([2], 1)
    """

    STATE = (
        *("_table", "_log", "_counts", "_heads", "_below", "_ids", "_start", "_codes", "_numbers"),
        *("_free", "_size", "_next", "_born", "_ended", "at"),
    )

    def __init__(self, schema: pa.Schema) -> None:
        types = [field.type for field in schema]
        check_keys(types, "a relation")
        self.schema = schema
        self._table, self._log = KeyTable(types), RowLog(types)
        # By value: how many rows have it, and the last of them.
        self._counts = self._heads = NONE
        # By slot: another row of the same value; id, start, value, and where its columns are.
        self._below = self._ids = self._start = self._codes = self._numbers = NONE
        self._free = NONE
        self._size = self._next = 0
        # What is held back: slots that begin, ids that end, and when.
        self._born = self._ended = NONE
        self.at: int | None = None

    def __len__(self) -> int:
        return int(self._size - self._free.size)

    def update(self, insert: pa.Table | None, delete: pa.Table | None, at: int) -> None:
        """Delete rows, then insert others; nothing is changed if one to delete is not there."""
        gone = NONE if delete is None else self._found(delete)
        self.at = at
        if gone.size:
            self._remove(gone, at)
        if insert is not None and insert.num_rows:
            self._insert(insert, at)

    def _found(self, rows: pa.Table) -> Ints:
        """The value of each row that is to be deleted, in order of values."""
        columns = _columns(rows)
        codes = self._coded(columns, rows.num_rows)
        values, firsts, wanted = np.unique(codes, return_index=True, return_counts=True)
        missing = np.flatnonzero(wanted > self._counts[values])
        if missing.size:
            self._table.release(values[self._counts[values] == 0])
            row = {
                name: column[int(firsts[missing[0]])].as_py()
                for name, column in zip(rows.column_names, columns, strict=True)
            }
            raise DataError(
                f"the relation does not hold the row {row} as often as it is to be deleted",
                hint="delete rows as they were inserted, with all their columns",
            )
        return np.sort(codes)

    def _coded(self, columns: Columns, count: int) -> Ints:
        codes = self._table.codes(columns, count)
        if self._table.size > self._counts.size:
            self._counts = grown(self._counts, self._table.size, 0)
            self._heads = grown(self._heads, self._table.size, -1)
        return codes

    def _remove(self, codes: Ints, at: int) -> None:
        """End the youngest rows of some values, which are in order and may repeat."""
        slots = []
        for _, each in _rounds(codes):
            taken = self._heads[each]
            self._heads[each] = self._below[taken]
            self._counts[each] -= 1
            slots.append(taken)
        gone = np.concatenate(slots)
        begun = self._start[gone] < at
        self._ended = np.concatenate((self._ended, self._ids[gone[begun]]))
        self._born = np.setdiff1d(self._born, gone[~begun])
        self._log.drop(self._numbers[gone])
        self._ids[gone] = -1
        self._free = np.concatenate((self._free, gone))
        values = np.unique(codes)
        self._table.release(values[self._counts[values] == 0])

    def _insert(self, rows: pa.Table, at: int) -> None:
        columns, count = _columns(rows), rows.num_rows
        codes = self._coded(columns, count)
        order = np.argsort(codes, kind="stable")
        slots = self._slots(count)
        self._ids[slots] = np.arange(self._next, self._next + count)
        self._next += count
        self._start[slots] = at
        self._codes[slots] = codes
        self._numbers[slots] = self._log.append(columns, count)
        for places, each in _rounds(codes[order]):
            entered = slots[order[places]]
            self._below[entered] = self._heads[each]
            self._heads[each] = entered
            self._counts[each] += 1
        self._born = np.concatenate((self._born, slots))

    def _slots(self, count: int) -> Ints:
        reused, self._free = self._free[:count], self._free[count:]
        new = np.arange(self._size, self._size + count - reused.size)
        self._size += new.size
        if self._size > self._ids.size:
            self._below, self._ids, self._start, self._codes, self._numbers = (
                grown(each, self._size, -1)
                for each in (self._below, self._ids, self._start, self._codes, self._numbers)
            )
        return np.concatenate((reused, new))

    def release(self) -> Changes:
        """What was held back."""
        ended = self._ended
        changes = Changes(self._rows(self._born), ended, np.full(ended.size, self.at or 0))
        self._born = self._ended = NONE
        self.at = None
        return changes

    def alive(self) -> Changes:
        """All rows that have begun, for who has not seen them."""
        slots = np.setdiff1d(np.flatnonzero(self._ids >= 0), self._born)
        return Changes.births(self._rows(slots))

    def _rows(self, slots: Ints) -> Rows:
        columns = self._log.take(self._numbers[slots])
        return Rows(columns, self._ids[slots], self._start[slots], np.full(slots.size, NEVER))


class RelationLeaf:
    """The rows of a relation that satisfy a condition, with columns computed from them."""

    STATE = ("is_new",)

    def __init__(self, node: Windowed, stream: StreamSchema) -> None:
        self._shown = node.schema
        self._condition = Condition(node.where, stream.schema)
        self._project = Projection(node.columns, stream.schema)
        # Whether it has not read yet what the relation holds.
        self.is_new = True

    @property
    def errors(self) -> int:
        """How often an expression failed."""
        return self._condition.errors + self._project.errors

    def read(self, relation: RelationRows, changes: Changes | None) -> Changes:
        """The changes of a batch; at first, all that is there."""
        if self.is_new:
            self.is_new, changes = False, relation.alive()
        if changes is None:
            return Changes.births(Rows.none(self._shown))
        rows = changes.born.where(self._condition(changes.born))
        columns = self._project(rows.columns, len(rows))
        return Changes(Rows(columns, rows.ids, rows.start, rows.end), changes.ended, changes.at)


def _columns(rows: pa.Table) -> Columns:
    return tuple(
        each.chunk(0) if each.num_chunks == 1 else each.combine_chunks() for each in rows.columns
    )


def _rounds(codes: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Sorted values so that none comes twice in a round: their places, and the values."""
    firsts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    lengths = np.diff(np.r_[firsts, codes.size])
    for number in range(int(lengths.max(initial=0))):
        places = firsts[lengths > number] + number
        yield places, codes[places]
