"""Stage B in Spark's stateful tasks: a bucket's partials come in, its windows are answered."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from muntin.engine.answering import Answered
from muntin.engine.state import State
from muntin.engine.wire import from_bytes
from muntin.errors import DataError
from muntin.sinks import Writer
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.job import Job, current_job, end_task, task_context
from muntin.spark.streaming.problems import RESTORE, CheckpointError
from muntin.spark.streaming.records import BucketReport
from muntin.spark.streaming.stage_a import NO_TIME, Counts

if TYPE_CHECKING:
    import pandas as pd

# The token says what the state is, whichever attempt of a task wrote it; ``written`` is another one
# whenever it is written; the plan is what the data is of.
SCHEMA = "token string, written string, plan string, data binary"
_ROOM = 256 << 20


@dataclass(frozen=True)
class StateStage:
    """The function of Spark's stateful operator, called once for each bucket and batch."""

    buckets: Buckets
    writer: Writer[Any]

    def __call__(
        self, key: tuple[Any], frames: Iterable[pd.DataFrame], stored: Any
    ) -> Iterator[pd.DataFrame]:
        """Take in what the map tasks have for a bucket; one row, the bucket's report."""
        import pandas as pd  # noqa: PLC0415  imported in workers only

        job, bucket = current_job(), self.buckets.numbers[int(key[0])]
        blobs, counts = _collect(frames)
        kept = _Bucket(job, bucket, stored)
        answered = kept.answer(blobs, counts.latest)
        tables = answered.tables.items()
        results = {name: table.num_rows for name, table in tables if table.num_rows}
        report = BucketReport(
            bucket,
            counts.latest,
            counts.rows,
            counts.late_rows,
            counts.bad_rows,
            dict(counts.errors + answered.errors),
            results,
            kept.store(results),
            kept.found,
            kept.token,
            aside=counts.aside,
        )
        self._write(job, report, answered.tables)
        yield pd.DataFrame({"report": [report.to_bytes()]})

    def _write(self, job: Job, report: BucketReport, tables: Mapping[str, pa.Table]) -> None:
        """Write the results of all buckets of a task at once, when the last of them is there.

        One file for each query and bucket would be many small ones.
        """
        attempt = str(task_context().taskAttemptId())
        waiting = _waiting.get(f"{job.run} {job.record.batch} {attempt}")
        waiting[report.bucket] = dict(tables)
        if len(waiting) < self.buckets.beside(report.bucket):
            return
        results: dict[str, list[pa.Table]] = {}
        for _, each in sorted(waiting.items()):
            for name, table in each.items():
                results.setdefault(name, []).append(table)
        united = {name: pa.concat_tables(parts) for name, parts in results.items()}
        report.written = self.writer.write(job.record.batch, attempt, united)
        report.covers = len(waiting)
        waiting.clear()
        end_task()


def _collect(frames: Iterable[pd.DataFrame]) -> tuple[list[bytes], Counts]:
    """The partials of all map tasks, and what they counted together."""
    blobs: list[bytes] = []
    counts = Counts()
    for frame in frames:
        blobs += [bytes(blob) for blob in frame["partials"] if blob is not None]
        counts.latest = max(counts.latest, int(frame["latest"].max()))
        for data in frame["counts"]:
            if data is not None:
                counts.add_bytes(bytes(data))
    return blobs, counts


class _Bucket:
    """One bucket's state during a batch."""

    def __init__(self, job: Job, bucket: int, stored: Any) -> None:
        self._job, self._key, self._stored = job, (job.run, bucket), stored
        record = job.record
        held = stored.getOption
        if held is None:
            self.found, self._written, self._bytes = "", "", 0
            plan = record.before or record.plan
            self._state = State(job.plan(plan))
        else:
            self.found, self._written, plan = str(held[0]), str(held[1]), str(held[2])
            data = bytes(held[3])
            self._bytes = len(data)
            kept = _states.take(self._key, self._written)
            self._state = kept or restored(job, bucket, plan, data)
        self.token = self.found
        # The whole state is written after every batch, so finals gain nothing by moving on.
        self._state.moves = False
        self._is_joined = plan != record.plan
        self._is_changed = held is None or self._is_joined

    def answer(self, blobs: list[bytes], latest: int) -> Answered:
        """Take in a batch's partials and its largest time; the windows that are due."""
        record, state = self._job.record, self._state
        if not (blobs or self._is_changed or _holds_rows(state)):
            return Answered()
        self._catch_up()
        for blob in blobs:
            state.take(from_bytes(state.plan, blob), None)
        seen = max(latest, NO_TIME if record.seen is None else record.seen)
        reached = record.reached(None if latest == NO_TIME else latest)
        if seen == NO_TIME or reached is None:
            return Answered()
        state.seen = seen
        answered = state.advance(reached)
        self._is_changed |= bool(blobs or answered.last)
        return answered

    def _catch_up(self) -> None:
        """Bring the state to where the batch begins, with the plan of the batch.

        A state that had nothing to do was left as it was, so it may be some batches behind.
        """
        record, state = self._job.record, self._state
        state.seen = record.seen
        if record.watermark is not None:
            state.advance(record.watermark)
        if self._is_joined:
            state.adopt(self._job.plan(record.plan))

    def store(self, results: Mapping[str, int]) -> int:
        """Write the state where it changed, and keep it at hand; its size in bytes."""
        if self._is_changed:
            data = self._state.snapshot()
            self._written, self._bytes = uuid4().hex, len(data)
            self.token = state_token(self._job, self._key[1], self._state, results)
            self._stored.update((self.token, self._written, self._job.record.plan, data))
        _states.put(self._key, self._written, self._state, self._bytes)
        return self._bytes


def restored(job: Job, bucket: int, plan: str, data: bytes) -> State:
    """The state of a bucket, from the bytes that Spark kept."""
    if plan != job.record.before:
        raise CheckpointError(
            f"the state of bucket {bucket} is of plan {plan}, and batch {job.record.batch} goes on "
            f"from plan {job.record.before}",
            hint=RESTORE,
        )
    try:
        return State.restore(job.plan(plan), data)[0]
    except DataError as error:
        raise CheckpointError(
            f"the state of bucket {bucket}, which batch {job.record.batch} starts from, is damaged:"
            f" {error.message}",
            hint=RESTORE,
        ) from error


def state_token(job: Job, bucket: int, state: State, results: Mapping[str, int]) -> str:
    """What a bucket's state is known by: the same for all attempts at a batch, no two batches.

    It is a checksum of the run, the batch that wrote it, the bucket, the plan, the times it has
    reached and how many rows it answered in that batch; not of its bytes, which may differ from
    attempt to attempt, nor of anything that takes looking at all that is kept.
    """
    record, counts = job.record, sorted(results.items())
    parts = (job.run, record.batch, bucket, record.plan, state.seen, state.watermark, counts)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _holds_rows(state: State) -> bool:
    return any(store.holds_rows for store in state.stores)


class _States:
    """States of buckets that this worker has seen, so that they are not read again and again.

    One is used only if it was written as the state that Spark hands over: then it is the very
    state that was written there, whatever attempts and restarts there have been.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._held: OrderedDict[tuple[str, int], tuple[str, State, int]] = OrderedDict()

    def take(self, key: tuple[str, int], written: str) -> State | None:
        """The state, which is not kept any longer: it is about to change."""
        found = self._held.pop(key, None)
        return found[1] if found is not None and found[0] == written else None

    def put(self, key: tuple[str, int], written: str, state: State, size: int) -> None:
        """Keep a state, and as many others as there is room for."""
        self._held[key] = (written, state, size)
        while len(self._held) > 1 and sum(held[2] for held in self._held.values()) > self._room:
            self._held.popitem(last=False)


class _Waiting:
    """Results of one task attempt that are not written yet."""

    def __init__(self) -> None:
        self._attempt = ""
        self._tables: dict[int, dict[str, pa.Table]] = {}

    def get(self, attempt: str) -> dict[int, dict[str, pa.Table]]:
        """Those of this attempt; what another left behind is of no use."""
        if attempt != self._attempt:
            self._attempt, self._tables = attempt, {}
        return self._tables


_states = _States(_ROOM)
_waiting = _Waiting()
