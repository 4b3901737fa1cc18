"""Live tables: the rows of an answer while they are in it, in DuckDB and PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import muntin
from muntin import sinks
from muntin.sinks import SinkError
from sinks.database_results import deliver
from sinks.postgres_process import PostgresProcess, running_postgres

COLUMNS = {"ts": pa.int64(), "id": pa.int64(), "v": pa.float64()}
SCHEMA = pa.schema(COLUMNS)
UNPAID = """
    CREATE QUERY unpaid WITH (output = 'changes') AS
    SELECT o.id, o.v FROM orders [RANGE 10] o
    WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE 5] p WHERE p.id = o.id)
"""
PAIRS = """
    CREATE QUERY pairs AS SELECT o.id, p.v FROM orders [RANGE 10] o
    JOIN payments [RANGE 5] p ON p.id = o.id
"""
Read = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as started:
        yield started


@pytest.fixture(params=["duckdb", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, Read]]:
    if request.param == "duckdb":
        file = sinks.duckdb(tmp_path / "live.duckdb", live=True)
        file.recover(-1, run="one")
        yield file, lambda query: [tuple(row.values()) for row in file.table(query).to_pylist()]
        return
    server = request.getfixturevalue("server")
    schema = tmp_path.name
    made = sinks.postgres(server.url(), schema=schema, live=True)
    made.recover(-1, run="one")

    def read(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(server.url()) as connection:
            return connection.execute(f'SELECT * FROM "{schema}"."{query}"').fetchall()

    yield made, read
    made.close()


def batches(seed: int) -> Iterator[tuple[str, pa.Table]]:
    draw = random.Random(seed)
    for number in range(16):
        name, now = ("orders", "payments")[number % 2], 5 * (number // 2)
        times = sorted(now + draw.randrange(6) for _ in range(draw.randrange(1, 6)))
        values = [draw.choice([None, 0.0, float("nan")]) for _ in times]
        keys = [draw.randrange(3) for _ in times]
        yield name, pa.table({"ts": times, "id": keys, "v": values}, schema=SCHEMA)


def comparable(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def test_the_table_is_the_answer_as_of_w(opened: tuple[Any, Read]) -> None:
    sink, read = opened
    stream = muntin.stream(UNPAID + ";" + PAIRS, {"orders": SCHEMA, "payments": SCHEMA})
    finals = stream.row_plan().finals
    sink.check_outputs({final.name: final.shown for final in finals})
    sink.declare({final.name: final.schema for final in finals})
    alive: dict[str, list[tuple[Any, ...]]] = {"unpaid": [], "pairs": []}
    for number, (name, rows) in enumerate(batches(7)):
        found = stream.feed(rows, name)
        marks = [each.watermark for each in stream.progress().streams.values()]
        reached = None if None in marks else min(mark for mark in marks if mark is not None)
        # A batch that is repeated, as after a crash, changes nothing.
        for _ in range(2):
            if reached is not None:
                sink.reach(dict.fromkeys(alive, pa.scalar(reached)))
            deliver(sink, number, **{query: found[query] for query in alive})
        alive["pairs"] += [tuple(row.values()) for row in found["pairs"].to_pylist()]
        for row in found["unpaid"].to_pylist():
            operation, _, *values = row.values()
            if operation == "+":
                alive["unpaid"].append(tuple(values))
            else:
                kept = list(map(repr, alive["unpaid"]))
                del alive["unpaid"][kept.index(repr(tuple(values)))]
        if reached is not None:
            alive = {
                query: [row for row in held if row[1] > reached] for query, held in alive.items()
            }
        assert comparable(read("unpaid")) == comparable(alive["unpaid"])
        assert comparable(read("pairs")) == comparable(alive["pairs"])
    assert alive["unpaid"]


def test_a_batch_without_results_drops_what_ended(opened: tuple[Any, Read]) -> None:
    sink, read = opened
    rows = pa.table({"valid_from": [1, 2], "valid_to": [5, None], "id": [7, 8]})
    sink.declare({"q": rows.schema})
    deliver(sink, 0, q=rows)
    sink.reach({"q": pa.scalar(4)})
    sink.commit(1, [])
    assert comparable(read("q")) == comparable([(1, 5, 7), (2, None, 8)])
    sink.reach({"q": pa.scalar(5)})
    sink.commit(2, [])
    assert read("q") == [(2, None, 8)]


def test_rows_that_come_once_they_have_ended_are_refused(tmp_path: Path) -> None:
    sink = sinks.duckdb(tmp_path / "live.duckdb", live=True)
    with pytest.raises(
        SinkError, match=r"late shows a row once it has ended.*\n.*output = 'changes'"
    ):
        sink.check_outputs({"fine": "changes", "late": "final"})
    sinks.duckdb(tmp_path / "log.duckdb").check_outputs({"late": "final"})


def test_a_log_of_changes_becomes_another_table_when_it_turns_live(tmp_path: Path) -> None:
    rows = pa.table({"op": ["+"], "at": [1], "valid_from": [1], "valid_to": [5], "id": [7]})
    log = sinks.duckdb(tmp_path / "r.duckdb")
    log.recover(-1, run="one")
    deliver(log, 0, q=rows)
    live = sinks.duckdb(tmp_path / "r.duckdb", live=True)
    live.recover(0, run="one")
    deliver(live, 1, q=rows)
    assert live.table("q").column_names == ["valid_from", "valid_to", "id"]
