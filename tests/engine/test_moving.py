"""Queries that run go over to other trees, and answer what they would have answered."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from engine.live import Chances, live, one, shaken, streamed
from muntin.errors import DataError
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.planner.bound import BoundQuery
from muntin.planner.continuity import settled
from muntin.planner.owners import Sharing, join_all, kept_owners
from muntin.streams import LiveEngine

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})
SQL = "CREATE QUERY {} AS SELECT sum(v) AS s, max(v) AS m FROM s [RANGE {} SLIDE {}]"


class Told:
    """A sharer that does as it is told: owners by the names of queries."""

    def __init__(self, **owners: str) -> None:
        self.owners = owners
        self.due = False

    def __call__(
        self, queries: Sequence[BoundQuery], previous: SharedPlan | None, rate: float | None
    ) -> Sharing:
        kept = kept_owners(queries, previous)
        owners = tuple(self.owners[query.query.name] for query in queries)
        return Sharing(owners, "told so", stay=tuple(join_all(kept)) if any(kept) else None)

    def is_due(self, plan: SharedPlan, rate: float | None) -> bool:
        due, self.due = self.due, False
        return due

    def move(self, **owners: str) -> None:
        """Say other owners, after the next batch."""
        self.owners, self.due = {**self.owners, **owners}, True


class Restless(Told):
    """A sharer that moves queries at random."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng

    def __call__(
        self, queries: Sequence[BoundQuery], previous: SharedPlan | None, rate: float | None
    ) -> Sharing:
        kept = kept_owners(queries, previous)
        stay = join_all(kept)
        names = ["x", "y", "z"][: self.rng.choice([1, 2, 3])]
        often = self.rng.choice([0, 0.3, 1])
        owners = [
            self.rng.choice(names) if old is None or self.rng.random() < often else same
            for old, same in zip(kept, stay, strict=True)
        ]
        return Sharing(tuple(owners), "at random", stay=tuple(stay) if any(kept) else None)

    def is_due(self, plan: SharedPlan, rate: float | None) -> bool:
        return self.rng.random() < 0.7


def started(sharer: Told, sqls: Sequence[str], lateness: int = 0) -> LiveEngine:
    plan = build_plan([one(sql) for sql in sqls], SCHEMA, "t", sharer=sharer)
    return LiveEngine(plan, lateness, optimizer=sharer)


def rows(*times: int) -> pa.Table:
    return pa.table({"t": times, "v": times}, schema=SCHEMA)


def numbers(plan: SharedPlan) -> dict[str, int]:
    return {final.name: plan.partials[final.partials].number for final in plan.finals}


def test_trees_that_are_cut_together_keep_their_slices_until_one_takes_over() -> None:
    #  t        1 3 | 5 | 7 | 9 ...     "a" and "b" are one tree from the second batch on
    #  a [0, 4)      [2, 6)             its windows of the time before lie in slices of its own
    #  b [0, 3)   [3, 6)
    sharer = Told(a="left", b="right")
    engine = started(sharer, [SQL.format("a", 4, 2), SQL.format("b", 3, 3)])
    alone = started(Told(a="", b=""), [SQL.format("a", 4, 2), SQL.format("b", 3, 3)])
    found: list[dict[str, pa.Table]] = []
    for time in range(1, 20, 2):
        if time == 3:
            sharer.move(b="left")
        engine = LiveEngine.restore(engine.plan, engine.snapshot(), optimizer=sharer)
        found.append(engine.feed(rows(time)))
        assert found[-1] == alone.feed(rows(time))
        if time == 3:
            host, guest = engine.plan.partials
            assert (guest.twin, guest.since, host.is_fed, guest.is_fed) == (0, 3, True, False)
            assert len(engine.plan.slicings) == 1
            shown = engine.plan.explain()
            assert "partials 2  fed by partials 1\n" in shown
            assert "partials 1 take over once windows from 3 and before are over" in shown
            assert "b moved at 3: told so" in shown
            assert "-. fed .->" in engine.plan.explain("mermaid")
    # From [6, 9) on, all that "b" needs is in the slices of both.
    assert numbers(engine.plan) == {"a": 0, "b": 0}
    assert len(engine.plan.partials) == 1
    assert sum(len(each) for each in found) > 8


def test_a_tree_that_splits_begins_with_a_copy() -> None:
    sharer = Told(a="one", b="one")
    sqls = [SQL.format("a", 4, 2), SQL.format("b", 9, 3)]
    engine, alone = started(sharer, sqls), started(Told(a="", b=""), sqls)
    sharer.move(b="other")
    for time in range(1, 40, 2):
        assert engine.feed(rows(time, time - 1)) == alone.feed(rows(time, time - 1))
        if time == 1:
            copy = engine.plan.partials[engine.plan.finals[1].partials]
            assert copy.origin == 0
    assert numbers(engine.plan) == {"a": 0, "b": 1}
    assert [each.twin for each in engine.plan.partials] == [None, None]


def test_a_newcomer_reads_what_was_kept_before_a_move() -> None:
    sharer = Told(a="one", b="one", late="other")
    engine = started(sharer, [SQL.format("a", 8, 2), SQL.format("b", 8, 4)])
    sharer.move(b="other")
    engine.feed(rows(1, 5))
    engine.add(one(SQL.format("late", 8, 8)))
    assert engine.feed(rows(7, 9))["late"].to_pydict() == {
        "window_start": [0], "window_end": [8], "s": [13], "m": [7]
    }  # fmt: skip


def test_who_fills_gaps_is_not_taken_over() -> None:
    sharer = Told(a="left", b="right")
    engine = started(sharer, [SQL.format("a", 4, 2), SQL.format("b", 3, 3) + " EMIT EMPTY"])
    sharer.move(b="left")
    for time in range(1, 30, 3):
        engine.feed(rows(time))
    assert engine.plan.partials[1].twin == 0
    assert settled(engine.plan, engine.watermark) == frozenset()


def test_what_would_lose_rows_is_refused() -> None:
    sharer = Told(a="left", b="right")
    sqls = [SQL.format("a", 4, 2), SQL.format("b", 300, 3)]
    engine = started(sharer, sqls)
    sharer.move(b="left")
    engine.feed(rows(1))
    early = build_plan(
        [one(sql) for sql in sqls], SCHEMA, "t", sharer=sharer, previous=engine.plan, watermark=999
    )
    assert len(early.partials) == 1
    with pytest.raises(DataError, match="query b would lose rows"):
        engine._state.adopt(early)
    assert len(engine.plan.partials) == 2


@pytest.mark.parametrize("seed", range(16))
def test_moves_at_random_change_no_answer(seed: int) -> None:
    rng = random.Random(8800 + seed)
    pool, table = streamed(rng, 9), shaken(rng, 100, 12)
    sharer = Restless(rng)
    engine = live(
        rng,
        pool,
        table,
        2 + len(pool) // 2,
        lateness=rng.choice([0, 3, 20]),
        batch=rng.choice([6, 12]),
        chances=Chances(leave=0.15, restore=0.3),
        optimizer=sharer,
        sample=table if rng.random() < 0.5 else None,
    )
    assert engine.plan.moves or len(pool) < 4
