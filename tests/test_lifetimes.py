"""Row queries over bounded data, beside aggregates."""

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, QueryError

ORDERS = pa.table({"ts": [1, 2, 5, 20], "id": [7, 8, 9, 10], "total": [5.0, 6.0, 7.0, 8.0]})
PAYMENTS = pa.table({"at": [6, 4, 30], "order_id": [9, 7, 10], "amount": [7.0, 5.0, 8.0]})
TIME = {"orders": "ts", "payments": "at"}
UNPAID = (
    "CREATE QUERY unpaid AS SELECT o.id FROM orders [RANGE 10] o WHERE NOT EXISTS"
    " (SELECT 1 FROM payments [RANGE 5] p WHERE p.order_id = o.id)"
)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_rows_and_aggregates_in_one_call() -> None:
    results = muntin.aggregate(
        {"Orders": ORDERS, "payments": PAYMENTS},
        [UNPAID, "CREATE QUERY total AS SELECT sum(total) AS t FROM orders [RANGE 10 SLIDE 10]"],
        TIME,
    )
    assert list(results) == ["unpaid", "total"]
    assert results["total"].to_pydict()["t"] == [18.0, 8.0]
    # order 7   [1 ........ 11)      order 8   [2 ........ 12)
    # paid         [4 ... 9)         order 9      [5 ..... 15), paid [6 ... 11)
    assert rows(results["unpaid"]) == [
        (1, 4, 7),
        (2, 12, 8),
        (5, 6, 9),
        (9, 11, 7),
        (11, 15, 9),
        (20, 30, 10),
    ]
    assert (results.rows, results.bad_rows) == (7, 0)
    assert results.row_plan is not None
    assert "NOT EXISTS" in results.row_plan.explain()
    with pytest.raises(DataError, match="unpaid shows rows"):
        results.plot("unpaid")


def test_one_frame_may_have_any_name() -> None:
    pairs = muntin.aggregate(
        ORDERS,
        "SELECT a.id AS a, b.id AS b FROM x [RANGE 4] a, x [RANGE 4] b WHERE a.ts + 1 = b.ts",
        "ts",
    )
    assert rows(pairs["q1"]) == [(2, 5, 7, 8)]
    with pytest.raises(QueryError, match="there is one stream"):
        muntin.aggregate(
            ORDERS, "SELECT a.id FROM a [RANGE 4], b [RANGE 4] WHERE a.id = b.id", "ts"
        )


def test_results_come_in_the_users_kind_of_frame() -> None:
    frames = {"orders": ORDERS.to_pandas(), "payments": PAYMENTS.to_pandas()}
    found = muntin.aggregate(frames, UNPAID, TIME)["unpaid"]
    assert isinstance(found, pd.DataFrame)
    assert len(found) == 6


def test_bounded_data_may_come_in_any_order_and_pieces() -> None:
    batches = ORDERS.take([3, 1, 0, 2]).to_batches(max_chunksize=1)
    data = {"orders": iter(batches), "payments": PAYMENTS}
    whole = {"orders": ORDERS, "payments": PAYMENTS}
    assert rows(muntin.aggregate(data, UNPAID, TIME)["unpaid"]) == rows(
        muntin.aggregate(whole, UNPAID, TIME)["unpaid"]
    )


def test_rows_without_a_time_are_counted_or_fail() -> None:
    timeless = ORDERS.set_column(0, "ts", pa.array([1, None, 5, 20], pa.int64()))
    data = {"orders": timeless, "payments": PAYMENTS}
    results = muntin.aggregate(data, UNPAID, TIME)
    assert (results.rows, results.bad_rows) == (7, 1)
    assert 8 not in results["unpaid"]["id"].to_pylist()
    with pytest.raises(DataError, match="column 'ts' has 1 row without a usable time"):
        muntin.aggregate(data, UNPAID, TIME, on_bad_row="fail")


def test_unknown_streams_and_failing_values() -> None:
    with pytest.raises(QueryError, match="there is no stream payments"):
        muntin.aggregate({"orders": ORDERS}, UNPAID, "ts")
    sql = "SELECT 1 DIV (id - 7) AS x FROM orders [RANGE 5]"
    assert muntin.aggregate(ORDERS, sql, "ts").errors == {"q1": 1}
    with pytest.raises(DataError, match="1 value failed"):
        muntin.aggregate(ORDERS, sql, "ts", on_error="fail")


CUSTOMERS = pa.table({"id": [7, 9, 9], "name": ["ann", "bob", None], "float": [1.0, 2.0, 3.0]})


def tabled(sql: str) -> list[tuple[object, ...]]:
    data = {"orders": ORDERS, "payments": PAYMENTS}
    results = muntin.aggregate(data, sql, TIME, tables={"Customers": CUSTOMERS})
    return sorted((tuple(row.values()) for row in results["q1"].to_pylist()), key=repr)


def test_tables_join_streams_in_every_place() -> None:
    joined = "FROM orders [RANGE 10] o JOIN customers c ON c.id = o.id"
    assert tabled(f"SELECT c.name {joined} WHERE o.total < 7") == [(1, 11, "ann")]
    assert tabled(f"SELECT DISTINCT c.id {joined}") == [(1, 11, 7), (5, 15, 9)]
    assert tabled(f"SELECT c.*, o.ts {joined} WHERE c.name IS NULL") == [(5, 15, 9, None, 3.0, 5)]
    assert tabled(
        "SELECT o.id, c.name, p.amount FROM orders [RANGE 10] o JOIN payments [RANGE 5] p"
        " ON p.order_id = o.id LEFT JOIN customers c ON c.id = p.order_id AND c.name = 'ann'"
    ) == [(4, 9, 7, "ann", 5.0), (6, 11, 9, None, 7.0)]
    assert tabled(
        "SELECT o.id FROM orders [RANGE 10] o WHERE o.id IN"
        " (SELECT p.order_id FROM payments [RANGE 5] p JOIN customers c ON c.float = p.amount - 4)"
    ) == [(4, 9, 7), (6, 11, 9)]
    assert tabled("SELECT id, name FROM orders [RANGE 10] JOIN customers USING (id)") == [
        (1, 11, 7, "ann"),
        (5, 15, 9, "bob"),
        (5, 15, 9, None),
    ]


def test_not_in_knows_null_and_the_row_around_it() -> None:
    """x NOT IN (no rows) holds; a NULL on either side beside some rows says nothing."""
    left = pa.table({"ts": [1] * 4, "x": [1, 2, None, 1], "k": [7, 7, 7, 8]})
    right = pa.table({"ts": [3, 5], "y": [1, None], "k": [7, 7]})
    # of k = 7     1   3   4   5   6        11
    # y = 1            [---)
    # y = NULL                 [---)
    # x = 1        [---)   [---)   [--------)
    # x = 2        [-----------)   [--------)
    # x = NULL     [---)   [---)   [--------)
    sql = """
        SELECT l.x, l.k FROM l [RANGE 10]
        WHERE l.x NOT IN (SELECT y FROM r [RANGE 1] WHERE r.k = l.k)
    """
    found = muntin.aggregate({"l": left, "r": right}, sql, time="ts")["q1"]
    expected = [
        *[(1, 3, 1, 7), (4, 5, 1, 7), (6, 11, 1, 7)],
        *[(1, 5, 2, 7), (6, 11, 2, 7)],
        *[(1, 3, None, 7), (4, 5, None, 7), (6, 11, None, 7)],
        (1, 11, 1, 8),
    ]
    given = [tuple(row.values()) for row in found.to_pylist()]
    assert sorted(map(repr, given)) == sorted(map(repr, expected))


PAID = "JOIN payments [RANGE 5] p ON p.order_id = o.id"


@pytest.mark.parametrize(
    ("joins", "message"),
    [
        ("JOIN custmers c ON c.id = o.id", "did you mean"),
        ("JOIN customers c ON c.idd = o.id", "no column idd"),
        ("JOIN customers c ON c.name = o.id", "CAST this side"),
        (f"{PAID} JOIN customers c ON c.id = o.id + p.order_id", "not joined with one stream"),
        (f"LEFT {PAID} JOIN customers c ON c.id = p.order_id", "which an outer join pads"),
        (", customers c WHERE c.id = o.id", "after a comma"),
    ],
)
def test_tables_that_do_not_fit_are_refused(joins: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        tabled(f"SELECT o.id FROM orders [RANGE 5] o {joins}")


KEYS = {
    "whole numbers": pa.array([*range(-150, 150), None]),
    "doubles": pa.array([0.0, -0.0, float("nan"), -float("nan"), float("inf"), *range(300), None]),
    "texts": pa.array(["", *map(str, range(300)), None]),
    "dates": pa.array([*range(300), None], pa.int32()).cast(pa.date32()),
}


@pytest.mark.parametrize("is_timely", [True, False])
@pytest.mark.parametrize("kind", KEYS)
def test_large_streams_meet_as_in_duckdb(kind: str, is_timely: bool) -> None:
    """So many rows that threads share them; many have equal times, some have no key."""
    keys, count = KEYS[kind], 60_000
    tables = {}
    for name, seed in (("a", 1), ("b", 2)):
        rng = np.random.default_rng(seed)
        times = rng.integers(0, count // 2, count)
        own = keys.take(pa.array(rng.integers(0, len(keys), count)))
        times = np.sort(times) if is_timely else times
        tables[name] = pa.table({"ts": times, "k": own, "n": np.arange(count)})
    sql = "SELECT a.n AS an, a.k AS ak, b.n AS bn, b.k AS bk FROM a [RANGE 300] JOIN b [RANGE 70]"
    found = muntin.aggregate(tables, f"{sql} ON a.k = b.k", "ts")["q1"]
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        expected = connection.sql(
            "SELECT greatest(a.ts, b.ts) AS valid_from, least(a.ts + 300, b.ts + 70) AS valid_to, "
            "a.n AS an, b.n AS bn FROM a JOIN b ON a.k = b.k "
            "AND a.ts < b.ts + 70 AND b.ts < a.ts + 300"
        ).to_arrow_table()
    order = [("an", "ascending"), ("bn", "ascending")]
    names = expected.column_names
    assert found.num_rows > count
    assert found.select(names).sort_by(order).equals(expected.sort_by(order))
    # Each side shows its own key, zeros with their signs.
    for name in tables:
        mine = tables[name]["k"].take(found[f"{name}n"])
        assert bits(found[f"{name}k"]).equals(bits(mine))


def bits(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.view(pa.int64()) if pa.types.is_floating(whole.type) else whole


@pytest.mark.parametrize("empty", ["a", "b", "both"])
def test_a_stream_without_rows_meets_nothing(empty: str) -> None:
    some = pa.table({"ts": [1, 2], "k": [1, 1]})
    data = {name: some.slice(0, 0) if empty in (name, "both") else some for name in ("a", "b")}
    sql = "SELECT a.ts AS one, b.ts AS other FROM a [RANGE 5] JOIN b [RANGE 5] ON a.k = b.k"
    found = muntin.aggregate(data, sql, "ts")["q1"]
    assert found.num_rows == 0
    assert found.schema.names == ["valid_from", "valid_to", "one", "other"]
