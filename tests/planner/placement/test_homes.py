"""Trees without groups have a bucket each, and keep it."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import muntin
from muntin.engine import LocalEngine
from muntin.engine.wire import split
from muntin.errors import DataError
from muntin.plan import SharedPlan, Timeline
from muntin.planner import METHODS, Draft, Optimizer, build_plan, plan_draft
from muntin.planner.placement.homes import with_homes
from muntin.planner.steps.bind import bind
from muntin.queries import queries

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})


def plan_of(*slides: int, previous: SharedPlan | None = None) -> SharedPlan:
    sql = ";".join(
        f"CREATE QUERY w{slide} AS SELECT sum(v) AS a FROM s [RANGE {slide * 3} SLIDE {slide}]"
        for slide in slides
    )
    return build_plan(queries(sql), SCHEMA, "t", strategy="unshared", previous=previous)


def homes(plan: SharedPlan) -> dict[str, int | None]:
    return {final.name: plan.partials[final.partials].home for final in plan.finals}


def test_trees_are_spread_by_what_they_cost() -> None:
    # One tree has more edges than the others together.
    found = homes(with_homes(plan_of(2, 6, 6000, 60000), 2))
    assert found["w2"] not in {found[name] for name in ("w6", "w6000", "w60000")}
    even = homes(with_homes(plan_of(*range(100, 132)), 16))
    assert set(Counter(even.values()).values()) == {2}


def test_trees_that_run_stay_where_they_are() -> None:
    first = with_homes(plan_of(2, 3, 5, 7, 11), 4)
    second = with_homes(plan_of(3, 7, 13, previous=first), 4, first)
    assert {name: homes(second)[name] for name in ("w3", "w7")} == {
        name: homes(first)[name] for name in ("w3", "w7")
    }
    # The newcomer goes where nothing runs.
    assert homes(second)["w13"] not in (homes(second)["w3"], homes(second)["w7"])


def test_partials_go_to_their_homes_and_grouped_ones_have_none() -> None:
    plan = with_homes(plan_of(2, 3, 5), 8)
    engine = LocalEngine(plan)
    engine.feed(pa.table({"t": [1, 2, 3], "v": [1, 2, 3]}))
    batches = [store.table().as_batch() for store in engine._state.stores]
    assert set(split(plan, batches, 8)) == {node.home for node in plan.partials}
    grouped = build_plan(
        queries("SELECT v, count(*) FROM s [RANGE 2 SLIDE 2] GROUP BY v"), SCHEMA, "t"
    )
    assert [node.home for node in with_homes(grouped, 8).partials] == [None]


def mixed(optimizer: Optimizer) -> Draft:
    rng = random.Random(4)
    sql = ";".join(
        f"SELECT {rng.choice(['sum', 'max'])}(v) AS a FROM s [RANGE {slide * rng.randint(1, 9)} "
        f"SLIDE {slide}] WHERE {rng.choice(['v', 't'])} > {rng.randrange(5)}"
        for slide in [rng.randint(2, 30) for _ in range(30)]
    )
    return draft_of(sql, optimizer)


def draft_of(sql: str, optimizer: Optimizer) -> Draft:
    return bind(Draft(queries(sql), SCHEMA, Timeline.of(SCHEMA, "t"), sharer=optimizer))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_places_and_weaves_as_its_name_says(method: str) -> None:
    draft = mixed(Optimizer("no_share", 0.5))
    plan = plan_draft(draft)
    placed = with_homes(plan, 4, method=method, draft=draft)
    homes = Counter(node.home for node in placed.partials)
    assert set(homes) == {0, 1, 2, 3}
    category = method.partition("_")[0]
    if category == "G":
        assert len(placed.partials) == len(plan.partials) == 30
    elif category == "W":
        # One tree a bucket; but conditions of v and of t are told apart by cells of their own.
        assert set(homes.values()) <= {1, 2}
    else:
        assert 8 <= len(placed.partials) < 30
    assert placed.placement == method
    assert method in placed.explain()
    rows = pa.table({"t": range(200), "v": [i % 7 for i in range(200)]})
    answers = []
    for each in (plan, placed):
        engine = LocalEngine(each)
        engine.feed(rows)
        answers.append(engine.close())
    assert answers[0] == answers[1]


def test_the_default_is_wg_i() -> None:
    draft = mixed(Optimizer("weave_share", 0.01))
    plan = plan_draft(draft)
    named = with_homes(plan, 2, method="WG_I", draft=draft)
    assert with_homes(plan, 2, draft=draft) == named
    # A tree for each query is what no_share asks for, unless a method is named.
    apart = mixed(Optimizer("no_share", 0.01))
    plan = plan_draft(apart)
    assert len(with_homes(plan, 2, draft=apart).partials) == 30
    assert len(with_homes(plan, 2, method="W_I", draft=apart).partials) < 30


def test_trees_that_cannot_be_one_stand_side_by_side() -> None:
    sql = "SELECT sum(v) FROM s [RANGE 9 SLIDE 3]; SELECT sum(v) FROM s [ROWS 9 SLIDE 3]"
    draft = draft_of(sql, Optimizer("weave_share", 1.0))
    placed = with_homes(plan_draft(draft), 1, method="W_I", draft=draft)
    assert [node.home for node in placed.partials] == [0, 0]
    assert [slicing.measure for slicing in placed.slicings] == ["time", "rows"]


def test_data_in_this_process_has_no_buckets() -> None:
    rows = pa.table({"t": [1], "v": [2]})
    with pytest.raises(DataError, match="no buckets to place on"):
        muntin.aggregate(rows, "SELECT sum(v) FROM s [RANGE 2 SLIDE 2]", "t", placement="WG_I")
