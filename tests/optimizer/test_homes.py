"""Trees without groups have a bucket each, and keep it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from muntin.engine import LocalEngine
from muntin.engine.wire import split
from muntin.optimizer.homes import with_homes
from muntin.plan import SharedPlan, build_plan
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
