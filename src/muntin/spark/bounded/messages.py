"""What tasks of bounded input say to those of the next stage: rows for Spark, in small pieces."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from muntin.engine.wire import from_ipc, to_ipc

# Partials for a bucket, counts, or an error that a task met.
PARTIALS, COUNTS, ERROR = range(3)
MESSAGES_DDL = "bucket int, kind tinyint, message bigint, place int, data binary"
_SCHEMA = pa.schema(
    {
        "bucket": pa.int32(),
        "kind": pa.int8(),
        "message": pa.int64(),
        "place": pa.int32(),
        "data": pa.binary(),
    }
)
# Spark hands over thousands of rows at once, whatever they take: 10,000 unless told otherwise.
_PIECE = 1 << 14


@dataclass(frozen=True)
class Message:
    """Bytes for a bucket."""

    bucket: int
    kind: int
    data: bytes

    def to_rows(self) -> pa.RecordBatch:
        """The message as rows, a piece each; Spark may deliver them in any order."""
        size = len(self.data)
        count = max(-(-size // _PIECE), 1)
        # The pieces lie in the message as it is: slices of bytes would be copies of it.
        ends = np.minimum(np.arange(count + 1) * _PIECE, size).astype(np.int32)
        pieces = [None, pa.py_buffer(ends), pa.py_buffer(self.data)]
        alike = (self.bucket, self.kind, uuid.uuid4().int & (2**63 - 1))
        arrays = [
            pa.repeat(pa.scalar(value, field.type), count)
            for value, field in zip(alike, _SCHEMA, strict=False)
        ]
        arrays.append(pa.array(np.arange(count, dtype=np.int32)))
        arrays.append(pa.Array.from_buffers(pa.binary(), count, pieces))
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def messages(batches: Iterable[pa.RecordBatch]) -> list[Message]:
    """The messages that rows of a partition hold.

    >>> sent = [Message(0, PARTIALS, b"a" * 40_000), Message(1, COUNTS, b"")]
    >>> rows = pa.Table.from_batches([message.to_rows() for message in sent])
    >>> rows.num_rows, messages(rows.sort_by("place").to_batches()) == sent
    (4, True)
    """
    found: dict[tuple[int, int, int], list[tuple[int, bytes]]] = defaultdict(list)
    for batch in batches:
        bucket, kind, number, place, data = (column.to_pylist() for column in batch.columns)
        for key, piece in zip(
            zip(bucket, kind, number, strict=True), zip(place, data, strict=True), strict=True
        ):
            found[key].append(piece)
    return [
        Message(bucket, kind, b"".join(data for _, data in sorted(pieces)))
        for (bucket, kind, _), pieces in found.items()
    ]


@dataclass(frozen=True)
class Limits:
    """How large a chunk may be, and up to what size a task's results go to the driver at once."""

    chunk: int = 1 << 24
    small: int = 1 << 26


LIMITS = Limits()
RESULTS = pa.schema(
    {
        "kind": pa.int8(),
        "note": pa.binary(),
        "queries": pa.list_(pa.int32()),
        "counts": pa.list_(pa.int64()),
        "small": pa.binary(),
        "large": pa.binary(),
    }
)
RESULTS_DDL = (
    "kind tinyint, note binary, queries array<int>, counts array<bigint>, "
    "small binary, large binary"
)
Row = tuple[
    int | None, bytes | None, list[int] | None, list[int] | None, bytes | None, bytes | None
]


@dataclass(frozen=True)
class Chunk:
    """Rows of one or more queries whose results have the same columns.

    ``queries`` are their places in the plan, and ``counts`` how many of the rows each has.
    """

    queries: list[int]
    counts: list[int]
    data: bytes

    @cached_property
    def rows(self) -> pa.Table:
        """The rows of all of them, one query after another."""
        return pa.Table.from_batches([from_ipc(self.data)])


def chunks(tables: Sequence[pa.Table], limits: Limits = LIMITS) -> Iterator[Chunk]:
    """Chunks of the tables that have rows; a large table becomes several."""
    waiting: dict[pa.Schema, list[tuple[int, pa.Table]]] = {}
    sizes: Counter[pa.Schema] = Counter()
    for place, table in enumerate(tables):
        if not table.num_rows:
            continue
        schema, nbytes = table.schema, table.nbytes
        for part in _parts(table, -(-nbytes // limits.chunk)):
            waiting.setdefault(schema, []).append((place, part))
            sizes[schema] += nbytes * part.num_rows // table.num_rows
            if sizes[schema] >= limits.chunk:
                yield _chunk(waiting.pop(schema))
                sizes[schema] = 0
    for held in waiting.values():
        yield _chunk(held)


def _parts(table: pa.Table, count: int) -> Iterator[pa.Table]:
    size = -(-table.num_rows // max(count, 1))
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)


def _chunk(held: Sequence[tuple[int, pa.Table]]) -> Chunk:
    whole = pa.concat_tables([table for _, table in held]).combine_chunks()
    (batch,) = whole.to_batches()
    places = [place for place, _ in held]
    return Chunk(places, [table.num_rows for _, table in held], to_ipc(batch))


def to_rows(
    found: Sequence[Chunk], notes: Iterable[tuple[int, bytes]], limits: Limits = LIMITS
) -> Iterator[pa.RecordBatch]:
    """Chunks and notes as rows for Spark, a chunk a batch."""
    is_small = sum(len(chunk.data) for chunk in found) <= limits.small
    rows: list[Row] = [(kind, note, None, None, None, None) for kind, note in notes]
    for chunk in found:
        small, large = (chunk.data, None) if is_small else (None, chunk.data)
        rows.append((None, None, chunk.queries, chunk.counts, small, large))
        if not is_small:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RESULTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULTS)


@dataclass(frozen=True)
class Part:
    """Rows of one query in a chunk, read when they are asked for."""

    chunk: Chunk
    start: int
    count: int

    def table(self) -> pa.Table:
        """The rows."""
        return self.chunk.rows.slice(self.start, self.count)


def parts_of(chunk: Chunk) -> Iterator[tuple[int, Part]]:
    """The parts of a chunk, with their queries' places in the plan."""
    start = 0
    for place, count in zip(chunk.queries, chunk.counts, strict=True):
        yield place, Part(chunk, start, count)
        start += count


def rows_of_query(place: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One query's rows, of rows for Spark that hold its chunks."""
    for batch in batches:
        for row in batch.to_pylist():
            data = row["small"] if row["large"] is None else row["large"]
            for found, part in parts_of(Chunk(row["queries"], row["counts"], data)):
                if found == place:
                    yield from part.table().to_batches()
