"""Aggregates over joins, by hand: what is shown when, what is refused, what does not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.errors import QueryError
from muntin.plan.operators import StreamSchema
from muntin.plan.timeline import Timeline
from muntin.planner.rows import row_plan
from muntin.queries import parse

ORDERS = {"ts": "int64", "id": "int64", "region": "string", "total": "int64"}
PAYMENTS = {"ts": "int64", "order_id": "int64", "amount": "double"}
COLUMNS = {"orders": ORDERS, "payments": PAYMENTS}
PAID = "FROM orders [RANGE 10 SLIDE 5] o JOIN payments [RANGE 5] p ON o.id = p.order_id"
KEPT = PAID.replace("JOIN", "LEFT JOIN")


def _table(columns: dict[str, str], *rows: tuple[Any, ...]) -> pa.Table:
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, pa.schema(columns))


def _orders(*rows: tuple[Any, ...]) -> pa.Table:
    return _table(ORDERS, *rows)


def _payments(*rows: tuple[Any, ...]) -> pa.Table:
    return _table(PAYMENTS, *rows)


DATA = {
    "orders": _orders((1, 7, "n", 50), (2, 8, "s", 20), (5, 9, "n", 70), (5, None, "x", 1)),
    "payments": _payments((4, 7, 50.5), (6, 9, 10.25), (7, 9, 3.0)),
}


def _rows(sql: str, data: dict[str, pa.Table] = DATA, **options: Any) -> list[tuple[Any, ...]]:
    found = muntin.aggregate(data, sql, time="ts", **options)["q1"]
    return [tuple(row.values()) for row in found.to_pylist()]


def _way(sql: str) -> tuple[str, str]:
    streams = {
        name: StreamSchema(pa.schema(columns), Timeline("ts", pa.int64()))
        for name, columns in COLUMNS.items()
    }
    (final,) = row_plan([statement.query for statement in parse(sql)], streams).joined
    return final.way, final.why


def test_counts_multiply_and_sums_are_multiplied_by_counts() -> None:
    sql = f"SELECT o.region, count(*), sum(p.amount), sum(o.total) {PAID} GROUP BY o.region"
    assert _rows(sql) == [(-5, 5, "n", 1, 50.5, 50), (0, 10, "n", 2, 13.25, 140)]


def test_a_left_join_counts_rows_without_a_partner_and_null_keys() -> None:
    sql = f"SELECT o.region, count(*), count(p.amount), sum(p.amount) {KEPT} GROUP BY o.region"
    assert _rows(sql) == [
        (-5, 5, "n", 1, 1, 50.5),
        (-5, 5, "s", 1, 0, None),
        (0, 10, "n", 3, 2, 13.25),
        (0, 10, "s", 1, 0, None),
        (0, 10, "x", 1, 0, None),
        (5, 15, "n", 1, 0, None),
        (5, 15, "x", 1, 0, None),
    ]


def test_padded_rows_add_what_an_argument_makes_of_null() -> None:
    sql = (
        "SELECT count(coalesce(p.amount, 0)) AS n, sum(coalesce(p.amount, 100.0)) AS s, "
        f"count(*) FILTER (WHERE p.order_id IS NULL) AS alone, first(p.amount) AS f {KEPT}"
    )
    assert _way(sql)[0] == "sides"
    assert _rows(sql) == [
        (-5, 5, 2, 150.5, 1, 50.5),
        (0, 10, 5, 313.25, 3, 10.25),
        (5, 15, 2, 200.0, 2, None),
    ]


def test_padded_rows_are_in_the_group_that_is_made_of_null() -> None:
    group = "coalesce(p.amount > 5, false)"
    sql = f"SELECT {group} AS much, count(*) {KEPT} GROUP BY {group}"
    assert _way(sql)[0] == "sides"
    assert _rows(sql) == [
        (-5, 5, False, 1),
        (-5, 5, True, 1),
        (0, 10, False, 4),
        (0, 10, True, 1),
        (5, 15, False, 2),
    ]


@pytest.mark.parametrize(
    "what",
    [
        "sum(7 / coalesce(p.order_id, 0))",
        "count(*) FILTER (WHERE 7 / coalesce(p.order_id, 0) >= 1)",
        "7 / coalesce(p.order_id, 0) AS g, count(*)",
    ],
)
def test_what_fails_for_padded_rows_is_counted(what: str) -> None:
    sql = f"SELECT {what} {KEPT}"
    if " AS g" in what:
        sql += " GROUP BY 7 / coalesce(p.order_id, 0)"
        what = "the group 7 / coalesce(p.order_id, 0)"
    assert _way(sql) == ("pairs", f"{what} fails for rows without a partner")
    results = muntin.aggregate(DATA, sql, time="ts")
    assert results.errors["q1"] > 0


def test_a_condition_that_nulls_fail_makes_a_left_join_an_inner_one() -> None:
    sql = f"SELECT count(*) {KEPT} WHERE p.amount > 5"
    assert _way(sql)[0] == "sides"
    assert _rows(sql) == [(-5, 5, 1), (0, 10, 1)]


def test_an_equality_in_where_leaves_nothing_of_padded_rows() -> None:
    again = f"SELECT count(*), sum(o.total) {KEPT} WHERE o.id = p.order_id"
    assert _way(again)[0] == "sides"
    assert _rows(again) == [(-5, 5, 1, 50), (0, 10, 2, 140)]
    # One that is a further key, and one between two sides that are both padded.
    further = f"SELECT count(*) {KEPT} WHERE o.ts + 3 = p.ts"
    assert _rows(further) == [(-5, 5, 1)]
    both = KEPT + " LEFT JOIN payments [RANGE 5] q ON o.id = q.order_id"
    assert _way(f"SELECT count(*) {both} WHERE p.order_id = q.order_id")[0] == "sides"
    assert _rows(f"SELECT count(*) {both} WHERE p.order_id = q.order_id") == [
        (-5, 5, 1),
        (0, 10, 4),
    ]
    # What is computed from NULLs need not be NULL.
    way, why = _way(f"SELECT count(*) {KEPT} WHERE o.id = coalesce(p.order_id, 8)")
    assert (way, why) == ("pairs", "o.id = coalesce(p.order_id, 8) compares rows of several sides")


def test_first_goes_by_the_time_of_what_its_argument_reads() -> None:
    streams = {
        "a": pa.table({"ts": [1, 3], "k": [1, 1], "v": [9, 4]}),
        "b": pa.table({"ts": [2, 5], "k": [1, 1], "v": [7, 1]}),
        "c": pa.table({"ts": [4, 4], "k": [1, 1], "v": [0, 0]}),
    }
    found = "FROM a [RANGE 10 SLIDE 10] JOIN b [RANGE 10] ON a.k = b.k"
    # A FILTER on the other stream does not change the order: 9 came before 4.
    sql = f"SELECT first(a.v), first(a.v) FILTER (WHERE b.v < 5), collect_list(a.v) {found}"
    assert _rows(sql, streams) == [(0, 10, 9, 9, [9, 9, 4, 4])]
    # Pairs are born at 2, 3, 5 and 5; beside a third stream, those before 4 are born at 4.
    assert _rows(f"SELECT first(a.v - b.v) {found}", streams) == [(0, 10, 2)]
    three = f"{found} JOIN c [RANGE 10] ON a.k = c.k"
    assert _rows(f"SELECT first(a.v - b.v) {three}", streams) == [(0, 10, -3)]


def test_a_condition_that_nulls_pass_is_one_on_pairs() -> None:
    sql = f"SELECT count(*) {KEPT} WHERE p.amount IS NULL"
    way, why = _way(sql)
    assert (way, why) == ("pairs", "WHERE p.amount IS NULL lets rows without a partner through")
    assert _rows(sql) == [(-5, 5, 1), (0, 10, 3), (5, 15, 2)]


def test_having_and_expressions_are_over_lowered_aggregates() -> None:
    sql = (
        "SELECT upper(o.region) AS place, round(sum(p.amount) / count(*), 1) AS mean, "
        f"window_end AS t {PAID} GROUP BY o.region HAVING count(*) > 1"
    )
    found = muntin.aggregate(DATA, sql, time="ts")["q1"]
    assert found.column_names == ["window_start", "t", "region", "place", "mean"]
    assert [tuple(row.values()) for row in found.to_pylist()] == [(0, 10, "n", "N", 6.6)]


def test_emit_empty_fills_the_gaps_of_ungrouped_queries() -> None:
    data = {
        "orders": _orders((1, 7, "n", 1), (31, 7, "n", 1)),
        "payments": _payments((1, 7, 2.0), (31, 7, 3.0)),
    }
    sql = f"SELECT count(*) AS n, sum(p.amount) AS s {PAID}"
    filled = [
        (-5, 5, 1, 2.0),
        *((end - 10, end, 0, None) for end in range(10, 35, 5)),
        (25, 35, 1, 3.0),
    ]
    assert _rows(f"{sql} EMIT EMPTY", data) == filled
    assert _rows(sql, data, emit_empty=True) == filled
    assert _rows(sql, data) == [filled[0], filled[-1]]


def test_queries_built_in_python_are_those_of_sql() -> None:
    built = (
        muntin.query("q1")
        .from_("orders", "o")
        .window(10, 5)
        .select("o.region", n="count(*)")
        .join("payments", "o.id = p.order_id", window=5, alias="p")
        .group_by("o.region")
        .having("count(*) > 1", "sum(p.amount) > 0")
    )
    sql = f"SELECT o.region, count(*) AS n {PAID} GROUP BY o.region"
    written = parse(f"{sql} HAVING count(*) > 1 AND sum(p.amount) > 0")[0].query
    assert built.build() == written
    filled = muntin.query("q1").from_("orders", "o").window(10, 5).select(n="count(*)")
    filled = filled.join("payments", "o.id = p.order_id", window=5, alias="p").emit_empty()
    assert filled.build() == parse(f"SELECT count(*) AS n {PAID} EMIT EMPTY")[0].query


@pytest.mark.parametrize("exists", ["EXISTS", "NOT EXISTS"])
def test_rows_with_or_without_a_partner_are_aggregated_as_rows(exists: str) -> None:
    sql = (
        "SELECT count(*), sum(o.total) FROM orders [RANGE 10 SLIDE 5] o WHERE "
        f"{exists} (SELECT 1 FROM payments [RANGE 5] p WHERE p.order_id = o.id)"
    )
    expected = {
        "EXISTS": [(-5, 5, 1, 50), (0, 10, 1, 70)],
        "NOT EXISTS": [(-5, 5, 1, 20), (0, 10, 3, 71), (5, 15, 2, 71)],
    }
    assert _rows(sql) == expected[exists]


def test_an_aggregate_over_all_values_is_one_of_pairs() -> None:
    sql = f"SELECT median(p.amount) AS m {PAID}"
    assert _way(sql) == ("pairs", "median(p.amount) needs all values of the rows")
    assert _rows(sql) == [(-5, 5, 50.5), (0, 10, 6.625)]


def test_keys_are_compared_in_a_common_type() -> None:
    data = {
        "a": pa.table({"ts": [1, 1], "k": pa.array([1, 2], "int32"), "x": [1, 10]}),
        "b": pa.table({"ts": [1, 1, 1], "k": [1.0, 2.0, -0.0], "y": [5, 7, 9]}),
    }
    sql = "SELECT sum(a.x) AS s, sum(b.y) AS t FROM a [RANGE 5 SLIDE 5] JOIN b [RANGE 5] USING (k)"
    assert _rows(sql, data) == [(0, 5, 11, 12)]


def test_a_stream_meets_itself() -> None:
    sql = (
        "SELECT count(*) AS n, sum(b.total) AS s "
        "FROM orders [RANGE 10 SLIDE 10] a, orders [RANGE 10] b "
        "WHERE a.region = b.region AND a.total > 40"
    )
    assert _rows(sql) == [(0, 10, 4, 240)]


def test_bounds_are_those_of_the_first_streams_times() -> None:
    data = {
        "a": pa.table({"ts": pa.array([1_500_000], pa.timestamp("us", "UTC")), "k": [1]}),
        "b": pa.table({"ts": pa.array([1], pa.timestamp("s")), "k": [1]}),
    }
    sql = "SELECT count(*) FROM a [RANGE '1 s' SLIDE '1 s'] JOIN b [RANGE '3 s'] ON a.k = b.k"
    found = muntin.aggregate(data, sql, time="ts")["q1"]
    assert found.schema.field("window_end").type == pa.timestamp("us", "UTC")
    # It ends two seconds after the epoch; the longest RANGE says where it starts.
    assert found["window_start"].cast("int64").to_pylist() == [-1_000_000]


def test_numbers_of_rows_that_do_not_fit_are_null_and_counted() -> None:
    rows = 4000
    data = {
        name: pa.table({"ts": [1] * rows, "k": [1] * rows, "v": list(range(rows))})
        for name in "abcdef"
    }
    joins = " ".join(f"JOIN {name} [RANGE 5] ON a.k = {name}.k" for name in "bcdef")
    sql = f"SELECT count(*) AS n, sum(a.v) AS s, max(b.v) AS m FROM a [RANGE 5 SLIDE 5] {joins}"
    results = muntin.aggregate(data, sql, time="ts")
    assert results["q1"].to_pylist() == [
        {"window_start": 0, "window_end": 5, "n": None, "s": None, "m": rows - 1}
    ]
    assert results.errors == {"q1": 2}
    five = " ".join(f"JOIN {name} [RANGE 5] ON a.k = {name}.k" for name in "bcde")
    exact = f"SELECT count(*) AS n, sum(a.v) AS s FROM a [RANGE 5 SLIDE 5] {five} WHERE a.v < 9"
    assert _rows(exact, data) == [(0, 5, 9 * rows**4, 36 * rows**4)]


def test_a_query_that_joins_late_begins_with_windows_that_all_sides_hold() -> None:
    with muntin.stream("SELECT count(*) FROM orders [RANGE 5 SLIDE 5]", COLUMNS) as stream:
        stream.feed(_orders((3, 7, "n", 1), (12, 8, "n", 1)), "orders")
        stream.feed(_payments((13, 8, 1.0)), "payments")
        stream.add(f"CREATE QUERY late AS SELECT count(*) AS n {KEPT}")
        found = [stream.feed(_orders((24, 9, "n", 1)), "orders")["late"]]
        found.append(stream.feed(_payments((24, 9, 1.0)), "payments")["late"])
        found.append(stream.feed(_orders((31, 9, "n", 1)), "orders")["late"])
        found.append(stream.feed(_payments((31, 9, 1.0), (32, 9, 1.0)), "payments")["late"])
        stream.remove("late")
        assert "late" not in stream.feed(_payments((40, 8, 1.0)), "payments")
    shown = [tuple(row.values()) for table in found for row in table.to_pylist()]
    # The order of 12 came before it joined: no window that could hold it is answered.
    assert shown == [(15, 25, 1), (20, 30, 1)]


def test_windows_wait_for_the_slowest_stream() -> None:
    stream = muntin.stream(f"SELECT count(*) AS n {PAID}", COLUMNS)
    assert not len(stream.feed(_orders((1, 7, "n", 1), (30, 8, "n", 1)), "orders")["q1"])
    assert not len(stream.feed(_payments((4, 7, 1.0)), "payments")["q1"])
    found = stream.feed(_payments((11, 7, 1.0)), "payments")["q1"]
    assert found.to_pylist() == [{"window_start": -5, "window_end": 5, "n": 1}]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT count(*) FROM orders [RANGE 5] o JOIN payments [RANGE 5] p ON o.id = p.order_id",
         "an aggregate over joined streams needs SLIDE"),
        ("SELECT count(*) FROM orders [RANGE 5 SLIDE 5] o JOIN payments [RANGE 5] p ON o.id > 1",
         "nothing joins the streams o, p"),
        (f"SELECT o.total, count(*) {PAID}", "total is neither in GROUP BY nor"),
        (f"SELECT o.id, count(*) {PAID} GROUP BY o.id HAVING z.v > 1",
         "there is no stream z, and no column z in GROUP BY"),
        (f"SELECT z.v, count(*) {PAID}", "there is no stream z, and no column z in GROUP BY"),
        (f"SELECT count(*) {PAID} GROUP BY z.v", "no column, stream or table z"),
        (f"SELECT count(*) {PAID} WHERE z.v > 1", "no column, stream or table z"),
        (f"SELECT sum(z.v) {PAID}", "no column, stream or table z"),
        (f"SELECT DISTINCT o.region, count(*) {PAID} GROUP BY o.region",
         "an aggregate with SELECT DISTINCT"),
        (f"SELECT sum(p.nothing) {PAID}", "no column nothing in p"),
        (f"SELECT sum(o.region) {PAID}", "sum takes a number, not string"),
        (f"SELECT o.region, count(*) {PAID} GROUP BY o.region EMIT EMPTY",
         "EMIT EMPTY with GROUP BY"),
        (f"SELECT count(*) {KEPT} EMIT UNMATCHED", "EMIT UNMATCHED with an aggregate"),
        (f"Istream(SELECT count(*) {PAID})", "Istream, Dstream or Wstream with an aggregate"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_at_its_place(sql: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        muntin.aggregate(DATA, sql, time="ts")
    assert message in str(caught.value)
    assert "Hint" in str(caught.value)


def test_tables_beside_joined_streams() -> None:
    names = pa.table({"code": ["n", "s"], "name": ["north", "south"]})
    sql = f"""SELECT r.name, count(*) AS n, sum(p.amount) AS s {PAID}
    JOIN regions r ON o.region = r.code WHERE r.name <> 'south' GROUP BY r.name"""
    assert _rows(sql, tables={"regions": names}) == [
        (-5, 5, "north", 1, 50.5),
        (0, 10, "north", 2, 13.25),
    ]
    stream = muntin.stream(sql, COLUMNS, tables={"regions": names})
    found = [stream.feed(DATA[name], name)["q1"] for name in DATA]
    found.append(stream.close()["q1"])
    rows = [tuple(row.values()) for table in found for row in table.to_pylist()]
    assert rows == _rows(sql, tables={"regions": names})
    results = muntin.aggregate(DATA, sql, time="ts", tables={"regions": names})
    assert "because rows of o are joined with a table" in results.row_plan.explain()


def test_explain_says_which_way_and_why() -> None:
    sql = f"""
    CREATE QUERY paid AS SELECT o.region, sum(p.amount) {PAID} WHERE o.total > 9 GROUP BY o.region;
    CREATE QUERY worth AS SELECT sum(o.total * p.amount) {PAID}
    """
    text = muntin.aggregate(DATA, sql, time="ts").row_plan.explain()
    # The operators below are shown as those of any row query.
    assert (
        text.split("   └─ select")[0]
        == """\
RowPlan  2 queries over 2 streams
├─ paid  no pairs: per key, each side's answers are multiplied and added over keys
│  │  because all that is asked can be read off one side at a time
│  │  computes sum(p.amount)
│  │  moves by the least W of orders, payments
│  ├─ orders [RANGE 10]  on id  where total > 9
│  │     keeps count(*) per slice, id, region
│  │     answered as query paid.o
│  └─ payments [RANGE 5]  on order_id
│        keeps count(*), sum(amount) per slice, order_id
│        answered as query paid.p
└─ worth  by pairs: each row of the join is made once, for all windows that see it
   │  because sum(o.total * p.amount) rounds every product
   │  computes sum(o.total * p.amount)
   │  moves by the least W of orders, payments
"""
    )


def test_queries_of_one_shape_answer_as_they_do_alone() -> None:
    conditions = (
        "o.total > 9",
        "p.amount > 5 AND o.region = 'n'",
        "o.total > p.amount",
        "o.total = 1 OR o.region = 's' OR o.id > 8",
    )
    texts = [
        f"CREATE QUERY q{i} AS SELECT count(*) AS n, sum(p.amount) AS s {PAID} WHERE {condition}"
        for i, condition in enumerate(conditions)
    ]
    together = muntin.aggregate(DATA, texts, time="ts")
    ways = [final.way for final in together.row_plan.joined]
    assert ways == ["sides", "sides", "pairs", "sides"]
    for i, text in enumerate(texts):
        alone = muntin.aggregate(DATA, text, time="ts")[f"q{i}"]
        assert together[f"q{i}"].equals(alone)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("p.nothing > 1", "query q2: no column nothing in p"),
        ("o.region", "query q2: a condition must be a boolean, region has the type STRING"),
        ("o.total > 'x' + p.ts", "query q2"),
    ],
)
def test_problems_of_a_known_shape_are_those_of_the_users_query(
    condition: str, message: str
) -> None:
    texts = [
        f"SELECT count(*) {PAID} WHERE o.total > 1",
        f"SELECT count(*) {PAID} WHERE {condition}",
    ]
    with pytest.raises(QueryError) as caught:
        muntin.aggregate(DATA, texts, time="ts")
    assert message in str(caught.value)
    assert "q2." not in str(caught.value)
