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
