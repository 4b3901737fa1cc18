"""Queries of a running stream go over to other trees, and answer what they would have answered."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin import sinks
from muntin.api import run
from muntin.errors import MuntinError
from muntin.plan import SharedPlan
from muntin.testing import assert_same_rows
from spark.chaos_blows import Blow, StruckSink, carried_by_value
from spark.folder_stream import FolderStream, expected, wait_for_batches

START = datetime(2024, 5, 1, tzinfo=UTC)
SPAN = 40  # seconds of event time in a batch
QUERY = """CREATE QUERY {} AS SELECT {}max(vol) AS m, count(*) AS n
  FROM trades [RANGE '{} seconds' SLIDE '{} seconds'] {};"""
FINE = QUERY.format("fine", "", 2, 1, "WHERE vol > 20")
LONG = QUERY.format("long", "symbol, ", 90, 1, "GROUP BY symbol")
COARSE = "".join(
    QUERY.format(f"c{n}", "symbol, ", 8 * n, 8, "GROUP BY symbol")
    if n % 3
    else QUERY.format(f"c{n}", "", 8 * n, 8, "WHERE vol > 50")
    for n in range(2, 24)
)
LATE = QUERY.format("late", "", 16, 8, "WHERE vol > 50")


def batches(seed: int, *sizes: int) -> list[pa.Table]:
    """So many rows in each span of time, a little out of order."""
    rng = random.Random(seed)
    found = []
    for number, size in enumerate(sizes):
        seconds = sorted(rng.uniform(0, SPAN) for _ in range(size))
        seconds.sort(key=lambda second: second + rng.uniform(0, 3))
        times = [START + timedelta(seconds=number * SPAN + second) for second in seconds]
        found.append(
            pa.table(
                {
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                    "symbol": [rng.choice(["IBM", "F", "T"]) for _ in times],
                    "price": [rng.uniform(1, 9) for _ in times],
                    "vol": [rng.randrange(100) for _ in times],
                    "exchange": ["N"] * size,
                }
            )
        )
    return found


def twins(plan: SharedPlan) -> int:
    return sum(node.twin is not None for node in plan.partials)


def test_moves_between_batches_change_no_answer(spark: Any, tmp_path: Path) -> None:
    rows = batches(5, 40, 40, 800, 800, 800, 800)
    text = FINE + LONG + COARSE
    stream = FolderStream(tmp_path / "in")
    options = {"checkpoint": tmp_path / "ck", "lateness": "3 seconds"}
    struck = StruckSink(tmp_path / "out", Blow(3, str(tmp_path / "struck")))
    sets: list[Any] = []

    def step(started: Any) -> SharedPlan:
        sets.append(started.queries())
        stream.put(rows[len(sets) - 1])
        wait_for_batches(started, len(sets))
        return started.plan()

    with carried_by_value():
        started = run(stream.frame(spark), text, partitions=1, buckets=3, sink=struck, **options)
        assert len(step(started).slicings) == 1
        plan = step(started)
        assert len(plan.slicings) == 2
        assert set(plan.moves[0].queries) == {"fine", "long"}
        assert "moved with the next batch: the rate of rows has become known" in plan.explain()
        plan = step(started)
        assert plan.moves[0].at is not None
        assert len(plan.slicings) == 1
        assert "as often as planned for" in plan.moves[-1].why
        assert twins(plan) == 2
        # The first batch in which trees are cut together comes to no end, and is run again.
        with pytest.raises(MuntinError, match="exited unexpectedly"):
            step(started)
    options["sink"] = sinks.parquet(tmp_path / "out")
    with run(stream.frame(spark), text, **options) as started:
        wait_for_batches(started, 4)
        # The long query's windows still reach back to before it moved.
        assert twins(started.plan()) == 1
        started.add(LATE)
        started.remove("c5")
        step(started)
        plan = step(started)
        assert twins(plan) == 0
        assert len(plan.moves) == 2
        started.stop(flush=True)
    output = sinks.read(tmp_path / "out")
    answers = expected(rows, sets, lateness=3_000_000, close=True)
    assert len(answers) == 25
    for name, table in answers.items():
        assert_same_rows(output[name], table)


def test_trees_are_fed_from_combined_slices(spark: Any, tmp_path: Path) -> None:
    """Rows go into slices of all trees once; a restart goes on with them, and counts go on too."""
    rows = batches(6, 40, 40, 400, 400, 400)
    text = FINE + LONG + COARSE
    stream = FolderStream(tmp_path / "in")
    options = {"checkpoint": tmp_path / "ck", "lateness": "3 seconds", "optimizer": "tri_weave"}
    options["sink"] = sinks.parquet(tmp_path / "out")
    sets: list[Any] = []

    def step(started: Any) -> None:
        sets.append(started.queries())
        stream.put(rows[len(sets) - 1])
        wait_for_batches(started, len(sets))

    with run(stream.frame(spark), text, partitions=1, buckets=3, **options) as started:
        step(started)
        step(started)
        assert len(started.plan().combined) == 2
        step(started)
        before = started.progress()
        started.stop()
    with run(stream.frame(spark), text, **options) as started:
        assert started.progress().aggregations == before.aggregations
        assert "from combined slices" in started.plan().explain()
        started.add(LATE)
        started.remove("c5")
        step(started)
        step(started)
        assert started.plan().combined
        after = started.progress()
        started.stop(flush=True)
    assert 0 < before.partial_aggregations < after.partial_aggregations
    assert 0 < before.final_aggregations < after.final_aggregations
    output = sinks.read(tmp_path / "out")
    answers = expected(rows, sets, lateness=3_000_000, close=True)
    assert len(answers) == 25
    for name, table in answers.items():
        assert_same_rows(output[name], table)


@pytest.mark.parametrize("method", [None, "W_TN"])
def test_trees_are_placed_when_a_stream_begins(
    spark: Any, tmp_path: Path, method: str | None
) -> None:
    rows = batches(8, 60, 60)
    text = "".join(QUERY.format(f"q{n}", "", 3 * n, n, f"WHERE vol > {n}") for n in (5, 7, 8))
    stream = FolderStream(tmp_path / "in")
    for each in rows:
        stream.put(each)
    started = run(
        stream.frame(spark),
        text,
        checkpoint=tmp_path / "ck",
        lateness="3 seconds",
        optimizer="no_share",
        placement=method,
        partitions=1,
        buckets=2,
        sink=sinks.parquet(tmp_path / "out"),
        trigger="available_now",
    )
    assert started.await_termination(240)
    plan = started.plan()
    started.stop(flush=True)
    assert plan.placement == (method or "WG_I")
    assert {node.home for node in plan.partials} == {0, 1}
    assert f"placed in buckets by {plan.placement}" in plan.explain()
    output = sinks.read(tmp_path / "out")
    answers = expected(rows, [text] * 2, lateness=3_000_000, close=True)
    assert len(answers) == 3
    for name, table in answers.items():
        assert_same_rows(output[name], table)


def test_progress_counts_what_a_stream_in_one_process_counts(spark: Any, tmp_path: Path) -> None:
    rows = batches(7, 300, 300, 300)
    stream, local = FolderStream(tmp_path / "in"), muntin.stream(FINE + COARSE, rows[0].schema)
    for batch in rows:
        stream.put(batch)
        local.feed(batch)
    options = {"checkpoint": tmp_path / "ck", "trigger": "available_now", "optimizer": "all_share"}
    with run(
        stream.frame(spark), FINE + COARSE, sink=sinks.memory(), partitions=1, buckets=1, **options
    ) as started:
        assert started.await_termination(120)
        found, wanted = started.progress(), local.progress()
    assert found.partial_aggregations == wanted.partial_aggregations
    assert 0 < found.final_aggregations <= 2 * wanted.final_aggregations
    assert 0 < found.cell_aggregations <= 2 * wanted.cell_aggregations
    assert f"{found.final_aggregations:,}" in found._repr_html_()
