"""A run writes to databases, and goes on there after a batch that its checkpoint forgot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

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

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        for target in self.targets:
            target.deliver(batch_id, tables)

    def close(self) -> None:
        for target in self.targets:
            target.close()


def test_a_run_writes_each_row_once(spark: Any, tmp_path: Path) -> None:
    stream, checkpoint = FolderStream(tmp_path / "in"), tmp_path / "ck"
    batches = parts(trades(3000, seed=4, seconds=5000), 2)
    with running_postgres() as server:
        file = sinks.duckdb(tmp_path / "r.duckdb")
        for batch in batches:
            stream.put(batch)
            started = run(
                stream.frame(spark),
                QUERIES,
                trigger="available_now",
                checkpoint=checkpoint,
                sink=Both(file, sinks.postgres(server.url())),
                partitions=2,
            )
            assert started.await_termination(120)
            # As if the driver had died between the sink's commit and Spark's.
            last = max((checkpoint / "spark" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
            if batch is batches[0]:
                last.unlink()
        answers = expected(batches, [QUERIES] * 2)
        with psycopg.connect(server.url()) as connection:
            for name, wanted in answers.items():
                assert_same_rows(file.table(name).cast(wanted.schema), wanted)
                columns = ", ".join(wanted.column_names)
                rows = connection.execute(f"SELECT {columns} FROM {name}").fetchall()
                found = pa.Table.from_arrays(
                    [pa.array(column) for column in zip(*rows, strict=True)], wanted.column_names
                )
                assert_same_rows(found.cast(wanted.schema), wanted)
