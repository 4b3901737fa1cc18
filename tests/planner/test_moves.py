"""The optimizer moves queries that run where that pays, and no answer changes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from muntin.engine.progress import RecentRate
from muntin.plan import SharedPlan
from muntin.plan.nodes import Weighed
from muntin.planner import OPTIMIZERS, Optimizer, OptimizerName, build_plan
from muntin.planner.moves import is_stale, match_owners
from muntin.planner.trees.grove import MOVING
from muntin.queries import Query, queries
from muntin.streams import LiveEngine
from muntin.testing import assert_same_rows

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
FINE = "CREATE QUERY fine AS SELECT max(v) AS a FROM s [RANGE 2 SLIDE 1]"
COARSE = [
    f"CREATE QUERY c{overlap} AS SELECT max(v) AS a FROM s [RANGE {8 * overlap} SLIDE 8]"
    for overlap in range(2, 26)
]


def parsed(*sqls: str) -> list[Query]:
    return list(queries(";".join(sqls)))


def planned(asked: list[Query], optimizer: Optimizer, previous: SharedPlan | None) -> SharedPlan:
    return build_plan(asked, SCHEMA, "t", sharer=optimizer, previous=previous)


def owners(plan: SharedPlan) -> dict[str, str]:
    return {f.name: plan.slicings[plan.partials[f.partials].slicing].owner for f in plan.finals}


def test_a_rate_that_becomes_another_moves_queries() -> None:
    asked = parsed(FINE, *COARSE)
    unknown = planned(asked, Optimizer("auto"), None)
    assert unknown.weighed is None
    rare = planned(asked, Optimizer("auto", 1.0), unknown)
    assert len(rare.slicings) == 2
    assert rare.moves[0].queries == ("fine",)
    assert rare.moves[0].why.startswith("the rate of rows has become known, 2 trees take")
    assert not Optimizer("auto", 1.9).is_due(rare)
    assert planned(asked, Optimizer("auto", 1.9), rare).moves == rare.moves
    often = Optimizer("auto", 100.0)
    assert often.is_due(rare)
    dense = planned(asked, often, rare)
    assert len(dense.slicings) == 1
    assert "rows come 1e+02× as often as planned for" in dense.moves[-1].why
    assert not often.is_due(dense)


def test_queries_that_join_and_leave_move_others_once_that_pays() -> None:
    optimizer = Optimizer("auto", 1.0)
    plan = planned(parsed(FINE, *COARSE[:3]), optimizer, None)
    assert len(plan.slicings) == 1
    running = list(COARSE[:3])
    for sql in COARSE[3:]:
        running.append(sql)
        plan = planned(parsed(FINE, *running), optimizer, plan)
    assert len(plan.slicings) == 2
    assert [move.queries for move in plan.moves] == [("fine",)]
    assert plan.moves[0].why.startswith("queries have joined and left, 2 trees take")
    while len(running) > 1:
        running.pop()
        plan = planned(parsed(FINE, *running), optimizer, plan)
    assert len(plan.slicings) == 1


@pytest.mark.parametrize("method", [name for name in OPTIMIZERS if name not in MOVING])
def test_others_never_move(method: OptimizerName) -> None:
    asked = parsed(FINE, *COARSE)
    plan = planned(asked, Optimizer(method, 1.0), None)
    again = planned(asked, Optimizer(method, 100.0), plan)
    assert owners(again) == owners(plan)
    assert not again.moves
    assert not Optimizer(method, 100.0).is_due(plan)


def test_a_plan_is_weighed_anew_only_where_that_can_pay() -> None:
    assert is_stale(Weighed(1.0, 50.0), 2.1)
    assert not is_stale(Weighed(1.0, 50.0, 4.9), 2.0, saving=4.9)
    assert is_stale(Weighed(1.0, 50.0, 5.1), 1.0)
    assert is_stale(Weighed(1.0, 50.0), 1.0, saving=5.1)


def test_trees_keep_the_names_that_most_of_their_queries_have() -> None:
    assert match_owners([(0, 1, 2)], ["b", "a", "b"]) == ["b", "b", "b"]
    assert match_owners([(0,), (1, 2)], ["", "", ""]) == ["tree 1", "", ""]
    assert match_owners([(0,), (1,)], ["tree 1", None]) == ["tree 1", "tree 2"]


def test_the_rate_of_rows_is_smoothed() -> None:
    rate = RecentRate()
    assert rate.rate is None
    for _ in range(20):
        rate = rate.after(50, 10)
    assert rate.rate == pytest.approx(5)
    # A batch that moves no time counts with the next one.
    assert rate.after(30, 0).after(20, 10).rate == pytest.approx(5, rel=0.15)
    assert 5 < (rate.after(500, 10).rate or 0) < 50


def drifting(rng: random.Random) -> Iterator[pa.Table]:
    """Batches of a stream that is dense, sparse and dense again, with some disorder."""
    start = 0
    for rows in (4, 4, 4, 4, 400, 400, 400, 4, 4, 4, 4, 4, 4, 4, 4, 4):
        times = sorted(start + rng.randrange(40) for _ in range(rows))
        times = sorted(times, key=lambda tick: tick + rng.randrange(6))
        start += 40
        keys = [rng.choice("ab") for _ in times]
        values = [rng.randrange(-50, 50) for _ in times]
        yield pa.table({"t": times, "k": keys, "v": values}, schema=SCHEMA)


@pytest.mark.parametrize("seed", range(8))
def test_a_run_with_moves_answers_as_one_without(seed: int) -> None:
    rng = random.Random(8900 + seed)
    by = rng.choice(["", " WHERE v > 0", " WHERE v < 20 AND k = 'a'"])
    group = rng.choice(["", " GROUP BY k"])
    coarse = rng.sample(COARSE, 12)
    asked = parsed(FINE + by + group, *(sql + rng.choice(["", by]) + group for sql in coarse))
    optimizer = Optimizer("auto", steps_per_row=rng.choice([6.0, 8.0]))
    lateness = rng.choice([0, 5])
    plain = LiveEngine(build_plan(asked, SCHEMA, "t"), lateness)
    moving = LiveEngine(planned(asked, optimizer, None), lateness, optimizer=optimizer)
    guests = moves = 0
    for number, batch in enumerate(drifting(rng)):
        if number == 5:
            for engine in (plain, moving):
                engine.remove(coarse[0].split()[2])
        expected, found = plain.feed(batch), moving.feed(batch)
        assert found.keys() == expected.keys()
        for name, table in found.items():
            assert_same_rows(table, expected[name])
        moves = len(moving.plan.moves)
        twins = [node for node in moving.plan.partials if node.twin is not None]
        if twins or number % 4 == 3:
            guests += len(twins)
            moving = LiveEngine.restore(moving.plan, moving.snapshot(), optimizer=optimizer)
    assert moves > 1
    assert guests > 0
    closed = moving.close()
    for name, table in plain.close().items():
        assert_same_rows(closed[name], table)
