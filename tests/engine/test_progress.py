"""What a run counts and keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import Progress
from muntin.errors import DataError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine

ROWS = 3000
RNG = np.random.default_rng(6)
TRADES = pa.table(
    {
        "ts": np.arange(ROWS) // 10,
        "symbol": RNG.integers(0, 20, ROWS),
        "vol": RNG.choice([100, 200, 500, 900], ROWS, p=[0.5, 0.2, 0.2, 0.1]),
        "price": RNG.random(ROWS),
    }
)
# Windows differ on A, predicates on B.
A = [f"[RANGE {20 + 3 * i} SLIDE {10 + i}]" for i in range(8)]
B = [f"[RANGE 20 SLIDE 20] WHERE vol > {100 * i}" for i in range(10)]


def engine_of(asked: list[str], strategy: str = "cells", lateness: int | None = None) -> LiveEngine:
    sql = ";".join(f"SELECT sum(price * vol) AS v FROM trades {each}" for each in asked)
    return LiveEngine(build_plan(queries(sql), TRADES.schema, "ts", strategy=strategy), lateness)


def fed(asked: list[str], strategy: str = "cells") -> Progress:
    engine = engine_of(asked, strategy)
    for batch in TRADES.to_batches(max_chunksize=700):
        engine.feed(batch)
    return engine.progress()


def satisfied(asked: list[str]) -> int:
    vols = TRADES["vol"].to_numpy()
    return sum(int((vols > 100 * i).sum()) for i in range(len(asked)))


@pytest.mark.parametrize("strategy", ["slices", "shards", "cells"])
def test_shared_slices_aggregate_every_row_once(strategy: str) -> None:
    progress = fed(A, strategy)
    assert (progress.rows, progress.partial_aggregations) == (ROWS, ROWS)
    # Without predicates there is one entry a slice.
    assert progress.cells == progress.slices


@pytest.mark.parametrize("strategy", ["unshared", "fragments"])
def test_windows_of_their_own_aggregate_every_row_for_each(strategy: str) -> None:
    assert fed(A, strategy).partial_aggregations == len(A) * ROWS


def test_predicates_of_their_own_take_the_rows_that_satisfy_them() -> None:
    for strategy in ("unshared", "slices"):
        assert fed(B, strategy).partial_aggregations == satisfied(B)


@pytest.mark.parametrize("strategy", ["fragments", "shards", "cells"])
def test_all_predicates_of_one_window_take_a_row_once(strategy: str) -> None:
    progress = fed(B, strategy)
    # Every trade has a volume above 0, and four volumes fall into four cells.
    assert progress.partial_aggregations == ROWS
    assert progress.slices == 15
    assert progress.cells == 15 * 4


def test_cells_that_no_predicate_wants_are_not_kept() -> None:
    progress = fed(B[2:])
    assert progress.partial_aggregations == int((TRADES["vol"].to_numpy() > 200).sum())
    assert progress.cells == 15 * 2


def test_answers_are_counted() -> None:
    engine = engine_of(A, "slices")
    engine.feed(TRADES)
    assert engine.progress().final_aggregations == 0
    engine.close()
    assert engine.progress().final_aggregations > 0


def test_rows_that_are_late_or_have_no_time() -> None:
    engine = engine_of(A, lateness=5)
    rows = TRADES.slice(0, 6)
    engine.feed(rows.set_column(0, "ts", pa.array([20, 30, None, 28, None, 25], pa.int64())))
    assert engine.progress().watermark == 25
    engine.feed(rows.set_column(0, "ts", pa.array([24, 25, None, 1, 26, 40], pa.int64())))
    progress = engine.progress()
    assert (progress.rows, progress.late_rows, progress.bad_rows) == (12, 2, 3)
    assert progress.partial_aggregations == 12 - 2 - 3
    assert progress.watermark == 35


def test_values_that_fail_are_counted_for_their_query_alone() -> None:
    sql = """
    CREATE QUERY a AS SELECT sum(1 div vol) AS x FROM s [RANGE 5 SLIDE 5];
    CREATE QUERY b AS SELECT sum(1 div vol) AS x FROM s [RANGE 5 SLIDE 5] WHERE vol > 0;
    CREATE QUERY c AS SELECT count(*) AS x FROM s [RANGE 5 SLIDE 5] WHERE 10 div vol > 1;
    """
    table = pa.table({"ts": [1, 2, 3], "vol": [0, 5, 0]})
    for strategy in ("unshared", "slices", "fragments", "shards", "cells"):
        plan = build_plan(queries(sql), table.schema, "ts", strategy=strategy)
        engine = LiveEngine(plan)
        engine.feed(table)
        assert engine.progress().errors == {"a": 2, "c": 2}, strategy


@pytest.mark.parametrize("strategy", ["unshared", "slices", "fragments", "shards", "cells"])
def test_state_shrinks_when_windows_pass(strategy: str) -> None:
    engine = engine_of(A + B, strategy, lateness=0)
    engine.feed(TRADES)
    held = engine.progress()
    assert held.cells > 0
    assert held.state_bytes > 0
    engine.advance(10**6)
    after = engine.progress()
    assert (after.slices, after.cells, after.state_bytes) == (0, 0, 0)
    assert after.rows == ROWS


def test_state_does_not_grow_with_the_stream() -> None:
    engine = engine_of(A + B, lateness=0)
    sizes = []
    for low in range(0, ROWS, 100):
        engine.feed(TRADES.slice(low, 100))
        sizes.append(engine.progress().state_bytes)
    assert max(sizes[15:]) <= 1.2 * max(sizes[5:15])


@pytest.mark.parametrize("strategy", ["fragments", "shards"])
def test_signatures_are_forgotten_with_their_slices(strategy: str) -> None:
    # Every few ticks rows satisfy one predicate more, and have a signature of their own.
    asked = [f"[RANGE 20 SLIDE 20] WHERE ts >= {4 * i}" for i in range(75)]
    engine = engine_of(asked, strategy, lateness=0)
    sizes = []
    for low in range(0, ROWS, 200):
        engine.feed(TRADES.slice(low, 200))
        sizes.append(engine.progress().state_bytes)
    assert sizes[-1] == sizes[1]


def test_bytes_of_a_group_do_not_depend_on_how_many_there_are() -> None:
    (query,) = queries("SELECT g, sum(v) AS s, min(v) AS m FROM s [RANGE 9 SLIDE 9] GROUP BY g")
    each = []
    for groups in (1_000, 16_000):
        table = pa.table(
            {"ts": np.zeros(groups, int), "g": np.arange(groups), "v": RNG.random(groups)}
        )
        engine = LiveEngine(build_plan([query], table.schema, "ts"), 0)
        engine.feed(table)
        progress = engine.progress()
        assert progress.groups == progress.cells == groups
        each.append(progress.state_bytes / groups)
    assert max(each) <= 200
    assert each[1] <= 1.05 * each[0]


def test_a_stream_goes_on_without_queries() -> None:
    engine = engine_of(A[:1], lateness=0)
    engine.feed(TRADES.slice(0, 500))
    engine.remove("q1")
    assert engine.feed(TRADES.slice(500, 500)) == {}
    # The first row of a later batch may still be late.
    engine.feed(TRADES.slice(0, 10))
    progress = engine.progress()
    assert (progress.rows, progress.late_rows, progress.watermark) == (1010, 10, 99)
    assert (progress.cells, progress.state_bytes) == (0, 0)
    restored = LiveEngine.restore(engine.plan, engine.snapshot())
    (query,) = queries("CREATE QUERY back AS SELECT count(*) AS n FROM s [RANGE 10 SLIDE 10]")
    restored.add(query)
    answers = restored.feed(TRADES.slice(1000, 500))["back"]
    assert answers["window_start"].to_pylist() == [100, 110, 120, 130]
    assert answers["n"].to_pylist() == [100] * 4


def test_a_batch_that_fails_leaves_no_trace() -> None:
    size = 200_000
    ticks = np.arange(size)
    ticks[-1] = 2**62
    table = pa.table({"ts": pa.array(ticks, pa.timestamp("s")), "v": ticks})
    sql = "SELECT count(*) AS n FROM s [RANGE '1 day' SLIDE '1 day']"
    engine = LiveEngine(build_plan(queries(sql), table.schema, "ts"), 0)
    with pytest.raises(DataError, match="ticks from zero"):
        engine.feed(table)
    assert (engine.progress().rows, engine.progress().cells, engine.seen) == (0, 0, None)


def test_a_negative_lateness_is_refused() -> None:
    with pytest.raises(DataError, match="lateness"):
        engine_of(A, lateness=-1)
