"""Streams as bytes: what a snapshot begins with, and whether a stream can resume from it."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from muntin.engine.slices.snapshot import TOKEN_BYTES
from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.plan import SharedPlan, Timeline
from muntin.windows import DurationLike, duration_text

# What snapshots begin with; another layout gets another number.
_MARK = b"muntin stream 3\n"
_GROUP_MARK = b"muntin streams 3\n"
_SUM_BYTES = 4
# The engine's token follows, then a checksum of all that comes after it.
_TOKEN = slice(len(_MARK), len(_MARK) + TOKEN_BYTES)
_CHECK = slice(_TOKEN.stop, _TOKEN.stop + _SUM_BYTES)
_CHANGED_HINT = "resume with the streams as they were, or start anew without a snapshot"


def packed(token: bytes, content: Any) -> bytes:
    """The snapshot of one stream, which is known by a token."""
    body = pickle.dumps(content, protocol=5)
    return _MARK + token + _sum(token + body) + body


def packed_group(content: Mapping[str, Any]) -> bytes:
    """The snapshot of several streams."""
    body = pickle.dumps(content, protocol=5)
    return _GROUP_MARK + _sum(body) + body


def _sum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_SUM_BYTES, "little")


def _check_sum(data: bytes, found: bytes) -> None:
    if _sum(data) != found:
        raise DataError("the snapshot is damaged", hint="resume from another one")


def unpacked(snapshot: bytes | Sequence[bytes]) -> tuple[SharedPlan, list[bytes], list[Any]]:
    """What a snapshot of a stream holds, or several in order: the plan, states, what was kept."""
    whole = isinstance(snapshot, bytes | bytearray | memoryview | str)
    if not whole and not isinstance(snapshot, Sequence):
        raise DataError(
            f"a snapshot is bytes, or a list of them, not a {type(snapshot).__name__}",
            hint="give what Stream.snapshot() returned",
        )
    found = [_unpickled(each) for each in ([snapshot] if whole else snapshot)]
    plans = [plan for plan, _, _ in found if plan is not None]
    if not found or found[0][0] is None:
        raise DataError(
            "the first snapshot holds only what changed since an earlier one"
            if found
            else "there is no snapshot to resume from",
            hint="give a full snapshot first, then the ones since, in order",
        )
    return plans[-1], [state for _, state, _ in found], [kept for _, _, kept in found]


def _unpickled(snapshot: Any) -> tuple[SharedPlan | None, bytes, Any]:
    """What one snapshot holds: the plan, unless it is that of the one before, and the state."""
    token_in(snapshot)
    data = bytes(snapshot)
    body = data[_CHECK.stop :]
    _check_sum(data[_TOKEN] + body, data[_CHECK])
    plan, state, kept = pickle.loads(body)
    return plan, state, kept


def token_in(snapshot: Any) -> bytes:
    """What a snapshot is known by, which is in its first bytes."""
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise DataError(
            f"a snapshot is bytes, not a {type(snapshot).__name__}",
            hint="give what Stream.snapshot() returned",
        )
    head = bytes(snapshot[: _CHECK.stop])
    if head.startswith(_GROUP_MARK):
        raise DataError(
            "this is a snapshot of several streams, or of queries over rows",
            hint="resume it with muntin.Stream.restore(data), or with "
            "muntin.stream(queries, schemas, time=..., snapshot=data)",
        )
    if not head.startswith(_MARK):
        raise DataError(
            "these bytes are not a snapshot of a stream, or another version of Muntin made them",
            hint="give what Stream.snapshot() returned, and resume with the version that made it",
        )
    return head[_TOKEN]


def check_resumed(
    plan: SharedPlan, schema: pa.Schema, time: str, zone: Zone | None, more: Iterable[str] = ()
) -> None:
    """Refuse to resume a stream whose time, columns or zone are not those of its snapshot.

    Args:
        plan: What the snapshot has for the stream.
        schema: The columns that it is given.
        time: Its time column.
        zone: Where local times are asked for; None where nobody says.
        more: Columns that others than the plan's queries read.
    """
    column = Timeline.of(schema, time).column
    if column != plan.timeline.column:
        raise DataError(
            f"the time column is {column!r}, and was {plan.timeline.column!r} in the snapshot",
            hint=f"resume with time={plan.timeline.column!r}, or start anew without a snapshot",
        )
    for name in dict.fromkeys((*plan.columns(), *more)):
        wanted = plan.source.field(name).type
        found = schema.field(name).type if name in schema.names else None
        if found != wanted:
            what = "is gone" if found is None else f"is {found}, and was {wanted} in the snapshot"
            raise DataError(
                f"column {name!r} {what}",
                hint="resume with the columns as they were, or start anew without a snapshot",
            )
    if zone is not None and zone != plan.zone:
        raise DataError(
            f"the time zone is {zone.name}, and was {plan.zone.name} in the snapshot",
            hint=f"resume with timezone={plan.zone.name!r}, or start anew without a snapshot",
        )


def check_relations(held: Mapping[str, pa.Schema], given: Mapping[str, pa.Schema]) -> None:
    """Refuse to resume with relations whose names or columns are not those of the snapshot."""
    for name in dict.fromkeys((*held, *given)):
        was, found = held.get(name), given.get(name)
        if was is None or found is None:
            what = "was not in" if was is None else "is in"
            raise DataError(f"the relation {name} {what} the snapshot", hint=_CHANGED_HINT)
        if found != was:
            shown, before = (
                ", ".join(f"{each.name} {each.type}" for each in one) for one in (found, was)
            )
            raise DataError(
                f"the relation {name} has the columns {shown}, and had {before} in the snapshot",
                hint=_CHANGED_HINT,
            )


def check_lateness(held: int | None, timeline: Timeline, given: DurationLike) -> None:
    """Refuse to resume a stream with another lateness than its own; 0 is what nobody says."""
    ticks = timeline.lateness(given)
    if ticks and ticks != held:
        was = str(held) if timeline.plain or not held else repr(duration_text(held))
        raise DataError(
            f"lateness is {given!r}, and was {was} in the snapshot",
            hint="leave lateness out: a stream resumes with its own; or start anew without a "
            "snapshot",
        )


def is_group(snapshot: Any) -> bool:
    """Whether these are bytes of several streams, or of queries over rows."""
    return _group_bytes(snapshot).startswith(_GROUP_MARK)


def _group_bytes(snapshot: Any) -> bytes:
    if isinstance(snapshot, list | tuple) and len(snapshot) == 1:
        (snapshot,) = snapshot
    return bytes(snapshot) if isinstance(snapshot, bytes | bytearray | memoryview) else b""


def unpacked_group(snapshot: Any, streams: Iterable[str] | None = None) -> dict[str, Any]:
    """What a snapshot of several streams holds, which must be these if they are given."""
    data = _group_bytes(snapshot)
    if not data.startswith(_GROUP_MARK):
        raise DataError(
            "these bytes are not a snapshot of several streams, or another version of Muntin "
            "made them",
            hint="give what snapshot() returned, and resume with the version that made it",
        )
    head = len(_GROUP_MARK) + _SUM_BYTES
    body = data[head:]
    _check_sum(body, data[len(_GROUP_MARK) : head])
    held: dict[str, Any] = pickle.loads(body)
    if streams is not None and list(held["engines"]) != list(streams):
        names = ", ".join(held["engines"])
        raise DataError(f"the snapshot was taken of the streams {names}", hint=_CHANGED_HINT)
    return held
