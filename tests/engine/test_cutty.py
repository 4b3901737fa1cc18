"""Cutty slices: cut where windows start only, and the same answers."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pytest

import muntin
from engine.rich_queries import rich_queries, rich_stream
from muntin.engine import LocalEngine, in_time_order
from muntin.errors import WindowError
from muntin.plan import SharedPlan
from muntin.planner import OPTIMIZERS, build_plan
from muntin.queries import queries
from muntin.testing import assert_same_rows, oracle, rows_of
from muntin.windows import SLICINGS, SliceManager, edges_between

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
ODD = ["RANGE 5 SLIDE 3", "RANGE 7 SLIDE 10", "RANGE 23 SLIDE 9 OFFSET 4", "RANGE 12 SLIDE 6"]
ROWS = ["ROWS 5 SLIDE 3", "ROWS 7 SLIDE 10", "ROWS 23 SLIDE 9", "ROWS 12 SLIDE 6"]


def plan_of(windows: Iterable[str], slicing: str, select: str = "sum(v) AS s") -> SharedPlan:
    text = ";".join(f"SELECT {select} FROM s [{window}]" for window in windows)
    return build_plan(queries(text), SCHEMA, "t", slicing=slicing)  # type: ignore[arg-type]


def fed(plan: SharedPlan, table: pa.Table) -> LocalEngine:
    engine = LocalEngine(plan)
    engine.feed(in_time_order(table, "t") if plan.ordered else table)
    return engine


def stream(rng: random.Random, size: int) -> pa.Table:
    columns = {
        "t": [rng.randrange(-60, 120) for _ in range(size)],
        "k": [rng.choice(["a", "b", "c", None]) for _ in range(size)],
        "v": [rng.choice([None, *range(-9, 99)]) for _ in range(size)],
    }
    return pa.table(columns, SCHEMA)


def test_a_window_that_ends_inside_a_slice_takes_its_head() -> None:
    #  W[5, 3] starts at 1 mod 3 and ends at 0 mod 3:
    #  slices   1     4     7     10          window (4, 9) is the slice [4, 7) and the head
    #  rows     1 2 3 4 5 6 7 8 9             [7, 9) of the slice [7, 10)
    table = pa.table({"t": range(1, 10), "k": ["a"] * 9, "v": [1 << i for i in range(9)]}, SCHEMA)
    plan = plan_of(["RANGE 5 SLIDE 3"], "cutty", "min(v) AS low, sum(v) AS s")
    assert plan.slicings[0].classes == ((3, 1),)
    assert plan.slicings[0].marks == ((3, 0),)
    engine = fed(plan, table)
    assert (engine.progress().slices, engine.progress().heads) == (3, 3)
    assert rows_of(engine.close()["q1"]) == [
        (-2, 3, 1, 1 + 2),
        (1, 6, 1, 1 + 2 + 4 + 8 + 16),
        (4, 9, 8, 8 + 16 + 32 + 64 + 128),
        (7, 12, 64, 64 + 128 + 256),
    ]


@pytest.mark.parametrize("windows", [ODD, ROWS], ids=["range", "rows"])
def test_fewer_slices_than_pairs_and_the_same_answers(windows: list[str]) -> None:
    table = stream(random.Random(1), 400)
    engines = {each: fed(plan_of(windows, each), table) for each in SLICINGS}
    kept = {name: engine.progress() for name, engine in engines.items()}
    assert kept["cutty"].slices < kept["pairs"].slices < kept["panes"].slices
    assert kept["cutty"].heads > 0 == kept["pairs"].heads == kept["panes"].heads
    # Counted as the definition has it: one slice for each start that rows lie behind.
    plan = engines["cutty"].plan
    manager = SliceManager([final.window for final in plan.finals], "cutty")
    assert plan.slicings[0].classes == manager.classes
    times = range(400) if plan.ordered else table["t"].to_pylist()
    assert kept["cutty"].slices == len(set(manager.cut(pa.array(times).to_numpy()).tolist()))
    answers = {name: engine.close() for name, engine in engines.items()}
    assert answers["cutty"] == answers["pairs"] == answers["panes"]


def test_windows_combine_fewer_slices_as_the_papers_count() -> None:
    # W[50, 7] has 7 or 8 Cutty slices, 15 of pairs, 50 panes.
    steps = {}
    for slicing in SLICINGS:
        text = "SELECT sum(v) AS s FROM s [RANGE 50 SLIDE 7]"
        plan = build_plan(queries(text), SCHEMA, "t", strategy="slices", slicing=slicing)
        engine = fed(plan, pa.table({"t": range(1000), "k": ["a"] * 1000, "v": [1] * 1000}, SCHEMA))
        engine.close()
        steps[slicing] = engine.statistics.final_aggregations
    assert 1.8 * steps["cutty"] < steps["pairs"] < steps["panes"] / 3


def test_explain_shows_fewer_edges_and_the_ends_inside() -> None:
    shown = {each: plan_of(["RANGE 5 SLIDE 3"], each).explain() for each in SLICINGS}
    assert "1 window → 667 edges/1,000 units" in shown["pairs"]
    inside = "333 window ends/1,000 units inside slices"
    assert f"1 window → 333 edges/1,000 units  {inside}" in shown["cutty"]
    assert "inside" not in shown["pairs"] + shown["panes"]
    assert "inside" not in plan_of(["RANGE 6 SLIDE 3"], "cutty").explain()


def test_ends_that_are_starts_of_others_are_no_marks() -> None:
    plan = plan_of(["RANGE 5 SLIDE 3", "RANGE 3 SLIDE 3"], "cutty")
    assert plan.slicings[0].classes == ((3, 0), (3, 1))
    assert plan.slicings[0].marks == ()
    wide = plan_of(["RANGE 12 SLIDE 9", "RANGE 18 SLIDE 15"], "cutty").slicings[0]
    starts = set(edges_between(wide.classes, 0, 450).tolist())
    ends = set(edges_between([(9, 0), (15, 0)], 0, 450).tolist())
    assert starts == set(edges_between([(9, 6), (15, 12)], 0, 450).tolist())
    assert ends - starts == set(edges_between(wide.marks, 0, 450).tolist()) - starts


@pytest.mark.parametrize("seed", range(4))
def test_random_queries_equal_the_oracle_under_every_optimizer(seed: int) -> None:
    rng = random.Random(9300 + seed)
    table = rich_stream(rng, most=150, scale=1)
    asked = rich_queries(rng, most=7, scale=1)
    text = ";\n".join(query.sql for query in asked)
    first = None
    for optimizer in OPTIMIZERS:
        results = muntin.aggregate(
            table.to_batches(max_chunksize=rng.choice([7, 40, 1000])) or table,
            text,
            "t",
            slicing=rng.choice(["cutty", "cutty", "pairs", "panes"]),
            optimizer=optimizer,
        )
        found = {name: list(map(repr, rows_of(results[name]))) for name in results}
        if first is None:
            first = found
            for query in asked:
                expected = oracle.answer(results.plan, query.name, table)
                assert_same_rows(results[query.name], expected, close=query.close)
        assert found == first, optimizer


def test_gaps_are_filled_between_heads() -> None:
    table = pa.table({"t": [1, 40], "k": ["a", "b"], "v": [1, 2]}, SCHEMA)
    text = "SELECT count(*) AS n, max(v) AS m FROM s [RANGE 7 SLIDE 5] EMIT EMPTY"
    pairs = muntin.aggregate(table, text, "t")["q1"]
    assert muntin.aggregate(table, text, "t", slicing="cutty")["q1"] == pairs
    assert 0 in pairs["n"].to_pylist()


def test_streams_refuse_slices_that_windows_end_inside() -> None:
    plan = plan_of(["RANGE 5 SLIDE 3"], "cutty")
    with pytest.raises(WindowError) as error:
        LocalEngine(plan, lateness=0)
    assert "read at that very moment" in str(error.value)
    assert 'Hint: use slicing="pairs"' in str(error.value)
