"""Bounded Spark DataFrames: the local engine's answers, whatever the partitions and buckets."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin
from muntin.aggregates import Aggregate, register
from muntin.errors import AggregateError, DataError, MuntinError, WindowError
from muntin.plan import SharedPlan
from muntin.spark.bounded import job
from muntin.spark.bounded.messages import Limits
from muntin.spark.bounded.source import FrameSource
from muntin.spark.frames import spark_schema
from muntin.testing import assert_same_rows, rows_of, trades
from oracle.random_queries import queries
from oracle.random_streams import stream

TRADES = trades(3000, seed=5, symbols=30)
MIXED = """
  CREATE QUERY one AS SELECT sum(price * vol) AS v, count(*) AS n
    FROM t [RANGE '12 min' SLIDE '5 min'] WHERE vol > 300;
  CREATE QUERY two AS SELECT symbol, max(price) AS m, last(vol) AS l
    FROM t [RANGE '20 min' SLIDE '10 min'] GROUP BY symbol;
  CREATE QUERY three AS SELECT symbol, exchange, avg(vol) AS a
    FROM t [RANGE '1 h' SLIDE '30 min'] GROUP BY symbol, exchange HAVING count(*) > 3"""


def frame_of(spark: Any, table: pa.Table, partitions: int = 3) -> Any:
    return spark.createDataFrame(table, spark_schema(table.schema)).repartition(partitions)


def assert_same_results(ours: muntin.Results, expected: muntin.Results) -> None:
    assert list(ours) == list(expected)
    for name in expected:
        assert_same_rows(ours.table(name), expected.table(name))
    found = (ours.rows, ours.bad_rows, ours.errors)
    assert found == (expected.rows, expected.bad_rows, expected.errors)


@pytest.mark.parametrize("seed", range(3))
def test_random_queries_have_the_answers_of_the_local_engine(
    spark: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(7000 + seed)
    table = stream(rng)
    sql = ";\n".join(query.sql for query in queries(rng, most=12))
    buckets = rng.choice([1, 2, 3, 7])
    monkeypatch.setattr(job, "_buckets", lambda *_: buckets)
    ours = muntin.aggregate(frame_of(spark, table, rng.choice([1, 2, 5])), sql, time="ts")
    assert_same_results(ours, muntin.aggregate(table, sql, time="ts"))


def test_results_are_spark_frames_with_the_users_types(spark: Any) -> None:
    from pyspark.sql import DataFrame

    ours = muntin.aggregate(frame_of(spark, TRADES), MIXED, time="ts")
    expected = muntin.aggregate(TRADES, MIXED, time="ts")
    assert_same_results(ours, expected)
    for name in expected:
        assert isinstance(ours[name], DataFrame)
        assert_same_rows(ours[name].toArrow(), expected.table(name))
    # Why is weighed by a sample of rows, and those of a shuffle are not cheap to get.
    assert isinstance(ours.plan, SharedPlan)
    weighed = {"why": expected.plan.why, "weighed": expected.plan.weighed}
    # And trees without groups have a bucket there.
    assert [node.home for node in ours.plan.partials if not node.grouping] == [0]
    placed = {"placement": "", "partials": [replace(n, home=None) for n in ours.plan.partials]}
    placed["partials"] = tuple(placed["partials"])
    assert replace(ours.plan, **weighed, **placed) == expected.plan
    assert repr(ours).splitlines() == repr(expected).splitlines()
    assert "symbol" in ours._repr_html_()


def test_answers_are_those_of_sparks_own_windows(spark: Any) -> None:
    rng = random.Random(1)
    table = stream(rng, wild=False)
    frame = frame_of(spark, table)
    frame.createOrReplaceTempView("s")
    slide = rng.choice([1, 5, 7, 15])
    tail = f"FROM s GROUP BY window(ts, '{2 * slide} minutes', '{slide} minutes'), k"
    select = "k, count(*) AS n, sum(n) AS sn, min(x) AS mx, max(k) AS mk"
    ours = muntin.aggregate(frame, f"SELECT {select} {tail}", time="ts")["q1"].toArrow()
    theirs = spark.sql(f"SELECT window.start, window.end, {select} {tail}").toArrow()
    assert sorted(map(repr, rows_of(ours))) == sorted(map(repr, rows_of(theirs)))


def test_large_results_stay_with_the_executors(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def persisted() -> set[int]:
        return set(spark.sparkContext._jsc.getPersistentRDDs())

    # What other tests hold on to is none of ours.
    before = persisted()
    monkeypatch.setattr(job, "LIMITS", Limits(chunk=2000, small=4000))
    expected = muntin.aggregate(TRADES, MIXED, time="ts")
    ours = muntin.aggregate(frame_of(spark, TRADES), MIXED, time="ts")
    assert_same_results(ours, expected)
    assert len(persisted() - before) == 1
    frame = ours["two"]
    assert frame.count() == expected["two"].num_rows
    # Whoever holds a frame can still read it.
    del ours
    assert_same_rows(frame.toArrow(), expected["two"])
    del frame
    muntin.aggregate(frame_of(spark, TRADES.slice(0, 2)), MIXED, time="ts")
    assert persisted() <= before


def test_more_queries_are_not_more_jobs(spark: Any) -> None:
    def jobs(sql: str, group: str) -> int:
        context = spark.sparkContext
        context.setJobGroup(group, group)
        try:
            muntin.aggregate(frame, sql, time="ts")
            return len(context.statusTracker().getJobIdsForGroup(group))
        finally:
            context._jsc.clearJobGroup()

    frame = frame_of(spark, TRADES)
    one = "CREATE QUERY q{0} AS SELECT sum(vol) FROM t [RANGE '{1} s' SLIDE '60 s'] WHERE vol > {0}"
    many = ";".join(one.format(number, 60 + number) for number in range(64))
    assert jobs(many, "many") == jobs(one.format(0, 60), "one")


def test_long_texts_are_answered_whole_and_sampled_in_part(spark: Any) -> None:
    texts = [f"{number:03d}" * 4000 for number in range(50)]
    table = pa.table(
        {
            "ts": pa.array(range(50), pa.timestamp("us", "UTC")),
            "a.b": texts,
            "raw": [text.encode() for text in texts],
        }
    )
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    sample = FrameSource(frame).sample()
    assert sample is not None
    assert sample.schema.types == table.schema.types
    for name in ("a.b", "raw"):
        assert set(pc.binary_length(sample[name]).to_pylist()) == {256}
    # Their partials travel in many pieces.
    sql = "SELECT `a.b`, max(`a.b`) AS m, count(raw) AS n FROM t [RANGE 7 SLIDE 7] GROUP BY `a.b`"
    sql = sql.replace("7", "'7 microseconds'")
    assert_same_results(
        muntin.aggregate(frame, sql, time="ts"), muntin.aggregate(table, sql, time="ts")
    )


def test_bad_rows_and_failed_values_are_counted(spark: Any) -> None:
    table = pa.table(
        {
            "ts": pa.array([1, None, 3, 4, None, 9], pa.int64()),
            "a": pa.array([1, 2, 0, 4, 0, 0], pa.int64()),
        }
    )
    sql = "SELECT sum(1 / a) AS s, count(*) AS n FROM t [RANGE 4 SLIDE 4]"
    frame = frame_of(spark, table)
    ours = muntin.aggregate(frame, sql, time="ts")
    assert_same_results(ours, muntin.aggregate(table, sql, time="ts"))
    assert ours.bad_rows == 2
    assert ours.errors == {"q1": 2}
    with pytest.raises(DataError, match="2 rows without a usable time"):
        muntin.aggregate(frame, sql, time="ts", on_bad_row="fail")
    with pytest.raises(DataError, match="2 values failed"):
        muntin.aggregate(frame, sql, time="ts", on_error="fail")


def test_an_error_in_a_worker_is_raised_as_it_is(spark: Any) -> None:
    frame = frame_of(spark, pa.table({"ts": [1, 2**62], "a": [1, 2]}))
    with pytest.raises(DataError, match=r"more than 2\*\*61 ticks"):
        muntin.aggregate(frame, "SELECT sum(a) FROM t [RANGE 4 SLIDE 4]", time="ts")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_of_every_kind(spark: Any, zone: str) -> None:
    times = [dt.datetime(2024, 3, 10, hour, 59, 59, 999_999) for hour in (0, 2, 3, 23)]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "local": pa.array(times, pa.timestamp("us")),
            "day": pa.array([time.date() for time in times]),
            "d": pa.array([Decimal("1.25"), None, Decimal("-3.50"), Decimal("8.00")]),
            "odd.name`": [1, 2, 3, 4],
        }
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = frame_of(spark, table)
        for time in ("ts", "local", "day"):
            sql = (
                f"SELECT sum(d) AS s, max({time}) AS m, sum(`odd.name```) AS o, count(*) AS n"
                f" FROM t [RANGE '2 days' SLIDE '1 day']"
            )
            ours = muntin.aggregate(frame, sql, time=time)
            assert_same_results(ours, muntin.aggregate(table, sql, time=time))
            assert_same_rows(ours["q1"].toArrow(), ours.table("q1"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_tables_and_several_inputs(spark: Any) -> None:
    symbols = pc.unique(TRADES["symbol"])
    close = pa.table({"symbol": symbols, "cp": pa.array(range(len(symbols)), pa.float64())})
    sql = """
      CREATE QUERY a AS SELECT max(price - cp) AS m FROM x [RANGE '9 min' SLIDE '3 min']
        JOIN close ON x.symbol = close.symbol WHERE cp > 3;
      CREATE QUERY b AS SELECT count(*) AS n FROM y [RANGE '1 h' SLIDE '1 h']"""
    expected = muntin.aggregate(
        {"x": TRADES, "y": TRADES.slice(0, 9)}, sql, "ts", tables={"close": close}
    )
    frames = {"x": frame_of(spark, TRADES), "y": TRADES.slice(0, 9)}
    ours = muntin.aggregate(frames, sql, "ts", tables={"close": spark.createDataFrame(close)})
    assert_same_results(ours, expected)
    assert isinstance(ours["b"], pa.Table)


def test_gaps_are_filled_and_empty_input_gives_empty_results(spark: Any) -> None:
    table = pa.table({"ts": [1, 40], "a": [1, 2]})
    sql = "SELECT sum(a) AS s FROM t [RANGE 4 SLIDE 4]"
    ours = muntin.aggregate(frame_of(spark, table), sql, "ts", emit_empty=True)
    assert_same_results(ours, muntin.aggregate(table, sql, "ts", emit_empty=True))
    assert ours["q1"].count() == 11
    nothing = muntin.aggregate(frame_of(spark, table.slice(0, 0)), sql, "ts")
    assert nothing["q1"].columns == ["window_start", "window_end", "s"]
    assert nothing.table("q1").num_rows == nothing.rows == 0


def longest(name: str, *, commutative: bool = True) -> Aggregate:
    """The longest string; its class exists in this process only."""

    class Longest(Aggregate):
        identity = ""

        def result_type(self, types: Any) -> pa.DataType:
            return pa.string()

        def lift(self, value: Any) -> Any:
            return value

        def combine(self, a: Any, b: Any) -> Any:
            return max(a, b, key=lambda text: (len(text), text))

        def lower(self, partial: Any) -> Any:
            return partial

    Longest.name, Longest.commutative = name, commutative
    return Longest()


def test_aggregates_of_users_travel_to_the_workers(spark: Any) -> None:
    register(longest("longest_on_spark"))
    sql = "SELECT longest_on_spark(symbol) AS s FROM t [RANGE '9 min' SLIDE '3 min']"
    ours = muntin.aggregate(frame_of(spark, TRADES), sql, "ts")
    assert_same_results(ours, muntin.aggregate(TRADES, sql, "ts"))


@pytest.mark.parametrize(
    "options",
    [
        {"placement": "W_TN", "optimizer": "no_share"},
        {"placement": "WG_RAND", "optimizer": "no_share"},
        {"optimizer": "tri_weave"},
    ],
    ids=str,
)
def test_placement_and_weaving_change_no_answer(spark: Any, options: dict[str, str]) -> None:
    sql = ";".join(
        f"SELECT sum(price * vol) AS v, max(price) AS m FROM t [RANGE '{12 * s} s' SLIDE '{s} s']"
        f" WHERE vol > {100 * s}"
        for s in (7, 11, 13, 60)
    )
    # In few partitions, a sample of the rows is cheap to get: the rate decides.
    frame = spark.createDataFrame(TRADES, spark_schema(TRADES.schema))
    ours = muntin.aggregate(frame, sql, time="ts", **options)
    assert_same_results(ours, muntin.aggregate(TRADES, sql, time="ts"))
    plan = ours.plan
    assert isinstance(plan, SharedPlan)
    assert plan.placement == options.get("placement", "WG_I")
    assert len(plan.combined) == (options["optimizer"] == "tri_weave")
    if options.get("placement") == "W_TN":
        assert sorted(node.home for node in plan.partials) == [0, 1]
    assert f"placed in buckets by {plan.placement}" in plan.explain()


def test_cutty_slices_and_unknown_placements_are_refused(spark: Any) -> None:
    frame = frame_of(spark, TRADES)
    with pytest.raises(WindowError, match=r'local engine, not on Spark(.|\n)*slicing="pairs"'):
        muntin.aggregate(frame, MIXED, time="ts", slicing="cutty")
    with pytest.raises(MuntinError, match=r"no method of placement is named 'WG_II'(.|\n)*WG_I"):
        muntin.aggregate(frame, MIXED, time="ts", placement="WG_II")


@pytest.mark.parametrize(
    ("window", "select", "error", "message"),
    [
        ("[ROWS 5 SLIDE 5]", "sum(a)", WindowError, "ROWS windows run in the local engine"),
        ("[RANGE 5 SLIDE 5 WATTR u]", "sum(a)", WindowError, "WATTR u windows run in the local"),
        ("[RANGE 5 SLIDE 5]", "in_order_on_spark(a)", AggregateError, "depends on the order"),
    ],
)
def test_what_needs_one_order_is_refused(
    spark: Any, window: str, select: str, error: type[Exception], message: str
) -> None:
    register(longest("in_order_on_spark", commutative=False))
    a = ["x"] if "order" in select else [1]
    frame = frame_of(spark, pa.table({"ts": [1], "a": a, "u": [1]}))
    with pytest.raises(error, match=message):
        muntin.aggregate(frame, f"SELECT {select} FROM t {window}", time="ts")


def test_frames_that_cannot_be_used_are_refused(spark: Any) -> None:
    sql = "SELECT count(*) FROM t [RANGE '1 s' SLIDE '1 s']"
    rates = spark.readStream.format("rate").load()
    with pytest.raises(DataError, match="this DataFrame is a stream"):
        muntin.aggregate(rates, sql, time="timestamp")
    twice = spark.sql("SELECT 1 AS ts, 2 AS ts")
    with pytest.raises(DataError, match="ts appear more than once"):
        muntin.aggregate(twice, sql, time="ts")
    nested = spark.sql("SELECT timestamp '2024-01-01' AS ts, named_struct('b', 1) AS a")
    assert muntin.aggregate(nested, sql, time="ts").table("q1").num_rows == 1
    with pytest.raises(muntin.QueryError, match="name a field of it"):
        muntin.aggregate(nested, sql.replace("count(*)", "count(a)"), time="ts")


def test_aggregates_over_a_join_are_those_of_one_process(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers of sides that stay with the executors are collected from there.
    monkeypatch.setattr(job, "LIMITS", Limits(chunk=400, small=800))
    orders = pa.table(
        {"ts": [1, 2, 5, 5, 31], "id": [7, 8, 9, None, 9], "region": ["n", "s", "n", "x", "s"]}
    )
    paid = pa.table({"ts": [4, 6, 7, 30], "id": [7, 9, 9, 9], "amount": [0.1, 1e16, -1e16, 2.5]})
    sql = """
    CREATE QUERY paid AS SELECT o.region, count(*) AS n, sum(p.amount) AS s, first(p.amount) AS f
    FROM orders [RANGE 10 SLIDE 5] o LEFT JOIN paid [RANGE 5] p ON o.id = p.id GROUP BY o.region;
    CREATE QUERY rows AS SELECT region, count(*) AS n FROM orders [RANGE 5 SLIDE 5] GROUP BY region
    """
    given = {"orders": orders, "paid": paid}
    frames = {name: spark.createDataFrame(table) for name, table in given.items()}
    # Arguments that mix both sides take the pairs.
    pairs = sql.replace("count(*) AS n, sum", "sum(o.id * p.amount) AS n, sum")
    for text in (sql, pairs):
        ours, here = (muntin.aggregate(each, text, time="ts") for each in (frames, given))
        for name in ("paid", "rows"):
            expected = here[name].to_pylist()
            found = [row.asDict() for row in ours[name].collect()]
            order = ("window_end", "region")
            assert sorted(found, key=lambda row: [row[key] for key in order]) == expected
        assert (ours.rows, ours.errors) == (here.rows, here.errors)
