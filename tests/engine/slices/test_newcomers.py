"""Queries that join and leave a running stream."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.members import NEVER, Member, collect
from muntin.errors import QueryError, UnknownQueryError
from muntin.plan import STRATEGIES
from muntin.planner import build_plan
from muntin.queries import Query, queries
from muntin.streams import LiveEngine
from oracle.random_queries import queries as random_queries
from oracle.random_streams import stream

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})


def one(sql: str) -> Query:
    (query,) = queries(sql)
    return query


def rows(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int64()), "v": pa.array(times, pa.int64())})


def test_a_newcomer_answers_from_the_first_window_after_the_latest_row() -> None:
    #  t      1   5 | 7   11         "late" joins after 5: [4, 8) has started, [8, 12) has not
    count = "CREATE QUERY {} AS SELECT {} AS n FROM s [RANGE 4 SLIDE 4]"
    engine = LiveEngine(build_plan([one(count.format("old", "count(*)"))], SCHEMA, "t"), 0)
    engine.feed(rows(1, 5))
    engine.add(one(count.format("late", "sum(v)")))
    due = engine.feed(rows(7, 11))
    assert due["old"]["n"].to_pylist() == [2]
    assert "late" not in due
    assert engine.close()["late"].to_pydict() == {
        "window_start": [8], "window_end": [12], "n": [11]
    }  # fmt: skip


def test_history_that_is_kept_is_used_at_once() -> None:
    #  t      1   5 | 7   11         the same partials are there already, cut at 0, 4, 8
    count = "CREATE QUERY {} AS SELECT count(*) AS n FROM s [RANGE {} SLIDE {}]"
    engine = LiveEngine(build_plan([one(count.format("old", 8, 4))], SCHEMA, "t"), 0)
    engine.feed(rows(1, 5))
    engine.add(one(count.format("late", 8, 8)))
    engine.add(one(count.format("odd", 3, 3)))
    due = engine.feed(rows(7, 11))
    assert due["late"].to_pydict() == {"window_start": [0], "window_end": [8], "n": [3]}
    # Windows of three ticks were no slices' bounds: [6, 9) is the first that starts after 5.
    assert due["odd"].to_pydict() == {"window_start": [6], "window_end": [9], "n": [1]}


def test_a_query_that_left_answers_nothing_more_and_may_come_back() -> None:
    sql = "CREATE QUERY {} AS SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]"
    first, second = one(sql.format("a")), one(sql.format("b"))
    engine = LiveEngine(build_plan([first, second], SCHEMA, "t"), 0)
    engine.feed(rows(1))
    engine.remove("A")
    assert set(engine.feed(rows(9))) == {"b"}
    engine.add(first)
    engine.feed(rows(13))
    assert engine.feed(rows(17))["a"]["window_start"].to_pylist() == [12]


def test_mistakes_change_nothing() -> None:
    sql = "CREATE QUERY a AS SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]"
    engine = LiveEngine(build_plan([one(sql)], SCHEMA, "t"), 0)
    plan = engine.plan
    with pytest.raises(QueryError, match="nope"):
        engine.add(one("CREATE QUERY b AS SELECT sum(nope) FROM s [RANGE 4 SLIDE 4]"))
    with pytest.raises(UnknownQueryError, match="no query 'c'"):
        engine.remove("c")
    assert engine.plan is plan


def test_a_cut_that_came_later_does_not_tell_earlier_rows_apart() -> None:
    #  v      4 9 | 4 9 | 4 9       "high" cuts at 5 after the first batch: before, 4 and 9 were
    #                               one cell, so "middle" cannot read the window that holds it
    sql = "CREATE QUERY {} AS SELECT count(*) AS n FROM s [RANGE 100 SLIDE 100] WHERE {}"
    first = [one(sql.format("some", "v > 3")), one(sql.format("others", "v <= 3"))]
    engine = LiveEngine(build_plan(first, SCHEMA, "t"), 0)
    batches = [
        pa.table({"t": [start, start + 1], "v": [4, 9]}, schema=SCHEMA) for start in (1, 11, 21)
    ]
    engine.feed(batches[0])
    engine.add(one(sql.format("high", "v > 5")))
    engine.feed(batches[1])
    engine.add(one(sql.format("middle", "v > 3 AND v <= 5")))
    engine.feed(batches[2])
    done = engine.close()
    assert done["some"]["n"].to_pylist() == [6]
    assert done["high"].num_rows == done["middle"].num_rows == 0


def test_a_newcomer_beside_windows_with_gaps_between_them_has_its_first_window() -> None:
    #  t      50 | 60 99 | 110       the next window of "rare" is [98, 100): slices before are
    #                                not needed, until "often" joins, whose first is [51, 52)
    count = "CREATE QUERY {} AS SELECT count(*) AS n FROM s [RANGE {} SLIDE {}]"
    engine = LiveEngine(build_plan([one(count.format("rare", 2, 100))], SCHEMA, "t"), 0)
    engine.feed(rows(50))
    engine.add(one(count.format("often", 1, 1)))
    due = engine.feed(rows(60, 99))
    assert due["often"]["window_start"].to_pylist() == [60]
    assert engine.feed(rows(110))["rare"]["n"].to_pylist() == [1]


@pytest.mark.parametrize("seed", range(150))
def test_every_query_answers_what_recomputation_answers(seed: int) -> None:
    rng = random.Random(7000 + seed)
    table = stream(rng)
    pool = random_queries(rng, most=12)
    lateness = rng.choice([0, 60_000_000, 10**9])
    members = [Member(one(q.sql), -NEVER, _close(q.outputs)) for q in pool[: 1 + len(pool) // 2]]
    waiting = pool[1 + len(pool) // 2 :]
    active = list(members)
    strategy = rng.choice(["cells", "cells", *STRATEGIES])
    plan = build_plan([each.query for each in active], table.schema, "ts", strategy=strategy)
    engine = LiveEngine(plan, lateness)
    kept = []
    for batch in table.to_batches(max_chunksize=rng.choice([3, 10])):
        if waiting and rng.random() < 0.4:
            asked = waiting.pop()
            seen = -NEVER if engine.seen is None else engine.seen
            joined = Member(one(asked.sql), seen, _close(asked.outputs))
            engine.add(joined.query)
            members.append(joined)
            active.append(joined)
        if len(active) > 1 and rng.random() < 0.2:
            leaving = active.pop(rng.randrange(len(active)))
            engine.remove(leaving.query.name)
            leaving.left = -NEVER if engine.watermark is None else engine.watermark
        if rng.random() < 0.2:
            engine = LiveEngine.restore(engine.plan, engine.snapshot())
        ticks = batch["ts"].cast(pa.int64())
        alive = pc.greater_equal(ticks, -NEVER if engine.watermark is None else engine.watermark)
        kept.append(pa.Table.from_batches([batch]).filter(alive))
        collect(active, engine.feed(batch))
        if seed % 2 and rng.random() < 0.3:
            # The stream is silent, and the clock moves it beyond its last row.
            collect(active, engine.idle(rng.choice([1, 10**6, 10**9, 10**11])))
    collect(active, engine.close())
    whole = pa.concat_tables([table.slice(0, 0), *kept])
    for member in members:
        member.check(whole, "ts")


def _close(outputs: Mapping[str, str]) -> dict[str, float]:
    return {name: 1e-12 for name, text in outputs.items() if text[:3] in ("pro", "geo")}
