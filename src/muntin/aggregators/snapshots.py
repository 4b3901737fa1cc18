"""An aggregator's state as Arrow, and back."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import BuiltIn
from muntin.aggregators.contract import store_fields
from muntin.aggregators.inputs import whole_number
from muntin.aggregators.operators import Objects, Store
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
    batch = pa.RecordBatch.from_pydict(columns)
    metadata = {
        **_identity(aggregator),
        "slid": str(window.slid),
        "encoding": json.dumps(encoding),
        "lengths": lengths_of(batch),
    }
    return batch.replace_schema_metadata(metadata)


def restore(aggregator: Aggregator, snapshot: pa.RecordBatch) -> None:
    """Put the state back into an aggregator that was built alike."""
    said = metadata_of(snapshot)
    for name, own in _identity(aggregator).items():
        if said.get(name) != own:
            raise DataError(
                f"the snapshot's {name} is {said.get(name)}, not {own}",
                hint="restore into an aggregator created with the same arguments",
            )
    require_whole(snapshot, said)
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


def metadata_of(snapshot: Any) -> dict[str, str]:
    """What a snapshot says about itself."""
    if not isinstance(snapshot, pa.RecordBatch):
        raise DataError(
            f"a snapshot is one record batch, not {type(snapshot).__name__}",
            hint="restore what `snapshot` returned",
        )
    said = snapshot.schema.metadata or {}
    return {key.decode(): value.decode() for key, value in said.items()}


def lengths_of(batch: pa.RecordBatch) -> str:
    """How long the lists of a snapshot are, one a column."""
    lists = zip(batch.schema.names, batch.columns, strict=True)
    return json.dumps({name: [len(row) for row in column] for name, column in lists})


def require_whole(snapshot: pa.RecordBatch, said: dict[str, str]) -> None:
    """Kernels trust the lengths of arrays, so none may be missing or cut."""
    if said.get("lengths") != lengths_of(snapshot):
        raise DataError("the snapshot is not whole", hint="restore one as `snapshot` returned it")


def _identity(aggregator: Aggregator) -> dict[str, str]:
    """What has to agree; a built-in aggregate shows its types."""
    aggregate = aggregator.aggregate
    return {
        "format": _FORMAT,
        "technique": aggregator.card.name,
        "aggregate": repr(aggregate) if isinstance(aggregate, BuiltIn) else aggregate.name,
        "ranges": ",".join(map(str, aggregator.ranges)),
    }


def _restore_encoding(window: Sliding, said: dict[str, Any] | None) -> None:
    if said is None:
        window.encoding, window.op = None, Objects(window.aggregate)
        return
    # Deferred: only states of kernels need them.
    from muntin.aggregators.encodings import registry  # noqa: PLC0415

    narrowest = registry.narrowest(window.aggregate, window.window)
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


_SMALLEST = 16


class Positions:
    """A queue of positions that do not fall, searched by halving.

    >>> positions = Positions()
    >>> for position in (10, 12, 17):
    ...     positions.append(position)
    >>> positions.since(12), positions.before(13)
    (2, 2)
    """

    def __init__(self, held: Ints | None = None) -> None:
        held = np.zeros(0, np.int64) if held is None else held
        self._items = np.zeros(max(_SMALLEST, 2 * len(held)), np.int64)
        self._items[: len(held)] = held
        self._start, self._end = 0, len(held)

    def held(self) -> Ints:
        """The positions, oldest first."""
        return self._items[self._start : self._end]

    def append(self, position: int) -> None:
        """Add the newest position."""
        position = whole_number(position, "position")
        if self._end > self._start and position < self._items[self._end - 1]:
            raise DataError(
                f"position {position} comes after {self._items[self._end - 1]}",
                hint="insert partials in the order of their positions",
            )
        if self._end == len(self._items):
            # Moves or doubles, so that each position is copied a few times at most.
            fresh = Positions(self.held())
            self._items, self._start, self._end = fresh._items, 0, fresh._end
        self._items[self._end] = position
        self._end += 1

    def before(self, position: int) -> int:
        """How many lie before `position`."""
        return int(np.searchsorted(self.held(), whole_number(position, "position")))

    def since(self, position: int) -> int:
        """How many lie at `position` or after it."""
        return self._end - self._start - self.before(position)

    def drop(self, count: int) -> None:
        """Forget the oldest `count`."""
        self._start += count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._items.nbytes
