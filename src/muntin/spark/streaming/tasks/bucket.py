"""One bucket's state during a batch: found at hand or read, moved on, and kept by its news."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np

from muntin.engine.answers.front import Answered
from muntin.engine.answers.shares import Shares, take_shares
from muntin.engine.slices.array_pack import Arrays, pack_arrays, unpack_arrays
from muntin.engine.slices.partials import PartialBatch, merge
from muntin.engine.slices.sealed_log import SealedLog, united
from muntin.engine.slices.store import BEGINNING
from muntin.engine.state import State
from muntin.engine.wire import from_bytes, to_bytes
from muntin.errors import DataError
from muntin.plan import SharedPlan
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.problems import RESTORE, CheckpointError
from muntin.spark.streaming.reports import NO_TIME
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter, Whose
from muntin.spark.streaming.tasks.head import Head, Piece, to_unite
from muntin.spark.streaming.tasks.job import Job
from muntin.spark.streaming.tasks.memory import KeptState, worker_states

# The token says what the state is, whichever attempt of a task wrote it; ``written`` is another one
# whenever it is written; the plan is what the state is of; the data is a `Head`.
SCHEMA = "token string, written string, plan string, data binary"
_RECORD = struct.Struct("<qq")  # of news: the batch, and how many bytes follow


class Bucket:
    """A bucket's state, from where Spark keeps its head.

    Args:
        job: The batch.
        buckets: How state is spread.
        bucket: Its number.
        held: What Spark keeps of it: the columns of `SCHEMA`; None where there is nothing yet.
    """

    def __init__(self, job: Job, buckets: Buckets, bucket: int, held: Any) -> None:
        self._job, self._bucket, self._partition = job, bucket, bucket % buckets.partitions
        # The place among the buckets of its stream.
        self._place = bucket % buckets.count, buckets.count
        self._stream = job.record.streams[buckets.stream_of(bucket)]
        self._folder = StateFolder(job.blocks, job.run)
        self._whose = Whose(bucket, job.record.batch)
        self._state: State | None = None
        self.shares: Shares = {}
        self._taken: list[PartialBatch] = []
        if held is None:
            plan = self._stream.before or self._stream.plan
            self.found, self._written, self.head = "", "", Head(plan)
        else:
            self.found, self._written = str(held[0]), str(held[1])
            self.head = self._read_head(str(held[2]), bytes(held[3]))
        self.token = self.found
        self._is_joined = self.head.plan != self._stream.plan
        self._is_changed = held is None or self._is_joined
        self._is_rebased, self._is_bulk = self._is_joined, False

    def _plan(self, name: str) -> SharedPlan:
        """A plan as this bucket runs it."""
        return self._job.plan_in(name, *self._place)

    def _read_head(self, plan: str, data: bytes) -> Head:
        try:
            head = Head.of_bytes(data)
        except ValueError as error:
            raise CheckpointError(f"{self._whose}, is damaged: {error}", hint=RESTORE) from error
        before = self._stream.before
        if plan != before:
            raise CheckpointError(
                f"the state of bucket {self._bucket} is of plan {plan}, and batch "
                f"{self._job.record.batch} goes on from plan {before}",
                hint=RESTORE,
            )
        return head

    def answer(self, blobs: list[bytes], latest: int) -> Answered:
        """Take in a batch's partials and its largest time; the windows that are due."""
        return self._without_shares(self._answered(blobs, latest))

    def close(self) -> Answered:
        """The windows that are open."""
        return self._without_shares(self.state().close())

    def _without_shares(self, answered: Answered) -> Answered:
        """Set aside what is put together with other buckets' answers."""
        self.shares = take_shares(self._job.plan(self._stream.plan), answered)
        return answered

    def _answered(self, blobs: list[bytes], latest: int) -> Answered:
        record = self._stream
        if not (blobs or self._is_changed or self.head.holds):
            return Answered()
        self._take(blobs)
        entries = sum(batch.starts.size for batch in self._taken)
        # A batch that brings more than is kept is all in the base.
        self._is_bulk = entries > self.head.entries
        self._is_rebased |= self._is_bulk or (entries > 0 and self.head.wants_base())
        self.head.entries += entries
        seen = max(latest, NO_TIME if record.seen is None else record.seen)
        reached = record.reached(None if latest == NO_TIME else latest)
        if not self._is_rebased and not self._is_due(reached):
            return self._append(seen, reached)
        state = self.state()
        self._catch_up(state)
        self.head.frontiers = [store.frontier for store in state.stores]
        self._take_in(state)
        if seen == NO_TIME or reached is None:
            return Answered()
        state.seen = seen
        answered = state.advance(reached)
        self._is_changed |= bool(answered.last) or not _holds_rows(state)
        return answered

    def _take(self, blobs: list[bytes]) -> None:
        """Bring the partials of all map tasks together, in an order that does not depend on them.

        Attempts at a batch then keep the same news, whichever tasks they heard of first.
        """
        if not blobs:
            return
        plan = self._plan(self._stream.plan)
        given = zip(*(from_bytes(plan, blob) for blob in blobs), strict=True)
        self._taken = [
            merge(node, batches).as_batch()
            for node, batches in zip(plan.partials, given, strict=True)
        ]
        self._is_changed = True

    def _is_due(self, reached: int | None) -> bool:
        """Whether any window is over by then; if none is, news are kept and nothing is read."""
        held = self.head.state
        if not held or reached is None:
            return True
        _, slides, phases = self._plan(self.head.plan).windows.T
        return bool(np.any((reached - phases) // slides >= np.array(held["next"], np.int64)))

    def _append(self, seen: int, reached: int | None) -> Answered:
        """Keep the news of a batch that closes no window."""
        state = self._at_hand()
        self._take_in(state)
        times = {"seen": None if seen == NO_TIME else seen, "watermark": reached}
        self.head.state.update(times)
        if state is not None:
            state.seen, state.watermark = times["seen"], times["watermark"]
        return Answered()

    def _take_in(self, state: State | None) -> None:
        """Hand the news to the state, if it is there, cut where its slices are sealed.

        What is kept of the news is cut alike: whoever reads them gets the same slices.
        """
        if not self._taken:
            return
        frontiers = self.head.frontiers or [BEGINNING] * len(self._taken)
        self._taken = [
            replace(batch, starts=np.maximum(batch.starts, frontier))
            for batch, frontier in zip(self._taken, frontiers, strict=True)
        ]
        if state is not None:
            state.take(self._taken, None)

    def _catch_up(self, state: State) -> None:
        """Bring the state to where the batch begins, with the plan of the batch.

        A state that had nothing to do was left as it was, so it may be some batches behind.
        """
        record = self._stream
        state.seen = record.seen
        if record.watermark is not None:
            state.advance(record.watermark)
        if self._is_joined:
            # Logs that go on keep their stretches, under the places that their stores have now.
            logs = {
                id(store.moving): log
                for store, log in zip(state.stores, self.head.stretches, strict=False)
                if store.moving is not None
            }
            state.adopt(self._plan(record.plan))
            self.head.stretches = [logs.get(id(store.moving), []) for store in state.stores]
            state.keep_logs()

    def state(self) -> State:
        """The state that the batch starts from."""
        self._state = self._at_hand() or self._restored()
        return self._state

    def _at_hand(self) -> State | None:
        """The state that this worker has in its memory, or one from a little before, moved on."""
        if self._state is not None:
            return self._state
        kept = worker_states.take((self._job.run, self._bucket))
        if kept is None or kept.plan != self.head.plan or not self._job.cache:
            return None
        if kept.written != self._written:
            age = self.head.age(kept.written)
            if age is None:
                return None
            kept.state.resume(self.head.state, self._marks, self._news(age))
        self._state = kept.state
        return self._state

    def _restored(self) -> State:
        """The state as its pieces have it."""
        head, plan = self.head, self._plan(self.head.plan)
        try:
            if head.base is None:
                state, since = State(plan), -1
            else:
                state, since = State.rebased(plan, *self._based(head.base)), head.base.last
            state.keep_logs()
            if head.state:
                state.resume(head.state, self._marks, self._news(since))
        except DataError as error:
            raise CheckpointError(
                f"{self._whose}, is damaged: {error.message}", hint=RESTORE
            ) from error
        return state

    def _based(self, base: Piece) -> tuple[Arrays, list[list[Arrays]]]:
        stretches = [
            [unpack_arrays(self._get(piece)) for piece in log] for log in self.head.stretches
        ]
        return unpack_arrays(self._get(base)), stretches

    @property
    def _marks(self) -> list[tuple[int, int]]:
        return list(zip(self.head.frontiers, self.head.evicted, strict=True))

    def _news(self, since: int) -> Iterator[list[PartialBatch]]:
        """The partials of batches after one."""
        plan = self._plan(self.head.plan)
        for piece in self.head.since(since):
            data, at = self._get(piece), 0
            while at < len(data):
                batch, size = _RECORD.unpack_from(data, at)
                at += _RECORD.size
                if batch > since:
                    yield from_bytes(plan, data[at : at + size])
                at += size

    def _get(self, piece: Piece) -> memoryview:
        return self._folder.get(piece.batch, self._partition, piece.name, self._whose)

    def store(self, writer: StateWriter, results: Mapping[str, int]) -> None:
        """Write what is new, and keep the state at hand; the head is what Spark is to keep."""
        if self._is_changed:
            self._written = uuid4().hex
            self._keep(writer)
            self._describe()
            self.token = self._token(results)
            self.head.wrote(self._job.record.batch, self._written)
        if self._state is not None and self._job.cache:
            held = sum(store.moving.nbytes for store in self._state.stores if store.moving)
            size = held + (0 if self.head.base is None else self.head.base.size)
            kept = KeptState(self._written, self.head.plan, self._state, size)
            worker_states.put((self._job.run, self._bucket), kept, self._job.cache << 20)

    def row(self) -> tuple[str, str, str, bytes] | None:
        """What Spark is to keep; None where that is as it was."""
        if not self._is_changed:
            return None
        return self.token, self._written, self.head.plan, self.head.to_bytes()

    def _keep(self, writer: StateWriter) -> None:
        """Write the news, and a base where it is time for one."""
        head, batch = self.head, self._job.record.batch
        is_apart = not (self._is_joined or self._is_bulk)
        if self._taken and is_apart:
            data = to_bytes(self._taken)
            parts = _RECORD.pack(batch, len(data)), data
            head.news.append(self._put(writer, "news", (batch, batch), 0, *parts))
        if self._is_rebased:
            self._rebase(writer, keep=is_apart)
        elif united := to_unite(head.unmerged):
            self._unite(writer, "news", united, head.news, *map(self._get, united))

    def _rebase(self, writer: StateWriter, *, keep: bool) -> None:
        """Write a base, and what was sealed since the last one."""
        head, batch, state = self.head, self._job.record.batch, self.state()
        head.plan = self._stream.plan
        head.stretches = head.stretches or [[] for _ in state.stores]
        for number, store in enumerate(state.stores):
            if store.keeps_log and store.moving is not None:
                store.moving.settle()
                if store.moving.is_worn:
                    # Another numbering: what other workers hold is of no use any more.
                    store.renew()
                    head.stretches[number], keep = [], False
                self._stretch(writer, number, store.moving.log)
        base = self._put(writer, "base", (batch, batch), 0, *pack_arrays(state.base()))
        head.rebase(base, keep=keep)
        head.entries = sum(store.size for store in state.stores)

    def _stretch(self, writer: StateWriter, number: int, log: SealedLog) -> None:
        """Write the entries of a log that are not in its stretches yet."""
        pieces = [piece for piece in self.head.stretches[number] if piece.last > log.begin]
        self.head.stretches[number] = pieces
        since = max(pieces[-1].last if pieces else log.begin, log.begin)
        kind = f"log{number}"
        if since < log.end:
            parts = pack_arrays(log.stretch(since))
            pieces.append(self._put(writer, kind, (since, log.end), 0, *parts))
        if among := to_unite(pieces[:-1]):
            whole = united([unpack_arrays(self._get(piece)) for piece in among])
            self._unite(writer, kind, among, pieces, *pack_arrays(whole))

    def _unite(
        self,
        writer: StateWriter,
        kind: str,
        united: list[Piece],
        among: list[Piece],
        *parts: bytes | memoryview,
    ) -> None:
        """Write one piece for several of those named."""
        span = united[0].first, united[-1].last
        whole = self._put(writer, kind, span, united[0].level + 1, *parts)
        at = among.index(united[0])
        among[at : at + len(united)] = [whole]

    def _put(
        self,
        writer: StateWriter,
        kind: str,
        span: tuple[int, int],
        level: int,
        *parts: bytes | memoryview,
    ) -> Piece:
        name = f"{self._bucket}/{kind}.{level}"
        return Piece(name, self._job.record.batch, *span, writer.put(name, *parts), level)

    def _describe(self) -> None:
        state, head = self._state, self.head
        head.holds = True
        if state is not None:
            head.state = state.described()
            head.evicted = [store.evicted for store in state.stores]
            head.frontiers = [store.frontier for store in state.stores]
            head.holds = _holds_rows(state)

    def _token(self, results: Mapping[str, int]) -> str:
        """What the state is known by: the same for all attempts at a batch, no two batches.

        It is a checksum of the run, the batch that wrote it, the bucket, the plan, the times it
        has reached and how many rows it answered in that batch; not of its bytes, which may differ
        from attempt to attempt, nor of anything that takes looking at all that is kept.
        """
        batch, held, counts = self._job.record.batch, self.head.state, sorted(results.items())
        times = held.get("seen"), held.get("watermark")
        parts = (self._job.run, batch, self._bucket, self._stream.plan, *times, counts)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _holds_rows(state: State) -> bool:
    return any(store.holds_rows for store in state.stores)
