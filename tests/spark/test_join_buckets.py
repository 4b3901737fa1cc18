"""Aggregates over joins in buckets: whichever workers and attempts there are, all pairs' answers.

No Spark is needed here: buckets are called as its tasks call them, with what it would hand over.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.oracle.random_joins import SCHEMA, JoinCase, Row, random_case, random_stream, table_of
from tests.oracle.random_joins import shown as comparable

import muntin
from muntin.operators.feeds import FeedSplitter, unpacked
from muntin.plan.operators import StreamSchema
from muntin.plan.routes import RoutedPlan
from muntin.plan.timeline import Timeline
from muntin.planner.rows import routed, row_plan, with_sides
from muntin.planner.rows.shares import Known
from muntin.queries import RowQuery, all_queries
from muntin.spark.streaming.tasks import head, row_bucket
from spark.test_row_buckets import PHASES, PLANS, Cluster

NAMES = [f"s{i}" for i in range(4)]
STREAMS = {name: StreamSchema(SCHEMA, Timeline("ts", pa.int64())) for name in NAMES}
LATENESS = 25


@pytest.fixture(autouse=True)
def few_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases come after a few batches already."""
    PLANS.clear()
    monkeypatch.setattr(head, "_LEAST", 600)
    monkeypatch.setattr(head, "_FEWEST", 2)
    monkeypatch.setattr(head, "_RECENT", 1)
    monkeypatch.setattr(row_bucket, "_ROWS_APART", 2)
    monkeypatch.setattr(row_bucket, "_MOST_NEWS", 3)


def plan_of(sql: str, previous: RoutedPlan | None = None, **known: Known) -> RoutedPlan:
    """The plan of some queries, made for the state of another."""
    queries = [each for each in all_queries(sql) if isinstance(each, RowQuery)]
    return with_sides(routed(row_plan(queries, STREAMS)), previous, known)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows by which bits can be compared."""
    return [tuple(comparable(each) for each in row.values()) for row in table.to_pylist()]


def named(cases: dict[str, JoinCase]) -> str:
    """The cases as one text."""
    return ";".join(f"CREATE QUERY {name} AS {case.sql}" for name, case in cases.items())


def cuts(
    rng: random.Random, streams: dict[str, list[Row]], count: int
) -> tuple[list[dict[str, Any]], dict[str, list[Row]]]:
    """The rows of streams in batches, of which some lack a stream; those that are not late."""
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    taken: dict[str, list[Row]] = {name: [] for name in streams}
    for name, rows in streams.items():
        held: dict[int, list[Row]] = {}
        for row in rows:
            # Later rows come in later batches, more or less.
            held.setdefault(min(row["ts"] // 9 + rng.randrange(4), count - 1), []).append(row)
        seen = -1
        for number, each in sorted(held.items()):
            timely = [row for row in each if row["ts"] >= seen - LATENESS]
            seen = max([seen, *(row["ts"] for row in each)])
            found[number][name] = table_of(timely)
            taken[name] += timely
    return found, taken


@pytest.mark.parametrize("seed", range(4))
def test_any_workers_and_attempts_give_the_answers_of_all_pairs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    streams = {name: random_stream(rng, rng.choice((6, 14, 14)), 60) for name in NAMES}
    cases = {f"q{i}": random_case(rng, pairs=i % 4 == 3) for i in range(8)}
    PLANS["all"] = plan_of(named(cases))
    assert PLANS["all"].sides
    assert PLANS["all"].spanning
    cluster = Cluster(tmp_path, rng, LATENESS, streams=NAMES)
    batches, taken = cuts(rng, streams, 8)
    for batch in batches:
        cluster.run("all", batch, rng.choice([0, 64, 64]))
    found = cluster.close()
    for name, case in cases.items():
        rows = rows_of(found[name]) if name in found else []
        assert len(rows) == len(set(rows)), case.sql
        assert set(rows) == case.answer(taken), case.sql


def test_rows_are_judged_by_columns_that_are_not_sent() -> None:
    # What g says follows from the rest of the condition.
    plan = plan_of(
        "SELECT count(*) FROM s0 [RANGE 5 SLIDE 5] JOIN s1 [RANGE 5] ON s0.k = s1.k "
        "WHERE s0.v >= 5 AND (s0.v > 3 OR s0.g IS NULL)"
    )
    (feed,) = (each for each in plan.feeds.values() if each.stream == "s0")
    assert "g" not in feed.columns
    rows = [{"ts": v, "k": 1, "j": None, "g": None, "v": v, "x": None} for v in range(8)]
    splitter = FeedSplitter(feed, 2)
    splitter.take(table_of(rows).select(list(feed.reads)))
    sent = unpacked(list(splitter.packets().values()))
    assert sent["v"].to_pylist() == [5, 6, 7]


def replicating(cases: dict[str, JoinCase]) -> str:
    """The cases, with hot keys split where that can be."""
    texts = []
    for name, case in cases.items():
        made = any("s0.v" in call.sql and "s1.v" in call.sql for call in case.calls)
        made = made or case.residual is not None
        said = "" if made and any(case.left) else " WITH (skew = 'replicate')"
        texts.append(f"CREATE QUERY {name}{said} AS {case.sql}")
    return ";".join(texts)


@pytest.mark.parametrize("seed", range(2))
def test_split_keys_give_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark.test_join_buckets.LATENESS", 4)
    rng = random.Random(70 + seed)
    streams = {name: random_stream(rng, 60, 240) for name in NAMES}
    cases = {f"q{i}": random_case(rng, pairs=i % 4 == 3) for i in range(8)}
    PLANS["all"] = plan_of(replicating(cases))
    assert PLANS["all"].groups
    assert "hot keys split" in PLANS["all"].explain()
    cluster = Cluster(tmp_path, rng, LATENESS, streams=NAMES)
    batches, taken = cuts(rng, streams, 27)
    for batch in batches:
        cluster.run("all", batch, rng.choice([0, 64]))
    assert {*cluster.phases} == {*PHASES}
    found = cluster.close()
    for name, case in cases.items():
        rows = rows_of(found[name]) if name in found else []
        assert len(rows) == len(set(rows)), case.sql
        assert set(rows) == case.answer(taken), case.sql


@pytest.mark.parametrize("seed", range(3))
def test_queries_join_and_leave_as_in_one_process(seed: int, tmp_path: Path) -> None:
    rng = random.Random(40 + seed)
    streams = {name: random_stream(rng, 30, 90) for name in NAMES}
    ordered = {name: sorted(rows, key=lambda row: row["ts"]) for name, rows in streams.items()}
    cases = {f"q{i}": random_case(rng, pairs=i % 4 == 3) for i in range(8)}
    first = {name: cases[name] for name in list(cases)[:5]}
    second = {name: cases[name] for name in list(cases)[2:]}
    stream = muntin.stream(named(first), dict.fromkeys(NAMES, SCHEMA), lateness=3)
    PLANS["first"] = plan_of(named(first))
    cluster = Cluster(tmp_path, rng, 3, streams=NAMES)
    found: dict[str, list[pa.Table]] = {}

    def note(results: muntin.Results) -> None:
        for name in results:
            found.setdefault(name, []).append(results[name])

    for number in range(9):
        if number == 5:
            for name in ("q0", "q1"):
                stream.remove(name)
            joining = {name: cases[name] for name in list(cases)[5:]}
            stream.add(named(joining))
            known = {name: Known(seen - 3, seen) for name, seen in cluster.seen.items()}
            PLANS["second"] = plan_of(named(second), PLANS["first"], **known)
        batch = {
            name: table_of(rows[number * 30 // 9 : (number + 1) * 30 // 9])
            for name, rows in ordered.items()
        }
        cluster.run("second" if number >= 5 else "first", batch, rng.choice([0, 64]))
        for name, rows in batch.items():
            note(stream.feed(rows, name))
    note(stream.close())
    got = cluster.close()
    for name, case in cases.items():
        expected = [row for table in found.get(name, ()) for row in rows_of(table)]
        rows = rows_of(got[name]) if name in got else []
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), case.sql
        # From its first window on a query that joined has all that there is.
        since = min((row[1] for row in rows), default=10**6)
        whole = {row for row in case.answer(streams) if row[1] >= since}
        assert set(rows) == (whole if name in second else set(rows) & whole), case.sql


def test_gaps_between_windows_are_shown_whichever_bucket_had_rows(tmp_path: Path) -> None:
    sql = "SELECT count(*) AS n FROM s0 [RANGE 5 SLIDE 5] a JOIN s1 [RANGE 5] b ON a.k = b.k"
    PLANS["all"] = plan_of(f"{sql} EMIT EMPTY")
    cluster = Cluster(tmp_path, random.Random(0), 0, streams=NAMES)
    for time, key in ((1, 1), (21, 2), (41, 3), (61, 1), (66, 9)):
        row = {"ts": time, "k": key, "j": None, "g": None, "v": 1, "x": None}
        cluster.run("all", {name: table_of([row]) for name in ("s0", "s1")})
    (found,) = cluster.close().values()
    counts = dict(zip(found["window_end"].to_pylist(), found["n"].to_pylist(), strict=True))
    assert counts == {5 * i: int(5 * i in (5, 25, 45, 65, 70)) for i in range(1, 15)}


def test_a_group_that_has_the_key_is_shown_by_its_bucket() -> None:
    joined = "FROM s0 [RANGE 5 SLIDE 5] a JOIN s1 [RANGE 5] b ON a.k = b.k"
    plan = plan_of(
        f"CREATE QUERY own AS SELECT a.k, sum(b.v) AS v {joined} GROUP BY a.k;"
        f"CREATE QUERY spans AS SELECT a.g, sum(b.v) AS v {joined} GROUP BY a.g;"
        f"CREATE QUERY whole AS SELECT median(b.v) AS v {joined}"
    )
    assert plan.spanning == {"spans"}
    assert plan.spread["own"] == ("k",)
    assert plan.spread["whole"] == ()
    assert "merged at the end of each batch" in plan.explain()
