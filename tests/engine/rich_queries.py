"""Random queries whose predicates meet: many constants on few expressions, joined in every way."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa

SCHEMA = pa.schema(
    {
        "t": pa.int64(),
        "v": pa.int64(),
        "p": pa.float64(),
        "q": pa.float64(),
        "s": pa.string(),
        "f": pa.bool_(),
        "d": pa.date32(),
        "m": pa.decimal128(9, 2),
        "w": pa.int64(),
    }
)
# Expressions, and the constants that are compared with them.
NUMBERS = [
    ("v", [str(n) for n in range(-5, 40)]),
    ("p", ["-1.5", "0", "0.25", "1", "2.5e0", "3", "1e308", "-0.0", "CAST('NaN' AS DOUBLE)"]),
    ("abs(p - q)", ["0", "0.5", "1", "2", "3"]),
    ("p / q", ["0", "0.5", "1", "2"]),
    ("v % 7", ["0", "1", "2", "3", "-1"]),
    ("10 div v", ["0", "1", "2", "5", "NULL"]),
    ("v + w", ["0", "10", "50", "100"]),
    ("m", ["0", "0.01", "1.5", "2.25"]),
    ("length(s)", ["0", "1", "3", "4"]),
    ("CASE WHEN v > 3 THEN v ELSE w END", ["0", "5", "20"]),
]
WORDS = ["", "a", "ab", "abc", "b", "key1", "key2", "key12", "é"]
OTHERS = [
    *("f", "NOT f", "s LIKE 'key%'", "s LIKE '%b%'", "s NOT LIKE 'a_'", "f IS NULL", "v < w"),
    *("p IS NOT NULL", "s IS NULL", "d >= DATE '1970-01-03'", "d = DATE '1970-01-02'", "p > q"),
    *("1 = 1", "1 = 0", "v = v", "v > 3 AND v < 2", "CAST(NULL AS BOOLEAN)", "p <> p", "f = f"),
]
AGGREGATES = [
    *("count(*)", "count(p)", "sum(p)", "sum(v)", "sum(m)", "avg(p)", "avg(m)", "min(p)", "max(p)"),
    *("min(s)", "max(s)", "min(d)", "max(m)", "value_range(v)", "var_pop(p)", "var_samp(v)"),
    *("stddev_samp(q)", "product(q)", "geo_mean(q)", "first(p)", "last(s)", "last(v) IGNORE NULLS"),
    *("min_by(s, p)", "max_by(p, v)", "bool_and(f)", "bool_or(f)", "count_if(v > 3)", "sum(p * v)"),
    *("sum(100 div v)", "sum(p) / count(*)", "max(v) - min(v)", "first(d)", "min_by(m, q)"),
    *("count(DISTINCT v)", "count(DISTINCT p)", "sum(DISTINCT m)", "avg(DISTINCT q)", "median(p)"),
    *("percentile(v, array(0.1, 0.75))", "mode(s)", "top_k(s, 2)", "frequent(v, 0.3)"),
    *("percentile_disc(0.4) WITHIN GROUP (ORDER BY d DESC)", "max(p, 2)", "min_by(s, v, 2)"),
    *("collect_set(s)", "collect_list(v)", "array_agg(p) RESPECT NULLS", "string_agg(s, '-')"),
    *("bit_and(v)", "bit_or(w)", "bit_xor(v + w)", "any_value(s)"),
    *("approx_percentile(p, 0.5)", "approx_percentile(m, array(0, 0.9), 0.05)"),
    *("approx_count_distinct(s)", "approx_count_distinct(q, 0.1)"),
    *("skewness(p)", "kurtosis(m)", "corr(p, q)", "covar_pop(m, v)", "regr_slope(q, m)"),
]
GROUPS = ["s", "v % 3", "f", "p", "d", "m", "v", "w % 2", "upper(s)", "CAST(p AS FLOAT)"]
CLOSE = {"product": 1e-15, "geo_mean": 1e-12}


@dataclass(frozen=True)
class RichQuery:
    """One query, and which of its columns are exact up to a relative error only."""

    name: str
    sql: str
    close: dict[str, float]


def rich_stream(
    rng: random.Random, most: int = 160, scale: int = 1, rows: int | None = None
) -> pa.Table:
    """Few distinct values, NULL, NaN, ties, gaps and disorder; times are multiples of a scale."""
    rows = rng.choice([0, 1, 2, 10, most // 2, most, most]) if rows is None else rows
    times = [scale * (rng.randrange(rng.choice([1, 30, 200])) - 20) for _ in range(rows)]
    if rng.random() < 0.7:
        times.sort()
    nulls = rng.choice([0.0, 0.0, 0.1, 0.5])
    doubles = [0.0, -0.0, 0.25, 1.0, 1.5, 2.5, -1.5, 3.0, 0.1, 1e16, -1e16, 1e-300]
    if rng.random() < 0.3:
        doubles += [float("nan"), float("inf"), float("-inf"), 1e308, 5e-324]
    pools: dict[str, list[object]] = {
        "v": list(range(-4, rng.choice([5, 40]))),
        "p": [*doubles],
        "q": [*doubles],
        "s": [*WORDS],
        "f": [True, False],
        "d": [date(1970, 1, 1) + timedelta(days=n) for n in range(4)],
        "m": [Decimal(n) / 4 for n in range(-3, 12)],
        "w": list(range(0, 120, 7)),
    }
    columns = {
        name: [None if rng.random() < nulls else rng.choice(pool) for _ in times]
        for name, pool in pools.items()
    }
    return pa.table({"t": times, **columns}, schema=SCHEMA)


def rich_queries(rng: random.Random, most: int = 14, scale: int = 1) -> list[RichQuery]:
    """Queries over a few of the expressions, so that their constants meet."""
    numbers = rng.sample(NUMBERS, rng.choice([1, 2, 3, 5]))
    groupings = [rng.sample(GROUPS, size) for size in rng.choice([(0,), (0, 1), (1, 2), (0, 1, 2)])]
    return [
        _query(rng, f"q{i}", numbers, rng.choice(groupings), scale)
        for i in range(rng.choice([1, 3, most, most]))
    ]


def _query(
    rng: random.Random,
    name: str,
    numbers: list[tuple[str, list[str]]],
    groups: list[str],
    scale: int,
) -> RichQuery:
    outputs = [(f"a{i}", text) for i, text in enumerate(rng.sample(AGGREGATES, rng.choice([1, 3])))]
    select = []
    for column, text in outputs:
        if rng.random() < 0.3 and text.endswith(")") and " " not in text.split("(")[0]:
            text += f" FILTER (WHERE {condition(rng, numbers, rng.choice([0, 0, 1]))})"  # noqa: PLW2901
        select.append(f"{text} AS {column}")
    slide = rng.choice([1, 2, 5, 7, 12])
    spread = rng.choice([slide, 2 * slide, slide + 3, max(slide - 1, 1), 5 * slide, 23])
    window = rng.choice(["RANGE", "RANGE", "RANGE", "RANGE", "ROWS", "WATTR"])
    span = (
        f"RANGE {spread * scale} SLIDE {slide * scale} OFFSET {rng.choice([0, 0, 1, -3]) * scale}"
    )
    if window == "ROWS":
        span = f"ROWS {spread} SLIDE {slide}"
    elif window == "WATTR":
        span = f"RANGE {spread} SLIDE {slide} WATTR w"
    sql = f"CREATE QUERY {name} AS SELECT {', '.join(select)} FROM s [{span}]"
    if rng.random() < 0.8:
        sql += f" WHERE {condition(rng, numbers, rng.choice([0, 0, 1, 2]))}"
    if groups:
        sql += f" GROUP BY {', '.join(groups)}"
    if rng.random() < 0.15:
        sql += f" HAVING count(*) > {rng.choice([1, 2])}"
    if not groups and rng.random() < 0.15:
        sql += " EMIT EMPTY"
    close = {
        column: error
        for column, text in outputs
        for function, error in CLOSE.items()
        if text.startswith(function)
    }
    return RichQuery(name, sql, close)


def condition(rng: random.Random, numbers: list[tuple[str, list[str]]], depth: int) -> str:
    """A condition of comparisons with constants, NOT, AND and OR."""
    if depth:
        parts = [condition(rng, numbers, depth - 1) for _ in range(rng.choice([1, 2, 2, 3]))]
        joined = f" {rng.choice(['AND', 'AND', 'OR'])} ".join(f"({part})" for part in parts)
        return f"NOT ({joined})" if rng.random() < 0.2 else joined
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(OTHERS)
    if kind < 0.2:
        return f"s {rng.choice(['=', '<>', '<', '>='])} '{rng.choice(WORDS)}'"
    expression, constants = rng.choice(numbers)
    negated = rng.choice(["", "", "NOT "])
    if kind < 0.3:
        return f"{expression} {negated}BETWEEN {rng.choice(constants)} AND {rng.choice(constants)}"
    if kind < 0.4:
        listed = ", ".join(rng.sample(constants, min(3, len(constants))))
        return f"{expression} {negated}IN ({listed})"
    sides = [expression, rng.choice(constants)]
    if rng.random() < 0.25:
        sides.reverse()
    return f" {rng.choice(['<', '<=', '>', '>=', '=', '<>', '<=>'])} ".join(sides)
