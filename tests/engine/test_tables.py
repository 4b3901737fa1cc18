"""Queries over a stream and tables: answers equal DuckDB's, and updates reach later rows only."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError
from muntin.plan import STRATEGIES, Strategy
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine
from muntin.testing import rows_of
from muntin.windows.edges import SLICINGS

SCHEMA = pa.schema(
    {"ts": pa.int64(), "symbol": pa.string(), "vol": pa.int64(), "price": pa.float64()}
)
SYMBOLS = [f"s{number}" for number in range(9)]
CLOSE, INDEX = "JOIN close c ON t.symbol = c.symbol", "JOIN index x ON t.symbol = x.symbol"
JOINS = ["", CLOSE, f"LEFT {CLOSE}", f"{CLOSE} LEFT {INDEX}", f"LEFT {CLOSE} {INDEX}"]
JOINS += [f"{CLOSE} JOIN index x ON c.kind = x.kind AND t.symbol = x.symbol"]
# Both sides of a comparison may be of the stream, of one table or of both.
PREDICATES = {
    "t": ["vol > 20", "vol BETWEEN 5 AND 30", "price < 12", "NOT (vol < 10 OR price > 20)"],
    "c": ["c.cp > 4", "price > c.cp", "abs(price - c.cp) < 3", "c.cp IS NULL", "c.kind = 'a'"],
    "x": ["x.member", "NOT x.member", "x.kind IN ('a', 'b')", "x.member IS NULL OR vol > 10"],
}
MEASURES = {"t": ["count(*)", "sum(vol)", "max(price)"], "c": ["sum(c.cp)", "min(c.kind)"]}
MEASURES["x"] = ["count(x.member)", "max(x.kind)"]
GROUPS = {"t": ["t.symbol", "vol % 2"], "c": ["c.kind", "c.cp"], "x": ["x.member"]}


def stream(rng: random.Random, rows: int) -> pa.Table:
    return pa.table(
        {
            "ts": sorted(rng.randrange(60) for _ in range(rows)),
            "symbol": [rng.choice([None, *SYMBOLS]) for _ in range(rows)],
            "vol": [rng.choice([None, *range(50)]) for _ in range(rows)],
            "price": [rng.randrange(100) / 4 for _ in range(rows)],
        },
        schema=SCHEMA,
    )


def closing(rng: random.Random) -> pa.Table:
    """Symbols that are missing, that come twice, and NULL."""
    symbols = [rng.choice([None, *SYMBOLS[2:], "none"]) for _ in range(9)]
    prices = [rng.choice([None, 0.25, 3.5, 8.0, 20.0]) for _ in symbols]
    return pa.table(
        {"symbol": symbols, "cp": prices, "kind": [rng.choice("ab") for _ in symbols]},
        schema=pa.schema({"symbol": pa.string(), "cp": pa.float64(), "kind": pa.string()}),
    )


def members(rng: random.Random) -> pa.Table:
    flags = [rng.choice([True, False, None]) for _ in SYMBOLS]
    kinds = [rng.choice("abc") for _ in SYMBOLS]
    return pa.table({"symbol": SYMBOLS, "member": pa.array(flags, pa.bool_()), "kind": kinds})


def random_query(rng: random.Random, name: str) -> tuple[str, str]:
    """One query in Muntin's SQL and in DuckDB's."""
    join = rng.choice(JOINS)
    sides = ["t", *(side for side in "cx" if f" {side} ON" in join)]
    where = " AND ".join(f"({rng.choice(PREDICATES[rng.choice(sides)])})" for _ in range(2))
    measure = rng.choice(MEASURES[rng.choice(sides)])
    group = rng.choice(["", rng.choice(GROUPS[rng.choice(sides)])])
    spread, slide = rng.choice([6, 10, 15]), rng.choice([5, 6])
    by, shown = (f" GROUP BY {group}", f"{group} AS g, ") if group else ("", "")
    own = (
        f"CREATE QUERY {name} AS SELECT {shown}{measure} AS a"
        f" FROM trades t [RANGE {spread} SLIDE {slide}] {join} WHERE {where}{by}"
    )
    ends = f"(SELECT unnest(range(0, 90, {slide})) AS w) ends"
    theirs = (
        f"SELECT w - {spread}, w, {shown}{measure} AS a FROM {ends}, trades t {join}"
        f" WHERE ts >= w - {spread} AND ts < w AND {where} GROUP BY w{f', {group}' * bool(group)}"
    )
    return own, theirs


def ordered(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def duck(sql: str, **tables: pa.Table) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        found: list[tuple[object, ...]] = connection.sql(sql).fetchall()
        return found


@pytest.mark.parametrize("seed", range(10))
def test_joined_queries_equal_duckdb(seed: int) -> None:
    rng = random.Random(9000 + seed)
    trades, close, index = stream(rng, rng.choice([0, 1, 150])), closing(rng), members(rng)
    asked = [random_query(rng, f"q{i}") for i in range(8)]
    results = muntin.aggregate(
        trades,
        ";".join(own for own, _ in asked),
        time="ts",
        tables={"Close": close, "INDEX": index},
        strategy=STRATEGIES[seed % 5],
        slicing=sorted(SLICINGS)[seed % 3],
    )
    for i, (own, theirs) in enumerate(asked):
        expected = duck(theirs, trades=trades, close=close, index=index)
        assert ordered(rows_of(results[f"q{i}"])) == ordered(expected), own


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_update_affects_only_rows_that_arrive_after_it(strategy: str) -> None:
    rng = random.Random(9100)
    trades = stream(rng, 240)
    versions = [closing(rng) for _ in range(4)]
    sql = (
        "CREATE QUERY {} AS SELECT {}count(*) AS n, sum(cp) AS a FROM trades t"
        " [RANGE 12 SLIDE 5] LEFT JOIN close ON t.symbol = close.symbol WHERE {}{}"
    )
    asked = queries(
        ";".join(
            [
                sql.format("a", "", "cp > 1 AND vol > 10", ""),
                sql.format("b", "kind, ", "vol > 20", " GROUP BY kind"),
                sql.format("c", "", "cp > 4 OR cp IS NULL", ""),
            ]
        )
    )
    plan = build_plan(
        asked, trades.schema, "ts", strategy=strategy, tables={"close": versions[0].schema}
    )
    engine = LiveEngine(plan, 0, tables={"close": versions[0]})
    answered: dict[str, list[tuple[object, ...]]] = {query.name: [] for query in asked}
    arrived = []
    for number, batch in enumerate(trades.to_batches(max_chunksize=20)):
        version = number // 3
        engine.update_table("CLOSE", versions[version])
        if number == 7:
            engine = LiveEngine.restore(engine.plan, engine.snapshot(), tables=engine.tables)
        arrived.append(_joined(pa.Table.from_batches([batch]), versions[version]))
        for name, table in engine.feed(batch).items():
            answered[name] += rows_of(table)
    for name, table in engine.close().items():
        answered[name] += rows_of(table)
    # What each row met when it arrived, as plain columns.
    flat = pa.concat_tables(arrived)
    for query, where, group in zip(
        asked,
        ["cp > 1 AND vol > 10", "vol > 20", "cp > 4 OR cp IS NULL"],
        ["", "kind, ", ""],
        strict=True,
    ):
        expected = duck(
            f"SELECT w - 12, w, {group}count(*), sum(cp) FROM flat,"
            f" (SELECT unnest(range(0, 90, 5)) AS w) ends"
            f" WHERE ts >= w - 12 AND ts < w AND ({where}) GROUP BY {group}w",
            flat=flat,
        )
        assert ordered(answered[query.name]) == ordered(expected), query.name


def _joined(batch: pa.Table, close: pa.Table) -> pa.Table:
    return batch.join(close, "symbol", join_type="left outer")


def test_queries_that_join_alike_share_the_join() -> None:
    rng = random.Random(9200)
    plan = build_plan(
        queries(
            "CREATE QUERY a AS SELECT sum(c.cp) AS x FROM trades t [RANGE 5 SLIDE 5]"
            " JOIN close c ON t.symbol = c.symbol WHERE c.cp > 1;"
            "CREATE QUERY b AS SELECT sum(close.cp) AS x FROM trades [RANGE 7 SLIDE 5]"
            " JOIN close ON trades.symbol = close.symbol WHERE close.cp > 2;"
            "CREATE QUERY c AS SELECT sum(k.cp) AS x FROM trades t [RANGE 9 SLIDE 5], close k"
            " WHERE t.symbol = k.symbol AND k.cp > 3;"
            "CREATE QUERY d AS SELECT sum(cp) AS x FROM trades t [RANGE 9 SLIDE 5]"
            " LEFT JOIN close c ON t.symbol = c.symbol WHERE cp > 3"
        ),
        stream(rng, 1).schema,
        "ts",
        tables={"close": closing(rng).schema},
    )
    numbers = [plan.partials[final.partials].relation for final in plan.finals]
    assert numbers == [0, 0, 0, 1]
    assert len(plan.partials) == 2


def test_a_version_without_a_column_is_refused_and_changes_nothing() -> None:
    rng = random.Random(9300)
    trades, close = stream(rng, 60), closing(rng)
    (query,) = queries(
        "SELECT sum(cp) AS x FROM trades t [RANGE 5 SLIDE 5] JOIN close ON t.symbol = close.symbol"
    )
    plan = build_plan([query], trades.schema, "ts", tables={"close": close.schema})
    engine = LiveEngine(plan, 0, tables={"close": close})
    wrong = close.set_column(1, "cp", pa.array(["?"] * close.num_rows))
    for other in (close.drop_columns("cp"), close.drop_columns("kind"), wrong):
        with pytest.raises(DataError, match="there is no column close"):
            engine.update_table("close", other)
    with pytest.raises(DataError, match="no table 'clos'") as caught:
        engine.update_table("clos", close)
    assert "did you mean close?" in str(caught.value.hint)
    engine.feed(trades)
    alone = LiveEngine(plan, 0, tables={"close": close})
    alone.feed(trades)
    assert engine.close()["q1"].equals(alone.close()["q1"])


def test_a_table_may_come_before_the_queries_that_join_it() -> None:
    rng = random.Random(9301)
    trades, close = stream(rng, 60), closing(rng)
    first, second = queries(
        "CREATE QUERY all AS SELECT count(*) AS n FROM trades [RANGE 5 SLIDE 5];"
        "CREATE QUERY joined AS SELECT sum(cp) AS x FROM trades t [RANGE 5 SLIDE 5]"
        " JOIN close ON t.symbol = close.symbol"
    )
    engine = LiveEngine(build_plan([first], trades.schema, "ts"), 0)
    engine.update_table("close", close.drop_columns("cp"))
    # No query joins it yet, so its columns may change.
    engine.update_table("CLOSE", close)
    assert list(engine.tables) == ["close"]
    engine.add(second)
    engine.feed(trades)
    plan = build_plan([first, second], trades.schema, "ts", tables={"close": close.schema})
    other = LiveEngine(plan, 0, tables={"close": close})
    other.feed(trades)
    assert engine.close() == other.close()
    with pytest.raises(DataError, match="there is no column close"):
        engine.update_table("close", close.drop_columns("cp"))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "extra", ["", "; SELECT sum(x) AS v FROM s t [RANGE 7 SLIDE 5] JOIN c ON t.k = c.k WHERE x > 2"]
)
def test_a_window_whose_rows_find_no_partner_gives_no_row(strategy: Strategy, extra: str) -> None:
    rows = pa.table({"ts": [13, 48, 53], "k": ["a", "b", None], "x": [1.0, 2.0, 3.0]})
    sql = "SELECT count(*) AS n FROM s t [RANGE 7 SLIDE 5] JOIN c ON t.k = c.k" + extra
    for table, expected in (
        (pa.table({"k": ["b"], "cp": [1.0]}), [43, 48]),
        (pa.table({"k": pa.nulls(2, pa.string()), "cp": [1.0, 2.0]}), []),
    ):
        results = muntin.aggregate(rows, sql, time="ts", tables={"c": table}, strategy=strategy)
        found = results["q1"].to_pydict()
        assert (found["window_start"], found["n"]) == (expected, [1] * len(expected))
