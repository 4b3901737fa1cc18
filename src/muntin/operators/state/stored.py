"""What an engine of rows keeps, as it is stored: snapshots, and segments that lie outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muntin.operators.rows import Changes, Rows
from muntin.operators.state.calendar import CalendarChunk
from muntin.operators.state.row_log import LogChunk
from muntin.operators.state.segments import Segment
from muntin.operators.state.snapshot import pack, unpack

_CLASSES: dict[str, type] = {
    kind.__name__: kind for kind in (Rows, Changes, Segment, LogChunk, CalendarChunk)
}


def kept(holder: Any) -> dict[str, Any]:
    """What an operator, or anything else with a ``STATE``, keeps by the names of its attributes."""
    return {name: getattr(holder, name) for name in getattr(holder, "STATE", ())}


def snapshot_bytes(
    state: dict[str, Any], outside: Callable[[Segment], str | None] | None, *, is_dense: bool
) -> bytes:
    """A snapshot; of segments that ``outside`` gives a name, it has only that."""

    def name(value: Any) -> str | None:
        return outside(value) if outside is not None and isinstance(value, Segment) else None

    return pack(state, _CLASSES, name, is_dense=is_dense)


def state_of(data: bytes | memoryview, inside: Callable[[str], Segment] | None) -> dict[str, Any]:
    """The state that `snapshot_bytes` wrote; ``inside`` brings segments by their names."""
    found: dict[str, Any] = unpack(data, _CLASSES, inside)
    return found


def segment_bytes(segment: Segment) -> bytes:
    """A segment of rows with its index, as it is mapped by `segment_of`."""
    return pack(segment, _CLASSES)


def segment_of(data: memoryview) -> Segment:
    """The segment that `segment_bytes` wrote, left where it lies: who looks at it reads it."""
    found: Segment = unpack(data, _CLASSES, mapped=True)
    return found
