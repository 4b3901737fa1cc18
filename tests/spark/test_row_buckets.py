"""Buckets of row queries: whichever workers and attempts there are, the rows of one engine.

No Spark is needed here: buckets are called as its tasks call them, with what it would hand over.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.operators import RowEngine, feeds
from muntin.operators.feeds import FeedSplitter
from muntin.operators.hot_keys import Key, KeySample
from muntin.operators.splits import Heat, Reached, SplitKey, decided, lanes_of
from muntin.operators.state import keys, snapshot
from muntin.plan.operators import Difference, Exists, Join, RowFinal, RowPlan
from muntin.plan.routes import RoutedPlan
from muntin.planner.rows import routed, row_plan
from muntin.queries import RowQuery, all_queries
from muntin.sinks.sink import RowsWriter
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.records import BatchRecord, StreamRecord
from muntin.spark.streaming.driver.shares import merge_shares
from muntin.spark.streaming.reports import BatchReport, BucketReport
from muntin.spark.streaming.tasks import head, row_bucket
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter
from muntin.spark.streaming.tasks.job import Job
from muntin.spark.streaming.tasks.memory import WorkerStates
from muntin.spark.streaming.tasks.row_bucket import RowAnswers, RowBucket
from muntin.spark.streaming.tasks.stage_a import Parcel
from muntin.testing import row_oracle as oracle
from operators.random_plans import SCHEMA, STREAMS, TIME, finals, grown, leaf, stream, table

PLANS: dict[str, RoutedPlan] = {}


class PlannedJob(Job):
    """A batch whose plans are in memory."""

    def row_plan(self, name: str) -> RoutedPlan:
        return PLANS[name]


class Cluster:
    """Workers that take turns at buckets, and the state that Spark would keep between batches."""

    def __init__(
        self,
        folder: Path,
        rng: random.Random,
        lateness: int,
        workers: int = 3,
        streams: Iterable[str] = STREAMS,
    ) -> None:
        self.folder, self.rng, self.lateness = folder, rng, lateness
        self.streams = list(streams)
        self.buckets = Buckets(1, 3, streams=len(self.streams)).with_rows
        self.workers = [WorkerStates() for _ in range(workers)]
        self.states: dict[int, Any] = {}
        self.batch, self.plan = 0, ""
        self.seen: dict[str, int] = {}
        self.found: dict[str, list[pa.Table]] = {}
        self.splits: tuple[SplitKey, ...] = ()
        self.phases: Counter[str] = Counter()

    def _split(self, plan: RoutedPlan, batch: Mapping[str, pa.Table]) -> None:
        """Split keys of the batch by chance, as `decided` lets it be."""
        heats = {}
        for group in plan.groups:
            shares: dict[Key, tuple[float, ...]] = {}
            for feed in plan.feeds.values():
                if feed.clock not in group.clocks or feed.stream not in batch:
                    continue
                sample = KeySample(feed.key)
                sample.see(batch[feed.stream])
                # One side has most rows of a key, from time to time another one.
                for key in sample.counts:
                    largest = (key.hash + self.batch // 5) % len(group.streams)
                    shares[key] = tuple(
                        float(place == largest) for place in range(len(group.streams))
                    )
            kept = [each for each in shares if self.rng.random() < 0.8]
            heats[group.name] = Heat({key: shares[key] for key in kept})
        times = {name: Reached(self.seen.get(name), self._watermark(name)) for name in self.streams}
        self.splits = decided(plan.groups, self.splits, times, heats, self.buckets.count)
        self.phases.update(each.phase for each in self.splits)

    def _watermark(self, name: str) -> int | None:
        return self.seen[name] - self.lateness if name in self.seen else None

    def _job(self, plan: str, cache: int) -> PlannedJob:
        streams = tuple(
            StreamRecord(
                *("", None, self.seen.get(name)),
                self._watermark(name),
                self.lateness,
            )
            for name in self.streams
        )
        record = BatchRecord(
            self.batch, streams, 0, {}, row_plan=plan, row_before=self.plan or None
        )
        return PlannedJob("run", record, {}, str(self.folder), cache)

    def run(self, plan: str, batch: Mapping[str, pa.Table], cache: int = 64) -> None:
        """Run a batch, perhaps in several attempts."""
        job = self._job(plan, cache)
        self._split(PLANS[plan], batch)
        parcels: dict[int, list[Parcel]] = {}
        for name, rows in batch.items():
            number = self.streams.index(name)
            for task in range(2):
                found: dict[int, dict[str, bytes]] = {}
                for feed in PLANS[plan].of_stream(name):
                    count = self.buckets.count
                    lanes = lanes_of(self.splits, PLANS[plan].groups, feed.clock, count)
                    splitter = FeedSplitter(feed, count, lanes)
                    splitter.take(rows.slice(task, None if task else 1))
                    for bucket, data in splitter.packets().items():
                        found.setdefault(bucket, {})[feed.name] = data
                for bucket, packets in found.items():
                    parcels.setdefault(bucket, []).append(Parcel(number, task, packets))
        latest = {
            self.streams.index(name): max(rows["ts"].to_pylist())
            for name, rows in batch.items()
            if rows.num_rows
        }
        tokens = set()
        for attempt in range(self.rng.choice([1, 1, 2])):
            writer = StateWriter(StateFolder(self.folder, "run"), self.batch, 0)
            states, found_here = {}, []
            for place, bucket in enumerate(self.buckets.shared):
                row_bucket.worker_states = self.rng.choice(self.workers)
                kept = RowBucket(job, self.buckets, bucket, self.states.get(bucket))
                given = list(parcels.get(place, ()))
                self.rng.shuffle(given)
                answered = kept.answer(given, latest)
                kept.store(writer, {k: t.num_rows for k, t in answered.tables.items()})
                states[bucket] = kept.row() or self.states.get(bucket)
                found_here.append(answered)
                tokens.add((bucket, kept.token))
            # The file of the last attempt stays, and the state of any.
            writer.close()
            if attempt == 0 or self.rng.random() < 0.5:
                kept_states, kept_answers = states, found_here
        assert len(tokens) == self.buckets.count, "attempts agree"
        self.states = kept_states
        self._keep(PLANS[plan], kept_answers)
        for number, time in latest.items():
            name = self.streams[number]
            self.seen[name] = max(self.seen.get(name, time), time)
        self.batch, self.plan = self.batch + 1, plan

    def _keep(self, plan: RoutedPlan, found: list[RowAnswers]) -> None:
        shown = [each.tables for each in found]
        reports = BatchReport(
            [
                BucketReport(number, 0, shares=each.shares, gaps=each.gaps)
                for number, each in enumerate(found)
            ]
        )
        merge_shares(plan, self.batch, reports, RowsWriter())
        shown += [{entry.query: entry.table()} for each in reports for entry in each.written]
        for tables in shown:
            for name, rows in tables.items():
                self.found.setdefault(name, []).append(rows)

    def close(self) -> dict[str, pa.Table]:
        """All results, the last of them from the files alone."""
        job = self._job(self.plan, 0)
        buckets = [RowBucket(job, self.buckets, *each) for each in self.states.items()]
        self._keep(PLANS[self.plan], [each.close() for each in buckets])
        return {name: pa.concat_tables(parts) for name, parts in self.found.items()}


@pytest.fixture(autouse=True)
def few_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases and segments come after a few batches already."""
    PLANS.clear()
    monkeypatch.setattr(head, "_LEAST", 600)
    monkeypatch.setattr(head, "_FEWEST", 2)
    monkeypatch.setattr(head, "_RECENT", 1)
    monkeypatch.setattr(row_bucket, "_FEWEST", 2)
    monkeypatch.setattr(row_bucket, "_ROWS_APART", 2)
    monkeypatch.setattr(snapshot, "_SMALL", 8)


def bag(found: pa.Table, final: RowFinal) -> Counter[object]:
    return Counter(oracle.shown(found, len(final.schema) - len(final.root.schema)))


@pytest.mark.parametrize("seed", range(6))
def test_any_workers_and_attempts_give_the_rows_of_one_engine(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.parametrize("light", [0, 30, 10**9])
def test_bases_instead_of_news(light: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # None is light, some are, all are.
    monkeypatch.setattr(row_bucket, "_LIGHT", light)
    check(200, tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_keys_that_all_hash_together(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = keys.hash_columns

    def collide(columns: keys.Columns, count: int) -> tuple[keys.Ints, bool]:
        return real(columns, count)[0] * 0, False

    monkeypatch.setattr(keys, "hash_columns", collide)
    monkeypatch.setattr(feeds, "hash_columns", collide)
    check(seed + 100, tmp_path)


def check(seed: int, tmp_path: Path) -> None:
    """Random queries, of which some leave and join, over random streams."""
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


# Hot keys of these may be split: the first stream of the last four, any stream of the others.
SPLIT = (
    "SELECT a.k, a.v, b.v AS w FROM a [RANGE 9] JOIN b [RANGE 5] ON a.k = b.k",
    "SELECT a.v, b.v AS w FROM a [RANGE 4] JOIN b [RANGE 12] ON a.k = b.k WHERE a.v > 0",
    "SELECT x.v, y.v AS w FROM a [RANGE 6] x JOIN a [RANGE 3] y ON x.s = y.s AND x.k < y.k",
    """SELECT a.v, b.v AS w, c.v AS u FROM a [RANGE 9] JOIN b [RANGE 5] ON a.s = b.s
      JOIN c [RANGE 7] ON a.s = c.s""",
    "SELECT k, v FROM a [RANGE 9] WHERE EXISTS (SELECT 1 FROM b [RANGE 5] WHERE b.k = a.k)",
    "SELECT k, v FROM a [RANGE 9] WHERE NOT EXISTS (SELECT 1 FROM b [RANGE 5] WHERE b.k = a.k)",
    "SELECT k, v FROM a [RANGE 5] WHERE NOT EXISTS (SELECT 1 FROM c [RANGE 2] WHERE c.v > 1)",
    "SELECT k, v FROM a [RANGE 8] WHERE s IN (SELECT s FROM c [RANGE 8])",
)

PHASES = ("copying", "split", "ending", "clearing")


def split_plan(numbers: Iterable[int]) -> RowPlan:
    """Some of the queries whose hot keys may be split."""
    texts = [f"CREATE QUERY q{n} WITH (skew = 'replicate') AS {SPLIT[n]}" for n in numbers]
    asked = [each for each in all_queries(";".join(texts)) if isinstance(each, RowQuery)]
    return row_plan(asked, STREAMS)


@pytest.mark.parametrize("seed", range(3))
def test_split_keys_give_the_rows_of_one_engine(seed: int, tmp_path: Path) -> None:
    rng = random.Random(30 + seed)
    first, second = split_plan(range(0, len(SPLIT), 2)), split_plan(range(len(SPLIT)))
    PLANS.update(first=routed(first), second=routed(second))
    lateness = rng.choice([0, 4])
    cluster, engine = Cluster(tmp_path, rng, lateness), RowEngine(first)
    found: dict[str, list[pa.Table]] = {}
    for number in range(40):
        batch = {}
        for name in STREAMS:
            rows = table(stream(rng, rng.choice([0, 3, 9]), 6))
            times = np.array(rows["ts"]) + 4 * number
            late = cluster.seen.get(name, -99) - lateness
            moved = rows.set_column(0, "ts", pa.array(times, pa.int64()))
            batch[name] = moved.filter(pa.array(times >= late))
        batch = {name: rows for name, rows in batch.items() if rows.num_rows}
        if number == 20:
            engine.adopt(second)
        cluster.run("second" if number >= 20 else "first", batch, rng.choice([0, 64, 64]))
        marks = {name: seen - lateness for name, seen in cluster.seen.items()}
        for name, each in engine.feed(batch, marks).items():
            found.setdefault(name, []).append(each)
    for name, each in engine.close().items():
        found.setdefault(name, []).append(each)
    got = cluster.close()
    assert min(cluster.phases[each] for each in PHASES) > 20
    for final in second.finals:
        whole = pa.concat_tables(found[final.name])
        assert whole.num_rows > 20, final.name
        assert bag(got[final.name], final) == bag(whole, final), final.name


def absence_plan(length: int) -> RoutedPlan:
    """Rows of one stream without a partner in another, all of which live for so long."""
    node = Exists(leaf("a", length), leaf("b", length), ((2,), (2,)), negated=True)
    return routed(RowPlan(STREAMS, (RowFinal("q", node, TIME, output="final"),)))


def except_plan(length: int) -> RoutedPlan:
    """Values of one stream that another does not have, all of which live for so long."""
    node = Difference(leaf("a", length), leaf("b", length // 2), "except")
    return routed(RowPlan(STREAMS, (RowFinal("q", node, TIME, output="final"),)))


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


def written(folder: Path, plan: RoutedPlan, batches: int) -> list[int]:
    """Bytes that each batch writes for a plan."""
    return measured(folder, plan, batches)[0]


def measured(folder: Path, plan: RoutedPlan, batches: int) -> tuple[list[int], int]:
    """Bytes that each batch writes for a plan, and those of the bases that are there at last."""
    PLANS["join"] = plan
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
    heads = [head.Head.of_bytes(held[3]) for held in cluster.states.values()]
    return sizes, sum(each.base.size for each in heads if each.base is not None)


@pytest.mark.parametrize("made", [join_plan, absence_plan, except_plan])
def test_what_a_batch_writes_does_not_grow_with_the_window(
    made: Callable[[int], RoutedPlan], tmp_path: Path
) -> None:
    for name in ("short", "long"):
        (tmp_path / name).mkdir()
    short = written(tmp_path / "short", made(1_000), 100)
    long = written(tmp_path / "long", made(4_000), 100)
    # Both windows are full after 40 batches.
    assert sum(long[40:]) < 1.5 * sum(short[40:])


@pytest.mark.parametrize("made", [join_plan, absence_plan, except_plan])
def test_what_a_worker_reads_whole_does_not_grow_with_the_window(
    made: Callable[[int], RoutedPlan], tmp_path: Path
) -> None:
    for name in ("short", "long"):
        (tmp_path / name).mkdir()
    _, short = measured(tmp_path / "short", made(1_000), 60)
    _, long = measured(tmp_path / "long", made(4_000), 60)
    # Names of segments, and those that are too small for a name.
    assert 0 < long < 2 * short
