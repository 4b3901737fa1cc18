"""The engine's state as bytes, and back: Arrow IPC throughout, with a version."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.engine.slices.array_pack import Arrays, as_bytes, inside, under
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.store import SliceStore
from muntin.engine.wire import batch_items, from_ipc, read_batch, to_ipc
from muntin.errors import DataError
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.selection import Cells, Selection

VERSION = 4
_CHECKSUM = 4  # bytes, in front of all others
_SCHEMA = pa.schema({"name": pa.string(), "data": pa.large_binary()})


def pack(state: dict[str, Any], plan: SharedPlan, stores: list[SliceStore]) -> bytes:
    """A snapshot: some values that JSON can hold, and all partials."""
    head = {
        "version": VERSION,
        "state": state,
        "partials": _describe(plan),
        "zone": plan.zone.name,
        "kept": [(each.evicted, each.complete, each.covered, each.told) for each in stores],
    }
    names, blobs = ["head"], [json.dumps(head).encode()]
    for i, store in enumerate(stores):
        for name, blob in batch_items(store.table().as_batch()):
            names.append(f"{i}{name}")
            blobs.append(blob)
    items = pa.RecordBatch.from_arrays(
        [pa.array(names), pa.array(blobs, pa.large_binary())], schema=_SCHEMA
    )
    data = to_ipc(items)
    return _checksum(data) + data


def unpack(data: bytes, plan: SharedPlan) -> tuple[dict[str, Any], list[SliceStore]]:
    """What a snapshot of this plan holds."""
    try:
        if data[:_CHECKSUM] != _checksum(data[_CHECKSUM:]):
            raise ValueError("damaged, or cut off")
        items = from_ipc(data[_CHECKSUM:])
        blobs = dict(zip(items["name"].to_pylist(), items["data"].to_pylist(), strict=True))
        head = json.loads(blobs["head"])
    except (pa.ArrowInvalid, KeyError, ValueError) as error:
        raise DataError(
            "these bytes are not a snapshot", hint="give what snapshot() made"
        ) from error
    if head["version"] != VERSION:
        raise DataError(
            f"the snapshot has format {head['version']}, this version reads {VERSION}",
            hint="restore it with the version of Muntin that made it",
        )
    if head["partials"] != _describe(plan):
        raise DataError(
            "the snapshot is of other queries", hint="restore it with the queries it was made with"
        )
    made_in = head.get("zone", "UTC")
    if made_in != plan.zone.name:
        raise DataError(
            f"the snapshot was made in the time zone {made_in}, not in {plan.zone.name}",
            hint="restore it with a plan of that zone",
        )
    stores = [_store(i, node, blobs) for i, node in enumerate(plan.partials)]
    for store, kept in zip(stores, head["kept"], strict=True):
        store.evicted, store.complete, store.covered, store.told = kept
    return head["state"], stores


def pack_base(state: dict[str, Any], plan: SharedPlan, stores: list[SliceStore]) -> Arrays:
    """What `pack` holds as arrays, but for the sealed entries of stores that keep a log."""
    kept = [(each.evicted, each.complete, each.covered, each.told) for each in stores]
    head = {"state": state, "partials": _describe(plan), "kept": kept}
    found = {"head": np.frombuffer(json.dumps(head).encode(), np.uint8)}
    for i, store in enumerate(stores):
        if store.keeps_log and store.moving is not None:
            found |= under(f"{i}:", store.moving.base_arrays())
        else:
            for name, blob in batch_items(store.table().as_batch()):
                found[f"{i}{name}"] = np.frombuffer(blob, np.uint8)
    return found


def unpack_base(
    arrays: Arrays, plan: SharedPlan, stretches: Sequence[Sequence[Arrays]]
) -> tuple[dict[str, Any], list[SliceStore]]:
    """What `pack_base` made, with the sealed entries of each store."""
    head = json.loads(bytes(arrays["head"]))
    if head["partials"] != _describe(plan):
        raise DataError("it is of other queries", hint="go on with the queries it was made with")
    stores = []
    for i, node in enumerate(plan.partials):
        held = inside(arrays, f"{i}:")
        if held:
            store = SliceStore(node)
            store.moving = MovingSlices.of_arrays(node, held, stretches[i])
            store.keep_log()
        else:
            names = [name for name in arrays if name == str(i) or name.startswith(f"{i}/")]
            store = _store(i, node, {name: as_bytes(arrays[name]) for name in names})
        stores.append(store)
    for store, kept in zip(stores, head["kept"], strict=True):
        store.evicted, store.complete, store.covered, store.told = kept
    return head["state"], stores


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM, "big")


def _store(index: int, node: Partials, blobs: Mapping[str, bytes | memoryview]) -> SliceStore:
    store = SliceStore(node)
    store.add(read_batch(node, blobs, str(index)))
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
