"""Batches of a stream joined with tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bools, Ints
from muntin.engine.tables.columns import Lookup
from muntin.engine.tables.keys import Numbering
from muntin.engine.tables.loops import Codes, gather
from muntin.errors import DataError
from muntin.expressions import Evaluator, subexpression
from muntin.expressions.binding.coercion import coerce, in_zone
from muntin.expressions.evaluation.evaluator import single
from muntin.expressions.storage import spark_type
from muntin.expressions.tree import Column
from muntin.expressions.zones import Zone
from muntin.plan.relations import Relation, TableJoin

# Taking this share of the rows out of their columns costs less than going on with all of them.
_MOST = 0.6


@dataclass(frozen=True)
class Joined:
    """A batch after its joins.

    Attributes:
        batch: The joined rows, with the columns that were asked for.
        rows: For each of them the row of the input it comes from, in the order of the input;
            None where row i comes from row i, and the stream's columns are those of the input.
        places: For each table, where the matches of these rows stand among its stored rows.
        errors: How many keys failed to evaluate; such a key matches nothing.
    """

    batch: pa.Table
    rows: Ints | None
    places: tuple[Codes | Ints, ...]
    errors: int = 0


class Joiner:
    """Joins batches with one version of some tables; what finds their rows is built once.

    As in SQL, NULL matches nothing, NaN equals NaN and -0.0 equals 0.0. A row with several
    matches is repeated, in the order of the table's rows.

    Args:
        relation: The joins.
        tables: The tables by the names that the relation has for them.
        columns: The joined columns to produce; the others are read only where keys need them.
    """

    def __init__(
        self, relation: Relation, tables: Mapping[str, pa.Table], columns: Collection[str]
    ) -> None:
        _check_tables(relation, tables)
        keyed = {name for join in relation.joins for key, _ in join.keys for name in key.columns}
        self._columns = [name for name in relation.schema.names if name in columns]
        self._steps: list[_Step] = []
        for join, (key, numbers) in zip(relation.joins, _keys(relation, tables), strict=True):
            table = tables[join.table]
            wanted = {
                joined: single(table.column(name))
                for name in table.column_names
                if (joined := f"{join.prefix}.{name}") in keyed or joined in self._columns
            }
            lookup = Lookup(join.kind == "left", numbers, key.numbering.size, wanted)
            self._steps.append(_Step(key, lookup, frozenset(wanted)))
        self._kept: list[Bools | None] = [None] * len(self._steps)

    @property
    def tables(self) -> list[pa.Table]:
        """The stored rows of each table, NULL where a place stands for no match."""
        return [step.lookup.table for step in self._steps]

    def narrow(self, columns: Collection[str], kept: Sequence[Bools | None]) -> None:
        """Produces some of the columns only, and for each table only matches with some places.

        Other rows are dropped where they are so many that it pays: a few may stay.
        """
        self._columns = [name for name in self._columns if name in columns]
        self._kept = list(kept)

    def __call__(self, batch: pa.Table) -> Joined:
        """The batch joined with every table in turn."""
        work = _Work(batch)
        for step in self._steps:
            work.join(step)
        work.drop(self._steps, self._kept)
        arrays = {name: work.column(name) for name in self._columns}
        # A table without columns still has its number of rows.
        joined = pa.table(arrays) if arrays else work.height().select([])
        return Joined(joined, work.rows, work.places(self._steps), work.errors)


@dataclass(frozen=True, eq=False)
class _Key:
    """The stream's side of a key, and the numbers of its values; tables may share one."""

    evaluator: Evaluator
    numbering: Numbering


@dataclass(frozen=True, eq=False)
class _Step:
    """One table: how its rows are found, and which joined columns it has."""

    key: _Key
    lookup: Lookup
    columns: frozenset[str]


class _Work:
    """One batch on its way through the joins."""

    def __init__(self, batch: pa.Table) -> None:
        self.batch = batch
        self.size = batch.num_rows
        self.rows: Ints | None = None
        self.errors = 0
        self._codes: dict[_Key, tuple[Codes, int]] = {}
        self._places: dict[_Step, tuple[Codes | Ints, bool]] = {}

    def join(self, step: _Step) -> None:
        """Finds the matches of one table, and drops and repeats rows as it wants."""
        if step.key not in self._codes:
            self._codes[step.key] = self._find(step.key)
        found = step.lookup.find(*self._codes[step.key])
        if found.rows is not None:
            self._select(found.rows)
        codes, _ = self._codes[step.key]
        self._places[step] = codes if found.places is None else found.places, found.complete

    def drop(self, steps: Sequence[_Step], kept: Sequence[Bools | None]) -> None:
        """Drops the rows with matches that nobody asks about, if that is most of them."""
        flags = None
        for step, known in zip(steps, kept, strict=True):
            if known is not None:
                some = gather(known, self._places[step][0])
                flags = some if flags is None else flags & some
        if flags is not None and np.count_nonzero(flags) < _MOST * self.size:
            self._select(np.flatnonzero(flags))

    def places(self, steps: Sequence[_Step]) -> tuple[Codes | Ints, ...]:
        """Where the matches of the rows stand, for each table."""
        return tuple(self._places[step][0] for step in steps)

    def _find(self, key: _Key) -> tuple[Codes, int]:
        names = sorted({name for bound in key.evaluator.bounds for name in bound.columns})
        inputs = pa.table({name: self.column(name) for name in names}) if names else self.height()
        values = key.evaluator(inputs)
        self.errors += sum(one.errors.true_count for one in values if one.errors is not None)
        return key.numbering.find([one.values for one in values])

    def _select(self, rows: Ints) -> None:
        """Goes on with some of the rows, in this order."""
        self.size = rows.size
        self.rows = rows if self.rows is None else self.rows[rows]
        # Tables that are joined on the same key mostly share one array.
        taken: dict[int, Codes | Ints] = {}
        for key, (codes, misses) in self._codes.items():
            left = taken[id(codes)] = gather(codes, rows)
            count = np.count_nonzero(left == key.numbering.size) if misses else 0
            self._codes[key] = left, int(count)
        for step, (places, complete) in self._places.items():
            if id(places) not in taken:
                taken[id(places)] = places[rows]
            self._places[step] = taken[id(places)], complete

    def height(self) -> pa.Table:
        """A table of as many rows, whatever they hold."""
        return pa.table({"": pa.nulls(self.size)})

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """A joined column, for the rows as they are."""
        for step, (places, complete) in self._places.items():
            if name in step.columns:
                return step.lookup.take(name, places, complete)
        if name not in self.batch.column_names:
            raise _missing(name)
        column = self.batch.column(name)
        if self.rows is None:
            return column
        return pc.take(single(column), pa.array(self.rows), boundscheck=False)


def _keys(relation: Relation, tables: Mapping[str, pa.Table]) -> list[tuple[_Key, Ints]]:
    """The key of each join, and the numbers of its table's rows."""
    members: dict[object, list[int]] = {}
    for at, join in enumerate(relation.joins):
        same = tuple((bound.key, bound.type) for bound, _ in join.keys)
        members.setdefault(same, []).append(at)
    keys: dict[int, tuple[_Key, Ints]] = {}
    for group in members.values():
        joins = [relation.joins[at] for at in group]
        key = _key(joins, [tables[join.table] for join in joins], relation.zone)
        keys.update({at: (key, key.numbering.numbers[i]) for i, at in enumerate(group)})
    return [keys[at] for at in range(len(relation.joins))]


def _key(joins: Sequence[TableJoin], tables: Sequence[pa.Table], zone: Zone) -> _Key:
    pairs = zip(joins, tables, strict=True)
    values = [_key_values(join, table, zone) for join, table in pairs]
    evaluator = Evaluator([bound for bound, _ in joins[0].keys])
    return _Key(evaluator, Numbering(list(zip(*values, strict=True))))


def _key_values(join: TableJoin, table: pa.Table, zone: Zone) -> list[pa.Array]:
    """The table's side of a key, in the types that both sides are compared in."""
    columns = [Column(name, spark_type(table.schema.field(name).type)) for _, name in join.keys]
    bounds = [
        subexpression(in_zone(coerce(column, key.type), zone))
        for column, (key, _) in zip(columns, join.keys, strict=True)
    ]
    return [one.values for one in Evaluator(bounds)(table)]


def _check_tables(relation: Relation, tables: Mapping[str, pa.Table]) -> None:
    """Refuses a version of a table that lacks a key, or has a column of another type."""
    types = {field.name: field.type for field in relation.schema}
    for join in relation.joins:
        if join.table not in tables:
            hint = "pass every table that a query joins"
            raise DataError(f"table {join.table} is missing", hint=hint)
        given = {field.name: field.type for field in tables[join.table].schema}
        for name in {*given, *(name for _, name in join.keys)}:
            kind = types.get(f"{join.prefix}.{name}")
            if kind is not None and given.get(name) != kind:
                raise _missing(f"{join.prefix}.{name} of type {kind}")


def check_version(name: str, first: pa.Schema, schema: pa.Schema) -> None:
    """Refuse a version of a table without some column that it had, whether it is read or not."""
    given = {field.name: field.type for field in schema}
    for field in first:
        if given.get(field.name) != field.type:
            raise _missing(f"{name}.{field.name} of type {field.type}")


def _missing(column: str) -> DataError:
    hint = "give each version of a table the columns that its first one had"
    return DataError(f"there is no column {column}", hint=hint)
