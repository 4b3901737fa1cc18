"""Snapshots: whole, and what changed since an earlier one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from engine.live import one, shaken, streamed
from muntin.engine.slices.snapshot import TOKEN_BYTES, unpack
from muntin.engine.slices.store import REMEMBERED
from muntin.errors import DataError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64()})


def engine_for(sql: str, lateness: int = 0) -> LiveEngine:
    return LiveEngine(build_plan(queries(sql), SCHEMA, "t"), lateness)


def rows(first: int, count: int, groups: int = 7) -> pa.Table:
    ticks = range(first, first + count)
    data = {"t": ticks, "k": [t % groups for t in ticks], "v": [t * 0.1 for t in ticks]}
    return pa.table(data, SCHEMA)


def content(engine: LiveEngine, snapshots: list[bytes]) -> str:
    """All that snapshots hold, as text: entries, what is known of them, and every open window.

    NaN is like NaN. Exact sums may lie in other limbs, but not give other answers.
    """
    state, stores = unpack(snapshots, engine.plan)
    told = [state]
    for store in stores:
        batch = store.table().as_batch()
        keys = [key.to_pylist() for key in batch.keys]
        codes = None if batch.codes is None else batch.codes.tolist()
        bitmaps = None if batch.signatures is None else batch.signatures.tolist()
        kept = store.evicted, store.complete, store.covered, store.told
        told.append((batch.starts.tolist(), keys, codes, bitmaps, kept))
    answers = LiveEngine.restore(engine.plan, snapshots).close()
    return str((told, [table.to_pydict() for table in answers.values()]))


@pytest.mark.parametrize("seed", range(5))
def test_a_base_and_what_changed_since_are_the_whole(seed: int) -> None:
    """While queries join and leave, and whether it is since the last one or since another."""
    rng = random.Random(seed)
    pool, table = streamed(rng, 8), shaken(rng, 150, 8)
    half = max(len(pool) // 2, 1)
    plan = build_plan([one(each.sql) for each in pool[:half]], table.schema, "t")
    engine, waiting = LiveEngine(plan, 4), pool[half:]
    chain = [engine.snapshot()]
    taken = {chain[0]: 0}
    for number, batch in enumerate(table.to_batches(max_chunksize=rng.choice((3, 9, 20)))):
        engine.feed(batch)
        if waiting and rng.random() < 0.2:
            engine.add(one(waiting.pop().sql))
        elif len(engine.plan.finals) > 1 and rng.random() < 0.1:
            engine.remove(rng.choice(engine.plan.finals).name)
        if rng.random() < 0.3:
            engine.advance((engine.seen or 0) - rng.randrange(5))
        back = rng.choice([each for each in chain if taken[each] > number - 6])
        chain = [*chain[: chain.index(back) + 1], engine.snapshot(since=back)]
        taken[chain[-1]] = number
        assert content(engine, chain) == content(engine, [engine.snapshot()])
        if rng.random() < 0.2:
            engine, taken = LiveEngine.restore(engine.plan, chain), dict.fromkeys(chain, -99)
            taken[chain[-1]] = number


def test_what_changed_since_is_what_came_in() -> None:
    """An hour is kept, and a second of it changed."""
    engine = engine_for(
        "SELECT k, sum(v) AS s, max(v) AS m FROM s [RANGE 3600 SLIDE 1] GROUP BY k", lateness=2
    )
    for first in range(0, 4000, 50):
        engine.feed(rows(first, 50))
    whole = engine.snapshot()
    engine.feed(rows(4000, 5))
    since = engine.snapshot(since=whole)
    assert len(since) < len(whole) / 20
    more = rows(4005, 30)
    again = LiveEngine.restore(engine.plan, [whole, since])
    assert again.feed(more) == engine.feed(more)


def test_nothing_changed() -> None:
    engine = engine_for("SELECT sum(v) AS s FROM s [RANGE 10 SLIDE 5]")
    engine.feed(rows(0, 8))
    whole = engine.snapshot()
    assert engine.snapshot() == whole
    since = engine.snapshot(since=whole[:TOKEN_BYTES])
    assert content(engine, [whole, since]) == content(engine, [whole])


def test_a_restored_engine_goes_on_with_its_last_snapshot() -> None:
    engine = engine_for("SELECT k, min(v) AS s FROM s [RANGE 30 SLIDE 5] GROUP BY k", lateness=3)
    engine.feed(rows(0, 40))
    chain = [engine.snapshot()]
    for first in range(40, 80, 10):
        engine = LiveEngine.restore(engine.plan, chain)
        engine.feed(rows(first, 10))
        chain.append(engine.snapshot(since=chain[-1]))
    straight = engine_for("SELECT k, min(v) AS s FROM s [RANGE 30 SLIDE 5] GROUP BY k", lateness=3)
    straight.feed(rows(0, 40))
    for first in range(40, 80, 10):
        straight.feed(rows(first, 10))
    assert LiveEngine.restore(engine.plan, chain).close() == straight.close()


def test_stores_that_stay_as_they_are_are_not_written_again() -> None:
    """A query by another key joins: what the first one keeps is not in the news."""
    engine = engine_for("SELECT k, sum(v) AS s FROM s [RANGE 2000 SLIDE 1] GROUP BY k")
    for first in range(0, 2000, 50):
        engine.feed(rows(first, 50))
    whole = engine.snapshot()
    engine.add(
        one("CREATE QUERY other AS SELECT v, count(*) AS n FROM s [RANGE 9 SLIDE 3] GROUP BY v")
    )
    engine.feed(rows(2000, 5))
    since = engine.snapshot(since=whole)
    assert len(since) < len(whole) / 5
    again = LiveEngine.restore(engine.plan, [whole, since])
    more = rows(2005, 30)
    assert again.feed(more) == engine.feed(more)


def test_snapshots_that_do_not_follow_each_other_are_refused() -> None:
    engine = engine_for("SELECT sum(v) AS s FROM s [RANGE 10 SLIDE 5]")
    chain = list[bytes]()
    for first in range(4):
        engine.feed(rows(first, 1))
        chain.append(engine.snapshot(since=chain[-1] if chain else None))
    plan = engine.plan
    for wrong, message in (
        (chain[1:], "the first snapshot holds only what changed"),
        ([chain[0], chain[2]], "snapshot 2 of 2 was not taken since the one before"),
        ([chain[0], chain[1], chain[3]], "snapshot 3 of 3 was not taken since"),
        ([], "no snapshot to restore"),
    ):
        with pytest.raises(DataError, match=message):
            LiveEngine.restore(plan, wrong)
    LiveEngine.restore(plan, chain)


def test_snapshots_of_another_engine_are_refused() -> None:
    """Two engines went different ways from one snapshot: neither knows what the other took."""
    sql = "SELECT sum(v) AS s FROM s [RANGE 10 SLIDE 5]"
    engine = engine_for(sql)
    engine.feed(rows(0, 3))
    shared = engine.snapshot()
    other = LiveEngine.restore(engine.plan, shared)
    engine.feed(rows(3, 1))
    other.feed(rows(4, 1))
    news = engine.snapshot(since=shared)
    with pytest.raises(DataError, match="not one of the last 16"):
        other.snapshot(since=news)
    assert other.snapshot(since=shared)
    for _ in range(REMEMBERED):
        engine.feed(rows(4, 1))
        engine.snapshot()
    with pytest.raises(DataError, match="take a whole snapshot"):
        engine.snapshot(since=news)
