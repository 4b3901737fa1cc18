"""Plans over bounded rows, of every kind that the registries know."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from muntin.aggregates.registry import BUILT_IN, resolve
from muntin.api import aggregate
from muntin.errors import MuntinError, QueryError
from muntin.expressions import types as t
from muntin.plan import SharedPlan, Strategy
from muntin.planner import build_plan
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.queries import queries as read_queries
from muntin.warm.rows import TYPES, read_only, synthetic_rows, varied_rows
from muntin.windows.edges import Slicing

# A value of each type that is written in SQL, for predicates.
_LITERALS: dict[str, str] = {
    "boolean": "true",
    "string": "'key5'",
    "binary": "CAST('key5' AS BINARY)",
    "date": "DATE '1970-01-06'",
    "timestamp": "TIMESTAMP '2013-10-07 14:00:00Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ '2013-10-07 14:00:00'",
}
_MANY_VALUES = 140_000
_PICKED = ("bigint", "double", "string", "boolean")
WINDOWS = ("[RANGE '12 minutes' SLIDE '5 minutes']", "[RANGE '4 minutes' SLIDE '1 minute']")


def _run(inputs: Sequence[pa.Table], texts: Sequence[str], time: str = "ts", **how: Any) -> None:
    """Answer those queries that can be asked: over the first input, then by its plan."""
    from muntin.engine import LocalEngine  # noqa: PLC0415  it brings numba

    asked = {f"w{place}": text for place, text in enumerate(texts)}
    wrong: set[str | None] = set()
    while True:
        queries = [
            text.replace("SELECT", f"CREATE QUERY {name} AS SELECT", 1)
            for name, text in asked.items()
            if name not in wrong
        ]
        try:
            plan = aggregate(inputs[0], queries, time, **how).plan
            break
        except QueryError as error:
            found = {problem.query for problem in error.problems}
            if found <= wrong:
                raise
            wrong |= found
    assert isinstance(plan, SharedPlan)
    for rows in inputs[1:]:
        engine = LocalEngine(plan, tables=how.get("tables"), threads=pa.cpu_count())
        engine.feed(rows)
        engine.close()


def _calls(invertible: bool) -> Iterator[str]:
    """Every such aggregate of every type, and of every two types where it takes two."""
    ones = [(name,) for name in TYPES]
    for built_in, names in product(BUILT_IN, [*ones, *product(_PICKED, TYPES)]):
        try:
            found = resolve(built_in.name, [TYPES[name] for name in names], built_in.sample)
        except MuntinError:
            continue
        if found.invertible != invertible:
            continue
        call = f"{built_in.name}({', '.join((*names, *map(repr, built_in.sample)))})"
        yield call
        if set(names) <= set(_PICKED):
            yield f"{call} FILTER (WHERE bigint > 50)"
        if built_in.name in ("first", "last"):
            yield f"{call} IGNORE NULLS"


def aggregates(invertible: bool) -> None:
    """All of them, 25 at a time: what reads one of a plan's accumulators looks at all of them."""
    rows, calls = varied_rows(60, groups=2), list(_calls(invertible))
    for place in range(0, len(calls), 25):
        named = (f"{call} AS v{number}" for number, call in enumerate(calls[place : place + 25]))
        text = f"SELECT {', '.join(named)} FROM t [RANGE '1 hour' SLIDE '40 minutes']"
        _run(rows, [text, f"{text} GROUP BY k"])


def groups() -> None:
    """Keys of every type, and of several columns."""
    keys = [*TYPES, "k, g", "boolean, string", "bigint % 3", "k, date, double", "upper(k)"]
    texts = [
        f"SELECT sum(double) AS v, max(string) AS m FROM t {WINDOWS[0]} GROUP BY {key}"
        for key in keys
    ]
    # Alone, an aggregate may be answered in ways of its own.
    alone = ("sum(double)", "avg(bigint)", "count(*)", "max(double)", "last(string)")
    texts += [
        f"SELECT {call} AS v FROM t {window} GROUP BY {key}"
        for call, window, key in product(alone, WINDOWS, ("k", "upper(k)", "k, g"))
    ]
    _run([*varied_rows(), synthetic_rows(5000, groups=4000)], texts)


def predicates() -> None:
    """Conditions on every type, alone and with others, few of them and many."""
    texts = [
        f"SELECT sum(double) AS v, min(bigint) AS m, last(string) AS l, count(*) AS n "
        f"FROM t {window} WHERE {name} {op} {_LITERALS.get(name, '50')}{more}{group}"
        for name in TYPES
        for window in WINDOWS
        for op in (">", "=")
        for more in ("", " AND bigint > 20")
        for group in ("", " GROUP BY k")
    ]
    texts += [f"SELECT count(*) AS n FROM t {WINDOWS[0]} WHERE {where}" for where in _ODD]
    _run(varied_rows(), texts)
    # So many conditions on several quantities, each with another window, that entries are scanned.
    unlike = [
        f"{text} AND double < {90 - place % 80} AND k = 'key{place % 7}'"
        for place, text in enumerate(_unlike(160))
    ]
    _run([synthetic_rows(10_000)], unlike, optimizer="all_share")
    _run([synthetic_rows(6000)], _values_of_predicates())


def _values_of_predicates() -> list[str]:
    """So many values and windows that counters and registers move on from one to the next."""
    calls = (
        "approx_count_distinct(place, 0.1)",
        "count(DISTINCT place)",
        "percentile(double, array(0.5, 0.9))",
        "top_k(g, 2)",
    )
    return [
        f"SELECT {call} AS v FROM t [RANGE '30 minutes' SLIDE '{slide} minutes'] "
        f"WHERE int > {10 * slide}"
        for call, slide in product(calls, (1, 2, 3))
    ]


_ODD = (
    "boolean",
    "NOT boolean",
    "double IS NULL",
    "string IN ('key1', 'key2')",
    "g % 2 = 0",
    "string LIKE 'key1%'",
    "boolean OR bigint < 9",
    "bigint BETWEEN 3 AND 70",
    "k <> 'key3'",
)


def many_queries(unit: str = " minutes", count: int = 64) -> list[str]:
    """As many queries as share well, and differ in everything."""
    chance = random.Random(256)
    made = []
    for place in range(count):
        size, slide = (f"'{chance.randrange(2, most)}{unit}'" for most in (40, 9))
        column, bound = chance.choice(("bigint", "double", "g")), chance.randrange(90)
        key, by = ("k, ", " GROUP BY k") if place % 3 == 0 else ("", "")
        made.append(
            f"SELECT {key}sum(double * bigint) AS v, avg(int) AS a, max(double) AS m, count(*) AS n"
            f" FROM t [RANGE {size} SLIDE {slide}] WHERE {column} > {bound}{by}"
        )
    return made


def _unlike(count: int) -> list[str]:
    """Queries whose windows have hardly an edge in common, so that sharing is weighed."""
    chance = random.Random(count)
    sizes = [(chance.randrange(60, 3000), chance.randrange(7, 700)) for _ in range(count)]
    return [
        f"SELECT sum(double) AS v FROM t [RANGE '{size} seconds' SLIDE '{slide} seconds']"
        f" WHERE bigint > {chance.randrange(90)}"
        for size, slide in sizes
    ]


def choices() -> None:
    """Every strategy, slicing and optimizer, and sharing that is weighed."""
    rows, few = [synthetic_rows()], many_queries(count=12)
    for strategy, slicing in product(get_args(Strategy), get_args(Slicing)):
        _run(rows, few, strategy=strategy, slicing=slicing)
    plain = [text.partition(" WHERE ")[0] for text in many_queries()[1::3]]
    unlike = _unlike(300)
    for optimizer in get_args(OptimizerName):
        _run(rows, unlike, optimizer=optimizer)
        _run(rows, many_queries(), optimizer=optimizer)
        _run(rows, plain, optimizer=optimizer)
    _run(rows, few, emit_empty=True)
    # So many windows, and so few rows, that trees are refined.
    many = list(read_queries(_unlike(700)))
    build_plan(many, rows[0].schema, "ts", sharer=Optimizer("auto", 1e-6))


def shapes() -> None:
    """Rows in other orders and numbers, in pieces, and times of other types."""
    rows = synthetic_rows(3000)
    shuffled = rows.take(pa.array(np.random.default_rng(1).permutation(rows.num_rows)))
    halves = pa.concat_tables([rows.slice(0, 1000), rows.slice(1000)])
    large = synthetic_rows(20_000, groups=9000).sort_by("double")
    _run([shuffled, halves, rows.slice(0, 0), large, read_only(shuffled)], many_queries())
    _run([rows], [text.replace("'", "") for text in many_queries("")], "place")
    for time in ("date", "timestamp_ntz"):
        _run([rows], many_queries(" days", 6), time)
    counted = "SELECT sum(double) AS v, max(k) AS m FROM t [ROWS 100 SLIDE 30]"
    _run([rows], [counted, f"{counted} WHERE g > 1 GROUP BY k"])
    _run([rows], ["SELECT count(*) AS n FROM t [RANGE 90 SLIDE 7 WATTR place]"])
    # So many values that they are told apart by a table, few of which are near another.
    numbers = np.random.default_rng(2).random(_MANY_VALUES)
    many = pa.table({"place": np.arange(_MANY_VALUES), "double": numbers})
    _run([many], ["SELECT median(double) AS v FROM t [RANGE 90000 SLIDE 70000]"], "place")


def joins() -> None:
    """Tables with keys of every type, joined to rows."""
    rows = synthetic_rows(nulls=False)
    for name in TYPES:
        found = rows.select([name]).group_by([name]).aggregate([])
        ranks = pa.array(range(found.num_rows), t.BIGINT)
        labels = pa.array([f"label {rank}" for rank in range(found.num_rows)])
        table = found.append_column("rank", ranks).append_column("label", labels)
        texts = [
            f"SELECT sum(rank) AS v, max(label) AS m FROM t {WINDOWS[0]} "
            f"{join} JOIN c ON t.{name} = c.{name} WHERE rank > 3{by}"
            for join in ("", "LEFT")
            for by in ("", " GROUP BY label")
        ]
        _run(varied_rows(), texts, tables={"c": table})
