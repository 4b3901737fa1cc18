"""The engine's state as bytes, and back: Arrow IPC throughout, with a version."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates.columns import from_arrow
from muntin.engine.partials import PartialBatch, signature_bytes
from muntin.engine.store import SliceStore
from muntin.errors import DataError
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.selection import Cells, Selection, Signatures

VERSION = 2
_SCHEMA = pa.schema({"name": pa.string(), "data": pa.large_binary()})


def pack(state: dict[str, Any], plan: SharedPlan, stores: list[SliceStore]) -> bytes:
    """A snapshot: some values that JSON can hold, and all partials."""
    head = {
        "version": VERSION,
        "state": state,
        "partials": _describe(plan),
        "kept": [(store.evicted, store.complete, store.covered) for store in stores],
    }
    names, blobs = ["head"], [json.dumps(head).encode()]
    for i, store in enumerate(stores):
        batch = store.table().as_batch()
        keys = [pa.array(batch.starts), *batch.keys]
        if batch.codes is not None:
            keys.append(pa.array(batch.codes))
        names.append(f"{i}")
        blobs.append(
            _to_bytes(pa.RecordBatch.from_arrays(keys, [str(k) for k in range(len(keys))]))
        )
        if batch.signatures is not None:
            names.append(f"{i}/signatures")
            blobs.append(batch.signatures.tobytes())
        for j, column in enumerate(batch.columns):
            names.append(f"{i}/{j}")
            blobs.append(_to_bytes(column.to_arrow()))
    items = pa.RecordBatch.from_arrays(
        [pa.array(names), pa.array(blobs, pa.large_binary())], schema=_SCHEMA
    )
    return _to_bytes(items)


def unpack(data: bytes, plan: SharedPlan) -> tuple[dict[str, Any], list[SliceStore]]:
    """What a snapshot of this plan holds."""
    try:
        items = _from_bytes(data)
        blobs = dict(zip(items["name"].to_pylist(), items["data"].to_pylist(), strict=True))
        head = json.loads(blobs["head"])
    except (pa.ArrowInvalid, KeyError, ValueError) as error:
        raise DataError("these bytes are no snapshot", hint="give what snapshot() made") from error
    if head["version"] != VERSION:
        raise DataError(
            f"the snapshot has format {head['version']}, this version reads {VERSION}",
            hint="restore it with the version of Muntin that made it",
        )
    if head["partials"] != _describe(plan):
        raise DataError(
            "the snapshot is of other queries", hint="restore it with the queries it was made with"
        )
    stores = [_store(i, node, blobs) for i, node in enumerate(plan.partials)]
    for store, kept in zip(stores, head["kept"], strict=True):
        store.evicted, store.complete, store.covered = kept
    return head["state"], stores


def _store(index: int, node: Partials, blobs: dict[str, bytes]) -> SliceStore:
    slices = _from_bytes(blobs[f"{index}"])
    columns = tuple(
        from_arrow(accumulator.part, _from_bytes(blobs[f"{index}/{j}"]))
        for j, accumulator in enumerate(node.accumulators)
    )
    starts = np.array(slices[0].to_numpy(), np.int64)
    count = len(node.grouping)
    codes = np.array(slices[count + 1].to_numpy()) if node.selection.coded else None
    signatures = None
    if isinstance(node.selection, Signatures):
        flat = np.frombuffer(blobs[f"{index}/signatures"], np.uint8)
        signatures = flat.reshape(-1, signature_bytes(node.selection))
    store = SliceStore(node)
    keys = tuple(slices.columns[1 : count + 1])
    store.add(PartialBatch(starts, keys, codes, columns, signatures))
    return store


def _describe(plan: SharedPlan) -> list[str]:
    """What the partials are, so that a snapshot is not read as something else."""
    return [
        " ".join(
            [
                plan.slicings[node.slicing].measure,
                plan.slicings[node.slicing].timeline.column,
                f"by {[bound.key for bound in node.grouping]}",
                f"selects {_digest(node.selection)}",
                *(str(accumulator) for accumulator in node.accumulators),
            ]
        )
        for node in plan.partials
    ]


def _digest(selection: Selection) -> str:
    if isinstance(selection, Cells):
        cuts = [(each.bound.key, each.cuts) for each in selection.shape.dimensions]
        text = repr((cuts, selection.shape.accepts))
    else:
        text = repr([bound.key for bound in selection.bounds])
    return hashlib.sha256(text.encode()).hexdigest()


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def _from_bytes(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
