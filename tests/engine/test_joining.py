"""Queries that join and leave a running stream."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from muntin.engine import LocalEngine, naive
from muntin.errors import QueryError, UnknownQueryError
from muntin.plan import STRATEGIES, build_plan
from muntin.queries import Query, queries
from muntin.testing import assert_same_rows
from oracle.random_queries import queries as random_queries
from oracle.random_streams import stream

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})
NEVER = 2**62


def one(sql: str) -> Query:
    (query,) = queries(sql)
    return query


def rows(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int64()), "v": pa.array(times, pa.int64())})


def test_a_newcomer_answers_from_the_first_window_after_the_latest_row() -> None:
    #  t      1   5 | 7   11         "late" joins after 5: [4, 8) has started, [8, 12) has not
    count = "CREATE QUERY {} AS SELECT {} AS n FROM s [RANGE 4 SLIDE 4]"
    engine = LocalEngine(build_plan([one(count.format("old", "count(*)"))], SCHEMA, "t"), 0)
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
    engine = LocalEngine(build_plan([one(count.format("old", 8, 4))], SCHEMA, "t"), 0)
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
    engine = LocalEngine(build_plan([first, second], SCHEMA, "t"), 0)
    engine.feed(rows(1))
    engine.remove("A")
    assert set(engine.feed(rows(9))) == {"b"}
    engine.add(first)
    engine.feed(rows(13))
    assert engine.feed(rows(17))["a"]["window_start"].to_pylist() == [12]


def test_mistakes_change_nothing() -> None:
    sql = "CREATE QUERY a AS SELECT count(*) AS n FROM s [RANGE 4 SLIDE 4]"
    engine = LocalEngine(build_plan([one(sql)], SCHEMA, "t"), 0)
    plan = engine.plan
    with pytest.raises(QueryError, match="nope"):
        engine.add(one("CREATE QUERY b AS SELECT sum(nope) FROM s [RANGE 4 SLIDE 4]"))
    with pytest.raises(UnknownQueryError, match="no query 'c'"):
        engine.remove("c")
    assert engine.plan is plan


@dataclass
class Member:
    """A query in the stream: what was seen when it joined, and what it has answered."""

    query: Query
    seen: int
    text: dict[str, str]
    left: int = NEVER
    results: list[pa.Table] = field(default_factory=list)


@pytest.mark.parametrize("seed", range(150))
def test_every_query_answers_what_recomputation_answers(seed: int) -> None:
    rng = random.Random(7000 + seed)
    table = stream(rng)
    pool = random_queries(rng, most=12)
    lateness = rng.choice([0, 60_000_000, 10**9])
    members = [Member(one(q.sql), -NEVER, q.outputs) for q in pool[: 1 + len(pool) // 2]]
    waiting = pool[1 + len(pool) // 2 :]
    active = list(members)
    strategy = rng.choice(["cells", "cells", *STRATEGIES])
    plan = build_plan([each.query for each in active], table.schema, "ts", strategy=strategy)
    engine = LocalEngine(plan, lateness)
    kept = []
    for batch in table.to_batches(max_chunksize=rng.choice([3, 10])):
        if waiting and rng.random() < 0.4:
            asked = waiting.pop()
            seen = -NEVER if engine.seen is None else engine.seen
            joined = Member(one(asked.sql), seen, asked.outputs)
            engine.add(joined.query)
            members.append(joined)
            active.append(joined)
        if len(active) > 1 and rng.random() < 0.2:
            leaving = active.pop(rng.randrange(len(active)))
            engine.remove(leaving.query.name)
            leaving.left = -NEVER if engine.watermark is None else engine.watermark
        if rng.random() < 0.2:
            engine = LocalEngine.restore(engine.plan, engine.snapshot())
        ticks = batch["ts"].cast(pa.int64())
        alive = pc.greater_equal(ticks, -NEVER if engine.watermark is None else engine.watermark)
        kept.append(pa.Table.from_batches([batch]).filter(alive))
        _collect(active, engine.feed(batch))
    _collect(active, engine.close())
    whole = pa.concat_tables([table.slice(0, 0), *kept])
    for member in members:
        _check(member, whole)


def _collect(active: list[Member], due: dict[str, pa.Table]) -> None:
    for member in active:
        if member.query.name in due:
            member.results.append(due[member.query.name])


def _check(member: Member, whole: pa.Table) -> None:
    expected = naive.answer(
        build_plan([member.query], whole.schema, "ts"), member.query.name, whole
    )
    answered = pa.concat_tables([expected.slice(0, 0), *member.results])
    starts = expected["window_start"].cast(pa.int64())
    ends = expected["window_end"].cast(pa.int64())
    promised = pc.and_(pc.greater(starts, member.seen), pc.less_equal(ends, member.left))
    also = pc.is_in(starts, answered["window_start"].cast(pa.int64()).combine_chunks())
    close = {n: 1e-12 for n, text in member.text.items() if text[:3] in ("pro", "geo")}
    assert_same_rows(answered, expected.filter(pc.or_(promised, also)), close=close)
