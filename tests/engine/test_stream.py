"""Batches of a stream: what is late, when a window is answered, and what is kept."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.errors import DataError, WindowError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import assert_same_rows, oracle
from oracle.random_queries import queries as random_queries
from oracle.random_streams import stream


def engine_for(sql: str, lateness: int) -> LocalEngine:
    schema = pa.schema({"t": pa.int64(), "v": pa.int64()})
    return LocalEngine(build_plan(queries(sql), schema, "t"), lateness)


def rows(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int64()), "v": pa.array(times, pa.int64())})


def test_a_window_is_answered_when_the_watermark_reaches_its_end() -> None:
    #  batch   1: 1 3     2: 4      3: 9         lateness 0
    #  W after    3          4         9         [0, 4) with batch 2, [4, 8) with batch 3
    engine = engine_for("SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]", 0)
    assert engine.feed(rows(1, 3)) == {}
    assert engine.feed(rows(4))["q1"].to_pydict() == {
        "window_start": [0], "window_end": [4], "n": [2]
    }  # fmt: skip
    assert engine.feed(rows(9))["q1"]["window_start"].to_pylist() == [4]
    assert engine.close()["q1"]["n"].to_pylist() == [1]


def test_lateness_holds_windows_open_and_rows_below_the_watermark_are_dropped() -> None:
    #  batch   1: 10     2: 7 8      3: 12        lateness 3
    #  W          -         7          7 -> 9     7 is not late (7 >= 7), 6 would be
    engine = engine_for("SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]", 3)
    engine.feed(rows(10))
    assert engine.watermark == 7
    assert engine.feed(rows(6, 7, 8)) == {}
    assert engine.statistics.late_rows == 1
    done = engine.feed(rows(12))
    assert done["q1"].to_pydict() == {"window_start": [4], "window_end": [8], "n": [1]}


def test_the_clock_moves_a_stream_that_is_silent() -> None:
    #  row at 7 s, lateness 1 s; W 6 s      clock + 4 s: W 10 s, and [5, 10) is answered
    plan = build_plan(
        queries("CREATE QUERY n AS SELECT count(*) AS n FROM s [RANGE '5 s' SLIDE '5 s']"),
        pa.schema({"t": pa.timestamp("us"), "v": pa.int64()}),
        "t",
    )
    engine, second = LocalEngine(plan, 1_000_000), 1_000_000

    def at(*seconds: int) -> pa.Table:
        times = pa.array([each * second for each in seconds], pa.timestamp("us"))
        return pa.table({"t": times, "v": pa.array(seconds, pa.int64())})

    assert engine.idle(9 * second) == {}
    engine.feed(at(7))
    assert engine.idle(4 * second - 1) == {}
    assert engine.idle(4 * second)["n"]["n"].to_pylist() == [1]
    assert (engine.seen, engine.watermark) == (7 * second, 10 * second)
    # W does not go back, and rows below it are late.
    assert engine.idle(second) == {}
    engine.feed(at(9, 10))
    assert (engine.watermark, engine.statistics.late_rows) == (10 * second, 1)
    with pytest.raises(DataError, match="which no clock moves"):
        engine_for("SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]", 0).idle(1)


def test_no_row_is_late_within_its_own_batch() -> None:
    engine = engine_for("SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]", 0)
    done = engine.feed(rows(100, 1))
    assert engine.statistics.late_rows == 0
    assert done["q1"].to_pydict() == {"window_start": [0], "window_end": [4], "n": [1]}


def test_empty_windows_are_filled_when_the_next_one_is_answered() -> None:
    #  t   1 . . . . . . . 17           gaps [4, 16) come with [16, 20), not before
    engine = engine_for("SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4] EMIT EMPTY", 0)
    engine.feed(rows(1))
    assert engine.feed(rows(17))["q1"]["n"].to_pylist() == [1]
    assert engine.feed(rows(20))["q1"].to_pydict() == {
        "window_start": [4, 8, 12, 16], "window_end": [8, 12, 16, 20], "n": [0, 0, 0, 1]
    }  # fmt: skip


def test_slices_that_no_window_needs_are_forgotten() -> None:
    engine = engine_for("SELECT sum(v) AS s FROM s [RANGE 8 SLIDE 4]", 0)
    for time in range(1000):
        engine.feed(rows(time))
        assert engine.progress().slices <= 3


@pytest.mark.parametrize("window", ["ROWS 4 SLIDE 4", "RANGE 4 SLIDE 4 WATTR v"])
def test_windows_that_time_does_not_close_are_refused(window: str) -> None:
    with pytest.raises(WindowError, match="bounded data only"):
        engine_for(f"SELECT count(*) FROM s [{window}]", 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_stream_answers_what_recomputation_of_its_rows_answers(seed: int) -> None:
    rng = random.Random(5000 + seed)
    table = stream(rng)
    asked = random_queries(rng, most=10)
    plan = build_plan(queries(";".join(q.sql for q in asked)), table.schema, "ts")
    lateness = rng.choice([0, 60_000_000, 10**9, 10**16])
    engine = LocalEngine(plan, lateness)
    kept, results = [], {query.name: [] for query in asked}
    watermark = None
    for batch in table.to_batches(max_chunksize=rng.choice([1, 5, 40])):
        ticks = batch["ts"].cast(pa.int64()).to_pylist()
        alive = [watermark is None or tick >= watermark for tick in ticks]
        kept.append(pa.Table.from_batches([batch]).filter(pa.array(alive, pa.bool_())))
        if rng.random() < 0.2:
            engine = LocalEngine.restore(plan, engine.snapshot())
        due = engine.feed(batch)
        reached = max([tick - lateness for tick in ticks] + [watermark or -(2**62)])
        for name, result in due.items():
            ends = result["window_end"].cast(pa.int64()).to_pylist()
            assert all(end <= reached for end in ends)
            assert watermark is None or all(end > watermark for end in ends)
            results[name].append(result)
        watermark = reached
    for name, result in engine.close().items():
        results[name].append(result)
    alive_rows = pa.concat_tables([table.slice(0, 0), *kept])
    assert engine.statistics.late_rows == table.num_rows - alive_rows.num_rows
    for query in asked:
        expected = oracle.answer(plan, query.name, alive_rows)
        close = {n: 1e-12 for n, text in query.outputs.items() if text[:3] in ("pro", "geo")}
        assert_same_rows(pa.concat_tables(results[query.name]), expected, close=close)


def test_a_snapshot_of_other_queries_or_other_bytes_is_refused() -> None:
    engine = engine_for("SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]", 0)
    other = engine_for("SELECT sum(v) AS n FROM s [RANGE 4 SLIDE 4]", 0)
    with pytest.raises(DataError, match="taken with other queries"):
        LocalEngine.restore(other.plan, engine.snapshot())
    with pytest.raises(DataError, match="not a snapshot"):
        LocalEngine.restore(other.plan, b"12345678")


def test_a_closed_engine_takes_nothing_more() -> None:
    sql = "CREATE QUERY b AS SELECT sum(v) AS a FROM s [RANGE 5 SLIDE 5]"
    schema = pa.schema({"t": pa.int64(), "v": pa.int64()})
    engine = LocalEngine(build_plan(queries(sql), schema, "t"), 0)
    engine.feed(pa.table({"t": [1], "v": [1]}))
    assert engine.close()["b"].num_rows == 1
    for more in (lambda: engine.feed(pa.table({"t": [21], "v": [2]})), engine.close):
        with pytest.raises(DataError, match="the engine is closed"):
            more()


def test_a_damaged_snapshot_is_refused() -> None:
    sql = "SELECT v, sum(v) AS a, max(t) AS m FROM s [RANGE 15 SLIDE 5] GROUP BY v"
    schema = pa.schema({"t": pa.int64(), "v": pa.int64()})
    plan = build_plan(queries(sql), schema, "t")
    engine = LocalEngine(plan, 3)
    engine.feed(pa.table({"t": list(range(20)), "v": [each % 3 for each in range(20)]}))
    data = engine.snapshot()
    rng = random.Random(31)
    for place in (0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(40))):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.randrange(8)
        for bytes_ in (bytes(damaged), data[:place]):
            with pytest.raises(DataError, match="not a snapshot"):
                LocalEngine.restore(plan, bytes_)
