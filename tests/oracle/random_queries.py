"""Random queries, in Muntin's SQL and in DuckDB's."""

from __future__ import annotations

import random
from dataclasses import dataclass

MINUTE = 60_000_000
# Column, Muntin's aggregate, DuckDB's.
AGGREGATES = [
    ("count(*)", "count(*)"),
    ("count(x)", "count(x)"),
    ("count(k)", "count(k)"),
    ("sum(x)", "sum(x)"),
    ("sum(n)", "sum(n)::HUGEINT"),
    ("sum(x * 2)", "sum(x * 2)"),
    ("avg(x)", "avg(x)"),
    ("avg(n)", "avg(n)"),
    ("min(x)", "min(x)"),
    ("max(x)", "max(x)"),
    ("min(n)", "min(n)"),
    ("max(k)", "max(k)"),
    ("min(k)", "min(k)"),
    ("min(b)", "min(b)"),
    ("max(n)", "max(n)"),
    ("value_range(n)", "(max(n)::HUGEINT - min(n))"),
    ("bool_and(b)", "bool_and(b)"),
    ("bool_or(b)", "bool_or(b)"),
    ("count_if(b)", "coalesce(count_if(b), 0)"),
    ("bit_and(n)", "bit_and(n)"),
    ("bit_or(n) FILTER (WHERE b)", "bit_or(n) FILTER (WHERE b)"),
    ("bit_xor(n)", "bit_xor(n)"),
    ("any_value(k)", "min(k)"),
    ("count(DISTINCT k)", "count(DISTINCT k)"),
    ("count(DISTINCT x)", "count(DISTINCT x)"),
    ("sum(DISTINCT n)", "sum(DISTINCT n)::HUGEINT"),
    ("median(x)", "median(x)"),
    ("percentile_disc(0.3) WITHIN GROUP (ORDER BY n)", "quantile_disc(n, 0.3)::DOUBLE"),
    ("max(n, 2)", "coalesce(max(n, 2), [])"),
    ("collect_set(k)", "list_sort(coalesce(list(DISTINCT k) FILTER (WHERE k IS NOT NULL), []))"),
    ("count(*) FILTER (WHERE n > 0)", "count(*) FILTER (WHERE n > 0)"),
    ("sum(n) FILTER (WHERE b)", "(sum(n) FILTER (WHERE b))::HUGEINT"),
    ("max(x) FILTER (WHERE k = 'a')", "max(x) FILTER (WHERE k = 'a')"),
    ("sum(n) + count(*)", "(sum(n)::HUGEINT + count(*))"),
]
# What DuckDB has not, or means differently.
OWN_AGGREGATES = [
    *("var_pop(x)", "var_samp(x)", "stddev_pop(x)", "stddev_samp(x)", "var_pop(n)"),
    *("product(x)", "geo_mean(x)", "first(x)", "last(x)", "first(k)", "last(k)", "first(n, true)"),
    *("last(x) IGNORE NULLS", "min_by(k, x)", "max_by(x, n)", "max_by(n, k)", "min_by(x, b)"),
    *("stddev(x)", "variance(n)", "mean(x)", "value_range(x)", "product(n)", "max(ts)"),
    *("top_k(k, 2)", "mode(n)", "frequent(k, 0.25)", "percentile(x, array(0.1, 0.9))", "min(k, 3)"),
    *("max_by(k, x, 2)", "collect_list(n)", "array_agg(k) RESPECT NULLS", "string_agg(k, ',')"),
    *("avg(DISTINCT x)", "max(x, 2)[0]", "percentile_cont(0.2) WITHIN GROUP (ORDER BY n DESC)"),
    *("approx_percentile(x, array(0.25, 0.5, 1.0))", "approx_percentile(n, 0.9, 100)"),
    *("approx_count_distinct(k)", "approx_count_distinct(x) FILTER (WHERE b)"),
    *("skewness(x)", "kurtosis(n)", "corr(x, n)", "covar_samp(n, x)", "regr_r2(x, n)"),
    *("covar_pop(x, x)", "regr_slope(x, n)", "regr_intercept(n, x) FILTER (WHERE b)"),
    "coalesce(sum(n), 0) / count(*)",
]
PREDICATES = [
    *("n > 0", "n > 0 AND x < 50", "k = 'a'", "k IN ('a', 'b')", "b", "NOT b", "x IS NULL"),
    *("n BETWEEN -10 AND 10", "n % 2 = 0", "k LIKE 'key1%'", "b OR n < 0", "x >= 1", "x <> 1"),
]
GROUPS = ["k", "g", "b", "n % 3", "upper(k)"]


@dataclass(frozen=True)
class RandomQuery:
    """One query as Muntin reads it, and as DuckDB answers it."""

    name: str
    sql: str
    duck: str
    outputs: dict[str, str]


def queries(rng: random.Random, *, own: bool = True, most: int = 40) -> list[RandomQuery]:
    """Between one and ``most`` queries; ``own`` adds what DuckDB cannot check."""
    count = rng.choice([1, 2, 5, rng.randrange(1, most + 1)])
    return [_query(rng, f"q{i}", own) for i in range(count)]


def _query(rng: random.Random, name: str, own: bool) -> RandomQuery:
    slide = rng.choice([1, 2, 5, 7, 15, 60]) * rng.choice([MINUTE, MINUTE, MINUTE // 60])
    spread = rng.choice([slide, 2 * slide, slide * 3 // 2, 7 * slide // 5, slide // 2, 11 * slide])
    offset = rng.choice([0, 0, 0, slide // 3, -slide // 5, 3 * slide])
    aligned = rng.choice(["brackets", "hop", "window"])
    where = rng.choice([None, *PREDICATES])
    groups = rng.sample(GROUPS, rng.choice([0, 0, 1, 1, 2]))
    pool = AGGREGATES + [(text, "NULL") for text in OWN_AGGREGATES] * own
    chosen = rng.sample(pool, rng.randrange(1, 5))
    having = rng.choice([None, None, None, "count(*) > 1"])

    outputs = {f"a{i}": text for i, (text, _) in enumerate(chosen)}
    select = ", ".join(f"{text} AS {name}" for name, text in outputs.items())
    tail = f" WHERE {where}" if where else ""
    sql = _spell(aligned, select, tail, groups, spread, slide, offset)
    sql += f" HAVING {having}" if having else ""
    start_aligned = offset if aligned != "brackets" else offset - spread
    duck = _duck(chosen, outputs, where, groups, having, spread, slide, start_aligned)
    return RandomQuery(name, f"CREATE QUERY {name} AS {sql}", duck, outputs)


def _spell(
    spelling: str, select: str, tail: str, groups: list[str], spread: int, slide: int, offset: int
) -> str:
    by = ", ".join(groups)
    r, s, o = f"{spread} us", f"{slide} us", f"{offset} us"
    if spelling == "brackets":
        source = f"s [RANGE '{r}' SLIDE '{s}' OFFSET '{o}']"
        return f"SELECT {select} FROM {source}{tail}" + (f" GROUP BY {by}" if by else "")
    if spelling == "hop":
        source = f"HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{s}', INTERVAL '{r}', INTERVAL '{o}')"
        group = "window_start, window_end" + (f", {by}" if by else "")
        return f"SELECT {select} FROM {source}{tail} GROUP BY {group}"
    group = f"window(ts, '{r}', '{s}', '{o}')" + (f", {by}" if by else "")
    return f"SELECT {select} FROM s{tail} GROUP BY {group}"


def _duck(
    chosen: list[tuple[str, str]],
    outputs: dict[str, str],
    where: str | None,
    groups: list[str],
    having: str | None,
    spread: int,
    slide: int,
    offset: int,
) -> str:
    """Every row copied to every window that covers it, then grouped: slow and plain."""
    first = f"((t - {offset} - {spread}) // {slide} - 1)"
    last = f"((t - {offset} + {spread}) // {slide} + 1)"
    keys = ", ".join(f"{group} AS g{i}" for i, group in enumerate(groups))
    aggregates = ", ".join(
        f"{duck} AS {name}" for (_, duck), name in zip(chosen, outputs, strict=True)
    )
    by = ", ".join(["ws", *(f"g{i}" for i in range(len(groups)))])
    return f"""
        WITH rows AS (SELECT *, epoch_us(ts) AS t FROM s),
        copied AS (
          SELECT *, unnest(range({first}, {last} + 1)) * {slide} + {offset} AS ws FROM rows
          {f"WHERE {where}" if where else ""})
        SELECT ws, ws + {spread} AS we, {keys + "," if keys else ""} {aggregates}
        FROM copied WHERE t >= ws AND t < ws + {spread}
        GROUP BY {by} {f"HAVING {having}" if having else ""}"""
