"""Finals that move on by what is sealed: the same answers as from all that is kept, to the bit."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from engine.live import live, one, shaken, streamed
from engine.rich_queries import rich_stream
from engine.slice_aggregates import Gcd, registered
from muntin.engine.slices import moving_slices, store
from muntin.engine.slices.key_table import KeyTable
from muntin.plan import STRATEGIES
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine

SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.float64()})


def engine_of(sql: str, lateness: int = 0, **options: Any) -> LiveEngine:
    return LiveEngine(build_plan(queries(sql), SCHEMA, "t", **options), lateness)


def rows(times: list[int], groups: list[str | None], values: list[float | None]) -> pa.Table:
    return pa.table({"t": times, "g": groups, "v": values}, schema=SCHEMA)


def always(news: int, kept: int) -> bool:
    return True


def never(news: int, kept: int) -> bool:
    return False


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_give_the_same_tables(
    seed: int, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(4100 + seed)
    pool = streamed(rng, 8)
    table = rich_stream(rng, rows=160)
    plan = build_plan([one(q.sql) for q in pool], table.schema, "t", strategy=strategy)
    size = rng.choice([3, 9, 40])
    lateness = rng.choice([0, 5, 30])
    found = []
    for policy in (always, never):
        monkeypatch.setattr(store, "pays_to_move", policy)
        engine = LiveEngine(plan, lateness)
        steps, moved = [], False
        for batch in table.to_batches(max_chunksize=size):
            steps.append(engine.feed(batch))
            moved |= any(each.moving is not None for each in engine._state.stores)
        # The papers' strategies combine slices as the papers do. Structures of a query's own are
        # fed with what is sealed, if any row comes to them.
        driven = any(node.is_driven for node in plan.partials)
        moves = policy is always and strategy == "cells"
        assert (bool(pool) and moves) <= moved <= (moves or driven)
        found.append([*steps, engine.close()])
    # As text, since NaN is not equal to itself.
    assert [_shown(each) for each in found[0]] == [_shown(each) for each in found[1]]


def _shown(due: dict[str, pa.Table]) -> dict[str, str]:
    return {name: f"{table.schema}{table.to_pydict()}" for name, table in due.items()}


@pytest.mark.parametrize("seed", range(12))
def test_queries_join_and_leave_while_slices_change_hands(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(5200 + seed)
    # Between any two batches what is kept may go over from one form to the other.
    monkeypatch.setattr(store, "pays_to_move", lambda news, kept: rng.random() < 0.8)
    pool, table = streamed(rng, 9), shaken(rng, 120, 10)
    lateness, batch = rng.choice([0, 4, 20]), rng.choice([4, 10])
    live(rng, pool, table, 1 + len(pool) // 2, lateness=lateness, batch=batch)


def test_a_row_that_is_not_late_is_not_put_into_a_sealed_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    #  0    5   W=6  7        10             20    slice [0, 5) is sealed when 5/5 leaves;
    #  |----|---|----|---------|-------------|     cuts are coarser then, and 7 is cut to 0
    monkeypatch.setattr(store, "pays_to_move", always)
    engine = engine_of(
        "CREATE QUERY long AS SELECT count(*) AS n, max(v) AS m FROM s [RANGE 20 SLIDE 10];"
        "CREATE QUERY short AS SELECT count(*) AS n FROM s [RANGE 5 SLIDE 5]"
    )
    engine.feed(rows([1, 4, 6], ["a"] * 3, [1.0, 2.0, 3.0]))
    engine.remove("short")
    engine.feed(rows([7, 8], ["a"] * 2, [9.0, 4.0]))
    found = [engine.feed(rows([tick], ["a"], [0.5])) for tick in (11, 21)]
    assert [each["long"].to_pydict()["n"] for each in found] == [[5], [6]]
    assert [each["long"].to_pydict()["m"] for each in found] == [[9.0], [9.0]]
    slices = engine._state.stores[0].moving
    assert slices is not None
    starts = slices.log.run().starts.tolist()
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("aggregates", "most"),
    [("sum(v)", 3), ("max(v)", 3), ("avg(v), stddev_pop(v), min(v)", 3), ("gcd_of(v)", 4)],
)
@pytest.mark.parametrize("ranges", [[100], [2, 7, 30, 100], list(range(1, 40, 3))])
def test_aggregations_along_time_are_bounded_by_the_news(
    aggregates: str, most: int, ranges: list[int]
) -> None:
    registered(Gcd())
    sql = ";".join(
        f"CREATE QUERY q{r} AS SELECT g, {aggregates} FROM s [RANGE {r} SLIDE 1] GROUP BY g"
        for r in ranges
    )
    engine = engine_of(sql)
    rng = random.Random(7)
    groups = [f"g{i}" for i in range(5)]
    accumulators = max(len(node.accumulators) for node in engine.plan.partials)
    before = entries = answers = 0
    for tick in range(220):
        values = [float(rng.randrange(1, 1000)) for _ in groups]
        due = engine.feed(rows([tick] * 5, list(groups), list(values)))
        if tick == 119:
            before = engine.statistics.final_aggregations
        elif tick > 119:
            entries += 5
            answers += sum(table.num_rows for table in due.values())
    done = engine.statistics.final_aggregations - before
    assert 0 < done <= most * accumulators * (entries + answers)


def test_groups_that_come_and_go_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "pays_to_move", always)
    monkeypatch.setattr(moving_slices, "_FEW_PLACES", 64)
    engine = engine_of("SELECT g, count(*) AS n, min(g) AS m FROM s [RANGE 3 SLIDE 1] GROUP BY g")
    sizes = []
    for tick in range(600):
        due = engine.feed(rows([tick, tick], [f"only {tick}", "always"], [1.0, 2.0]))
        if due and tick > 3:
            assert due["q1"]["g"].to_pylist() == [
                "always", *sorted(f"only {at}" for at in range(tick - 3, tick))
            ]  # fmt: skip
            assert due["q1"]["n"].to_pylist() == [3, 1, 1, 1]
        if tick % 40 == 39:
            sizes.append(engine.progress().state_bytes)
    assert max(sizes[3:]) <= 1.1 * max(sizes[:3])


def test_keys_that_are_no_bytes_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not KeyTable.takes(pa.list_(pa.int64()))
    assert all(KeyTable.takes(kind) for kind in (pa.string(), pa.decimal128(9, 2), pa.bool_()))


def test_windows_of_very_many_slices_have_room_for_their_carries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Entries that hold many large numbers each: their limbs are settled before they are added up.
    monkeypatch.setattr(store, "pays_to_move", always)
    engine = engine_of("SELECT sum(v) AS s FROM s [RANGE 6 SLIDE 1]")
    found: list[float] = []
    for tick in range(40):
        values = [1.7e308, -1.7e308, 2.0**-1074] * 300 + [float(tick)]
        due = engine.feed(rows([tick] * len(values), ["a"] * len(values), list(values)))
        found += due["q1"]["s"].to_pylist() if due else []
    expected = [
        math.fsum([*range(max(end - 6, 0), end), *([2.0**-1074] * 300 * min(end, 6))])
        for end in range(1, 40)
    ]
    assert found == expected


def test_a_query_that_left_is_fed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(Gcd())
    monkeypatch.setattr(store, "pays_to_move", always)
    engine = engine_of(
        "CREATE QUERY a AS SELECT gcd_of(v) AS d FROM s [RANGE 4 SLIDE 1];"
        "CREATE QUERY b AS SELECT gcd_of(v) AS d FROM s [RANGE 9 SLIDE 1]"
    )
    for tick in range(12):
        engine.feed(rows([tick], ["a"], [float(6 * tick + 6)]))
    slices = engine._state.stores[0].moving
    assert slices is not None
    assert [(key.technique, own.longest) for key, own in slices._own.items()] == [("flatfit", 9)]
    engine.remove("b")
    assert [(key.technique, own.longest) for key, own in slices._own.items()] == [("flatfit", 4)]
    found = engine.feed(rows([12], ["a"], [1.0]))
    assert found["a"]["d"].to_pylist() == [math.gcd(54, 60, 66, 72)]
