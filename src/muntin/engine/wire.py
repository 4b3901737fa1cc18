"""Partials on their way: as bytes, and split by the buckets that groups belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.columns import from_arrow
from muntin.engine.hashing import buckets_of
from muntin.engine.partials import PartialBatch, nothing, signature_bytes
from muntin.errors import DataError
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.selection import Signatures

Ints = npt.NDArray[np.int64]
Codec = Literal["lz4", "zstd"]
_SCHEMA = pa.schema({"name": pa.string(), "data": pa.large_binary()})


def split(
    plan: SharedPlan, partials: Sequence[PartialBatch], buckets: int
) -> dict[int, list[PartialBatch]]:
    """Partials by bucket, only those buckets that have some.

    Entries of a group go where the hash of its keys says. Partials without groups have no keys
    to spread by: all of one set go to one bucket.
    """
    found: dict[int, list[PartialBatch]] = {}
    for place, (node, batch) in enumerate(zip(plan.partials, partials, strict=True)):
        for bucket, some in _by_bucket(node, batch, buckets):
            if bucket not in found:
                found[bucket] = [nothing(each) for each in plan.partials]
            found[bucket][place] = some
    return found


def home_of(node: Partials, buckets: int) -> int:
    """The bucket of partials without groups."""
    return (node.number if node.home is None else node.home) % buckets


def _by_bucket(
    node: Partials, batch: PartialBatch, buckets: int
) -> Iterator[tuple[int, PartialBatch]]:
    if not batch.starts.size:
        return
    if not node.grouping:
        yield home_of(node, buckets), batch
        return
    owners = buckets_of(batch.keys, batch.starts.size, buckets)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(buckets + 1))
    for bucket in range(buckets):
        rows = order[bounds[bucket] : bounds[bucket + 1]]
        if rows.size:
            yield bucket, _take(batch, rows)


def _take(batch: PartialBatch, rows: Ints) -> PartialBatch:
    return replace(
        batch,
        starts=batch.starts[rows],
        keys=tuple(key.take(pa.array(rows)) for key in batch.keys),
        codes=None if batch.codes is None else batch.codes[rows],
        columns=tuple(column.take(rows) for column in batch.columns),
    )


def to_bytes(partials: Sequence[PartialBatch], codec: Codec | None = None) -> bytes:
    """Partials of all sets of a plan as bytes; sets without entries take no room.

    With ``codec`` they are compressed.
    """
    items = [
        (f"{place}{name}", blob)
        for place, batch in enumerate(partials)
        if batch.starts.size
        for name, blob in batch_items(batch, codec)
    ]
    names = pa.array([name for name, _ in items], pa.string())
    blobs = pa.array([blob for _, blob in items], pa.large_binary())
    return to_ipc(pa.RecordBatch.from_arrays([names, blobs], schema=_SCHEMA))


def from_bytes(plan: SharedPlan, data: bytes | memoryview) -> list[PartialBatch]:
    """The partials of a plan that `to_bytes` wrote."""
    try:
        items = from_ipc(data)
    except pa.ArrowInvalid as error:
        raise DataError("these bytes are no partials", hint="give what to_bytes made") from error
    blobs = dict(zip(items["name"].to_pylist(), items["data"].to_pylist(), strict=True))
    return [
        read_batch(node, blobs, str(place)) if str(place) in blobs else nothing(node)
        for place, node in enumerate(plan.partials)
    ]


def batch_items(batch: PartialBatch, codec: Codec | None = None) -> Iterator[tuple[str, bytes]]:
    """A batch as named bytes: its entries, its signatures, and each of its columns."""
    keys = [pa.array(batch.starts), *batch.keys]
    if batch.codes is not None:
        keys.append(pa.array(batch.codes))
    yield "", to_ipc(pa.RecordBatch.from_arrays(keys, [str(k) for k in range(len(keys))]), codec)
    if batch.signatures is not None:
        yield "/signatures", batch.signatures.tobytes()
    for number, column in enumerate(batch.columns):
        yield f"/{number}", to_ipc(column.to_arrow(), codec)


def read_batch(
    node: Partials, blobs: Mapping[str, bytes | memoryview], prefix: str
) -> PartialBatch:
    """The batch that `batch_items` wrote under a prefix."""
    slices = from_ipc(blobs[prefix])
    columns = tuple(
        from_arrow(accumulator.part, from_ipc(blobs[f"{prefix}/{number}"]))
        for number, accumulator in enumerate(node.accumulators)
    )
    count = len(node.grouping)
    starts = np.array(slices[0].to_numpy(), np.int64)
    codes = np.array(slices[count + 1].to_numpy()) if node.selection.coded else None
    signatures = None
    if isinstance(node.selection, Signatures):
        flat = np.frombuffer(blobs[f"{prefix}/signatures"], np.uint8)
        signatures = flat.reshape(-1, signature_bytes(node.selection))
    return PartialBatch(starts, tuple(slices.columns[1 : count + 1]), codes, columns, signatures)


def to_ipc(batch: pa.RecordBatch, codec: Codec | None = None) -> bytes:
    """A record batch as bytes."""
    sink = pa.BufferOutputStream()
    # Threads are left to those who call: Spark's workers have a core each.
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def from_ipc(data: bytes | memoryview) -> pa.RecordBatch:
    """The record batch that `to_ipc` wrote."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
