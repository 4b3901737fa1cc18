"""Workers that take turns at buckets, called as Spark's tasks call them, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.engine.answers.shares import ShareMerger
from muntin.engine.rows.stage_a import StageA
from muntin.engine.wire import split, to_bytes
from muntin.plan import SharedPlan
from muntin.plan.shares import plan_in
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.records import BatchRecord, StreamRecord
from muntin.spark.streaming.reports import packed_share, unpacked_share
from muntin.spark.streaming.tasks import bucket as buckets_of
from muntin.spark.streaming.tasks import head
from muntin.spark.streaming.tasks.bucket import Bucket
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter
from muntin.spark.streaming.tasks.job import Job
from muntin.spark.streaming.tasks.memory import WorkerStates

BUCKETS = 3
ONE_PARTITION = Buckets(1, BUCKETS)
PLANS: dict[str, SharedPlan] = {}


class PlannedJob(Job):
    """A batch whose plans are in memory."""

    def plan(self, name: str) -> SharedPlan:
        return PLANS[name]

    def plan_in(self, name: str, bucket: int, buckets: int) -> SharedPlan:
        return plan_in(PLANS[name], bucket, buckets)


class Cluster:
    """Workers that take turns at buckets, and the state that Spark would keep between batches."""

    def __init__(self, folder: Path, rng: random.Random, lateness: int, *, workers: int) -> None:
        self.folder, self.rng, self.lateness = folder, rng, lateness
        self.workers = [WorkerStates() for _ in range(workers)]
        self.states: dict[int, Any] = {}
        self.batch, self.seen, self.watermark = 0, None, None
        self.plan: str | None = None
        self.written = Counter[int]()
        self.read = Counter[str]()
        self.errors = Counter[str]()
        # The buckets that had shares.
        self.sharing: set[int] = set()

    def run(self, plan: SharedPlan, rows: pa.RecordBatch, *, cache: int = 64) -> dict[str, Any]:
        """Run a batch; all rows that its buckets answer, by query."""
        name = f"{len(PLANS)}"
        known = [key for key, each in PLANS.items() if each is plan]
        PLANS[known[0] if known else name] = plan
        name = known[0] if known else name
        stream = StreamRecord(name, self.plan, self.seen, self.watermark, self.lateness)
        record = BatchRecord(self.batch, (stream,), 0, {})
        job = PlannedJob("run", record, {}, str(self.folder), cache)
        output = StageA(plan, {})(_in_time(rows, self.watermark))
        latest = int(output.ticks.max()) if output.ticks.size else -(2**62)
        # Map tasks are heard of in any order.
        halves = [split(plan, output.partials, BUCKETS)] if output.partials else []
        attempts = self.rng.choice([1, 1, 2])
        tokens = []
        for attempt in range(attempts):
            writer = StateWriter(StateFolder(self.folder, "run"), self.batch, 0)
            states, tables = {}, {}
            for number in range(BUCKETS):
                buckets_of.worker_states = self.rng.choice(self.workers)
                kept = Bucket(job, ONE_PARTITION, number, self.states.get(number))
                blobs = [to_bytes(half[number]) for half in halves if number in half]
                self.rng.shuffle(blobs)
                answered = kept.answer(blobs, latest)
                self.errors += answered.errors if not attempt else Counter()
                results = {k: t.num_rows for k, t in answered.tables.items() if t.num_rows}
                kept.store(writer, results)
                states[number] = kept.row() or self.states.get(number)
                tables[number] = answered.tables, _through_reports(kept)
                tokens.append((number, kept.token))
                self.written[number] = kept.head.size
            # The file of the last attempt stays, and the state of any.
            writer.close()
            if attempt == 0 or self.rng.random() < 0.5:
                kept_states, kept_tables = states, tables
        assert len(set(tokens)) == BUCKETS, "attempts agree"
        self.states = kept_states
        found = self._merged(plan, kept_tables)
        record_reached = stream.reached(None if latest == -(2**62) else latest)
        self.seen = max(latest, self.seen or latest) if latest > -(2**62) else self.seen
        self.watermark, self.plan = record_reached, name
        self.batch += 1
        return found

    def close(self) -> dict[str, pa.Table]:
        """Answer what is open, from the files alone."""
        assert self.plan is not None
        stream = StreamRecord(self.plan, self.plan, self.seen, self.watermark, self.lateness)
        record = BatchRecord(self.batch, (stream,), 0, {})
        job = PlannedJob("run", record, {}, str(self.folder), 0)
        tables = {}
        for number, held in self.states.items():
            kept = Bucket(job, ONE_PARTITION, number, held)
            tables[number] = kept.close().tables, _through_reports(kept)
        return self._merged(PLANS[self.plan], tables)

    def _merged(self, plan: SharedPlan, tables: dict[int, Any]) -> dict[str, pa.Table]:
        """The answers of all buckets, and those that are put together from shares."""
        found: dict[str, list[pa.Table]] = {}
        self.sharing |= {number for number, (_, each) in tables.items() if each}
        merged = ShareMerger(plan, BUCKETS)({number: each for number, (_, each) in tables.items()})
        self.errors += merged.errors
        for own in (merged.tables, *(each for each, _ in tables.values())):
            for query, table in own.items():
                found.setdefault(query, []).append(table)
        return {query: pa.concat_tables(parts) for query, parts in found.items()}

    def files(self) -> set[int]:
        """The batches whose files the state is in."""
        heads = [head.Head.of_bytes(held[3]) for held in self.states.values()]
        return {batch for each in heads for batch in each.batches()}


def _in_time(rows: pa.RecordBatch, watermark: int | None) -> pa.Table:
    table = pa.Table.from_batches([rows])
    if watermark is None:
        return table
    return table.filter(pa.compute.greater_equal(table["t"], watermark))


def text(tables: dict[str, pa.Table]) -> dict[str, list[str]]:
    """Rows as text, since NaN is not equal to itself, in any order."""
    return {
        name: sorted(map(repr, table.to_pylist()))
        for name, table in tables.items()
        if table.num_rows
    }


def _through_reports(kept: Bucket) -> dict[int, pa.Table]:
    """A bucket's shares, as the driver reads them."""
    return {family: unpacked_share(packed_share(each)) for family, each in kept.shares.items()}
