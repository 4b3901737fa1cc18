"""``muntin.aggregate``: kinds of data, routing, results, and what is refused."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, QueryError, UnknownQueryError
from muntin.testing import trades

SQL = """
  CREATE QUERY q AS SELECT symbol, sum(vol) AS vol
  FROM t [RANGE '20 min' SLIDE '10 min'] GROUP BY symbol"""
TABLE = trades(500, seed=3)
EXPECTED = muntin.aggregate(TABLE, SQL, time="ts")["q"]


def test_pandas_in_pandas_out() -> None:
    frame = TABLE.to_pandas()
    result = muntin.aggregate(frame, SQL, time="ts")["q"]
    assert isinstance(result, pd.DataFrame)
    assert pa.Table.from_pandas(result, EXPECTED.schema, preserve_index=False) == EXPECTED


def test_a_named_pandas_index_is_a_column() -> None:
    frame = TABLE.to_pandas().set_index("ts")
    result = muntin.aggregate(frame, SQL, time="ts")["q"]
    assert len(result) == EXPECTED.num_rows


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_in_polars_out(lazy: bool) -> None:
    frame = pl.DataFrame(pl.from_arrow(TABLE))
    result = muntin.aggregate(frame.lazy() if lazy else frame, SQL, time="ts")["q"]
    assert isinstance(result, pl.DataFrame)
    assert result.equals(pl.DataFrame(pl.from_arrow(EXPECTED)))


def test_batches_come_from_a_generator_and_are_read_once() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches(max_chunksize=33)

    assert muntin.aggregate(batches(), SQL, time="ts")["q"] == EXPECTED
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    assert muntin.aggregate(reader, SQL, time="ts")["q"] == EXPECTED
    assert muntin.aggregate(TABLE.to_batches()[0], SQL, time="ts").rows == 500


def test_queries_come_as_text_path_objects_and_lists(tmp_path: Path) -> None:
    path = tmp_path / "queries.sql"
    path.write_text(SQL)
    built = muntin.query("built").window("20 min", "10 min").group_by("symbol").agg(vol="sum(vol)")
    results = muntin.aggregate(TABLE, [path, built], time="ts")
    assert list(results) == ["q", "built"]
    assert results["q"] == results["built"] == EXPECTED


def test_several_inputs_are_routed_by_name() -> None:
    results = muntin.aggregate(
        {"a": TABLE, "b": TABLE.slice(0, 10)},
        "CREATE QUERY qa AS SELECT count(*) AS n FROM a [RANGE '9 h' SLIDE '9 h'];"
        "CREATE QUERY qb AS SELECT count(*) AS n FROM B [RANGE '9 h' SLIDE '9 h']",
        time="ts",
    )
    assert results["qa"]["n"].to_pylist() == [500]
    assert results["qb"]["n"].to_pylist() == [10]
    assert results.rows == 510
    with pytest.raises(QueryError, match="did you mean a"):
        muntin.aggregate({"a": TABLE}, "SELECT count(*) FROM aa [RANGE '1 h' SLIDE '1 h']", "ts")


def test_a_given_name_must_be_the_one_in_from() -> None:
    sql = "SELECT count(*) FROM trade [RANGE '1 h' SLIDE '1 h']"
    assert len(muntin.aggregate(TABLE, sql, "ts", name="Trade")) == 1
    with pytest.raises(QueryError, match="did you mean trades"):
        muntin.aggregate(TABLE, sql, "ts", name="trades")


def test_results_are_a_mapping_regardless_of_case() -> None:
    results = muntin.aggregate(TABLE, SQL, time="ts")
    assert results["Q"] == results["q"]
    assert "q" in results
    assert "other" not in results
    assert results.get("other") is None
    with pytest.raises(UnknownQueryError, match="there is no query 'other'"):
        results["other"]
    assert repr(results).startswith("Results of 1 queries over 500 rows\n  q: ")


def test_results_show_in_notebooks_without_markup_of_their_own() -> None:
    table = pa.table({"ts": [1], "k": ["<b>"]})
    results = muntin.aggregate(
        table, "SELECT k, count(*) FROM t [RANGE 4 SLIDE 4] GROUP BY k", "ts"
    )
    html = results._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"ts": [1]}, "found a int"),
        ("trades.parquet", "cannot read a str"),
        (42, "cannot read a int"),
        ([], "found nothing"),
        ([1, 2], "found a int"),
        (pa.table({"other": [1]}), "there is no time column 'ts'"),
        (pa.table({"ts": ["a"]}), "cannot be a time column"),
        (pa.table([[1], [2]], names=["ts", "ts"]), "appear more than once"),
        (pa.table({"ts": pa.array([2**62], pa.int64())}), "more than 2..61 ticks"),
        (pa.table({"ts": pa.array([2**63], pa.uint64())}), "beyond 64-bit"),
        (pa.table({"ts": pa.array([0], pa.uint8())}), "does not fit the type of 'ts', uint8"),
        (pd.DataFrame({"ts": [1, "a"]}), "the pandas frame cannot be read"),
        (pd.DataFrame([[1, 2]], columns=["ts", "ts"]), "the pandas frame cannot be read"),
        (pl.DataFrame({"ts": [1]}).lazy().select("nope"), "the polars frame cannot be read"),
    ],
)
def test_data_that_cannot_be_used_is_refused(data: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        muntin.aggregate(data, "SELECT count(*) FROM t [RANGE 8 SLIDE 4]", time="ts")


def test_options_and_empty_query_lists_are_checked() -> None:
    with pytest.raises(DataError, match="use one of null, fail"):
        muntin.aggregate(TABLE, SQL, "ts", on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="there are no queries"):
        muntin.aggregate(TABLE, [], "ts")
    with pytest.raises(DataError, match="time is None, not a name"):
        muntin.aggregate(TABLE, SQL, None)  # type: ignore[arg-type]


def test_batches_of_different_schemas_are_refused() -> None:
    other = pa.table({"ts": [1]}).to_batches()
    with pytest.raises(DataError, match="all batches need that of the first"):
        muntin.aggregate([*TABLE.to_batches(), *other], SQL, time="ts")


def test_user_aggregates_run_in_time_order() -> None:
    from muntin.aggregates import Aggregate, register, unregister

    class Join(Aggregate):
        name = "join_all"
        commutative = False
        identity = ""

        def lift(self, value: str) -> str:
            return value

        def combine(self, a: str, b: str) -> str:
            return a + b

        def lower(self, partial: str) -> str:
            return partial

        def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
            return pa.string()

    register(Join())
    try:
        table = pa.table({"ts": [3, 1, 2, 6], "v": ["c", "a", "b", "d"]})
        got = muntin.aggregate(
            table.to_batches(max_chunksize=1),
            "SELECT join_all(v) AS s FROM t [RANGE 8 SLIDE 4]",
            "ts",
        )["q1"]
        assert got["s"].to_pylist() == ["abc", "abcd", "d"]
    finally:
        unregister("join_all")


def test_years_beyond_9999_are_answered() -> None:
    far = 2**60
    table = pa.table({"ts": pa.array([far], pa.timestamp("us"))})
    result = muntin.aggregate(table, "SELECT count(*) AS n FROM t [RANGE '1 s' SLIDE '1 s']", "ts")
    assert result["q1"]["window_start"].cast(pa.int64()).to_pylist() == [far // 10**6 * 10**6]
    assert "q1: 1 rows" in repr(result)
    assert result._repr_html_()


def test_one_row_and_a_million_groups() -> None:
    table = pa.table({"ts": pa.array(range(1_000_000)), "k": pa.array(range(1_000_000))})
    result = muntin.aggregate(
        table, "SELECT k, sum(k) AS s FROM t [RANGE 500000 SLIDE 500000] GROUP BY k", time="ts"
    )["q1"]
    assert result.num_rows == 1_000_000
    assert result["s"].equals(result["k"])


def test_importing_muntin_is_light() -> None:
    code = (
        "import sys, muntin; print([m for m in ('pyspark', 'numba', 'pandas') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_time_zone_of_bounds_is_the_columns_own() -> None:
    zone = pa.timestamp("us", "America/New_York")
    table = pa.table({"ts": pa.array([dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC)], zone)})
    result = muntin.aggregate(table, "SELECT max(ts) AS m FROM t [RANGE '1 h' SLIDE '1 h']", "ts")
    assert result["q1"].schema.field("window_end").type == zone
