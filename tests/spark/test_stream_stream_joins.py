"""Spark's own stream-stream joins beside ours: the same pairs, the same rows without a partner."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.functions import expr

from muntin import sinks
from muntin.api import run
from spark.folder_stream import PATIENCE, FolderStream
from spark.test_row_queries import MINUTE, ORDERS, PAYMENTS, TIMES, cut, orders, payments, rows_of

KINDS = {"inner": "JOIN", "left_outer": "LEFT JOIN", "full_outer": "FULL JOIN"}
COLUMNS = ["ts", "id", "paid_at", "order_id", "amount"]
# Rows after all others, with which W passes the ends of these.
FAR, LAST = 10_000 * MINUTE, -1


@pytest.fixture
def few_partitions(spark: Any) -> Iterator[None]:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, "2")
    yield
    spark.conf.set(name, before)


def theirs(spark: Any, folders: dict[str, FolderStream], how: str, checkpoint: Path) -> Any:
    """What Spark's join gives, where two rows meet that are less than their windows apart."""
    frames = {
        name: folder.frame(spark).withWatermark(TIMES[name], "2 minutes")
        for name, folder in folders.items()
    }
    near = "ts < paid_at + INTERVAL 20 MINUTES AND paid_at < ts + INTERVAL 30 MINUTES"
    on = expr(f"id = order_id AND {near} AND amount >= total")
    joined = frames["orders"].join(frames["payments"], on, how)
    name = f"joined_{how}"
    writer = joined.select(*COLUMNS).writeStream.format("memory").queryName(name)
    started = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = started.start()
    assert query.awaitTermination(PATIENCE)
    return spark.table(name).toArrow()


def ours(how: str) -> str:
    outer = "" if how == "inner" else " EMIT UNMATCHED"
    return f"""CREATE QUERY {how} AS SELECT o.ts, o.id, p.paid_at, p.order_id, p.amount
      FROM orders [RANGE '30 minutes'] o {KINDS[how]} payments [RANGE '20 minutes'] p
      ON o.id = p.order_id AND p.amount >= o.total{outer};"""


def test_pairs_and_rows_without_a_partner_are_those_of_spark(
    spark: Any, tmp_path: Path, few_partitions: None
) -> None:
    rng = random.Random(12)
    given = {"orders": orders(rng, 90, 150), "payments": payments(rng, 90, 150)}
    last = {"orders": (FAR, LAST, "z", 0.0), "payments": (FAR, LAST, 0.0)}
    folders = {}
    for name, schema in (("orders", ORDERS), ("payments", PAYMENTS)):
        folders[name] = FolderStream(tmp_path / name, schema)
        columns = [[value] for value in last[name]]
        end = pa.table(columns, schema=given[name].schema)
        for batch in [*cut(given[name], 3), end]:
            folders[name].put(batch)
    started = run(
        {name: folder.frame(spark) for name, folder in folders.items()},
        "".join(map(ours, KINDS)),
        TIMES,
        lateness="2 minutes",
        sink=sinks.parquet(tmp_path / "out"),
        checkpoint=tmp_path / "ck",
        trigger="available_now",
        partitions=2,
        buckets=3,
    )
    assert started.await_termination(PATIENCE)
    output = sinks.read(tmp_path / "out")
    counts = []
    for how in KINDS:
        found = [
            {row: count for row, count in rows_of(table.select(COLUMNS)).items() if LAST not in row}
            for table in (output[how], theirs(spark, folders, how, tmp_path / f"ck-{how}"))
        ]
        assert found[0] == found[1], how
        counts.append(sum(found[0].values()))
    # There are pairs, and rows of either side without a partner.
    assert 5 < counts[0] < counts[1] < counts[2]
