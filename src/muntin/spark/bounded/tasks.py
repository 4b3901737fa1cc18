"""What workers do with bounded input: rows to partials, and partials to results."""

from __future__ import annotations

import json
import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.rows.batches import gathered
from muntin.engine.rows.stage_a import StageOutput
from muntin.engine.slices.partials import PartialBatch, merge, nothing
from muntin.engine.state import State
from muntin.engine.wire import Codec, from_bytes, split, to_bytes
from muntin.errors import MuntinError
from muntin.spark.bounded.messages import (
    COUNTS,
    ERROR,
    PARTIALS,
    Chunk,
    Message,
    chunks,
    messages,
    to_rows,
)
from muntin.spark.bounded.shipped import Shipped, Unpacked

# Rows that are aggregated at once: enough that what is done once per batch does not count.
ENOUGH_ROWS = 200_000
# Partials leave when they take so much memory, looked at after every so many entries.
_FLUSH_BYTES = 1 << 28
_LOOK_ENTRIES = 1 << 21
# Partials are mostly zeros and small numbers: a quarter of the bytes remains, and every one is
# copied several times on its way.
_CODEC: Codec = "lz4"


def fold_rows(shipped: Shipped, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stage A over Arrow batches of one task, whose columns are the plan's in order."""
    plan = shipped.open().plan
    schema = pa.schema([plan.source.field(name) for name in plan.columns()])
    return fold(shipped, (_typed(batch, schema) for batch in batches))


def fold(shipped: Shipped, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Stage A over the rows of one task: partials by bucket, then counts.

    An error becomes a message: it would fail again, so that Spark's retries are in vain.
    """
    clock = Clock()
    with clock("unpack the plan"):
        folded = _Folded(shipped.open(), shipped.buckets)
    try:
        for table in clock.over(gathered(tables, ENOUGH_ROWS), "read rows"):
            with clock("rows to partials"):
                is_full = folded.take(table)
            if is_full:
                yield from clock.over(folded.flush(), "pack partials")
        yield from clock.over(folded.flush(), "pack partials")
    except MuntinError as error:
        yield Message(0, ERROR, pickle.dumps(error)).to_rows()
    yield Message(0, COUNTS, folded.counts(clock)).to_rows()


def finish(shipped: Shipped, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stage B over the messages of one partition: results in chunks, then counts."""
    clock = Clock()
    with clock("unpack the plan"):
        plan = shipped.open().plan
    errors: Counter[str] = Counter()
    found: list[Chunk] = []
    notes: list[tuple[int, bytes]] = []
    for blobs in clock.over(_by_bucket(batches, notes), "receive partials"):
        state = State(plan)
        with clock("unpack partials"):
            for blob in blobs:
                state.take(from_bytes(plan, blob), None)
        try:
            with clock("partials to results"):
                answered = state.close()
        except MuntinError as error:
            notes.append((ERROR, pickle.dumps(error)))
            continue
        errors.update(answered.errors)
        with clock("pack results"):
            found += chunks([answered.tables[final.name] for final in plan.finals], shipped.limits)
    counts = {"errors": errors, "seconds": clock.seconds}
    notes.append((COUNTS, json.dumps(counts).encode()))
    yield from to_rows(found, notes, shipped.limits)


def _by_bucket(
    batches: Iterable[pa.RecordBatch], notes: list[tuple[int, bytes]]
) -> Iterator[list[bytes]]:
    held: dict[int, list[bytes]] = {}
    for message in messages(batches):
        if message.kind == PARTIALS:
            held.setdefault(message.bucket, []).append(message.data)
        else:
            notes.append((message.kind, message.data))
    while held:
        yield held.popitem()[1]


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


class _Folded:
    """The partials of a task's rows so far."""

    def __init__(self, unpacked: Unpacked, buckets: int) -> None:
        self._plan = unpacked.plan
        self._stage_a = unpacked.stage_a
        self._buckets = buckets
        self._held: list[list[PartialBatch]] = [[] for _ in self._plan.partials]
        self._entries = 0
        self._counts = Counts()

    def take(self, table: pa.Table) -> bool:
        """Take in rows; whether the partials should leave."""
        output: StageOutput = self._stage_a(table)
        for held, batch in zip(self._held, output.partials, strict=True):
            held.append(batch)
            self._entries += batch.starts.size
        self._counts += output.counts
        if self._entries < _LOOK_ENTRIES:
            return False
        self._held = [[each] for each in self._merged()]
        self._entries = 0
        return self._nbytes() > _FLUSH_BYTES

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The partials as messages, one for each bucket that has some."""
        for bucket, some in split(self._plan, self._merged(), self._buckets).items():
            yield Message(bucket, PARTIALS, to_bytes(some, _CODEC)).to_rows()
        self._held = [[] for _ in self._plan.partials]

    def counts(self, clock: Clock) -> bytes:
        """What was counted, as JSON."""
        counts = {**vars(self._counts), "seconds": clock.seconds}
        return json.dumps(counts).encode()

    def _merged(self) -> list[PartialBatch]:
        return [
            merge(node, held).as_batch() if len(held) > 1 else (held or [nothing(node)])[0]
            for node, held in zip(self._plan.partials, self._held, strict=True)
        ]

    def _nbytes(self) -> int:
        return sum(
            batch.starts.nbytes
            + sum(column.nbytes for column in batch.columns)
            + sum(key.nbytes for key in batch.keys)
            for held in self._held
            for batch in held
        )


_Item = TypeVar("_Item")


class Clock:
    """Seconds of this process's own work, by step: those of other processes do not count.

    >>> clock = Clock()
    >>> sum(clock.over(range(4), "count"))
    6
    >>> list(clock.seconds)
    ['count']
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Time what is done inside."""
        begin = time.process_time()
        try:
            yield
        finally:
            self.seconds[step] += time.process_time() - begin  # type: ignore[assignment]

    def over(self, items: Iterable[_Item], step: str) -> Iterator[_Item]:
        """Time how long items take to come."""
        each = iter(items)
        while True:
            with self(step):
                item = next(each, None)
            if item is None:
                return
            yield item
