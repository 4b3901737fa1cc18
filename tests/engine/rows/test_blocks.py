"""Blocks of a batch on several threads: the same bits, few at a time, and errors come through."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from engine.rich_queries import rich_queries, rich_stream
from muntin.aggregates import Aggregate, register, unregister
from muntin.engine import LocalEngine, in_time_order
from muntin.engine.answers.stage_b import StageB
from muntin.engine.rows import batches
from muntin.planner import build_plan
from muntin.queries import queries

SQL = "CREATE QUERY a AS SELECT sum(v) AS s FROM t [RANGE 2 SLIDE 2]"
ROWS = pa.table({"ts": list(range(40)), "v": list(range(40))})


@pytest.mark.parametrize("seed", range(8))
def test_threads_change_no_bit_of_bounded_answers(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(8700 + seed)
    monkeypatch.setattr(batches, "BLOCK", rng.choice([1, 7, 30]))
    table = rich_stream(rng, most=200)
    plan = build_plan(
        queries(";\n".join(query.sql for query in rich_queries(rng))), table.schema, "t"
    )
    if plan.ordered:
        table = in_time_order(table, plan.timeline.column)
    found = []
    for threads in (1, 4):
        engine = LocalEngine(plan, threads=threads)
        engine.feed(table)
        found.append(({name: str(t) for name, t in engine.close().items()}, engine.statistics))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(4))
def test_threads_change_no_bit_of_a_stream(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8720 + seed)
    monkeypatch.setattr(batches, "BLOCK", 5)
    times = [rng.randrange(at, at + 30) for at in range(120)]
    stream = pa.table(
        {"ts": pa.array([None if rng.random() < 0.1 else t for t in times]), "v": times}
    )
    plan = build_plan(queries(SQL), stream.schema, "ts")
    engines = [LocalEngine(plan, 3, threads=threads) for threads in (1, 3)]
    for batch in stream.to_batches(max_chunksize=40):
        one, other = (engine.feed(batch) for engine in engines)
        assert one == other
    assert engines[0].close() == engines[1].close()
    assert engines[0].statistics == engines[1].statistics
    assert engines[0].statistics.late_rows
    assert engines[0].statistics.bad_rows


class _Stage:
    """A stage that notes who calls it, and how many of its outputs wait."""

    plan = build_plan(queries(SQL), ROWS.schema, "ts")

    def __init__(self, fails_at: int | None = None) -> None:
        self.threads: set[str] = set()
        self.done: list[int] = []
        self._fails_at = fails_at

    def __call__(self, batch: pa.Table, _position: int, _watermark: int | None) -> Any:
        self.threads.add(threading.current_thread().name)
        first = batch["ts"][0].as_py()
        time.sleep(0.002 if first % 2 else 0)  # later blocks are done before earlier ones
        if first == self._fails_at:
            raise ValueError(f"block {first}")
        self.done.append(first)
        return first


def test_blocks_come_in_order_and_few_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BLOCK", 1)
    stage: Any = _Stage()
    for taken, output in enumerate(batches.outputs(stage, ROWS, 0, None, 2)):
        assert output == taken
        assert len(stage.done) <= taken + 2 * 2
    assert len(stage.done) == ROWS.num_rows
    assert all(name.startswith("muntin-block") for name in stage.threads)
    assert not any(each.name.startswith("muntin-block") for each in threading.enumerate())


def test_an_error_in_a_block_comes_through_and_ends_the_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "BLOCK", 1)
    stage: Any = _Stage(fails_at=9)
    with pytest.raises(ValueError, match="block 9"):
        list(batches.outputs(stage, ROWS, 0, None, 2))
    assert len(stage.done) < ROWS.num_rows
    assert not any(each.name.startswith("muntin-block") for each in threading.enumerate())


def test_one_block_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ThreadPoolExecutor", None)
    engine = LocalEngine(_Stage.plan, threads=8)
    engine.feed(ROWS)
    assert engine.close()["a"]["s"].to_pylist() == [at + at + 1 for at in range(0, 40, 2)]


def test_aggregates_of_users_stay_with_their_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    class Biggest(Aggregate):
        name = "biggest_of_blocks"
        identity, commutative = 0, True
        threads: ClassVar[set[str]] = set()

        def result_type(self, types: Any) -> pa.DataType:
            return pa.int64()

        def lift(self, value: Any) -> Any:
            self.threads.add(threading.current_thread().name)
            return value

        def combine(self, a: Any, b: Any) -> Any:
            return max(a, b)

        def lower(self, partial: Any) -> Any:
            return partial

    monkeypatch.setattr(batches, "BLOCK", 5)
    register(Biggest())
    try:
        plan = build_plan(queries(SQL.replace("sum(", "biggest_of_blocks(")), ROWS.schema, "ts")
        engine = LocalEngine(plan, threads=4)
        engine.feed(ROWS)
        assert engine.close()["a"]["s"].to_pylist() == list(range(1, 40, 2))
    finally:
        unregister("biggest_of_blocks")
    assert Biggest.threads == {threading.current_thread().name}


def test_sets_of_partials_are_answered_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    answer = StageB.answer

    def noted(self: StageB, family: Any) -> Any:
        names.add(threading.current_thread().name)
        return answer(self, family)

    monkeypatch.setattr(StageB, "answer", noted)
    sql = ";".join(
        f"CREATE QUERY q{n} AS SELECT sum(v) AS s FROM t [RANGE {n + 2} SLIDE 2] WHERE v > {n}"
        for n in range(6)
    )
    plan = build_plan(queries(sql), ROWS.schema, "ts", strategy="unshared")
    assert len(plan.partials) > 1
    found = []
    for threads in (1, 3):
        names.clear()
        engine = LocalEngine(plan, threads=threads)
        engine.feed(ROWS)
        found.append((engine.close(), engine.statistics))
        assert any(name.startswith("muntin-tree") for name in names) == (threads > 1)
    assert found[0] == found[1]
