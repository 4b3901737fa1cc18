"""Results in a DuckDB file."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from muntin import sinks
from muntin.errors import UnknownQueryError
from muntin.sinks import SinkError
from sinks.database_results import answers, declare, deliver


@pytest.fixture
def sink(tmp_path: Path) -> sinks.DuckDBSink:
    made = sinks.duckdb(tmp_path / "deep" / "r.duckdb", patience=5)
    made.recover(-1, run="one")
    declare(made, Spikes=answers(0, [], []))
    return made


def values(sink: sinks.DuckDBSink, query: str) -> dict[str | None, float]:
    table = sink.table(query)
    return dict(zip(table["symbol"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_a_repeated_batch_changes_nothing(sink: sinks.DuckDBSink) -> None:
    assert sink.table("SPIKES").num_rows == 0
    for _ in range(2):
        deliver(sink, 0, Spikes=answers(0, ["A", None, "C"], [1.0, 2.0, 3.0]))
    deliver(sink, 0, Spikes=answers(0, ["A"], [9.0]))
    assert values(sink, "spikes") == {"A": 1.0, None: 2.0, "C": 3.0}


def test_rows_of_a_window_and_group_are_replaced(sink: sinks.DuckDBSink) -> None:
    deliver(sink, 0, Spikes=answers(0, ["A", None], [1.0, 2.0]))
    deliver(sink, 1, Spikes=answers(60, ["A", None], [5.0, 6.0]))
    deliver(sink, 2, Spikes=answers(0, [None, "B"], [7.0, 8.0]))
    assert sorted(sink.table("spikes")["value"].to_pylist()) == [1.0, 5.0, 6.0, 7.0, 8.0]


def test_two_sinks_of_a_run_share_a_file(sink: sinks.DuckDBSink) -> None:
    aside = sinks.duckdb(sink.path)
    aside.recover(-1, run="one")
    for _ in range(2):
        deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]))
        deliver(aside, 0, late_rows=pa.table({"v": [1, 1]}))
    assert values(sink, "spikes") == {"A": 1.0}
    assert aside.table("late_rows")["v"].to_pylist() == [1, 1]


def test_rows_without_a_key_are_added(sink: sinks.DuckDBSink) -> None:
    for batch in (0, 1, 1):
        deliver(sink, batch, other=pa.table({"window_end": [1], "v": [batch]}))
    assert sorted(sink.table("other")["v"].to_pylist()) == [0, 1]


def test_values_of_every_kind_come_back(sink: sinks.DuckDBSink) -> None:
    kinds = pa.table(
        {
            "time": pa.array([0, 253402300800_000_000], pa.timestamp("us", "UTC")),
            "naive": pa.array([0, None], pa.timestamp("us")),
            "sum": pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)),
            "yes": [True, None],
            'quo"ted; DROP TABLE x': ["é\0☃", "'"],
            "select": [math.inf, -math.inf],
            "nested": [{"a": [1, None]}, None],
        }
    )
    deliver(sink, 0, _kinds=kinds)
    found = sink.table("_kinds")
    assert found.cast(kinds.schema).equals(kinds)
    deliver(sink, 1, nan=pa.table({"v": [math.nan, -0.0]}))
    first, second = sink.table("nan")["v"].to_pylist()
    assert math.isnan(first)
    assert math.copysign(1, second) == -1


def test_a_replaced_query_gets_columns_or_a_table(sink: sinks.DuckDBSink) -> None:
    deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]))
    more = answers(60, ["A"], [2.0]).append_column("n", pa.array([7]))
    declare(sink, Spikes=more)
    deliver(sink, 1, Spikes=more)
    assert sink.table("spikes")["n"].to_pylist() == [None, 7]
    other = answers(0, ["A"], [1.0]).set_column(3, "value", pa.array(["text"]))
    declare(sink, Spikes=other)
    assert sink.table("spikes").num_rows == 2, "nothing changes before there are rows"
    deliver(sink, 2, Spikes=other)
    assert values(sink, "spikes") == {"A": "text"}
    with duckdb.connect(str(sink.path)) as connection:
        assert connection.sql('SELECT value FROM "spikes-1" ORDER BY 1').fetchall() == [
            (1.0,),
            (2.0,),
        ]


def test_a_database_ahead_of_its_checkpoint_is_refused(sink: sinks.DuckDBSink) -> None:
    deliver(sink, 3, Spikes=answers(0, ["A"], [1.0]))
    again = sinks.duckdb(sink.path)
    again.recover(2, run="one")
    again.recover(0, run="another")
    with pytest.raises(
        SinkError, match="up to batch 3, and the checkpoint has only finished batch 1"
    ):
        again.recover(1, run="one")
    with pytest.raises(SinkError, match="batch 2 was never committed"):
        deliver(sink, 2, Spikes=answers(0, ["A"], [4.0]))
    assert values(sink, "spikes") == {"A": 1.0}


def test_another_run_replaces_rows_or_is_refused(
    sink: sinks.DuckDBSink, caplog: pytest.LogCaptureFixture
) -> None:
    deliver(sink, 5, Spikes=answers(0, ["A", "B"], [1.0, 2.0]), other=pa.table({"v": [1]}))
    again = sinks.duckdb(sink.path)
    again.recover(-1, run="two")
    declare(again, spikes=answers(0, [], []))
    deliver(again, 0, spikes=answers(0, ["A"], [3.0]))
    assert values(sink, "spikes") == {"A": 3.0, "B": 2.0}
    assert "from another run" in caplog.text
    with pytest.raises(SinkError, match="table other holds the results of query other from"):
        deliver(again, 1, other=pa.table({"v": [1]}))


def test_an_error_in_a_batch_leaves_nothing_of_it(sink: sinks.DuckDBSink) -> None:
    with duckdb.connect(str(sink.path)) as connection:
        connection.execute("CREATE TABLE taken (a INTEGER)")
    with pytest.raises(SinkError, match=r"table taken .* that Muntin did not make"):
        deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]), taken=answers(0, ["A"], [1.0]))
    assert sink.table("spikes").num_rows == 0
    deliver(sink, 0, Spikes=answers(0, ["A"], [2.0]))
    assert values(sink, "spikes") == {"A": 2.0}


def test_two_runs_write_to_one_file(sink: sinks.DuckDBSink) -> None:
    other = sinks.duckdb(sink.path)
    other.recover(-1, run="two")
    declare(other, volume=answers(0, [], []))

    def work(each: sinks.DuckDBSink, query: str) -> None:
        for batch in range(4):
            deliver(each, batch, **{query: answers(60 * batch, ["A"], [batch])})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (sink, other), ("Spikes", "volume")))
    for query in ("spikes", "volume"):
        assert sorted(sink.table(query)["value"].to_pylist()) == [0.0, 1.0, 2.0, 3.0]


def test_a_commit_waits_for_a_reader(sink: sinks.DuckDBSink) -> None:
    code = (
        "import duckdb, sys, time\n"
        "connection = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print('open', flush=True); time.sleep(float(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(sink.path)]
    with subprocess.Popen([*command, "0.5"], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        deliver(sink, 0, Spikes=answers(0, ["A"], [1.0]))
    assert values(sink, "spikes") == {"A": 1.0}
    sink.patience = 0.1
    with subprocess.Popen([*command, "60"], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        with pytest.raises(SinkError, match="one process at a time"):
            deliver(sink, 1, Spikes=answers(60, ["A"], [1.0]))
        reader.kill()


def test_a_killed_writer_leaves_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    code = (
        "import sys; from muntin import sinks; from sinks.database_results import *\n"
        "sink = sinks.duckdb(sys.argv[1]); sink.recover(-1, run='one')\n"
        "for batch in range(10_000):\n"
        "    one, two = answers(batch, ['A', 'B'], [1, 2]), answers(batch, ['A'], [3])\n"
        "    deliver(sink, batch, a=one, b=two)\n"
        "    print(batch, flush=True)"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, env=environment
    ) as writer:
        assert writer.stdout is not None
        for _ in range(3):
            writer.stdout.readline()
        time.sleep(0.05)
        writer.kill()
    sink = sinks.duckdb(path)
    sink.recover(10_000, run="one")
    batches = sink.table("b").num_rows
    assert batches >= 3
    assert sink.table("a").num_rows == 2 * batches
    deliver(sink, batches, a=answers(batches, ["A"], [1]))
    assert sink.table("a").num_rows == 2 * batches + 1


def test_mistakes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for make in (
        lambda: sinks.duckdb(":memory:"),
        lambda: sinks.duckdb("s3://bucket/r.duckdb"),
        lambda: sinks.duckdb(tmp_path / "r", patience=-1),
    ):
        with pytest.raises(SinkError) as caught:
            make()
        assert caught.value.hint
    (tmp_path / "text").write_text("no database" * 1000)
    with pytest.raises(SinkError, match="not a valid DuckDB database"):
        sinks.duckdb(tmp_path / "text").recover(-1)
    with pytest.raises(SinkError, match="choose a folder, not a file"):
        sinks.duckdb(tmp_path / "text" / "r.duckdb").recover(-1)
    with pytest.raises(UnknownQueryError, match="no results of a query 'x'"):
        sinks.duckdb(tmp_path / "r").table("x")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SinkError, match=r"muntin\[duckdb\]"):
        sinks.duckdb(tmp_path / "r")
