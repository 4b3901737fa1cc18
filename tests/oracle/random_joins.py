"""Random streams, aggregates over joins of them, and their answers by enumeration of pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa

from muntin.aggregates import resolve

SCHEMA = pa.schema(
    {
        "ts": pa.int64(),
        "k": pa.int64(),
        "j": pa.string(),
        "g": pa.string(),
        "v": pa.int64(),
        "x": pa.float64(),
    }
)
TYPES = {field.name: field.type for field in SCHEMA}
Row = dict[str, Any]
_VALUES = (0.1, -2.5, 1e16, 3.0, 1e-9, None, float("inf"), float("nan"))


def random_stream(rng: Random, rows: int, span: int) -> list[Row]:
    """Rows in no order, with NULLs everywhere but in the time."""
    return [
        {
            "ts": rng.randrange(span),
            "k": rng.choice((None, 1, 2, 3)),
            "j": rng.choice(("a", "a", "b", None)),
            "g": rng.choice(("n", "s", None)),
            "v": rng.choice((None, *range(-3, 9))),
            "x": rng.choice(_VALUES[: rng.choice((6, 6, 6, 8))]),
        }
        for _ in range(rows)
    ]


def table_of(rows: list[Row]) -> pa.Table:
    """Rows as a table."""
    return pa.Table.from_pylist(rows, SCHEMA)


@dataclass(frozen=True)
class Call:
    """An aggregate: its SQL, and its value of the joined rows of a window."""

    sql: str
    of: Callable[[list[tuple[Row | None, ...]]], Any]


@dataclass
class JoinCase:
    """A query, as SQL and as what it means."""

    ranges: list[int]
    slide: int
    left: list[bool]
    keys: tuple[str, ...]
    conditions: list[tuple[int, str, Callable[[Row], bool]]] = field(default_factory=list)
    residual: tuple[str, Callable[..., bool]] | None = None
    groups: list[tuple[int, str]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def sql(self) -> str:
        """The query as text."""
        labels = [f"s{i}" for i in range(len(self.ranges))]
        items = [f"{labels[side]}.{name} AS g{i}" for i, (side, name) in enumerate(self.groups)]
        items += [f"{call.sql} AS c{i}" for i, call in enumerate(self.calls)]
        text = f"SELECT {', '.join(items)} FROM s0 [RANGE {self.ranges[0]} SLIDE {self.slide}]"
        for i in range(1, len(labels)):
            word = "LEFT JOIN" if self.left[i] else "JOIN"
            on = [f"s0.{key} = s{i}.{key}" for key in self.keys]
            on += [text for side, text, _ in self.conditions if side == i and self.left[i]]
            text += f" {word} s{i} [RANGE {self.ranges[i]}] ON {' AND '.join(on)}"
        where = [text for side, text, _ in self.conditions if not self.left[side]]
        where += [self.residual[0]] if self.residual is not None else []
        text += f" WHERE {' AND '.join(where)}" if where else ""
        if self.groups:
            text += " GROUP BY " + ", ".join(f"s{side}.{name}" for side, name in self.groups)
        return text

    def answer(self, streams: Mapping[str, list[Row]]) -> set[tuple[Any, ...]]:
        """What the query gives: rows as tuples."""
        last = max((row["ts"] for rows in streams.values() for row in rows), default=0)
        out: set[tuple[Any, ...]] = set()
        ends = range(self.slide, last + max(self.ranges) + self.slide, self.slide)
        for end in ends:
            groups: dict[tuple[Any, ...], list[tuple[Row | None, ...]]] = {}
            for joined in self._joined(streams, end):
                key = tuple(
                    None if (own := joined[side]) is None else own[name]
                    for side, name in self.groups
                )
                groups.setdefault(key, []).append(joined)
            for key, rows in groups.items():
                values = [shown(call.of(rows)) for call in self.calls]
                out.add((end - max(self.ranges), end, *key, *values))
        return out

    def _joined(
        self, streams: Mapping[str, list[Row]], end: int
    ) -> Iterator[tuple[Row | None, ...]]:
        held: list[list[Row]] = []
        for i, length in enumerate(self.ranges):
            tests = [test for side, _, test in self.conditions if side == i]
            rows = [row for row in streams[f"s{i}"] if end - length <= row["ts"] < end]
            held.append([row for row in rows if all(test(row) for test in tests)])
        for first in held[0]:
            partners: list[list[Row | None]] = [[first]]
            for i in range(1, len(held)):
                met: list[Row | None] = [
                    row
                    for row in held[i]
                    if all(first[key] is not None and first[key] == row[key] for key in self.keys)
                ]
                partners.append([None] if self.left[i] and not met else met)
            for joined in product(*partners):
                if self.residual is None or self.residual[1](*joined):
                    yield joined


def shown(value: Any) -> Any:
    """A value that can be compared: all NaN alike, and numbers by their bits."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    return value


def _of(name: str, side: int, column: str, keep: Callable[[Row], bool] | None = None) -> Any:
    """An aggregate of one side's column by its definition."""
    aggregate = resolve(name, [TYPES[column]])
    algebra = aggregate.algebra

    def value(rows: list[tuple[Row | None, ...]]) -> Any:
        found = [own for joined in rows if (own := joined[side]) is not None]
        if keep is not None:
            found = [row for row in found if keep(row)]
        if algebra.timed:
            return algebra.of([(row[column], row["ts"]) for row in found])
        return algebra.of([row[column] for row in found])

    return value


AGGREGATES = {
    "v": ("sum", "avg", "min", "max", "count", "var_samp", "stddev_pop", "bit_xor", "bit_and"),
    "x": ("sum", "avg", "min", "max", "count", "var_pop", "first", "last"),
    "g": ("min", "max", "count", "first", "last"),
}


def random_case(rng: Random, *, pairs: bool = False) -> JoinCase:
    """A random query over two to four streams; with ``pairs``, one that compares several sides."""
    sides = rng.choice((2, 2, 2, 3, 4)) if not pairs else rng.choice((2, 2, 3))
    case = JoinCase(
        ranges=[rng.randint(1, 12) for _ in range(sides)],
        slide=rng.randint(1, 5),
        left=[False, *(rng.random() < 0.3 for _ in range(sides - 1))],
        keys=rng.choice((("k",), ("k",), ("j",), ("k", "j"))),
    )
    for side in range(sides):
        if rng.random() < 0.4:
            least = rng.randint(-2, 5)
            case.conditions.append((side, f"s{side}.v > {least}", _above(least)))
    case.groups = [
        (rng.randrange(sides), rng.choice(("g", "k"))) for _ in range(rng.choice((0, 1, 1, 2)))
    ]
    case.groups = list(dict.fromkeys(case.groups))
    case.calls.append(Call("count(*)", len))
    for _ in range(rng.randint(1, 4)):
        side = rng.randrange(sides)
        column = rng.choice(tuple(AGGREGATES))
        name = rng.choice(AGGREGATES[column])
        sql, keep = f"{name}(s{side}.{column})", None
        if rng.random() < 0.25:
            sql += f" FILTER (WHERE s{side}.v > 2)"
            keep = _above(2)
        case.calls.append(Call(sql, _of(name, side, column, keep)))
    if pairs:
        case.calls.append(Call("sum(s0.v * s1.v)", _products))
        if rng.random() < 0.6:
            case.calls.append(Call("max(s0.v - s1.v)", _farthest))
        if rng.random() < 0.5 and not any(case.left):
            case.residual = ("s0.v < s1.v", _below)
    if case.residual is None and rng.random() < 0.15:
        # In WHERE, an equality drops rows that LEFT JOIN has padded.
        key = rng.choice(("k", "j"))
        case.residual = (f"s0.{key} = s1.{key}", _equal(key))
    return case


def _above(least: int) -> Callable[[Row], bool]:
    return lambda row: row["v"] is not None and row["v"] > least


def _below(first: Row, second: Row, *others: Row) -> bool:
    return first["v"] is not None and second["v"] is not None and first["v"] < second["v"]


def _equal(key: str) -> Callable[..., bool]:
    def test(first: Row, second: Row | None, *others: Row | None) -> bool:
        return second is not None and first[key] is not None and first[key] == second[key]

    return test


def _farthest(rows: list[tuple[Row | None, ...]]) -> int | None:
    pairs = [(a["v"], b["v"]) for a, b, *_ in rows if a is not None and b is not None]
    return max((a - b for a, b in pairs if a is not None and b is not None), default=None)


def _products(rows: list[tuple[Row | None, ...]]) -> int | None:
    pairs = [(a["v"], b["v"]) for a, b, *_ in rows if a is not None and b is not None]
    found = [a * b for a, b in pairs if a is not None and b is not None]
    return sum(found) if found else None
