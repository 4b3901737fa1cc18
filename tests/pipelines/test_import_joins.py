"""Interval joins of Spark and Flink: translated as golden files, and answered alike."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import muntin
from muntin.pipelines.importers import import_sql
from muntin.queries import RowQuery

GOLDEN = Path(__file__).parents[1] / "golden" / "imports"
MINUTE = 60_000_000


@pytest.mark.parametrize("name", ["joins.flink", "joins.spark"])
def test_golden(name: str) -> None:
    found = import_sql((GOLDEN / f"{name}.sql").read_text())
    assert found.dialect == name.partition(".")[2]
    expected = GOLDEN / f"{name}.muntin.sql"
    if os.environ.get("MUNTIN_UPDATE_GOLDEN"):
        expected.write_text(found.text)
    assert found.text == expected.read_text()


def rows(seed: int, *names: str) -> pa.Table:
    """A row at some minutes of two days, at equal times among them."""
    draw = random.Random(seed)
    times = sorted(draw.randrange(2 * 24 * 12) * 5 * MINUTE for _ in range(150))
    columns: dict[str, Any] = {names[0]: pa.array(times, pa.timestamp("us"))}
    columns[names[1]] = [draw.choice([None, *range(12)]) for _ in times]
    for name in names[2:]:
        columns[name] = [draw.choice("xyz") for _ in times]
    return pa.table(columns)


PAIRS = {
    "shipped": "LEFT JOIN shipments s ON o.id = s.order_id"
    " AND o.order_time BETWEEN s.ship_time - INTERVAL '4' HOUR AND s.ship_time",
    "around": "JOIN shipments s ON o.id = s.order_id AND s.carrier <> 'x'"
    " AND s.ship_time > o.order_time - INTERVAL '10' MINUTE"
    " AND s.ship_time < o.order_time + INTERVAL '4' HOUR",
    "slow": "FULL JOIN shipments s ON o.id = s.order_id"
    " AND s.ship_time >= o.order_time + INTERVAL '1' HOUR"
    " AND s.ship_time <= o.order_time + INTERVAL '1' DAY",
    "early": "RIGHT JOIN shipments s ON o.id = s.order_id"
    " AND s.ship_time BETWEEN o.order_time - INTERVAL '1' HOUR"
    " AND o.order_time - INTERVAL '1' MINUTE",
}


@pytest.fixture(scope="module")
def queries() -> dict[str, RowQuery]:
    found = import_sql((GOLDEN / "joins.flink.sql").read_text())
    return {query.name: query for query in found.pipeline.rows}


def test_all_pairs_are_carried_over(queries: dict[str, RowQuery]) -> None:
    assert list(queries) == list(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_those_of_the_join(name: str, queries: dict[str, RowQuery]) -> None:
    orders = rows(1, "order_time", "id")
    shipments = rows(2, "ship_time", "order_id", "carrier")
    times = {"orders": "order_time", "shipments": "ship_time"}
    data = {"orders": orders, "shipments": shipments}
    found = muntin.aggregate(data, [queries[name]], times)[name].drop_columns(
        ["valid_from", "valid_to"]
    )
    with duckdb.connect() as connection:
        connection.register("orders", orders)
        connection.register("shipments", shipments)
        wanted = connection.sql(f"SELECT o.id, s.carrier FROM orders o {PAIRS[name]}").fetchall()
    assert wanted
    given = [tuple(row.values()) for row in found.to_pylist()]
    assert sorted(map(repr, given)) == sorted(map(repr, wanted))


DECLARED = {
    "spark": (
        "CREATE TABLE orders (order_time TIMESTAMP_NTZ, id BIGINT) USING parquet LOCATION 'o';"
        "CREATE TABLE shipments (ship_time TIMESTAMP_NTZ, order_id BIGINT, carrier STRING)"
        " USING parquet LOCATION 's';\n"
    ),
    "flink": (
        "CREATE TABLE orders (order_time TIMESTAMP(6), id BIGINT,"
        " WATERMARK FOR order_time AS order_time)"
        " WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'parquet');"
        "CREATE TABLE shipments (ship_time TIMESTAMP(6), order_id BIGINT, carrier STRING,"
        " WATERMARK FOR ship_time AS ship_time)"
        " WITH ('connector' = 'filesystem', 'path' = 's', 'format' = 'parquet');\n"
    ),
}
AFTER = "s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR"
AROUND = "ship_time BETWEEN order_time - INTERVAL '1' HOUR AND order_time + INTERVAL '4' HOUR"
LATER = (
    "s.ship_time > o.order_time + INTERVAL '1' HOUR"
    " AND s.ship_time <= o.order_time + INTERVAL '6' HOUR"
)
BEFORE = "s.ship_time BETWEEN o.order_time - INTERVAL '9' HOUR AND o.order_time - INTERVAL '1' HOUR"
SELECTS = [
    "SELECT o.id FROM orders o"
    f" WHERE {{}} (SELECT 1 FROM shipments s WHERE o.id = s.order_id AND {bound})"
    for bound in (AFTER, LATER, BEFORE, AFTER + " AND s.carrier <> 'x' AND o.id > 3")
]
SELECTS.append(
    "SELECT * FROM orders WHERE id > 2"
    f" AND {{}} (SELECT * FROM shipments WHERE id = order_id AND {AROUND})"
)
PARTNERS = [select.format(word) for word in ("EXISTS", "NOT EXISTS") for select in SELECTS]
PARTNERS += [
    f"SELECT id FROM orders o {side} JOIN shipments s ON o.id = s.order_id AND {bound}"
    for side in ("SEMI", "ANTI")
    for bound in (AFTER, BEFORE, "NOT (s.ship_time < o.order_time OR s.ship_time > o.order_time)")
]
PARTNERS += [
    f"SELECT id FROM orders o WHERE id IN (SELECT order_id FROM shipments s WHERE {LATER})",
    "SELECT id, carrier FROM orders o JOIN shipments s ON id = order_id AND ship_time = order_time",
    (
        "SELECT id, carrier FROM orders o JOIN shipments s ON id = order_id"
        " AND ship_time - order_time BETWEEN INTERVAL '10' MINUTE AND INTERVAL '3' HOUR"
    ),
    (
        "SELECT id, carrier FROM orders o JOIN shipments s ON id = order_id"
        " AND NOT (ship_time < order_time) AND NOT ship_time >= order_time + INTERVAL '2' HOUR"
    ),
]


@pytest.mark.parametrize("dialect", ["spark", "flink"])
@pytest.mark.parametrize("select", PARTNERS)
def test_rows_with_and_without_partners(select: str, dialect: Any) -> None:
    """Each row once, however often its partners come."""
    written = select
    if dialect == "spark":
        written = select.replace(" SEMI JOIN", " LEFT SEMI JOIN").replace(" ANTI", " LEFT ANTI")
    found = import_sql(f"{DECLARED[dialect]}CREATE VIEW v AS {written};", dialect)
    assert not found.lost
    (query,) = found.pipeline.rows
    data = {
        "orders": rows(1, "order_time", "id"),
        "shipments": rows(2, "ship_time", "order_id", "carrier"),
    }
    times = {"orders": "order_time", "shipments": "ship_time"}
    given = muntin.aggregate(data, [query], times)["v"].drop_columns(["valid_from", "valid_to"])
    with duckdb.connect() as connection:
        for name, table in data.items():
            connection.register(name, table)
        wanted = connection.sql(select).fetchall()
    assert wanted
    listed = [tuple(row.values()) for row in given.to_pylist()]
    assert sorted(map(repr, listed)) == sorted(map(repr, wanted))


JOIN = "SELECT id, carrier FROM orders o {} shipments s ON id = order_id"
REFUSED = {
    "SELECT id FROM orders o WHERE id NOT IN (SELECT order_id FROM shipments)": "NOT IN (SELECT",
    "SELECT id FROM orders o WHERE id IN (SELECT order_id FROM shipments)": (
        "IN (SELECT ...) compares no times"
    ),
    "SELECT id FROM orders o WHERE id = 1 OR EXISTS (SELECT 1 FROM shipments s)": (
        "this EXISTS has no counterpart"
    ),
    JOIN.format("LEFT SEMI JOIN"): "SEMI JOIN compares no times",
    JOIN.format("LEFT SEMI JOIN") + " LEFT ANTI JOIN shipments t ON id = t.order_id": (
        "SEMI or ANTI JOIN beside another join"
    ),
    JOIN.format("JOIN"): "the join compares no times of orders and shipments",
    JOIN.format("LEFT JOIN")
    + " WHERE ship_time BETWEEN order_time AND order_time + INTERVAL '1' DAY": (
        "the times are compared in WHERE, behind LEFT JOIN"
    ),
    JOIN.format("JOIN") + " AND ship_time BETWEEN order_time AND order_time + INTERVAL '1' MONTH": (
        "has no fixed length"
    ),
    JOIN.format("JOIN") + " AND unix_timestamp(ship_time) - unix_timestamp(order_time) < 9": (
        "is not understood as a bound"
    ),
    "SELECT DISTINCT id FROM orders": "SELECT DISTINCT without a window",
    "SELECT id + 1 AS n FROM orders": "the query has no window, and no aggregate",
}


@pytest.mark.parametrize("dialect", ["spark", "flink"])
@pytest.mark.parametrize("select", REFUSED)
def test_what_is_refused_is_told_why_once(select: str, dialect: Any) -> None:
    done = import_sql(f"{DECLARED[dialect]}INSERT INTO out {select};", dialect)
    (note,) = done.lost
    assert REFUSED[select] in note.problem.message
    assert note.problem.hint
    assert (note.problem.line, note.problem.column > 1) == (2, True)
    assert "not carried over:" in done.text


def test_a_bound_that_says_more_is_kept() -> None:
    text = DECLARED["spark"].replace("id BIGINT)", "id BIGINT, due TIMESTAMP_NTZ)", 1)
    done = import_sql(
        text + "SELECT o.id FROM orders o JOIN shipments s ON o.id = s.order_id AND s.ship_time"
        " BETWEEN o.order_time AND o.due AND s.ship_time <= o.order_time + INTERVAL 1 HOUR;"
    )
    (query,) = done.pipeline.rows
    assert "s.ship_time BETWEEN o.order_time AND o.due" in query.sql()


@pytest.mark.parametrize("dialect", ["spark", "flink"])
def test_views_that_no_query_reads_are_not_dropped_in_silence(dialect: Any) -> None:
    text = (
        "CREATE VIEW a AS SELECT * FROM orders WHERE id > 1;\n"
        "CREATE VIEW b AS SELECT * FROM a WHERE id > 2;\n"
        "CREATE VIEW c AS SELECT * FROM orders WHERE id > 3;\n"
        "CREATE VIEW d AS SELECT * FROM c WHERE id > 4;\n"
        f"CREATE VIEW e AS SELECT d.id FROM d JOIN shipments s ON d.id = s.order_id AND "
        f"{AFTER.replace('o.', 'd.')};\n"
    )
    done = import_sql(DECLARED[dialect] + text, dialect)
    said = [(note.problem.line, note.problem.message) for note in done.lost]
    assert said == [(2, "no query reads the view a"), (3, "no query reads the view b")]
    assert done.text.count("the view is written out") == 2
    assert [query.name for query in done.pipeline.rows] == ["e"]


def test_a_view_with_conditions_is_not_written_out_where_it_is_padded() -> None:
    done = import_sql(
        DECLARED["spark"] + "CREATE VIEW c AS SELECT * FROM orders WHERE id > 3;"
        f"SELECT c.id FROM c RIGHT JOIN shipments s ON c.id = s.order_id AND "
        f"{AFTER.replace('o.', 'c.')};"
    )
    (note,) = done.lost
    assert note.problem.message == "c is a view, and stands in a join or a subquery"
