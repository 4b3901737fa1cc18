"""Results on a real PostgreSQL server."""

from __future__ import annotations

import logging
import math
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

from muntin import sinks
from muntin.sinks import SinkError
from sinks.database_results import answers, declare, deliver
from sinks.postgres_process import PASSWORD, PostgresProcess, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as started:
        yield started


@pytest.fixture
def schema() -> str:
    return f"Schema {uuid4().hex[:8]}"


@pytest.fixture
def sink(server: PostgresProcess, schema: str) -> Iterator[sinks.PostgresSink]:
    made = sinks.postgres(server.url(), schema=schema, patience=20)
    made.recover(-1, run="one")
    declare(made, Spikes=answers(0, [], []))
    yield made
    made.close()


def rows(server: PostgresProcess, schema: str, table: str, columns: str = "*") -> list[Any]:
    with psycopg.connect(server.url()) as connection:
        return connection.execute(f'SELECT {columns} FROM "{schema}"."{table}"').fetchall()


def values(server: PostgresProcess, schema: str, table: str = "spikes") -> set[Any]:
    return set(rows(server, schema, table, "symbol, value"))


def test_a_repeated_batch_changes_nothing(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    assert values(server, schema) == set()
    for _ in range(2):
        deliver(sink, 0, Spikes=answers(0, ["A", None, "C"], [1.0, 2.0, 3.0]))
    deliver(sink, 0, Spikes=answers(0, ["A"], [9.0]))
    assert values(server, schema) == {("A", 1.0), (None, 2.0), ("C", 3.0)}
    again = sinks.postgres(server.url(), schema=schema)
    again.recover(-1, run="one")
    deliver(again, 0, Spikes=answers(0, ["A"], [9.0]))
    again.close()
    assert values(server, schema) == {("A", 1.0), (None, 2.0), ("C", 3.0)}


def test_rows_of_a_window_and_group_are_replaced(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    deliver(sink, 0, Spikes=answers(0, ["A", None], [1.0, 2.0]))
    deliver(sink, 1, Spikes=answers(60, ["A", None], [5.0, 6.0]))
    deliver(sink, 2, Spikes=answers(0, [None, "B"], [7.0, 8.0]))
    found = rows(server, schema, "spikes", "value")
    assert sorted(found) == [(1.0,), (5.0,), (6.0,), (7.0,), (8.0,)]


def test_values_of_every_kind_come_back(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    tricky = "tab\there\nline\r\\N \\. 'é☃"
    kinds = pa.table(
        {
            "time": pa.array([0, 1], pa.timestamp("us", "America/New_York")),
            "naive": pa.array([1, None], pa.timestamp("ms")),
            "day": pa.array([19_000, None], pa.date32()),
            "sum": pa.array(
                [Decimal("-123456789012345678901234567890.12"), None], pa.decimal128(38, 2)
            ),
            "yes": [True, None],
            "small": pa.array([-1, None], pa.int8()),
            "most": pa.array([2**64 - 1, None], pa.uint64()),
            'quo"ted; DROP TABLE x': [tricky, ""],
            "select": [math.inf, math.nan],
            "ctid": [b"\x00\\x", None],
            "word": pa.array([tricky, None]).dictionary_encode(),
            "length": pa.array([1_500_000, None], pa.duration("us")),
            "nested": [{"a": [1.5, None, math.nan], "s": 'q"\n\x01'}, None],
            "x" * 70: [1, 2],
        }
    )
    deliver(sink, 0, _Kinds=kinds)
    first, second = rows(server, schema, "q-_kinds")
    assert first[:-1] == (
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 0, 1000),
        date(2022, 1, 8),
        Decimal("-123456789012345678901234567890.12"),
        True,
        -1,
        2**64 - 1,
        tricky,
        math.inf,
        b"\x00\\x",
        tricky,
        timedelta(seconds=1.5),
        {"a": [1.5, None, "nan"], "s": 'q"\n\x01'},
    )
    assert math.isnan(second[8])
    assert second[7] == ""
    assert second[9:13] == (None,) * 4


def test_years_beyond_python(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    far = pa.table({"t": pa.array([253402300800_000_000], pa.timestamp("us", "UTC"))})
    deliver(sink, 0, far=far)
    assert rows(server, schema, "far", "extract(year FROM t AT TIME ZONE 'UTC')") == [(10000,)]
    early = pa.table({"t": pa.array([-62_135_596_800_000_001], pa.timestamp("us"))})
    with pytest.raises(SinkError, match="before the year 1"):
        deliver(sink, 1, early=early)


def test_what_postgres_cannot_hold_is_refused_whole(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    bad = answers(0, ["a\0b"], [1.0])
    with pytest.raises(SinkError, match="column symbol of table bad has a string with a NUL"):
        deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]), bad=bad)
    long = "".join(chr(0x4E00 + i) for i in range(4000))
    with pytest.raises(SinkError, match="shorten it in the query"):
        deliver(sink, 0, Spikes=answers(0, [long], [1.0]))
    with pytest.raises(SinkError, match="PostgreSQL has no such type"):
        deliver(sink, 0, m=pa.table({"m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8()))}))
    assert values(server, schema) == set()
    deliver(sink, 0, Spikes=answers(0, ["A"], [2.0]))
    assert values(server, schema) == {("A", 2.0)}


def test_a_replaced_query_gets_columns_or_a_table(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]))
    more = answers(0, ["A"], [2.0]).append_column("n", pa.array([7]))
    deliver(sink, 1, Spikes=more.drop_columns("value"))
    assert rows(server, schema, "spikes", "symbol, value, n") == [("A", None, 7)]
    other = answers(0, ["A"], [1.0]).drop_columns("symbol")
    sink.declare({"spikes": sinks.with_key(other.schema, ["window_start", "window_end"])})
    for batch in (2, 3):
        deliver(sink, batch, Spikes=other)
    assert rows(server, schema, "spikes", "value") == [(1.0,)]
    assert rows(server, schema, "spikes-1", "symbol, n") == [("A", 7)]
    with psycopg.connect(server.url()) as connection:
        connection.execute(f'CREATE TABLE "{schema}".taken (a integer)')
    with pytest.raises(SinkError, match=r"table taken .* that Muntin did not make"):
        declare(sink, Taken=other)


def test_many_queries_and_prefixes(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    other = sinks.postgres(server.url(), schema=schema, prefix="p_")
    other.recover(-1, run="one")
    tables = {f"q{i}": answers(0, [f"S{j}" for j in range(i)], [i] * i) for i in range(1, 30)}
    tables["large"] = answers(0, [f"S{i}" for i in range(12_000)], [0.0] * 12_000)
    tables["wide"] = pa.table({f"c{i}": [i] for i in range(20)})
    deliver(other, 0, **tables)
    other.close()
    assert {name: len(rows(server, schema, f"p_{name}", "1")) for name in tables} == {
        name: table.num_rows for name, table in tables.items()
    }
    assert rows(server, schema, "p_wide") == [tuple(range(20))]
    noted = rows(server, schema, "p__muntin_batches", "run, batch, query, results")
    assert set(noted) == {("one", 0, name, table.num_rows) for name, table in tables.items()}


def test_two_sinks_of_a_run_share_a_schema(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str
) -> None:
    aside = sinks.postgres(server.url(), schema=schema)
    aside.recover(-1, run="one")
    for _ in range(2):
        deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]))
        deliver(aside, 0, late_rows=pa.table({"v": [1, 1]}))
    aside.close()
    assert values(server, schema) == {("A", 1.0)}
    assert rows(server, schema, "late_rows") == [(1,), (1,)]


def test_runs_start_and_write_at_the_same_time(server: PostgresProcess, schema: str) -> None:
    def work(number: int) -> None:
        each = sinks.postgres(server.url(), schema=schema)
        each.recover(-1, run=f"run {number}")
        declare(each, **{f"q{number}": answers(0, [], [])})
        for batch in range(3):
            deliver(each, batch, **{f"q{number}": answers(60 * batch, ["A"], [batch])})
        each.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for number in range(4):
        assert len(rows(server, schema, f"q{number}")) == 3


def test_a_lost_connection_is_made_again(
    server: PostgresProcess,
    sink: sinks.PostgresSink,
    schema: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "muntin.sinks")
    deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]))
    server.stop()
    server.start()
    deliver(sink, 1, Spikes=answers(60, ["A"], [2.0]))
    server.stop(signal.SIGQUIT)
    later = threading.Timer(0.3, server.start)
    later.start()
    caplog.clear()
    deliver(sink, 2, Spikes=answers(120, ["A"], [3.0]))
    later.join()
    # Some attempts fail meanwhile; they are told as one.
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "is lost and tried again for up to 20 s" in told[0]
    assert "is back after" in told[1]
    assert values(server, schema) == {("A", 1.0), ("A", 2.0), ("A", 3.0)}
    server.stop()
    try:
        sink.patience = 0.1
        with pytest.raises(SinkError, match="cannot write results to"):
            deliver(sink, 3, Spikes=answers(180, ["A"], [4.0]))
    finally:
        server.start()


def test_a_connection_that_is_lost_in_the_commit_writes_once(
    server: PostgresProcess, sink: sinks.PostgresSink, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, fails = sink._attempt, iter([True, False])

    def lose_the_answer(work: Any, **how: Any) -> Any:
        done = attempt(work, **how)
        if next(fails):
            sink._connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return done

    monkeypatch.setattr(sink, "_attempt", lose_the_answer)
    deliver(sink, 0, other=pa.table({"v": [1]}))
    assert rows(server, schema, "other") == [(1,)]


def test_secrets_are_never_shown(
    server: PostgresProcess, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "wr0ng:p@/ss"
    monkeypatch.setenv("ELSEWHERE", server.url(wrong))
    sink = sinks.postgres(url_env="ELSEWHERE")
    with pytest.raises(SinkError, match="password authentication failed") as caught:
        sink.recover(-1)
    error = caught.value
    assert "ELSEWHERE" in str(error.hint)
    assert error.__suppress_context__
    shown = f"{error} {error!r} {sink!r} {vars(sink)} {caplog.text}"
    assert "wr0ng" not in shown
    assert sink._address.hide(f"bad {wrong} {PASSWORD}") == f"bad *** {PASSWORD}"
    for url in (
        "postgresql://me:s3cret@home@host/db",
        "postgresql://me:s3cret/home@host/db",
        "postgresql://me:s3cret%zz@host/db",
        "s3cret",
        "host=x passwd=s3cret",
    ):
        with pytest.raises(SinkError) as caught:
            sinks.postgres(url)
        assert "s3cret" not in str(caught.value)
        assert caught.value.hint


def test_mistakes_are_refused(server: PostgresProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUNTIN_POSTGRES_URL", raising=False)
    with pytest.raises(SinkError, match="variable MUNTIN_POSTGRES_URL is not set"):
        sinks.postgres()
    with pytest.raises(SinkError, match="url is empty"):
        sinks.postgres("")
    with pytest.raises(SinkError, match="schema must be a name"):
        sinks.postgres(server.url(), schema="")
    elsewhere = server.url().replace("/postgres?", "/missing?")
    with pytest.raises(SinkError, match='database "missing" does not exist'):
        sinks.postgres(elsewhere).recover(-1)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SinkError, match=r"muntin\[postgres\]"):
        sinks.postgres(server.url())
