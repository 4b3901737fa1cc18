"""What workers do with bounded input: rows to partials, and partials to results."""

from __future__ import annotations

import json
import pickle
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from muntin.aggregates.registry import names, register
from muntin.engine.partials import PartialBatch, merge, nothing
from muntin.engine.stage_a import StageA, StageOutput
from muntin.engine.state import State
from muntin.engine.wire import from_bytes, split, to_bytes
from muntin.errors import MuntinError
from muntin.plan.nodes import SharedPlan
from muntin.spark.bounded.chunks import LIMITS, Chunk, Limits, chunks, to_rows

# Between the stages: partials for a bucket, counts, or an error that a task met.
PARTIALS, COUNTS, ERROR = range(3)
MESSAGES = pa.schema({"bucket": pa.int32(), "kind": pa.int8(), "data": pa.binary()})
MESSAGES_DDL = "bucket int, kind tinyint, data binary"

# Rows that are aggregated at once: enough that what is done once a batch does not count.
_ROWS = 1 << 19
# Partials leave when they take so much memory, looked at after every so many entries.
_FLUSH_BYTES = 1 << 28
_LOOK_ENTRIES = 1 << 21
_REMEMBERED = 4


@dataclass(frozen=True)
class Shipped:
    """A plan and its tables on their way to the workers, which unpack them once."""

    broadcast: Any
    digest: str
    buckets: int
    limits: Limits = LIMITS

    def open(self) -> Unpacked:
        """The plan, ready to run in this process."""
        found = _unpacked.get(self.digest)
        if found is None:
            plan, tables = pickle.loads(self.broadcast.value)
            _register(plan)
            found = _unpacked[self.digest] = Unpacked(plan, tables)
            while len(_unpacked) > _REMEMBERED:
                _unpacked.popitem(last=False)
        _unpacked.move_to_end(self.digest)
        return found


@dataclass(frozen=True)
class Unpacked:
    """A plan in a worker, and its stage A."""

    plan: SharedPlan
    tables: Mapping[str, pa.Table]
    stage_a: StageA = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stage_a", StageA(self.plan, self.tables))


_unpacked: OrderedDict[str, Unpacked] = OrderedDict()


def _register(plan: SharedPlan) -> None:
    """Make aggregates that a user has registered on the driver known here too."""
    for final in plan.finals:
        for lowering in final.lowerings:
            if lowering.aggregate.name not in names():
                register(lowering.aggregate.algebra)


_Item = TypeVar("_Item")


class Clock:
    """Seconds of this process's own work, by step: those of other processes do not count."""

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
        for table in clock.over(_gather(tables), "read rows"):
            with clock("rows to partials"):
                is_full = folded.take(table)
            if is_full:
                yield from clock.over(folded.flush(), "pack partials")
        yield from clock.over(folded.flush(), "pack partials")
    except MuntinError as error:
        yield _message(0, ERROR, pickle.dumps(error))
    yield _message(0, COUNTS, folded.counts(clock))


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
    for batch in batches:
        for bucket, kind, data in zip(*(column.to_pylist() for column in batch), strict=True):
            if kind == PARTIALS:
                held.setdefault(bucket, []).append(data)
            else:
                notes.append((kind, data))
    while held:
        yield held.popitem()[1]


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _gather(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Few large tables of many small ones."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += table.num_rows
        if rows >= _ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if rows:
        yield pa.concat_tables(held)


class _Folded:
    """The partials of a task's rows so far."""

    def __init__(self, unpacked: Unpacked, buckets: int) -> None:
        self._plan = unpacked.plan
        self._stage_a = unpacked.stage_a
        self._buckets = buckets
        self._held: list[list[PartialBatch]] = [[] for _ in self._plan.partials]
        self._entries = 0
        self._counts = {"rows": 0, "bad_rows": 0}
        self._errors: Counter[str] = Counter()

    def take(self, table: pa.Table) -> bool:
        """Take in rows; whether the partials should leave."""
        output: StageOutput = self._stage_a(table)
        for held, batch in zip(self._held, output.partials, strict=True):
            held.append(batch)
            self._entries += batch.starts.size
        self._counts["rows"] += output.rows
        self._counts["bad_rows"] += output.bad_rows
        self._errors.update(output.errors)
        if self._entries < _LOOK_ENTRIES:
            return False
        self._held = [[each] for each in self._merged()]
        self._entries = 0
        return self._nbytes() > _FLUSH_BYTES

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The partials as messages, one for each bucket that has some."""
        for bucket, some in split(self._plan, self._merged(), self._buckets).items():
            yield _message(bucket, PARTIALS, to_bytes(some))
        self._held = [[] for _ in self._plan.partials]

    def counts(self, clock: Clock) -> bytes:
        """What was counted, as JSON."""
        counts = {**self._counts, "errors": self._errors, "seconds": clock.seconds}
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


def _message(bucket: int, kind: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([bucket], pa.int32()),
            pa.array([kind], pa.int8()),
            pa.array([data], pa.binary()),
        ],
        schema=MESSAGES,
    )
