"""Lists and structs, as aggregates over all values give them, in every sink."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import muntin
from muntin import sinks
from sinks.database_results import deliver
from sinks.postgres_process import PostgresProcess, running_postgres

ROWS = pa.table(
    {
        "ts": [1, 2, 3, 6, 7, 8, 12],
        "s": ["a\tb", 'q"', "a\tb", "é\\N", None, "{x}", None],
        "p": [1.5, math.nan, -0.0, None, 2.5, 2.5, None],
        "v": [3, 1, 3, 2, 2, 2, 5],
    }
)
SQL = """CREATE QUERY q WITH (bounds = true) AS SELECT
  top_k(s, 2) AS top, frequent(v, 0.5) AS often, collect_set(s) AS kinds, collect_list(p) AS every,
  percentile(v, array(0.0, 0.5)) AS ends, max_by(s, v, 2) AS who, approx_top_k(s, 2, 2) AS likely,
  approx_frequent(v, 0.5, 2) AS may, approx_percentile(p, array(0.5, 0.9)) AS about,
  approx_count_distinct(s) AS n FROM t [RANGE 5 SLIDE 5]"""
# A bound is a column of its own, as is whether a list is complete.
COMPANIONS = ("likely_complete", "may_complete", "about_low", "about_high", "n_low", "n_high")


@pytest.fixture(scope="module")
def answers() -> pa.Table:
    found = muntin.aggregate(ROWS, SQL, time="ts").table("q")
    assert set(COMPANIONS) <= set(found.column_names)
    assert found["top"].to_pylist()[-1] == []
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as started:
        yield started


def shown(rows: Any) -> list[str]:
    """Rows as they compare: NaN equals itself."""
    return sorted(map(repr, rows))


@pytest.mark.parametrize("kind", ["memory", "duckdb", "parquet", "callback"])
def test_sinks_that_know_lists_give_them_back(answers: pa.Table, kind: str, tmp_path: Path) -> None:
    got: list[pa.Table] = []
    sink: Any = {
        "memory": sinks.memory,
        "duckdb": lambda: sinks.duckdb(tmp_path / "r.duckdb"),
        "parquet": lambda: sinks.parquet(tmp_path / "r"),
        "callback": lambda: sinks.callback(lambda _batch, _query, rows: got.append(rows)),
    }[kind]()
    sink.recover(-1, run="one")
    sink.declare({"q": answers.schema})
    deliver(sink, 0, q=answers)
    found = pa.concat_tables(got) if kind == "callback" else sinks_table(sink, kind, tmp_path)
    own = found.select(answers.column_names).cast(answers.schema)
    assert shown(own.to_pylist()) == shown(answers.to_pylist())


def sinks_table(sink: Any, kind: str, folder: Path) -> pa.Table:
    return sinks.read(folder / "r")["q"] if kind == "parquet" else sink.table("q")


def test_postgres_has_them_as_json(
    answers: pa.Table, server: PostgresProcess, tmp_path: Path
) -> None:
    sink = sinks.postgres(server.url(), schema=tmp_path.name)
    sink.recover(-1, run="one")
    sink.declare({"q": answers.schema})
    deliver(sink, 0, q=answers)
    sink.close()
    names = ", ".join(f'"{name}"' for name in answers.column_names)
    with psycopg.connect(server.url()) as connection:
        found = connection.execute(f'SELECT {names} FROM "{tmp_path.name}".q').fetchall()
        best = f"""SELECT top->0->>'value' FROM "{tmp_path.name}".q ORDER BY window_end"""
        assert [value for (value,) in connection.execute(best)] == ["a\tb", "{x}", None]
    wanted = [tuple(plain(value) for value in row.values()) for row in answers.to_pylist()]
    # Equal as numbers: JSON has no -0.0.
    assert sorted(found, key=lambda row: row[0]) == sorted(wanted, key=lambda row: row[0])


def plain(value: Any) -> Any:
    """Numbers as JSON has them."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def test_a_live_table_holds_rows_with_lists(server: PostgresProcess, tmp_path: Path) -> None:
    """Rows of a live table are found by all their columns, lists and structs among them."""
    kind = pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))
    items = pa.array([[{"value": "a", "count": 1}], [], [{"value": "a", "count": 2}]], kind)
    come = pa.table({"op": ["+"] * 3, "at": [1, 1, 2], "valid_from": [1, 1, 2],
                     "valid_to": pa.array([None] * 3, pa.int64()), "items": items})  # fmt: skip
    gone = come.slice(0, 2).set_column(0, "op", pa.array(["-"] * 2))
    gone = gone.set_column(1, "at", pa.array([3, 3]))
    for sink in (
        sinks.duckdb(tmp_path / "live.duckdb", live=True),
        sinks.postgres(server.url(), schema=f"live {tmp_path.name}", live=True),
    ):
        sink.recover(-1, run="one")
        sink.declare({"q": come.schema})
        deliver(sink, 0, q=come)
        deliver(sink, 1, q=gone)
        if isinstance(sink, sinks.DuckDBSink):
            assert sink.table("q")["items"].to_pylist() == [[{"value": "a", "count": 2}]]
            continue
        sink.close()
        with psycopg.connect(server.url()) as connection:
            found = connection.execute(f'SELECT items FROM "live {tmp_path.name}".q').fetchall()
        assert found == [([{"value": "a", "count": 2}],)]
