"""The engine's state as bytes, and back: Arrow IPC throughout, with a version.

A snapshot begins with its token, a checksum of all that follows. One that was taken since another
names it, and holds of each store the slices that something was added to in the meantime.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.engine.slices.array_pack import Arrays, as_bytes, inside, under
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.partials import PartialBatch, merge
from muntin.engine.slices.store import END, SliceStore
from muntin.engine.wire import batch_items, from_ipc, read_batch, to_ipc
from muntin.errors import DataError
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.selection import Cells, Selection

VERSION = 5
TOKEN_BYTES = 16
_SCHEMA = pa.schema({"name": pa.string(), "data": pa.large_binary()})


def pack(
    state: dict[str, Any], plan: SharedPlan, stores: list[SliceStore], since: bytes | None = None
) -> bytes:
    """A snapshot: some values that JSON can hold, and all partials.

    With the token of an earlier one, only partials that may have changed since. Stores that were
    not there then, or kept other partials, are whole; if all are, so is the snapshot.
    """
    marks = [None if since is None else store.marks.get(since) for store in stores]
    head = {
        "version": VERSION,
        "since": None if since is None or not any(marks) else since.hex(),
        "marks": marks,
        "state": state,
        "partials": _describe(plan),
        "zone": plan.zone.name,
        "kept": [(each.evicted, each.complete, each.covered, each.told) for each in stores],
    }
    names, blobs = ["head"], [json.dumps(head).encode()]
    for i, (store, mark) in enumerate(zip(stores, marks, strict=True)):
        batch = store.table().as_batch() if mark is None else store.changed(mark[1])
        for name, blob in batch_items(batch):
            names.append(f"{i}{name}")
            blobs.append(blob)
    items = pa.RecordBatch.from_arrays(
        [pa.array(names), pa.array(blobs, pa.large_binary())], schema=_SCHEMA
    )
    data = to_ipc(items)
    return _checksum(data) + data


def token_of(data: bytes) -> bytes:
    """What a snapshot is known by."""
    return data[:TOKEN_BYTES]


def unpack(snapshots: Sequence[bytes], plan: SharedPlan) -> tuple[dict[str, Any], list[SliceStore]]:
    """What the last of some snapshots holds, of this plan; each one is since the one before."""
    links = [_Link.of(data) for data in snapshots]
    _check_chain(links)
    head = links[-1].head
    if head["partials"] != _describe(plan):
        raise DataError(
            "the snapshot was taken with other queries",
            hint="restore it with the queries it was made with",
        )
    made_in = head.get("zone", "UTC")
    if made_in != plan.zone.name:
        raise DataError(
            f"the snapshot was made in the time zone {made_in}, not in {plan.zone.name}",
            hint="restore it with a plan of that zone",
        )
    stores = []
    for place, (node, kept) in enumerate(zip(plan.partials, head["kept"], strict=True)):
        store = SliceStore(node)
        pieces = _pieces(links, node, place, kept[0])
        store.add(pieces[0] if len(pieces) == 1 else merge(node, pieces).as_batch())
        store.evicted, store.complete, store.covered, store.told = kept
        stores.append(store)
    return head["state"], stores


@dataclass(frozen=True)
class _Link:
    """One snapshot of a chain, as it was read."""

    token: bytes
    head: dict[str, Any]
    blobs: dict[str, bytes]

    @classmethod
    def of(cls, data: bytes) -> _Link:
        try:
            token = token_of(data)
            if token != _checksum(data[TOKEN_BYTES:]):
                raise ValueError("damaged, or cut off")
            items = from_ipc(data[TOKEN_BYTES:])
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
        return cls(token, head, blobs)

    @property
    def since(self) -> bytes | None:
        """The token of the one before, if it takes that."""
        since = self.head["since"]
        return None if since is None else bytes.fromhex(since)


def _check_chain(links: Sequence[_Link]) -> None:
    """Refuse snapshots that do not follow each other."""
    hint = (
        "give a whole snapshot first, then those since, each one after the one it was taken since"
    )
    if not links:
        raise DataError("there is no snapshot to restore", hint=hint)
    if links[0].since is not None:
        raise DataError(
            "the first snapshot holds only what changed since an earlier one", hint=hint
        )
    for number, (before, link) in enumerate(pairwise(links), 2):
        if link.since not in (None, before.token):
            raise DataError(
                f"snapshot {number} of {len(links)} was not taken since the one before it",
                hint=hint,
            )


def _pieces(links: Sequence[_Link], node: Partials, place: int, evicted: int) -> list[PartialBatch]:
    """The partials of a store, from the last snapshot back to the one that has it whole."""
    found, until = list[PartialBatch](), END
    for link in reversed(links):
        found.append(read_batch(node, link.blobs, str(place)).between(evicted, until))
        mark = link.head["marks"][place]
        if mark is None:
            break
        place, until = mark[0], min(until, mark[1])
    return found


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
        raise DataError("it is of other queries", hint="resume with the queries it was taken with")
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
    return hashlib.blake2b(data, digest_size=TOKEN_BYTES).digest()


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
