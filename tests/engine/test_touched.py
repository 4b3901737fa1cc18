"""What a batch touches: its rows, what is sealed and what is answered, not what is kept."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from engine.slice_aggregates import Gcd, Longest, Tally, registered
from engine.touched import counted
from muntin.aggregators import info, names
from muntin.engine import LocalEngine
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.planner import build_plan
from muntin.queries import queries

SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.float64()})
GROUPS = [f"g{i}" for i in range(8)]
# A whole number of all slides.
TICKS = 21
SHORT, LONG = 28, 140

ONE = "SELECT g, {} FROM s [RANGE {{span}} SLIDE 1] GROUP BY g"
EACH = "CREATE QUERY {} AS SELECT g, {} FROM s [RANGE {} SLIDE 1] {} GROUP BY g;"
PLANS = {
    "sum": ONE.format("sum(v)"),
    "max": ONE.format("max(v)"),
    "moments": ONE.format("avg(v), stddev_pop(v), min(g)"),
    "ungrouped": "SELECT sum(v), max(v) FROM s [RANGE {span} SLIDE 1]",
    "long slide": "SELECT g, sum(v), last(v) FROM s [RANGE {span} SLIDE 7] GROUP BY g",
    "own": ONE.format("gcd_of(v)"),
    "own, invertible": ONE.format("tally(v)"),
    "own, selective": ONE.format("longest_of(g)"),
    "filters": ONE.format("sum(v) FILTER (WHERE v > 50), count(*)"),
    "predicates": "".join(
        EACH.format(f"q{n}", "sum(v), max(v)", "{span}", f"WHERE v > {n}") for n in (10, 40, 70)
    ),
    "ranges": "".join(EACH.format(f"q{n}", "avg(v), gcd_of(v)", n, "") for n in (3, 5, 9, 17))
    + EACH.format("long", "avg(v), gcd_of(v)", "{span}", ""),
    "distinct": ONE.format("count(DISTINCT v), sum(DISTINCT v)"),
    "values": ONE.format("median(v), top_k(g, 2), approx_percentile(v, 0.5)"),
    "groupings": EACH.format("fine", "sum(v)", "{span}", "")
    + "CREATE QUERY coarse AS SELECT max(v) FROM s [RANGE {span} SLIDE 1]",
}


class Work(NamedTuple):
    """What some batches brought, and what was touched for them."""

    answers: int
    touched: Counter[str]
    kept: int


def moving(engine: LocalEngine) -> list[MovingSlices]:
    found = [store.moving for store in engine._state.stores if store.moving is not None]
    assert len(found) == len(engine._state.stores)
    return found


def worked(sql: str, span: int, **options: Any) -> tuple[LocalEngine, Work]:
    """Fill a window of a range, then count what some more slides take."""
    plan = build_plan(queries(sql.format(span=span)), SCHEMA, "t", **options)
    engine, rng, answers = LocalEngine(plan, 0), random.Random(4), 0

    def feed(*ticks: int) -> int:
        pairs = [(tick, group) for tick in ticks for group in GROUPS]
        values = [float(rng.randrange(1, 100)) for _ in pairs]
        times, groups = zip(*pairs, strict=True)
        batch = pa.table({"t": times, "g": groups, "v": values}, SCHEMA)
        return sum(table.num_rows for table in engine.feed(batch).values())

    feed(*range(span))
    for tick in range(span, span + 8):
        feed(tick)
    with counted() as touched:
        for tick in range(span + 8, span + 8 + TICKS):
            answers += feed(tick)
    return engine, Work(answers, touched, sum(each.size for each in moving(engine)))


@pytest.mark.parametrize("kind", PLANS)
def test_a_batch_touches_its_news(kind: str) -> None:
    registered(Gcd(), Tally(), Longest())
    check(PLANS[kind])


@pytest.mark.parametrize("technique", names())
def test_so_it_does_by_every_technique(technique: str) -> None:
    taken = {"selective": "max(v)", "distinct": "count(DISTINCT v)"}
    aggregate = taken.get(info(technique).needs, "sum(v)")
    check(ONE.format(aggregate), technique=technique)


def check(sql: str, **options: Any) -> None:
    engine, few = worked(sql, SHORT, **options)
    _, many = worked(sql, LONG, **options)
    assert few.answers
    assert abs(many.answers - few.answers) <= few.answers / 10
    assert many.kept > 3 * few.kept
    for work in (few, many):
        within(engine, work)
    looked = [sum(work.touched.values()) - work.touched["moved"] for work in (few, many)]
    assert looked[1] <= 1.1 * looked[0] + 50


def within(engine: LocalEngine, work: Work) -> None:
    """Rows, twice what is sealed, and for each answer the cells of its group."""
    touched, slices = work.touched, moving(engine)
    news = TICKS * len(GROUPS) * len(slices)
    assert touched["whole"] == 0
    assert 0 < touched["in"] <= news
    owned = sum(len(each._own) for each in slices)
    # Two techniques keep logs of their own.
    assert touched["sealed"] <= (1 + owned) * news
    # Into the open log, merged there with others of its size, and out of it.
    assert touched["open"] <= 3 * news
    assert touched["own"] <= owned * (news + work.answers)
    finals = engine.plan.finals
    slides = sum(TICKS // final.window.period for final in finals)
    asked = slides * len(GROUPS)
    cells = max(each.places.count / each.places.slots for each in slices)
    reads = max(len(final.reads) for final in finals)
    # Listed once, looked at whether it holds rows, and each accumulator read.
    assert touched["answers"] <= asked * (1 + cells * (1 + reads))
    # Room is made when a sixteenth is gone or used up, in each array of a log.
    arrays = 3 + 4 * max(len(each.node.accumulators) for each in slices)
    assert touched["moved"] <= 17 * arrays * (touched["sealed"] + len(GROUPS))
