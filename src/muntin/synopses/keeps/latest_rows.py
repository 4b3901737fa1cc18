"""The latest rows of a stream, or of each partition, kept as immutable versions."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.display import count
from muntin.engine.answers.group_keys import sort_order
from muntin.engine.rows.dictionary import encode, group
from muntin.engine.slices.key_table import KeyTable
from muntin.errors import Problem, QueryError, did_you_mean
from muntin.expressions.zones import UTC, Zone
from muntin.plan.timeline import Timeline
from muntin.queries import RowKeep
from muntin.synopses.keeps.replica import Moment

# No name of a column: the tick of a row.
TICK = "$tick"
_PARTITION = "$partition"
# Tables are put together when they hold this many times the rows that are kept.
_SLACK = 2
_FEW = 4096


@dataclass(frozen=True)
class KeptRows:
    """A keep of rows and the columns of its stream that it holds."""

    keep: RowKeep
    schema: pa.Schema
    timeline: Timeline
    zone: Zone = UTC

    @property
    def name(self) -> str:
        """The keep's name."""
        return self.keep.name

    def rows_of(self, batch: pa.Table, watermark: int | None) -> pa.Table:
        """The rows of a batch that are not late, with their ticks."""
        ticks = self.timeline.to_ticks(batch[self.timeline.column].combine_chunks())
        wanted = ticks.is_valid()
        if watermark is not None:
            late = pc.less(ticks, watermark).fill_null(True)
            wanted = pc.and_not(wanted, late)
        table = _columns(batch, self.schema).append_column(TICK, ticks.cast(pa.int64()))
        return newest(table.filter(wanted), self.keep.partition, self.keep.rows)


def _columns(batch: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns that are kept; those that the batch lacks are NULL."""
    arrays = [
        batch[each.name].cast(each.type)
        if each.name in batch.column_names
        else pa.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return pa.table(arrays, schema=schema)


def plan_rows(keep: RowKeep, schema: pa.Schema, time: str, zone: Zone = UTC) -> KeptRows:
    """Bind a keep of rows to the columns of its stream.

    Raises:
        QueryError: If a column is unknown, or cannot tell partitions apart.
    """
    timeline = Timeline.of(schema, time)
    known = {name.lower(): name for name in schema.names}
    for name in (*(keep.columns or ()), *keep.partition):
        if name.lower() not in known:
            hint = did_you_mean(name, schema.names)
            raise QueryError([Problem(f"no column {name}", hint, keep.name)])
    partition = tuple(known[name.lower()] for name in keep.partition)
    for name in partition:
        if not KeyTable.takes(schema.field(name).type):
            message = f"rows cannot be partitioned by a {schema.field(name).type}"
            raise QueryError([Problem(message, "use plain columns", keep.name)])
    listed = [known[each.lower()] for each in keep.columns or schema.names]
    named = dict.fromkeys([timeline.column, *partition, *listed])
    bound = RowKeep(keep.name, keep.source, keep.rows, partition, keep.columns)
    return KeptRows(bound, pa.schema([schema.field(name) for name in named]), timeline, zone)


def newest(table: pa.Table, partition: Sequence[str], rows: int) -> pa.Table:
    """The latest rows of each partition, by time, then by all columns; the oldest come first.

    >>> table = pa.table({"k": ["a", "b", "a"], TICK: [3, 1, 2]})
    >>> newest(table, ["k"], 1).to_pydict()
    {'k': ['b', 'a'], '$tick': [1, 3]}
    """
    if not partition and table.num_rows <= rows:
        return _sorted(table)
    codes = np.zeros(table.num_rows, np.int64)
    if partition:
        keys = [encode(table[name].combine_chunks()) for name in partition]
        codes = group(keys, table.num_rows).codes
    ordered = _sorted(table.append_column(_PARTITION, pa.array(codes)), [_PARTITION])
    sorted_codes = ordered[_PARTITION].to_numpy()
    ends = np.searchsorted(sorted_codes, sorted_codes, "right")
    kept = ordered.filter(pa.array(ends - np.arange(ordered.num_rows) <= rows))
    return (
        _sorted(kept.drop_columns([_PARTITION])) if partition else kept.drop_columns([_PARTITION])
    )


def _sorted(table: pa.Table, first: Sequence[str] = ()) -> pa.Table:
    """By some columns, then by time, then by all other columns that have an order."""
    others = [
        each.name
        for each in table.schema
        if each.name not in (TICK, *first) and not pa.types.is_nested(each.type)
    ]
    return table.take(sort_order([table[name] for name in (*first, TICK, *others)]))


@dataclass(frozen=True)
class RowVersion:
    """The latest rows after a batch. Nothing in it changes.

    Attributes:
        kept: The keep.
        moment: Where the stream stood.
        since: All rows above this tick were seen; None if the keep was there before the first.
        tables: Rows that hold all of the latest, and others.
    """

    kept: KeptRows
    moment: Moment
    since: int | None
    tables: tuple[pa.Table, ...]
    _found: dict[str, pa.Table] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def rows(self) -> pa.Table:
        """The latest rows, the oldest first; put together when first asked for."""
        with self._lock:
            if "rows" not in self._found:
                whole = pa.concat_tables(self.tables).combine_chunks()
                keep = self.kept.keep
                self._found["rows"] = newest(whole, keep.partition, keep.rows)
            return self._found["rows"]

    def latest(self, rows: int, partition: Sequence[str]) -> pa.Table:
        """So many latest rows of each partition, which are columns of the keep's partition."""
        return newest(self.rows, partition, rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(table.nbytes for table in self.tables)


class RowReplica:
    """The latest rows of a stream, as a version after every batch.

    Rows of a batch that may be among the latest are put beside those before; they are looked
    through together once they have doubled.
    """

    def __init__(
        self, kept: KeptRows, since: int | None, moment: Moment, rows: pa.Table | None = None
    ) -> None:
        self.kept = kept
        empty = kept.schema.append(pa.field(TICK, pa.int64())).empty_table()
        self._held = 0
        self.version = RowVersion(kept, moment, since, (empty if rows is None else rows,))

    def apply(self, rows: pa.Table, moment: Moment) -> None:
        """Take in rows that `KeptRows.rows_of` found in a batch."""
        before = self.version
        tables = (*before.tables, rows) if rows.num_rows else before.tables
        self.version = RowVersion(self.kept, moment, before.since, tables)
        if sum(table.num_rows for table in tables) > _SLACK * self._held + _FEW:
            tidy = self.version.rows
            self._held = tidy.num_rows
            self.version = RowVersion(self.kept, moment, before.since, (tidy,))

    def explain(self) -> str:
        """What is kept, and what that takes."""
        held = count(sum(table.num_rows for table in self.version.tables), "row")
        return f"{self.kept.keep}\n  {held}, {self.version.nbytes:,} bytes"

    def facts(self) -> dict[str, Any]:
        """The same by name, as machines read it."""
        rows = sum(table.num_rows for table in self.version.tables)
        name, sql = self.kept.name, str(self.kept.keep)
        return {"name": name, "sql": sql, "entries": rows, "bytes": self.version.nbytes}


RowVersions = Mapping[str, RowVersion]
