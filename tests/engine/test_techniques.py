"""Every technique in the engine: whatever the plan says is what runs, with the same answers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import muntin
from engine.live import live, one, shaken, streamed
from engine.rich_queries import SCHEMA as RICH
from engine.rich_queries import rich_queries, rich_stream
from engine.slice_aggregates import Gcd, Longest, Tally, registered
from muntin.aggregators import names
from muntin.errors import AggregateError, QueryError
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import Query, queries, query
from muntin.streams import LiveEngine

SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.float64()})


def rows(tick: int, values: dict[str, float]) -> pa.Table:
    columns = {"t": [tick] * len(values), "g": [*values], "v": [*values.values()]}
    return pa.table(columns, schema=SCHEMA)


def forced(asked: Query, technique: str, schema: pa.Schema) -> Query:
    """The query by a technique, where all of its aggregates can be kept by it."""
    wanted = replace(asked, technique=technique)
    try:
        build_plan([wanted], schema, "t")
    except QueryError:
        return asked
    return wanted


def used(plan: SharedPlan) -> set[tuple[str, bool]]:
    """The techniques of a plan, and whether they are queries' own."""
    return {(each.name, each.is_own) for final in plan.finals for _, _, each in final.reads}


def structures(engine: LiveEngine) -> set[str]:
    """The techniques that run: of what all queries share, and of their own structures."""
    found: set[str] = set()
    for store in engine._state.stores:
        assert store.moving is not None
        found |= {column.technique for column in store.moving.log.columns}
        found |= {key.technique for key in store.moving._own}
    return found


@pytest.mark.parametrize("technique", names())
def test_a_technique_that_is_forced_gives_the_same_answers(technique: str) -> None:
    rng = random.Random(technique)
    pool, table = streamed(rng, 7), shaken(rng, 90, 8)
    live(
        rng,
        pool,
        table,
        1 + len(pool) // 2,
        lateness=rng.choice([0, 5, 20]),
        batch=rng.choice([6, 15]),
        asked=lambda query: forced(query, technique, RICH) if rng.random() < 0.7 else query,
    )


@pytest.mark.parametrize("technique", names())
def test_bounded_data_too(technique: str) -> None:
    rng = random.Random(f"bounded {technique}")
    table = rich_stream(rng, rows=120)
    pool = [one(each.sql) for each in rich_queries(rng, most=10)]
    asked = [forced(each, technique, RICH) for each in pool]
    assert technique != "panes" or all(each.technique for each in asked)
    found = muntin.aggregate(table, asked, "t")
    expected = muntin.aggregate(table, pool, "t")
    for each in pool:
        assert f"{found[each.name].to_pydict()}" == f"{expected[each.name].to_pydict()}"


@pytest.mark.parametrize("strategy", ["unshared", "slices", "fragments", "shards"])
def test_the_papers_strategies_take_techniques_too(strategy: str) -> None:
    rng = random.Random(strategy)
    table = rich_stream(rng, rows=80)
    pool = [one(each.sql) for each in rich_queries(rng, most=6)]
    options: dict[str, Any] = {"strategy": strategy}
    found = muntin.aggregate(table, pool, "t", technique="two_stacks", **options)
    expected = muntin.aggregate(table, pool, "t", **options)
    for each in pool:
        assert f"{found[each.name].to_pydict()}" == f"{expected[each.name].to_pydict()}"


AGGREGATES = {
    "sum(v)": "running_totals",
    "max(v)": "slickdeque_noninv",
    "gcd_of(v)": "two_stacks_lite",
    "tally(v)": "slickdeque_inv",
    "longest_of(g)": "slickdeque_noninv",
}


@pytest.mark.parametrize(("aggregate", "technique"), AGGREGATES.items())
def test_what_is_chosen_is_what_runs(aggregate: str, technique: str) -> None:
    registered(Gcd(), Tally(), Longest())
    sql = f"SELECT g, {aggregate} AS a FROM s [RANGE 40 SLIDE 1] GROUP BY g"
    engine = LiveEngine(build_plan(queries(sql), SCHEMA, "t"), 0)
    found, table = run(engine, 90)
    assert {name for name, _ in used(engine.plan)} == {technique}
    assert technique in structures(engine)
    assert f"by {technique}" in engine.plan.explain()
    assert found == muntin.aggregate(table, sql, "t")["q1"].slice(0, found.num_rows)


def run(engine: LiveEngine, ticks: int) -> tuple[pa.Table, pa.Table]:
    """What the queries answer, in order, and the rows they were fed."""
    rng = random.Random(5)
    found: list[pa.Table] = []
    fed = []
    for tick in range(ticks):
        fed.append(rows(tick, {g: float(rng.randrange(1, 60)) for g in rng.sample("abcde", 3)}))
        found += engine.feed(fed[-1]).values()
    return pa.concat_tables(found), pa.concat_tables(fed)


@pytest.mark.parametrize(
    ("aggregate", "window", "prefer", "technique", "is_own"),
    [
        ("sum(v)", "RANGE 40 SLIDE 1", "latency", "running_totals", False),
        ("max(v)", "RANGE 60 SLIDE 1", "latency", "daba_lite", True),
        ("gcd_of(v)", "RANGE 60 SLIDE 1", "latency", "daba_lite", True),
        # Every window is one or two slices.
        ("gcd_of(v)", "RANGE 10 SLIDE 5", "throughput", "panes", True),
        ("gcd_of(v)", "RANGE 4 SLIDE 5", "latency", "panes", True),
        # What all queries share is there for windows of any size.
        ("sum(v)", "RANGE 5 SLIDE 5", "throughput", "running_totals", False),
        # Two slices to a slide are three and more to a window.
        ("sum(v)", "RANGE 7 SLIDE 5", "throughput", "running_totals", False),
    ],
)
def test_the_choice_goes_by_algebra_window_and_preference(
    aggregate: str, window: str, prefer: Any, technique: str, is_own: bool
) -> None:
    registered(Gcd())
    sql = f"SELECT {aggregate} FROM s [{window}]"
    plan = build_plan(queries(sql), SCHEMA, "t", prefer=prefer)
    assert used(plan) == {(technique, is_own)}
    (asked,) = queries(f"CREATE QUERY q1 WITH (prefer = '{prefer}') AS {sql}")
    assert used(build_plan([asked], SCHEMA, "t")) == {(technique, is_own)}
    engine = LiveEngine(plan, 0)
    found, fed = run(engine, 120)
    assert found == muntin.aggregate(fed, sql, "t")["q1"].slice(0, found.num_rows)
    if is_own:
        assert technique in structures(engine)


def test_queries_with_the_same_edges_share_a_structure_of_several_ranges() -> None:
    registered(Gcd())
    sql = ";".join(
        f"CREATE QUERY q{n} AS SELECT g, gcd_of(v) AS d FROM s [RANGE {n} SLIDE 1] GROUP BY g"
        for n in range(3, 40)
    )
    engine = LiveEngine(build_plan(queries(sql), SCHEMA, "t"), 0)
    assert used(engine.plan) == {("flatfit", True)}
    _, fed = run(engine, 60)
    (store,) = engine._state.stores
    assert store.moving is not None
    assert len(store.moving._own) == 1
    last = engine.feed(rows(60, {"a": 1.0}))
    expected = muntin.aggregate(fed, sql, "t")
    for name, found in last.items():
        whole = expected[name]
        assert found.to_pylist() == [row for row in whole.to_pylist() if row["window_end"] == 60]


def test_ranges_far_apart_have_stacks_of_their_own() -> None:
    registered(Gcd())
    sql = ";".join(
        f"CREATE QUERY q{n} AS SELECT gcd_of(v) AS d FROM s [RANGE {n} SLIDE 1]" for n in (50, 100)
    )
    engine = LiveEngine(build_plan(queries(sql), SCHEMA, "t"), 0)
    assert used(engine.plan) == {("two_stacks_lite", True)}
    run(engine, 20)
    (store,) = engine._state.stores
    assert store.moving is not None
    assert sorted(key.span for key in store.moving._own) == [50, 100]


@pytest.mark.parametrize(
    ("technique", "aggregates", "message", "fitting"),
    [
        ("slickdeque_noninv", "max(v), sum(v)", "selective aggregate, which sum is not", "daba"),
        ("running_totals", "max(v)", "an inverse, which max does not have", "slickdeque_noninv"),
        ("dabba", "max(v)", "no technique is named dabba", "did you mean daba"),
    ],
)
def test_a_technique_that_will_not_do_is_refused_with_those_that_would(
    technique: str, aggregates: str, message: str, fitting: str
) -> None:
    head = f"CREATE QUERY top WITH (technique = '{technique}') AS"
    text = f"{head} SELECT {aggregates} FROM s [RANGE 6 SLIDE 2]"
    with pytest.raises(QueryError, match=message) as caught:
        build_plan(queries(text), SCHEMA, "t")
    assert "query top" in str(caught.value)
    (problem,) = caught.value.problems
    assert fitting in str(problem.hint)
    for name in str(problem.hint).removeprefix("use one of ").split(", "):
        if name in names():
            build_plan([replace(one(text), technique=name)], SCHEMA, "t")


def test_what_all_queries_are_told_is_checked_at_once() -> None:
    plain = queries("SELECT max(v) FROM s [RANGE 6 SLIDE 2]")
    with pytest.raises(AggregateError, match="no technique is named dabba"):
        build_plan(plain, SCHEMA, "t", technique="dabba")
    with pytest.raises(AggregateError, match=r"no technique is named x\nHint: muntin.aggregators"):
        build_plan(plain, SCHEMA, "t", technique="x")
    with pytest.raises(muntin.MuntinError, match="cannot prefer 'speed'"):
        build_plan(plain, SCHEMA, "t", prefer="speed")  # type: ignore[arg-type]
    own = query("top").window(6, 2).agg(m="max(v)").by("daba_lite").build()
    told = build_plan([own, *plain], SCHEMA, "t", technique="bint")
    assert used(told) == {("daba_lite", True), ("bint", True)}
    assert "by daba_lite over its own slices for max(v) (asked for)" in told.explain()


def test_a_query_that_joins_is_told_the_same() -> None:
    plan = build_plan(
        queries("SELECT max(v) FROM s [RANGE 6 SLIDE 2]"), SCHEMA, "t", technique="bint"
    )
    engine = LiveEngine(plan, 0)
    run(engine, 10)
    engine.add(one("CREATE QUERY b AS SELECT g, min(v) AS m FROM s [RANGE 8 SLIDE 2] GROUP BY g"))
    assert used(engine.plan) == {("bint", True)}
    again = LiveEngine.restore(engine.plan, engine.snapshot())
    for tick in range(10, 40):
        batch = rows(tick, {"a": float(-tick), "b": 1.0})
        assert again.feed(batch) == engine.feed(batch)


@pytest.mark.parametrize("aggregates", ["sum(v)", "max(v)", "gcd_of(v)", "avg(v), min(v)"])
def test_256_ranges_take_aggregations_in_proportion_to_the_news(aggregates: str) -> None:
    registered(Gcd())
    engine, entries, answers, done = counted(
        [f"SELECT g, {aggregates} FROM s [RANGE {n} SLIDE 1] GROUP BY g" for n in range(1, 257)],
        range(260, 268),
    )
    accumulators = max(len(node.accumulators) for node in engine.plan.partials)
    most = 4 if "gcd" in aggregates else 3
    assert 0 < done <= most * accumulators * (entries + answers)


def test_ranges_that_cut_slides_in_two_stay_in_proportion() -> None:
    registered(Gcd())
    _, entries, answers, done = counted(
        [f"SELECT gcd_of(v) FROM s [RANGE {4 * n + 1} SLIDE 4]" for n in range(1, 33)],
        range(136, 176),
    )
    assert 0 < done <= 4 * 2 * (entries + answers)


def counted(sqls: list[str], ticks: range) -> tuple[LiveEngine, int, int, int]:
    """Entries sealed, answers and aggregations along time while a stream moves over some ticks."""
    sql = ";".join(f"CREATE QUERY q{i} AS {each}" for i, each in enumerate(sqls))
    engine = LiveEngine(build_plan(queries(sql), SCHEMA, "t"), 0)
    rng = random.Random(7)
    before = entries = answers = 0
    for tick in range(ticks.stop):
        due = engine.feed(rows(tick, {g: float(rng.randrange(1, 1000)) for g in "ab"}))
        if tick == ticks.start:
            before = engine.progress().final_aggregations
        elif tick > ticks.start:
            entries += 2 if "GROUP" in sqls[0] else 1
            answers += sum(table.num_rows for table in due.values())
    return engine, entries, answers, engine.progress().final_aggregations - before


def test_cells_are_counted_apart() -> None:
    sql = ";".join(
        f"CREATE QUERY q{n} AS SELECT sum(v), max(v) FROM s [RANGE 30 SLIDE 1] WHERE v > {n}"
        for n in range(0, 60, 6)
    )
    engine = LiveEngine(build_plan(queries(sql), SCHEMA, "t"), 0)
    run(engine, 60)
    first = engine.progress()
    for tick in range(60, 80):
        engine.feed(rows(tick, {"a": float(tick % 60), "b": 7.0}))
    then = engine.progress()
    accumulators = len(engine.plan.partials[0].accumulators)
    entries, answers = 20 * 2, 20 * 10
    along_time = then.final_aggregations - first.final_aggregations
    assert 0 < along_time <= 3 * accumulators * (entries + answers)
    assert then.cell_aggregations - first.cell_aggregations > along_time
