"""An aggregator's state as Arrow, and back."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from muntin.aggregators.contract import store_fields
from muntin.aggregators.operators import Objects, Store
from muntin.aggregators.positions import Positions
from muntin.aggregators.sliding import Sliding, objects_of
from muntin.errors import DataError

if TYPE_CHECKING:
    from muntin.aggregators.aggregator import Aggregator

_FORMAT = "1"
_POSITIONS = "positions_held"


def take(aggregator: Aggregator) -> pa.RecordBatch:
    """One row: a list for each array of the state, and the positions if there are any."""
    window = aggregator.window
    columns = {name: _listed(array) for name, array in window.state._asdict().items()}
    if aggregator.positions is not None:
        columns[_POSITIONS] = _listed(aggregator.positions.held())
    encoding = window.encoding and window.encoding.described()
    metadata = {**_identity(aggregator), "slid": str(window.slid), "encoding": json.dumps(encoding)}
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata(metadata)


def restore(aggregator: Aggregator, snapshot: pa.RecordBatch) -> None:
    """Put the state back into an aggregator that was built alike."""
    said = {key.decode(): value.decode() for key, value in (snapshot.schema.metadata or {}).items()}
    for name, own in _identity(aggregator).items():
        if said.get(name) != own:
            raise DataError(
                f"the snapshot's {name} is {said.get(name)}, not {own}",
                hint="restore into an aggregator created with the same arguments",
            )
    window = aggregator.window
    arrays = {name: _array(snapshot.column(name)) for name in window.state._fields}
    window.slid = int(said["slid"])
    _restore_encoding(window, json.loads(said["encoding"]))
    if window.encoding is not None and window.encoding.width > 1:
        width = window.encoding.width
        for name in store_fields(window.technique):
            arrays[name] = arrays[name].reshape(-1, width)
    window.state = window.technique(**arrays)
    has_positions = _POSITIONS in snapshot.schema.names
    aggregator.positions = Positions(_array(snapshot.column(_POSITIONS))) if has_positions else None


def _identity(aggregator: Aggregator) -> dict[str, str]:
    """What has to agree."""
    return {
        "format": _FORMAT,
        "technique": aggregator.card.name,
        "aggregate": aggregator.aggregate.name,
        "ranges": ",".join(map(str, aggregator.ranges)),
    }


def _restore_encoding(window: Sliding, said: dict[str, Any] | None) -> None:
    if said is None:
        window.encoding, window.op = None, Objects(window.aggregate)
        return
    # Deferred: only states of kernels need them.
    from muntin.aggregators import encodings  # noqa: PLC0415

    narrowest = encodings.narrowest(window.aggregate, window.window)
    assert narrowest is not None
    window.encoding = narrowest.redescribed(said)
    window.op = window.encoding.op


def _listed(array: Store) -> pa.Array:
    if array.dtype == np.object_:
        items = pa.array([pickle.dumps(partial) for partial in array], pa.binary())
    else:
        items = pa.array(array.reshape(-1))
    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


def _array(lists: pa.Array) -> Store:
    items = lists.flatten()
    if pa.types.is_binary(items.type):
        return objects_of([pickle.loads(blob) for blob in items.to_pylist()])
    return np.array(items.to_numpy())
