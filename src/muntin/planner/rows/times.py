"""The times of the streams of a row query: whether all meet on one scale."""

from __future__ import annotations

import pyarrow as pa

from muntin.errors import QueryError
from muntin.expressions.zones import Zone
from muntin.plan.operators import StreamSchema
from muntin.plan.timeline import Timeline
from muntin.queries import RowQuery, RowSource
from muntin.queries.query import column

TIME_HINT = "cast the time columns to one type, for example TIMESTAMP"
ZONE_HINT = "give both time columns a zone, or neither; or run with timezone='UTC'"
LENGTH_HINT = "give lengths that its values can show, or cast the time column to TIMESTAMP"


def check_times(
    query: RowQuery, read: list[RowSource], streams: list[StreamSchema], zone: Zone
) -> None:
    """Refuse times that do not meet on one scale, or that the first stream's type cannot show.

    Args:
        query: Who reads the streams.
        read: How it names each, in the order of FROM.
        streams: What each is.
        zone: Where local times are.
    """
    first = streams[0].timeline
    for source, stream in zip(read, streams, strict=True):
        timeline = stream.timeline
        if source.time is not None and source.time.lower() != timeline.column.lower():
            message = f"the time of {source.stream} is {timeline.column}, not {source.time}"
            raise at(query, source, message, "leave it out, or give the stream that time")
        _check_kinds(query, (read[0], first), (source, timeline), zone)
        _check_unit(query, source, timeline.plain)
        shown = 1 if source.range is None else source.range
        coarse = timeline.resolution % first.resolution
        if coarse or shown % first.resolution:
            message = f"lifetimes do not fit the type of {first.column}, {first.type}"
            raise at(query, source, message, TIME_HINT if coarse else LENGTH_HINT)
    steps = [query.slide or 0, query.phase, query.lasts or 0]
    if any(step % first.resolution for step in steps):
        message = f"window ends do not fit the type of {first.column}, {first.type}"
        raise at(query, read[0], message, LENGTH_HINT)


def _check_kinds(
    query: RowQuery, one: tuple[RowSource, Timeline], other: tuple[RowSource, Timeline], zone: Zone
) -> None:
    """Refuse times of two streams that are not of one kind."""
    (source, timeline), (_, first) = other, one
    if timeline.plain != first.plain:
        kinds = [f"that of {own.stream} is {each.type}" for own, each in (one, other)]
        message = f"time columns of different types: {' and '.join(kinds)}"
        raise at(query, source, message, TIME_HINT)
    if not zone.is_utc and _is_local(timeline.type) != _is_local(first.type):
        # Windows take local times as they stand, and expressions as those of the zone.
        message = (
            f"the time of {one[0].stream} is {first.type}, that of {source.stream} "
            f"{timeline.type}: one has a zone, the other none, and the zone here is not UTC"
        )
        raise at(query, source, message, ZONE_HINT)


def _check_unit(query: RowQuery, source: RowSource, plain: bool) -> None:
    """Refuse durations of numbers, and numbers of times."""
    if query.unit is None or (query.unit == "plain") == plain:
        return
    if plain:
        message = f"the time of {source.stream} is a plain integer, but windows are durations"
        raise at(query, source, message, "give RANGE as a plain integer")
    message = f"the time of {source.stream} is a timestamp, but windows are plain integers"
    raise at(query, source, message, "give RANGE as a duration, for example '5 minutes'")


def at(query: RowQuery, source: RowSource, message: str, hint: str | None) -> QueryError:
    """The error for a stream of FROM, with its place."""
    return QueryError([query.problem(column(source.stream, source.start), message, hint)])


def _is_local(kind: pa.DataType) -> bool:
    """Whether times are without a zone."""
    return pa.types.is_timestamp(kind) and kind.tz is None
