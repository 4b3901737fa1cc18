"""``muntin.stream``: the local engine as a public stream."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import muntin
from muntin.aggregates import Aggregate, register
from muntin.errors import DataError, QueryError, UnknownQueryError, WindowError
from muntin.testing import assert_same_rows, trades

QUERIES = """
CREATE QUERY volume AS SELECT symbol, sum(vol) AS vol, max(price) AS high
  FROM trades [RANGE '5 minutes' SLIDE '1 minute'] WHERE price > 20 GROUP BY symbol;
CREATE QUERY spikes AS SELECT count(*) AS n, stddev_pop(price) AS spread
  FROM trades [RANGE '90 seconds' SLIDE '30 seconds'] WHERE vol > 500;
"""
PLAIN = {"ts": "int64", "v": "int64"}
TOTAL = "CREATE QUERY total AS SELECT sum(v) AS v FROM s [RANGE 10 SLIDE 5]"


def rows(*pairs: tuple[int | None, int | None]) -> pa.Table:
    ts, v = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({"ts": pa.array(ts, pa.int64()), "v": pa.array(v, pa.int64())})


def together(parts: list[muntin.Results], name: str) -> pa.Table:
    return pa.concat_tables([part.table(name) for part in parts])


@pytest.mark.parametrize("seed", range(3))
def test_batches_give_what_the_whole_gives(seed: int) -> None:
    data = trades(3_000, seed=seed)
    whole = muntin.aggregate(data, QUERIES, "ts")
    lateness = "2 minutes"
    chosen = random.Random(seed)
    stream = muntin.stream(QUERIES, data.schema, lateness=lateness)
    found, start, chain = [], 0, list[bytes]()
    while start < data.num_rows:
        size = chosen.choice((1, 7, 100, 800))
        found.append(stream.feed(data.slice(start, size)))
        start += size
        chain = [stream.snapshot()] if chosen.random() < 0.1 or not chain else chain
        if chosen.random() < 0.3:
            chain.append(stream.snapshot(since=chain[-1][:64]))
            kept = chain if chosen.random() < 0.5 else stream.snapshot()
            stream = muntin.stream(QUERIES, data.schema, snapshot=kept)
            chain = chain if kept is chain else []
    found.append(stream.close())
    for name in whole:
        assert_same_rows(together(found, name), whole.table(name))


def test_answers_are_there_for_every_query() -> None:
    stream = muntin.stream([TOTAL, TOTAL.replace("total", "other")], PLAIN)
    results = stream.feed(rows((1, 1)))
    assert list(results) == ["total", "other"]
    assert results["other"].schema.names == ["window_start", "window_end", "v"]
    assert results["other"].num_rows == 0
    assert stream.feed(rows((12, 1)))["TOTAL"].to_pylist() == [
        {"window_start": -5, "window_end": 5, "v": 1},
        {"window_start": 0, "window_end": 10, "v": 1},
    ]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda: rows((1, 1), (20, 2)), pa.Table),
        (lambda: rows((1, 1), (20, 2)).to_batches()[0], pa.Table),
        (lambda: rows((1, 1), (20, 2)).to_pandas(), pd.DataFrame),
        (lambda: pl.DataFrame({"ts": [1, 20], "v": [1, 2]}), pl.DataFrame),
    ],
)
def test_answers_come_in_the_kind_of_frame_that_was_fed(made: Any, kind: type) -> None:
    stream = muntin.stream(TOTAL, made())
    assert isinstance(stream.feed(made())["total"], kind)
    assert isinstance(stream.close()["total"], kind)


def test_types_that_fit_are_cast_and_others_refused() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(pd.DataFrame({"ts": [1, 2], "v": [1.0, 2.0]}))
    with pytest.raises(DataError, match=r"column 'v' is of type double"):
        stream.feed(pa.table({"ts": [1], "v": [1.5]}))
    with pytest.raises(DataError, match="has no column 'v'"):
        stream.feed(pa.table({"ts": [1]}))
    assert stream.close()["total"]["v"].to_pylist() == [3, 3]


@pytest.mark.parametrize(
    "fed",
    [
        {"ts": [1], "v": ["7"]},
        {"ts": [1], "v": [datetime(2026, 1, 1, tzinfo=UTC)]},
        {"ts": ["1"], "v": [7]},
        {"ts": [1], "v": [True]},
    ],
)
def test_values_of_another_kind_are_not_guessed(fed: dict[str, list[Any]]) -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    with pytest.raises(DataError, match="is of type"):
        stream.feed(pa.table(fed))
    assert stream.feed(pa.table({"ts": [1], "v": pa.nulls(1)})).rows == 1


class _Flaky(Aggregate):
    """Fails when it is told to, while windows are answered."""

    name = "flaky"
    identity = 0
    fails = True

    def lift(self, value: int) -> int:
        return value

    def combine(self, a: int, b: int) -> int:
        return a + b

    def lower(self, partial: int) -> int:
        if self.fails:
            raise RuntimeError("once")
        return partial

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64()


def test_answers_that_fail_end_the_stream_and_a_snapshot_resumes_it() -> None:
    flaky = _Flaky()
    register(flaky)
    queries = [TOTAL, "CREATE QUERY own AS SELECT flaky(v) AS v FROM s [RANGE 10 SLIDE 5]"]
    stream = muntin.stream(queries, PLAIN)
    stream.feed(rows((0, 1)))
    before, batch = stream.snapshot(), rows((1, 10), (2, 100), (20, 7))
    with pytest.raises(RuntimeError, match="once"):
        stream.feed(batch)
    for call in (lambda: stream.feed(batch), stream.close, stream.snapshot):
        with pytest.raises(DataError, match="whose answers are lost"):
            call()
    flaky.fails = False
    found = muntin.stream(queries, PLAIN, snapshot=before).feed(batch)
    assert found["total"]["v"].to_pylist() == found["own"]["v"].to_pylist() == [111, 111]


def test_queries_join_are_replaced_and_leave() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1)))
    stream.add("CREATE QUERY most AS SELECT max(v) AS v FROM s [RANGE 5 SLIDE 5]")
    stream.add("CREATE OR REPLACE QUERY total AS SELECT count(*) AS n FROM s [RANGE 5 SLIDE 5]")
    assert [query.name for query in stream.queries()] == ["total", "most"]
    found = stream.feed(rows((6, 4), (7, 5), (11, 0)))
    assert found["most"].to_pylist()[-1]["v"] == 5
    assert found["total"].to_pylist()[-1]["n"] == 2
    stream.remove("total")
    stream.add("DROP QUERY most; CREATE QUERY least AS SELECT min(v) AS v FROM s [RANGE 5 SLIDE 5]")
    assert [query.name for query in stream.queries()] == ["least"]
    with pytest.raises(UnknownQueryError, match="there is no query named nothing"):
        stream.remove("nothing")


def test_of_several_queries_all_join_or_none() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    good = "CREATE QUERY good AS SELECT max(v) AS v FROM s [RANGE 5 SLIDE 5]"
    with pytest.raises(QueryError, match="missing"):
        stream.add([good, "CREATE QUERY bad AS SELECT max(missing) AS v FROM s [RANGE 5 SLIDE 5]"])
    with pytest.raises(QueryError, match="already"):
        stream.add([good, TOTAL])
    assert [query.name for query in stream.queries()] == ["total"]
    assert stream.plan().finals[0].name == "total"


def test_a_stream_has_the_name_that_it_was_given() -> None:
    with pytest.raises(QueryError, match="there is no input 's'"):
        muntin.stream(TOTAL, PLAIN, name="trades")
    stream = muntin.stream(TOTAL, PLAIN, name="S")
    with pytest.raises(QueryError, match="there is no input 't'"):
        stream.add("SELECT max(v) AS v FROM t [RANGE 5 SLIDE 5]")


def test_late_rows_are_counted() -> None:
    stream = muntin.stream(TOTAL, PLAIN, lateness=3)
    stream.feed(rows((20, 1)))
    stream.feed(rows((17, 1), (16, 1)))
    assert stream.progress().late_rows == 1
    assert stream.progress().watermark == 17


def test_time_can_be_advanced_by_hand() -> None:
    stream = muntin.stream(TOTAL, PLAIN, lateness=100)
    assert stream.feed(rows((1, 1)))["total"].num_rows == 0
    assert stream.advance(10)["total"].num_rows == 2
    assert stream.advance(3)["total"].num_rows == 0
    for wrong in ("noon", None, 3.5):
        with pytest.raises(DataError, match="is not a time of the column"):
            stream.advance(wrong)
    with pytest.raises(DataError, match="Hint: give a value of type int64"):
        stream.advance(None)


def test_rows_too_far_ahead_of_the_clock_are_bad() -> None:
    query = "SELECT count(*) AS n FROM s [RANGE '1 minute' SLIDE '1 minute']"
    now = datetime.now(UTC)
    batch = pa.table({"ts": [now, now + timedelta(days=3), None]})
    stream = muntin.stream(query, batch.schema)
    stream.feed(batch)
    assert (stream.progress().rows, stream.progress().bad_rows) == (3, 2)
    assert stream.close()["q1"]["n"].to_pylist() == [1]
    free = muntin.stream(query, batch.schema, max_ahead=None)
    free.feed(batch)
    assert free.progress().bad_rows == 1


def test_bad_rows_and_failed_values_may_end_the_stream() -> None:
    strict = muntin.stream(TOTAL, PLAIN, on_bad_row="fail")
    strict.feed(rows((1, 1)))
    with pytest.raises(DataError, match="column 'ts' has 1 row without a usable time"):
        strict.feed(rows((2, 2), (None, 1)))
    with pytest.raises(DataError, match="the stream has ended"):
        strict.feed(rows((3, 1)))
    query = "SELECT sum(1 / v) AS v FROM s [RANGE 5 SLIDE 5]"
    lenient = muntin.stream(query, PLAIN)
    assert lenient.feed(rows((1, 0))).errors == {"q1": 1}
    exact = muntin.stream(query, PLAIN, on_error="fail")
    with pytest.raises(DataError, match="1 value failed"):
        exact.feed(rows((1, 0)))
    with pytest.raises(DataError, match="the stream has ended"):
        exact.close()


def test_a_closed_stream_takes_nothing_more() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1)))
    stream.close()
    for call in (lambda: stream.feed(rows((2, 1))), stream.close, stream.snapshot):
        with pytest.raises(DataError, match="the stream is closed"):
            call()
    with muntin.stream(TOTAL, PLAIN) as other:
        other.feed(rows((1, 1)))
    with pytest.raises(DataError, match="the stream is closed"):
        other.feed(rows((2, 1)))


def test_a_snapshot_resumes_with_other_queries() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1), (7, 2)))
    other = "CREATE QUERY least AS SELECT min(v) AS v FROM s [RANGE 10 SLIDE 5]"
    resumed = muntin.stream([TOTAL, other], PLAIN, snapshot=stream.snapshot())
    assert [query.name for query in resumed.queries()] == ["total", "least"]
    assert resumed.progress().rows == 2
    assert resumed.feed(rows((12, 1)))["total"]["v"].to_pylist() == [3]


def test_a_snapshot_keeps_its_time_columns_and_zone() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1)))
    snapshot = stream.snapshot()
    with pytest.raises(DataError, match=r"the time column is 'v', and was 'ts'"):
        muntin.stream(TOTAL, PLAIN, time="v", snapshot=snapshot)
    with pytest.raises(DataError, match="column 'v' is string, and was int64"):
        muntin.stream(TOTAL, {"ts": "int64", "v": "string"}, snapshot=snapshot)
    with pytest.raises(DataError, match="column 'v' is gone"):
        muntin.stream(TOTAL, {"ts": "int64"}, snapshot=snapshot)
    with pytest.raises(DataError, match=r"the time zone is Asia/Tokyo, and was UTC"):
        muntin.stream(TOTAL, PLAIN, timezone="Asia/Tokyo", snapshot=snapshot)
    muntin.stream(TOTAL, PLAIN, timezone="UTC", snapshot=snapshot)


def test_a_snapshot_keeps_its_lateness() -> None:
    stream = muntin.stream(TOTAL, PLAIN, lateness=3)
    stream.feed(rows((9, 1)))
    snapshot = stream.snapshot()
    with pytest.raises(DataError, match=r"lateness is 4, and was 3 in the snapshot"):
        muntin.stream(TOTAL, PLAIN, lateness=4, snapshot=snapshot)
    for given in ({}, {"lateness": 3}):
        resumed = muntin.stream(TOTAL, PLAIN, snapshot=snapshot, **given)
        resumed.feed(rows((7, 1), (5, 1)))
        assert resumed.progress().late_rows == 1


def test_what_changed_since_a_snapshot_follows_queries_that_join() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1)))
    chain = [stream.snapshot()]
    stream.feed(rows((3, 10)))
    chain.append(stream.snapshot(since=chain[-1]))
    most = "CREATE QUERY most AS SELECT max(v) AS v FROM s [RANGE 5 SLIDE 5]"
    stream.add(most)
    stream.feed(rows((4, 100)))
    chain.append(stream.snapshot(since=chain[-1]))
    stream.feed(rows((5, 1000)))
    chain.append(stream.snapshot(since=chain[-1]))
    resumed = muntin.stream([TOTAL, most], PLAIN, snapshot=chain)
    for each in (stream, resumed):
        found = each.feed(rows((10, 0)))
        assert found["total"]["v"].to_pylist() == [1111]
        assert found["most"]["v"].to_pylist() == [1000]
    with pytest.raises(DataError, match="snapshot 3 of 3 was not taken since"):
        muntin.stream(TOTAL, PLAIN, snapshot=[*chain[:2], chain[3]])


def test_news_alone_or_of_another_stream_are_refused() -> None:
    stream, other = muntin.stream(TOTAL, PLAIN), muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1)))
    whole = stream.snapshot()
    with pytest.raises(DataError, match="not one of the last 16"):
        other.snapshot(since=whole)
    with pytest.raises(DataError, match="not a snapshot of a stream"):
        stream.snapshot(since=b"something else")
    with pytest.raises(DataError, match="holds only what changed"):
        muntin.stream(TOTAL, PLAIN, snapshot=stream.snapshot(since=whole))
    with pytest.raises(DataError, match="no snapshot to resume from"):
        muntin.stream(TOTAL, PLAIN, snapshot=[])


def test_damaged_snapshots_are_refused() -> None:
    stream = muntin.stream(TOTAL, PLAIN)
    stream.feed(rows((1, 1)))
    data = bytearray(stream.snapshot())
    data[-10] ^= 1
    for given, what in (
        (bytes(data), "damaged"),
        (stream.snapshot()[:60], "damaged"),
        (b"", "not a snapshot"),
        ("text", "a snapshot is bytes"),
    ):
        with pytest.raises(DataError, match=what):
            muntin.stream(TOTAL, PLAIN, snapshot=given)  # type: ignore[arg-type]


def test_tables_are_joined_and_replaced() -> None:
    query = """SELECT name, sum(s.v) AS v FROM s [RANGE 5 SLIDE 5] JOIN names ON s.v = names.v
               GROUP BY name"""
    names = pa.table({"v": [1], "name": ["one"]})
    stream = muntin.stream(query, PLAIN, tables={"names": names})
    assert stream.feed(rows((1, 1), (6, 1)))["q1"]["name"].to_pylist() == ["one"]
    stream.update_table("names", pd.DataFrame({"v": [1], "name": ["uno"]}))
    assert stream.feed(rows((8, 1), (11, 1)))["q1"]["name"].to_pylist() == ["one", "uno"]


def test_arguments_are_checked() -> None:
    with pytest.raises(DataError, match="on_error must be null or fail, not 'maybe'"):
        muntin.stream(TOTAL, PLAIN, on_error="maybe")  # type: ignore[arg-type]
    with pytest.raises(WindowError, match="lateness"):
        muntin.stream(TOTAL, PLAIN, lateness="3 seconds")
    with pytest.raises(WindowError, match="0 or more"):
        muntin.stream(TOTAL, PLAIN, lateness=-1)
    with pytest.raises(DataError, match="name is 5"):
        muntin.stream(TOTAL, PLAIN, name=5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="the schema is a list"):
        muntin.stream(TOTAL, [("ts", "int64")])
    with pytest.raises(DataError, match="the schema cannot be read"):
        muntin.stream(TOTAL, {"ts": "instant"})
    with pytest.raises(DataError, match="no time column"):
        muntin.stream(TOTAL, {"v": "int64"})
    with pytest.raises(WindowError, match="Cutty"):
        muntin.stream(TOTAL, PLAIN, slicing="cutty")
    assert "1 query" in repr(muntin.stream(TOTAL, PLAIN))


def test_a_snapshot_resumes_by_itself() -> None:
    table = pa.table({"v": [1, 2], "name": ["one", "two"]})
    text = """
        CREATE QUERY named AS SELECT name, count(DISTINCT t.v) AS n FROM t [RANGE 10 SLIDE 5]
          JOIN names ON t.v = names.v GROUP BY name;
        CREATE KEEP recent AS SELECT median(v), count(*) FROM t [RANGE 100 SLIDE 5]
    """
    stream = muntin.stream(text, PLAIN, lateness=3, tables={"names": table})
    stream.feed(rows((1, 1), (4, 2), (9, 2)))
    whole = stream.snapshot()
    stream.feed(rows((12, 1)))
    resumed = muntin.Stream.restore([whole, stream.snapshot(since=whole)], {"names": table})
    assert (resumed.queries(), resumed.keeps()) == (stream.queries(), stream.keeps())
    question = "SELECT median(v) AS m, count(*) AS n FROM t [RANGE 20 ALIGNED]"
    for batch in (rows((11, 2), (17, 1)), rows((30, 2))):
        assert resumed.feed(batch)["named"] == stream.feed(batch)["named"]
        assert resumed.ask(question).table == stream.ask(question).table
    assert resumed.progress().late_rows == stream.progress().late_rows
    with pytest.raises(DataError, match="another version of Muntin made them"):
        muntin.Stream.restore(b"muntin streams 2\n")
    with pytest.raises(DataError, match="snapshot of several streams, or of queries over rows"):
        muntin.Stream.restore([b"muntin streams 3\n", whole])
