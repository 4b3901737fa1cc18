"""Buckets of row queries: whichever workers and attempts there are, the rows of one engine.

No Spark is needed here: buckets are called as its tasks call them, with what it would hand over.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.operators import RowEngine
from muntin.operators.feeds import FeedSplitter
from muntin.plan.operators import Join, RowFinal, RowPlan
from muntin.plan.routes import RoutedPlan
from muntin.planner.rows import routed
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.records import BatchRecord, StreamRecord
from muntin.spark.streaming.tasks import head, row_bucket
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter
from muntin.spark.streaming.tasks.job import Job
from muntin.spark.streaming.tasks.memory import WorkerStates
from muntin.spark.streaming.tasks.row_bucket import RowBucket
from muntin.spark.streaming.tasks.stage_a import Parcel
from muntin.testing import row_oracle as oracle
from operators.random_plans import SCHEMA, STREAMS, TIME, finals, grown, leaf, stream, table

BUCKETS = Buckets(1, 3, streams=3).with_rows
PLANS: dict[str, RoutedPlan] = {}


class PlannedJob(Job):
    """A batch whose plans are in memory."""

    def row_plan(self, name: str) -> RoutedPlan:
        return PLANS[name]


class Cluster:
    """Workers that take turns at buckets, and the state that Spark would keep between batches."""

    def __init__(self, folder: Path, rng: random.Random, lateness: int, workers: int = 3) -> None:
        self.folder, self.rng, self.lateness = folder, rng, lateness
        self.workers = [WorkerStates() for _ in range(workers)]
        self.states: dict[int, Any] = {}
        self.batch, self.plan = 0, ""
        self.seen: dict[str, int] = {}
        self.found: dict[str, list[pa.Table]] = {}

    def _job(self, plan: str, cache: int) -> PlannedJob:
        streams = tuple(
            StreamRecord(
                *("", None, self.seen.get(name)),
                self.seen[name] - self.lateness if name in self.seen else None,
                self.lateness,
            )
            for name in STREAMS
        )
        record = BatchRecord(
            self.batch, streams, 0, {}, row_plan=plan, row_before=self.plan or None
        )
        return PlannedJob("run", record, {}, str(self.folder), cache)

    def run(self, plan: str, batch: Mapping[str, pa.Table], cache: int = 64) -> None:
        """Run a batch, perhaps in several attempts."""
        job = self._job(plan, cache)
        parcels: dict[int, list[Parcel]] = {}
        for number, (name, rows) in enumerate(batch.items()):
            for task in range(2):
                found: dict[int, dict[str, bytes]] = {}
                for feed in PLANS[plan].of_stream(name):
                    splitter = FeedSplitter(feed, BUCKETS.count)
                    splitter.take(rows.slice(task, None if task else 1))
                    for bucket, data in splitter.packets().items():
                        found.setdefault(bucket, {})[feed.name] = data
                for bucket, packets in found.items():
                    parcels.setdefault(bucket, []).append(Parcel(number, task, packets))
        latest = {
            list(STREAMS).index(name): max(rows["ts"].to_pylist())
            for name, rows in batch.items()
            if rows.num_rows
        }
        tokens = set()
        for attempt in range(self.rng.choice([1, 1, 2])):
            writer = StateWriter(StateFolder(self.folder, "run"), self.batch, 0)
            states, tables = {}, []
            for place, bucket in enumerate(BUCKETS.shared):
                row_bucket.worker_states = self.rng.choice(self.workers)
                kept = RowBucket(job, BUCKETS, bucket, self.states.get(bucket))
                given = list(parcels.get(place, ()))
                self.rng.shuffle(given)
                answered = kept.answer(given, latest)
                kept.store(writer, {k: t.num_rows for k, t in answered.tables.items()})
                states[bucket] = kept.row() or self.states.get(bucket)
                tables.append(answered.tables)
                tokens.add((bucket, kept.token))
            # The file of the last attempt stays, and the state of any.
            writer.close()
            if attempt == 0 or self.rng.random() < 0.5:
                kept_states, kept_tables = states, tables
        assert len(tokens) == BUCKETS.count, "attempts agree"
        self.states = kept_states
        self._keep(kept_tables)
        for number, time in latest.items():
            name = list(STREAMS)[number]
            self.seen[name] = max(self.seen.get(name, time), time)
        self.batch, self.plan = self.batch + 1, plan

    def _keep(self, found: list[dict[str, pa.Table]]) -> None:
        for tables in found:
            for name, rows in tables.items():
                self.found.setdefault(name, []).append(rows)

    def close(self) -> dict[str, pa.Table]:
        """All results, the last of them from the files alone."""
        job = self._job(self.plan, 0)
        self._keep(
            [
                RowBucket(job, BUCKETS, each, held).close().tables
                for each, held in self.states.items()
            ]
        )
        return {name: pa.concat_tables(parts) for name, parts in self.found.items()}


@pytest.fixture(autouse=True)
def few_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases and segments come after a few batches already."""
    PLANS.clear()
    monkeypatch.setattr(head, "_LEAST", 600)
    monkeypatch.setattr(head, "_FEWEST", 2)
    monkeypatch.setattr(head, "_RECENT", 1)
    monkeypatch.setattr(row_bucket, "_ROWS_APART", 2)


def bag(found: pa.Table, final: RowFinal) -> Counter[object]:
    return Counter(oracle.shown(found, len(final.schema) - len(final.root.schema)))


@pytest.mark.parametrize("seed", range(6))
def test_any_workers_and_attempts_give_the_rows_of_one_engine(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    roots = [grown(rng, rng.randrange(1, 4)) for _ in range(3)]
    shown = [each for i, root in enumerate(roots) for each in finals(rng, root, f"q{i}")]
    later = shown[6:]
    first, second = (RowPlan(STREAMS, tuple(each)) for each in (shown[:12], later))
    PLANS.update(first=routed(first), second=routed(second))
    lateness = rng.choice([0, 4])
    cluster = Cluster(tmp_path, rng, lateness)
    engine = RowEngine(first)
    found: dict[str, list[pa.Table]] = {}
    rows = {name: stream(rng, 40, 60) for name in STREAMS}
    for number in range(12):
        batch = {
            name: table(each[number * 40 // 12 : (number + 1) * 40 // 12])
            for name, each in rows.items()
            if rng.random() < 0.8
        }
        in_time = {
            name: each.filter(
                pa.array(np.array(each["ts"]) >= cluster.seen.get(name, -99) - lateness, pa.bool_())
            )
            for name, each in batch.items()
        }
        if number == 6:
            engine.adopt(second)
        cluster.run("second" if number >= 6 else "first", in_time, rng.choice([0, 64, 64]))
        marks = {name: seen - lateness for name, seen in cluster.seen.items()}
        for name, each in engine.feed(in_time, marks).items():
            found.setdefault(name, []).append(each)
    for name, each in engine.close().items():
        found.setdefault(name, []).append(each)
    got = cluster.close()
    for final in shown:
        whole = pa.concat_tables(found[final.name])
        assert bag(got[final.name], final) == bag(whole, final), final.name


def join_plan(length: int) -> RoutedPlan:
    """A join whose rows live for so long."""
    sides = (leaf("a", length), leaf("b", length))
    named = [
        type(each)(each.stream, each.range, each.where,
                   tuple(type(own)(f"{own.name}{i}", own.value) for own in each.columns))
        for i, each in enumerate(sides)
    ]  # fmt: skip
    join = Join(tuple(named), ((2,), (2,)))
    return routed(RowPlan(STREAMS, (RowFinal("q", join, TIME),)))


def written(folder: Path, length: int, batches: int) -> list[int]:
    """Bytes that each batch writes for a join with a window of so many ticks."""
    PLANS["join"] = join_plan(length)
    cluster = Cluster(folder, random.Random(0), 0, workers=1)
    cluster.rng.choice = lambda given: given[0]  # type: ignore[method-assign]
    sizes = []
    for number in range(batches):
        times = np.arange(number * 100, number * 100 + 100)
        rows = pa.table(
            [times, np.zeros(100), pa.array(["x"] * 100), times * 7919 % 100_003], schema=SCHEMA
        )
        before = sum(path.stat().st_size for path in folder.glob("*.state"))
        cluster.run("join", {"a": rows, "b": rows})
        sizes.append(sum(path.stat().st_size for path in folder.glob("*.state")) - before)
    return sizes


def test_what_a_batch_writes_does_not_grow_with_the_window(tmp_path: Path) -> None:
    for name in ("short", "long"):
        (tmp_path / name).mkdir()
    short = written(tmp_path / "short", 1_000, 60)
    long = written(tmp_path / "long", 4_000, 60)
    # Both windows are full after 40 batches.
    assert sum(long[40:]) < 1.5 * sum(short[40:])
