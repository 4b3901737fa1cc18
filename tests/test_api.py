"""``muntin.aggregate``: kinds of data, routing, results, and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
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


COUNT = "SELECT count(*) AS n, sum(v) AS s FROM t [RANGE 5 SLIDE 5]"
MIXED = pd.DataFrame({"ts": [0, 1, 6], "mixed": [1, "a", 2.5], "v": [1, 2, 3]})
OBJECTS = pl.DataFrame(
    {"ts": [0, 1, 6], "mixed": pl.Series([object()] * 3, dtype=pl.Object), "v": [1, 2, 3]}
)


@pytest.mark.parametrize(
    "frame", [MIXED, OBJECTS, OBJECTS.lazy()], ids=["pandas", "polars", "lazy"]
)
def test_a_column_that_arrow_cannot_hold_matters_where_it_is_read(frame: Any) -> None:
    results = muntin.aggregate(frame, COUNT, time="ts")
    assert results.table("q1").column("s").to_pylist() == [3, 3]
    for text in (COUNT.replace("v)", "mixed)"), COUNT + " WHERE mixed['a'] > 1"):
        with pytest.raises(muntin.QueryError, match="column mixed cannot be read"):
            muntin.aggregate(frame, text, time="ts")
    with pytest.raises(DataError, match="column mixed cannot be read"):
        muntin.aggregate(frame, COUNT, time="mixed")


def test_such_a_column_of_a_table() -> None:
    rows = pa.table({"ts": [0, 1, 6], "w": [1, 2, 3]})
    text = COUNT.replace("v)", "t2.v)") + " JOIN t2 ON w = t2.v"
    for table in (MIXED, OBJECTS):
        found = muntin.aggregate(rows, text, time="ts", tables={"t2": table})
        assert found.table("q1").column("s").to_pylist() == [3, 3]


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
    with pytest.raises(DataError, match="has been read, and has no rows left"):
        muntin.aggregate(reader, SQL, time="ts")
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
    assert repr(results).startswith("Results of 1 query over 500 rows\n  q: ")


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
        ({"ts": [1]}, "items of type int"),
        ("trades.parquet", "cannot read data of type str\nHint: read the file first"),
        (Path("trades.parquet"), "Hint: read the file first"),
        (42, "cannot read data of type int"),
        ([], "found nothing in it"),
        ({}, "data is an empty mapping"),
        ([{"ts": 1}], "items of type dict\nHint: make a Table of them with pa.Table.from_pylist"),
        ([1, 2], "items of type int"),
        (pa.table({"other": [1]}), "there is no time column 'ts'"),
        (pa.table({"ts": ["a"]}), "cannot be a time column"),
        (pa.table([[1], [2]], names=["ts", "ts"]), "appear more than once"),
        (pa.table({"ts": pa.array([2**62], pa.int64())}), "more than 2..61 ticks"),
        (pa.table({"ts": pa.array([2**63], pa.uint64())}), "beyond 64-bit"),
        (pa.table({"ts": pa.array([0], pa.uint8())}), "does not fit the type of 'ts', uint8"),
        (pd.DataFrame({"ts": [1, "a"]}), "column ts cannot be read"),
        (pd.DataFrame([[1, 2]], columns=["ts", "ts"]), "the pandas frame cannot be read"),
        (pl.DataFrame({"ts": [1]}).lazy().select("nope"), "the polars frame cannot be read"),
    ],
)
def test_data_that_cannot_be_used_is_refused(data: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        muntin.aggregate(data, "SELECT count(*) FROM t [RANGE 8 SLIDE 4]", time="ts")


def test_the_stream_that_cannot_be_used_is_named() -> None:
    streams = {"a": TABLE, "b": TABLE}
    rows = "SELECT x.ts FROM a [NOW] x JOIN b [NOW] y ON x.ts = y.ts"
    counts = [f"SELECT count(*) AS n FROM {each} [RANGE '8 s' SLIDE '4 s']" for each in streams]
    for queries in (rows, counts):
        with pytest.raises(DataError, match=r"^stream b: there is no time column 'tz'"):
            muntin.aggregate(streams, queries, {"a": "ts", "b": "tz"})
    with pytest.raises(DataError, match=r"^stream b: there is no time column 'tz'"):
        muntin.stream(rows, dict.fromkeys(streams, TABLE.schema), {"a": "ts", "b": "tz"})


def test_options_and_empty_query_lists_are_checked() -> None:
    with pytest.raises(DataError, match="on_error must be null or fail, not 'ignore'"):
        muntin.aggregate(TABLE, SQL, "ts", on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="there are no queries"):
        muntin.aggregate(TABLE, [], "ts")
    with pytest.raises(DataError, match="time is given for a stream 'x', and there is none"):
        muntin.aggregate({"t": TABLE}, SQL, {"t": "ts", "x": "ts"})
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
    assert "q1: 1 row" in repr(result)
    assert result._repr_html_()


def test_one_row_and_a_million_groups() -> None:
    table = pa.table({"ts": pa.array(range(1_000_000)), "k": pa.array(range(1_000_000))})
    result = muntin.aggregate(
        table, "SELECT k, sum(k) AS s FROM t [RANGE 500000 SLIDE 500000] GROUP BY k", time="ts"
    )["q1"]
    assert result.num_rows == 1_000_000
    assert result["s"].equals(result["k"])


def test_importing_is_cheap_until_something_is_called() -> None:
    code = (
        "import sys, muntin, muntin.api; print([m for m in sys.modules if m in"
        " ('numpy', 'pyarrow', 'pyspark', 'numba', 'pandas') or m.startswith('muntin.agg')]);"
        "print([each for each in muntin.api.__all__ if not callable(getattr(muntin.api, each))]);"
        "print([m for m in ('pyspark', 'pandas') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["[]"] * 3


def test_time_zone_of_bounds_is_the_columns_own() -> None:
    zone = pa.timestamp("us", "America/New_York")
    table = pa.table({"ts": pa.array([dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC)], zone)})
    result = muntin.aggregate(table, "SELECT max(ts) AS m FROM t [RANGE '1 h' SLIDE '1 h']", "ts")
    assert result["q1"].schema.field("window_end").type == zone


def test_columns_without_any_type_count_nothing() -> None:
    rows = 1000
    table = pa.table({"ts": pa.array([1] * rows), "o": pa.nulls(rows)})
    sql = "SELECT count(o) AS c, count(NULL) AS d, count(*) AS n FROM t [RANGE 4 SLIDE 4]"
    for data in (table, table.to_pandas(), pl.from_arrow(table)):
        result = muntin.aggregate(data, sql, time="ts").table("q1")
        assert result.select(["c", "d", "n"]).to_pylist() == [{"c": 0, "d": 0, "n": rows}]
    grouped = "SELECT o, count(*) AS n FROM t [RANGE 4 SLIDE 4] GROUP BY o"
    assert muntin.aggregate(table, grouped, time="ts")["q1"]["n"].to_pylist() == [rows]


def test_constant_parts_hold_for_every_row() -> None:
    rows = 1000
    table = pa.table({"ts": [1] * rows, "x": [1.0] * rows})
    sql = "SELECT count(*) AS n, sum(x * (abs(2.5) / 1.25)) AS s FROM t [RANGE 4 SLIDE 4]"
    result = muntin.aggregate(table, f"{sql} WHERE 1 < coalesce(1e2, x)", time="ts")["q1"]
    assert result.select(["n", "s"]).to_pylist() == [{"n": rows, "s": 2.0 * rows}]


def test_dates_beyond_the_range_of_ticks_are_refused() -> None:
    for kind, value in ((pa.date32(), 2**31 - 1), (pa.date64(), 18446744044800000)):
        table = pa.table(
            {
                "ts": pa.array([value], pa.int64())
                .cast(pa.int64())
                .cast(pa.int32() if kind == pa.date32() else pa.int64())
                .view(kind)
            }
        )
        with pytest.raises(DataError, match="ticks from zero"):
            muntin.aggregate(table, "SELECT count(*) FROM t [RANGE '2 d' SLIDE '2 d']", time="ts")


def test_inputs_of_different_kinds_come_back_as_what_they_were() -> None:
    frames = {"a": TABLE, "b": TABLE.to_pandas()}
    sql = "SELECT count(*) AS n FROM a [RANGE '1 h' SLIDE '1 h'];"
    results = muntin.aggregate(frames, sql + sql.replace("FROM a", "FROM b"), time="ts")
    assert isinstance(results["q1"], pa.Table)
    assert isinstance(results["q2"], pd.DataFrame)
    assert "SharedPlan" in repr(results.plan)
    with pytest.raises(DataError, match="only in letter case"):
        muntin.aggregate({"a": TABLE, "A": TABLE}, sql, time="ts")


def test_results_and_errors_travel_between_processes() -> None:
    for data in (TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE)):
        results = pickle.loads(pickle.dumps(muntin.aggregate(data, SQL, time="ts")))
        assert results.table("q").num_rows == EXPECTED.num_rows
    with pytest.raises(QueryError) as caught:
        muntin.aggregate(TABLE, "SELECT sum(nope) FROM t [RANGE '1 h' SLIDE '1 h']", time="ts")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)
    error = pickle.loads(pickle.dumps(DataError("what", hint="why")))
    assert str(error) == "what\nHint: why"


def test_gaps_too_wide_to_fill_are_refused_at_once() -> None:
    table = pa.table({"ts": [0, 10**9]})
    with pytest.raises(DataError, match="leave out EMIT EMPTY"):
        muntin.aggregate(table, "SELECT count(*) FROM t [RANGE 1 SLIDE 1] EMIT EMPTY", time="ts")


@pytest.mark.parametrize("groups", ["", " GROUP BY symbol"])
def test_a_slide_far_too_small_is_refused_at_once(groups: str) -> None:
    sql = f"CREATE QUERY fine AS SELECT count(*) FROM t [RANGE '30000 days' SLIDE '1 us']{groups}"
    with pytest.raises(DataError, match=r"query fine would give .* rows"):
        muntin.aggregate(TABLE, sql, time="ts")


def test_views_and_runs_are_read_like_plain_columns() -> None:
    keys = ["a", "b", "a", None]
    plain = pa.table({"ts": [1, 2, 8, 9], "x": [1.0, 2.0, 4.0, 8.0], "k": keys})
    odd = pa.table(
        {
            "ts": pa.chunked_array([[1, 2], [], [8, 9]], pa.int64()),
            "x": pc.run_end_encode(pa.array([1.0, 2.0, 4.0, 8.0])),
            "k": pa.array(keys, pa.string_view()),
            "unused": pa.array([b"x"] * 4, pa.binary_view()),
        }
    )
    sql = "SELECT k, sum(x) AS v FROM s [RANGE 5 SLIDE 5] GROUP BY k"
    expected = muntin.aggregate(plain, sql, time="ts")["q1"]
    assert muntin.aggregate(odd, sql, time="ts")["q1"].equals(expected)
    joined = "SELECT sum(y) AS v FROM s [RANGE 5 SLIDE 5] JOIN c ON s.k = c.k"
    tables = {"c": pa.table({"k": pa.array(["a"], pa.string_view()), "y": [3.0]})}
    found = muntin.aggregate(odd, joined, time="ts", tables=tables)["q1"]
    assert found["v"].to_pylist() == [3.0, 3.0]
