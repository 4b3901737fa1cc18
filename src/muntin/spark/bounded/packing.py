"""Partials between the stages as few bytes: every one is copied several times on its way."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from muntin.engine.partials import PartialBatch, nothing
from muntin.engine.wire import batch_items, from_ipc, read_batch, to_ipc
from muntin.plan.nodes import SharedPlan

# Partials are mostly zeros and small numbers: a quarter of the bytes remains.
_CODEC = "lz4_raw"
_SCHEMA = pa.schema({"name": pa.string(), "size": pa.int64(), "data": pa.binary()})


def pack(partials: Sequence[PartialBatch]) -> bytes:
    """Partials of all sets of a plan as bytes; sets without entries take no room."""
    rows: list[tuple[str, int, bytes]] = [
        (f"{place}{name}", len(blob), pa.compress(blob, codec=_CODEC, asbytes=True))
        for place, batch in enumerate(partials)
        if batch.starts.size
        for name, blob in batch_items(batch)
    ]
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)]
    return to_ipc(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))


def unpack(plan: SharedPlan, data: bytes) -> list[PartialBatch]:
    """The partials of a plan that :func:`pack` wrote."""
    items = zip(*(column.to_pylist() for column in from_ipc(data)), strict=True)
    blobs = {
        name: pa.decompress(blob, size, codec=_CODEC, asbytes=True) for name, size, blob in items
    }
    return [
        read_batch(node, blobs, str(place)) if str(place) in blobs else nothing(node)
        for place, node in enumerate(plan.partials)
    ]
