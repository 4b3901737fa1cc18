"""A call's time zone: everywhere an expression stands, on the local engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, MuntinError
from muntin.expressions.zone_names import zone
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine
from muntin.testing import assert_same_rows
from muntin.testing.oracle import answer

NEW_YORK = "America/New_York"
# From 2013-11-02 17:00 in New York on, a row every ten minutes; clocks went back that night.
START = 1_383_426_000_000_000
ROWS = pa.table(
    {
        "ts": pa.array([START + i * 600_000_000 for i in range(120)], pa.timestamp("us", "UTC")),
        "v": pa.array(range(120), pa.int64()),
    }
)
DAYS = pa.table({"day": pa.array([16_011, 16_012], pa.int32()).cast(pa.date32()), "w": [2, 3]})
QUERIES = """
CREATE QUERY since AS SELECT count(*) AS n FROM t [RANGE '9 hours' SLIDE '3 hours']
  WHERE ts >= '2013-11-03 01:30:00';
CREATE QUERY until AS SELECT count(*) AS n FROM t [RANGE '9 hours' SLIDE '3 hours']
  WHERE ts < TIMESTAMP '2013-11-03 01:30:00-05:00' AND hour(ts) <> 20;
CREATE QUERY hours AS SELECT hour(ts) AS h, sum(v) AS s
  FROM t [RANGE '6 hours' SLIDE '3 hours'] GROUP BY hour(ts);
CREATE QUERY shown AS SELECT cast(max(ts) AS string) AS last, count(*) FILTER (WHERE hour(ts) = 1)
  AS n FROM t [RANGE '6 hours' SLIDE '3 hours'] HAVING hour(min(ts)) <> 20;
CREATE QUERY joined AS SELECT sum(v * w) AS s FROM t [RANGE '6 hours' SLIDE '3 hours']
  JOIN days ON date_trunc('day', ts) = days.day;
"""


@pytest.mark.parametrize("strategy", ["cells", "unshared", "slices", "fragments", "shards"])
def test_every_strategy_answers_as_the_oracle(strategy: str) -> None:
    options = {"tables": {"days": DAYS}, "timezone": NEW_YORK}
    results = muntin.aggregate(ROWS, QUERIES, "ts", strategy=strategy, **options)
    for name in results:
        assert results[name].num_rows
        if name != "joined":
            assert_same_rows(results[name], answer(results.plan, name, ROWS))
    utc = muntin.aggregate(ROWS, QUERIES, "ts", strategy=strategy, tables={"days": DAYS})
    for name in results:
        assert utc[name].to_pylist() != results[name].to_pylist()


def test_an_hour_that_comes_twice() -> None:
    results = muntin.aggregate(ROWS, QUERIES, "ts", tables={"days": DAYS}, timezone=NEW_YORK)
    twice = results["hours"].to_pylist()
    assert {row["h"] for row in twice} == {17, 18, 19, 20, 21, 22, 23, *range(12)} - {12}
    # 01:00 to 01:50, and again.
    assert max(row["n"] for row in results["shown"].to_pylist()) == 12


def test_windows_and_dates_as_times_stay_with_utc() -> None:
    days = pa.table({"d": DAYS["day"], "v": [1, 2]})
    sql = "SELECT sum(v) AS s, max(unix_seconds(cast(d AS timestamp))) AS t"
    sql += " FROM t [RANGE '1 day' SLIDE '1 day']"
    utc = muntin.aggregate(days, sql, "d")["q1"].to_pydict()
    there = muntin.aggregate(days, sql, "d", timezone=NEW_YORK)["q1"].to_pydict()
    assert there["window_start"] == utc["window_start"]
    assert there["s"] == utc["s"]
    # Midnight of November 2 and 3 in New York is at four o'clock UTC.
    assert [a - b for a, b in zip(there["t"], utc["t"], strict=True)] == [4 * 3600, 4 * 3600]


def test_several_inputs_and_other_frames() -> None:
    sql = "SELECT hour(max(ts)) AS h FROM a [RANGE '1 day' SLIDE '1 day']"
    for data in (ROWS, ROWS.to_pandas(), ROWS.to_batches()):
        results = muntin.aggregate(data, sql, "ts", timezone="+05:30")
        assert results.table("q1")["h"].to_pylist() == [5, 22]
    results = muntin.aggregate({"a": ROWS, "b": ROWS}, sql, "ts", timezone="+05:30")
    assert results["q1"]["h"].to_pylist() == [5, 22]


@pytest.mark.parametrize("name", ["America/New York", "NYC", "+25:00", "", 5])
def test_unknown_zones_are_refused_at_once(name: str) -> None:
    with pytest.raises(DataError) as error:
        muntin.aggregate(ROWS, QUERIES, "ts", tables={"days": DAYS}, timezone=name)
    assert error.value.hint


def test_the_plan_says_where_it_is() -> None:
    sql = "SELECT count(*) AS n FROM t [RANGE '1 day' SLIDE '1 day']"
    plan = build_plan(queries(sql), ROWS.schema, "ts", zone=zone(NEW_YORK))
    assert "local times of America/New_York" in repr(plan)
    assert '"timezone": "America/New_York"' in plan.explain("json")
    assert "local times" not in repr(build_plan(queries(sql), ROWS.schema, "ts"))


def test_a_stream_stays_in_its_zone() -> None:
    """Queries that join, and snapshots."""
    sql = "SELECT max(hour(ts)) AS h FROM t [RANGE '6 hours' SLIDE '6 hours']"
    plan = build_plan(queries(sql), ROWS.schema, "ts", zone=zone(NEW_YORK))
    engine = LiveEngine(plan, 0)
    engine.feed(ROWS.slice(0, 40))
    engine.add(queries(f"CREATE QUERY late AS {sql}")[0])
    assert engine.plan.zone == zone(NEW_YORK)
    data = engine.snapshot()
    other = build_plan(queries([q.query for q in engine.plan.finals]), ROWS.schema, "ts")
    with pytest.raises(DataError, match="made in the time zone America/New_York, not in UTC"):
        LiveEngine.restore(other, data)
    restored = LiveEngine.restore(engine.plan, data)
    restored.feed(ROWS.slice(40))
    answers = restored.close()
    assert (
        answers["late"]["h"].to_pylist() == answers["q1"]["h"].to_pylist()[-len(answers["late"]) :]
    )
    with pytest.raises(MuntinError, match="run in the time zone America/New_York, not in UTC"):
        build_plan(queries(sql), ROWS.schema, "ts", previous=plan)
