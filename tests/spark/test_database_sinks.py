"""A run writes to databases, and goes on there after a batch that its checkpoint forgot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

import muntin
from muntin import sinks
from muntin.api import run
from muntin.testing import assert_same_rows, trades
from sinks.postgres_process import running_postgres
from spark.folder_stream import FolderStream, expected, parts

QUERIES = """
CREATE QUERY turnover AS
  SELECT sum(price * vol) AS value FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];
CREATE QUERY vwap AS SELECT window_start AS since, symbol, sum(price * vol) / sum(vol) AS vwap
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;
"""
ROWS = """
CREATE QUERY pairs AS SELECT x.symbol, x.vol, y.vol AS other FROM trades [RANGE '3 minutes'] x
  JOIN trades [RANGE '1 minute'] y ON x.symbol = y.symbol WHERE x.vol > y.vol AND y.vol > 500;
CREATE QUERY highest WITH (output = 'changes') AS
  SELECT t.symbol, t.price FROM trades [RANGE '3 minutes'] t
  WHERE NOT EXISTS (SELECT 1 FROM trades [RANGE '1 minute'] u
                    WHERE u.symbol = t.symbol AND u.price > t.price);
"""


class Both(sinks.DriverSink):
    """Everything goes to several sinks."""

    def __init__(self, *targets: sinks.DriverSink) -> None:
        self.targets = targets

    def recover(self, last_batch: int, *, run: str = "") -> None:
        for target in self.targets:
            target.recover(last_batch, run=run)

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        for target in self.targets:
            target.declare(schemas)

    def reach(self, times: Mapping[str, pa.Scalar]) -> None:
        for target in self.targets:
            target.reach(times)

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        for target in self.targets:
            target.deliver(batch_id, tables)

    def close(self) -> None:
        for target in self.targets:
            target.close()


def rows_expected(batches: list[pa.Table]) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """What queries over rows show of some batches, and what is alive at the end."""
    stream = muntin.stream(ROWS, {"trades": batches[0].schema})
    found: dict[str, list[pa.Table]] = {}
    for batch in batches:
        for name, table in stream.feed(batch, "trades").items():
            found.setdefault(name, []).append(table)
    shown = {name: pa.concat_tables(parts) for name, parts in found.items()}
    reached = stream.reached()["pairs"].as_py()
    alive: list[dict[str, Any]] = []
    for row in shown["highest"].to_pylist():
        op, _ = row.pop("op"), row.pop("at")
        (alive.append if op == "+" else alive.remove)(row)
    schema = pa.schema(list(shown["highest"].schema)[2:])
    living = {
        "highest": pa.Table.from_pylist(
            [row for row in alive if row["valid_to"] > reached], schema
        ),
        "pairs": shown["pairs"].filter(pc.field("valid_to") > reached),
    }
    return shown, living


def check(file: Any, connection: Any, schema: str, answers: Mapping[str, pa.Table]) -> None:
    """Both databases hold some tables."""
    for name, wanted in answers.items():
        assert wanted.num_rows, name
        assert_same_rows(file.table(name).cast(wanted.schema), wanted)
        columns = ", ".join(wanted.column_names)
        rows = connection.execute(f"SELECT {columns} FROM {schema}.{name}").fetchall()
        found = pa.Table.from_arrays(
            [pa.array(column) for column in zip(*rows, strict=True)], wanted.column_names
        )
        assert_same_rows(found.cast(wanted.schema), wanted)


def test_a_run_writes_each_row_once(spark: Any, tmp_path: Path) -> None:
    stream, checkpoint = FolderStream(tmp_path / "in"), tmp_path / "ck"
    batches = parts(trades(3000, seed=4, seconds=5000), 2)
    with running_postgres() as server:
        file = sinks.duckdb(tmp_path / "r.duckdb")
        living = sinks.duckdb(tmp_path / "live.duckdb", live=True)
        for batch in batches:
            stream.put(batch)
            started = run(
                stream.frame(spark),
                QUERIES + ROWS,
                trigger="available_now",
                checkpoint=checkpoint,
                sink=Both(
                    *(file, living, sinks.postgres(server.url())),
                    sinks.postgres(server.url(), schema="live", live=True),
                ),
                partitions=2,
            )
            assert started.await_termination(120)
            # As if the driver had died between the sink's commit and Spark's.
            last = max((checkpoint / "spark" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
            if batch is batches[0]:
                last.unlink()
        answers = expected(batches, [QUERIES] * 2)
        shown, alive = rows_expected(batches)
        with psycopg.connect(server.url()) as connection:
            check(file, connection, "public", answers | shown)
            check(living, connection, "live", answers | alive)
