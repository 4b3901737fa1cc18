"""What tasks of bounded input say to those of the next stage: rows for Spark, in small pieces."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

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
