"""The oracle of rows with lifetimes: the relational query over the rows alive at every breakpoint.

Slow on purpose. It shares nothing with the operators but the evaluation of expressions: rows are
Python tuples, and an answer is a list of them, computed from scratch for each instant at which
some row begins or ends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from muntin.expressions import Bound, Evaluator
from muntin.plan.operators import (
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Select,
    Windowed,
    inputs,
    leaves,
)

Values = tuple[Any, ...]
# What tells a row from others that have its values, and the values.
Row = tuple[Any, Values]


@dataclass(frozen=True)
class Answer:
    """The answer from one breakpoint to the next: how often each row of values is in it."""

    begin: int
    end: int | None
    rows: Counter[Values]


def answers(plan: RowPlan, root: Node, tables: Mapping[str, pa.Table]) -> list[Answer]:
    """The answer at every instant from the first row on, as stretches over which it is the same."""
    world = _World(plan, root, tables)
    return [
        Answer(
            begin,
            world.breakpoints[i + 1] if i + 1 < len(world.breakpoints) else None,
            Counter(plain(values) for _, values in world.at(root, begin)),
        )
        for i, begin in enumerate(world.breakpoints)
    ]


def at(stretches: Sequence[Answer], instant: int) -> Counter[Values]:
    """The answer at one instant."""
    for each in stretches:
        if each.begin <= instant and (each.end is None or instant < each.end):
            return each.rows
    return Counter()


def shown(table: pa.Table, leads: int) -> list[tuple[Values, Values]]:
    """Rows of a result: the first columns, which are times, and the values."""
    columns = [_python(column.combine_chunks()) for column in table.columns]
    rows = list(zip(*columns, strict=True)) if columns else []
    return [(row[:leads], plain(row[leads:])) for row in rows]


def check_lifetimes(stretches: Sequence[Answer], table: pa.Table) -> None:
    """Rows with ``valid_from`` and ``valid_to`` give the answer at every instant."""
    rows = shown(table, 2)
    for (begin, end), values in rows:
        assert end is None or begin < end, f"{values} lives for [{begin}, {end})"
    edges = sorted({time for times, _ in rows for time in times if time is not None})
    for instant in sorted({*edges, *(each.begin for each in stretches)}):
        found = Counter(
            values
            for (begin, end), values in rows
            if begin <= instant and (end is None or instant < end)
        )
        expected = at(stretches, instant)
        assert found == expected, (
            f"at {instant}: missing {expected - found}, too many {found - expected}"
        )


def replayed(table: pa.Table) -> pa.Table:
    """The lifetimes that a log of changes means; refuses one that contradicts itself."""
    alive: dict[Any, list[Any]] = {}
    lives: list[tuple[Values, Any, Values]] = []
    last: tuple[int, bool] | None = None
    for row in zip(*(_python(each.combine_chunks()) for each in table.columns), strict=True):
        op, when, begin, end = row[:4]
        place = (when, op == "+")
        assert last is None or last <= place, f"{row} comes after {last}"
        last = place
        key = (begin, end, plain(row[4:]))
        if op == "+":
            assert when == begin, f"{row} does not begin when it is told"
            alive.setdefault(key, []).append(row)
        else:
            assert end is None or when < end, f"{row} would have ended by itself"
            assert begin < when, f"{row} did not live"
            assert alive.get(key), f"{row} ends what is not there"
            lives.append(((begin, when), None, alive[key].pop()[4:]))
    for rows in alive.values():
        lives.extend(((row[2], row[3]), None, row[4:]) for row in rows)
    fields = list(table.schema)[2:]
    columns = list(zip(*((*times, *values) for times, _, values in lives), strict=True))
    return pa.Table.from_arrays(
        [
            pa.array(columns[i] if columns else [], _storage(each.type)).cast(each.type)
            for i, each in enumerate(fields)
        ],
        schema=pa.schema(fields),
    )


def windows(
    final: RowFinal, stretches: Sequence[Answer], ends: Sequence[int]
) -> Counter[tuple[int, Values]]:
    """What a query with SLIDE, or Istream or Dstream, shows at some window ends.

    Without SLIDE the ends are instants, each after the ones before. Rows that lived between two
    window ends only are not among them.
    """
    found: Counter[tuple[int, Values]] = Counter()
    before = Counter[Values]()
    for end in ends:
        now = at(stretches, end - 1 if final.slide is not None else end)
        if final.show == "istream":
            rows = now - before
        elif final.show == "dstream":
            rows = before - now
        else:
            rows = now
        for values, count in rows.items():
            found[end, values] += count
        before = now
    return found


def join_sql(node: Join, tables: Sequence[str], columns: Sequence[str]) -> str:
    """A join of windowed streams, without residual, as DuckDB SQL.

    Each input is a table with the time of each row, ``"#t"``, and the columns of the input;
    ``columns`` are their names, input by input.
    """
    widths = [len(each.schema) for each in node.inputs]
    places = [(i, at) for i, width in enumerate(widths) for at in range(width)]
    names = {place: f't{place[0]}."{name}"' for place, name in zip(places, columns, strict=True)}
    times = [f't{i}."#t"' for i in range(len(tables))]
    ends = [
        f"{time} + {each.range}"
        for time, each in zip(times, node.inputs, strict=True)
        if isinstance(each, Windowed) and each.range is not None
    ]
    begin, end = f"greatest({', '.join(times)})", f"least({', '.join(ends)})" if ends else "NULL"
    where = [
        f"{names[0, first]} = {names[i, other]}"
        for i in range(1, len(tables))
        for first, other in zip(node.keys[0], node.keys[i], strict=True)
    ]
    where += [f"{begin} < {end}"] if ends else []
    sources = ", ".join(f'"{name}" t{i}' for i, name in enumerate(tables))
    shown = ", ".join(names.values())
    return (
        f"SELECT {begin} valid_from, {end} valid_to, {shown} FROM {sources} "
        f"WHERE {' AND '.join(where) or 'true'}"
    )


def plain(values: Values) -> Values:
    """Values as SQL compares them: one NaN, which Python finds equal to itself, and one zero."""
    return tuple(
        (math.nan if math.isnan(value) else value + 0.0) if isinstance(value, float) else value
        for value in values
    )


class _World:
    """All rows of the streams below a node, and what each operator makes of those alive."""

    def __init__(self, plan: RowPlan, root: Node, tables: Mapping[str, pa.Table]) -> None:
        self._leaves: dict[Windowed, list[tuple[int, int | None, Row]]] = {}
        self._truths: dict[Any, dict[str, Values]] = {}
        self._met: dict[Exists, set[Any]] = {}
        edges: set[int] = set()
        for leaf in dict.fromkeys(leaves(root)):
            timeline = plan.streams[leaf.stream].timeline
            rows = self._leaves[leaf] = _read(leaf, timeline, tables[leaf.stream])
            edges |= {time for begin, end, _ in rows for time in (begin, end) if time is not None}
        self.breakpoints = sorted(edges)

    def at(self, node: Node, instant: int) -> list[Row]:
        """The rows of a node that are alive at an instant."""
        if isinstance(node, Windowed):
            return [
                row
                for begin, end, row in self._leaves[node]
                if begin <= instant and (end is None or instant < end)
            ]
        below = [self.at(each, instant) for each in inputs(node)]
        if isinstance(node, Select):
            return self._select(node, below[0])
        if isinstance(node, Join):
            return self._join(node, below)
        if isinstance(node, Exists):
            return self._exists(node, *below)
        if isinstance(node, Distinct):
            return [(("value", key), key) for key in {plain(values) for _, values in below[0]}]
        if isinstance(node, Difference):
            return _difference(node, *below)
        return [((i, name), values) for i, rows in enumerate(below) for name, values in rows]

    def _select(self, node: Select, rows: list[Row]) -> list[Row]:
        bounds = [*([node.where] if node.where is not None else []), *_values(node)]
        found = self._evaluate(node, bounds, node.input.schema, [values for _, values in rows])
        kept = []
        for (name, _), values in zip(rows, found, strict=True):
            if node.where is None:
                kept.append((name, values))
            elif values[0] is True:
                kept.append((name, values[1:]))
        return kept

    def _join(self, node: Join, below: list[list[Row]]) -> list[Row]:
        found = []
        for combination in product(*below):
            keyed = [
                plain(tuple(values[place] for place in places))
                for (_, values), places in zip(combination, node.keys, strict=True)
            ]
            if all(each == keyed[0] for each in keyed) and None not in keyed[0]:
                names = tuple(name for name, _ in combination)
                found.append((names, sum((values for _, values in combination), ())))
        return self._satisfying(node.residual, node.schema, found)

    def _satisfying(self, bound: Bound | None, schema: pa.Schema, rows: list[Row]) -> list[Row]:
        if bound is None:
            return rows
        truths = self._evaluate((bound, schema), [bound], schema, [values for _, values in rows])
        return [row for row, (truth,) in zip(rows, truths, strict=True) if truth is True]

    def _exists(self, node: Exists, left: list[Row], right: list[Row]) -> list[Row]:
        if node.whole:
            return [row for row in left if row[0] not in self._met_ever(node)]
        return [row for row in left if self._has_partner(node, row, right) != node.negated]

    def _met_ever(self, node: Exists) -> set[Any]:
        """The left rows that have a partner at some instant."""
        if node not in self._met:
            self._met[node] = {
                row[0]
                for instant in self.breakpoints
                for row in self.at(node.left, instant)
                if self._has_partner(node, row, self.at(node.right, instant))
            }
        return self._met[node]

    def _has_partner(self, node: Exists, row: Row, right: list[Row]) -> bool:
        partners = []
        x = plain(tuple(row[1][place] for place in node.keys[0]))
        for _, values in right:
            y = plain(tuple(values[place] for place in node.keys[1]))
            equal = None not in x and x == y
            if node.null_aware and node.negated:
                # NOT IN: a NULL may be equal, so it counts against the row.
                others = None not in x[1:] and x[1:] == y[1:]
                equal = others and (None in (x[0], y[0]) or x[:1] == y[:1])
            if equal:
                partners.append((None, row[1] + values))
        schema = pa.schema([*node.left.schema, *node.right.schema])
        return bool(self._satisfying(node.residual, schema, partners))

    def _evaluate(
        self, name: Any, bounds: Sequence[Bound], schema: pa.Schema, rows: list[Values]
    ) -> list[Values]:
        """Expressions over rows of values; each different row is evaluated once."""
        # Values that are equal may still differ in what they show: -0.0, 1 and True.
        known = self._truths.setdefault(name, {})
        unknown = list(
            {repr(values): values for values in rows if repr(values) not in known}.values()
        )
        if unknown:
            columns = [
                pa.array([values[i] for values in unknown], _storage(each.type)).cast(each.type)
                for i, each in enumerate(schema)
            ]
            if columns:
                table = pa.Table.from_arrays(columns, names=schema.names)
            else:
                table = pa.table({"": pa.nulls(len(unknown))})
            found = [_python(each.values) for each in Evaluator(bounds)(table)]
            made = list(zip(*found, strict=True)) if found else [()] * len(unknown)
            known.update({repr(values): one for values, one in zip(unknown, made, strict=True)})
        return [known[repr(values)] for values in rows]


def _values(node: Windowed | Select) -> list[Bound]:
    return [column.value for column in node.columns]


def _read(leaf: Windowed, timeline: Any, table: pa.Table) -> list[tuple[int, int | None, Row]]:
    if leaf.where is not None:
        table = table.filter(Evaluator([leaf.where])(table)[0].values)
    ticks = timeline.to_ticks(table[timeline.column].combine_chunks()).to_pylist()
    columns = [_python(each.values) for each in Evaluator(_values(leaf))(table)]
    values = list(zip(*columns, strict=True)) if columns else [()] * len(ticks)
    return [
        (tick, None if leaf.range is None else tick + leaf.range, (i, row))
        for i, (tick, row) in enumerate(zip(ticks, values, strict=True))
    ]


def _difference(node: Difference, left: list[Row], right: list[Row]) -> list[Row]:
    ours = Counter(plain(values) for _, values in left)
    theirs = Counter(plain(values) for _, values in right)
    if node.kind == "all":
        return [(("all", i), values) for i, values in enumerate((ours - theirs).elements())]
    kept = [values for values in ours if (values in theirs) == (node.kind == "intersect")]
    return [(("value", values), values) for values in kept]


def _python(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    # Python's datetime has no years beyond 9999: times travel as integers.
    if pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    found: list[Any] = values.to_pylist()
    return found


def _storage(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind
