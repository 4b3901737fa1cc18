"""The streams of a run as its caller gives them: one, or several by name, with their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.faults import about_stream
from muntin.frames import by_stream
from muntin.plan import Timeline
from muntin.plan.timeline import check_one_clock
from muntin.spark.streaming.driver.source import StreamSource, session_of, stream_source
from muntin.spark.streaming.driver.watermarks import Pace
from muntin.spark.streaming.tasks.rows import AsideNames
from muntin.windows import DurationLike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StreamInput:
    """One stream of a run.

    Attributes:
        name: What FROM calls it; None where any name will do.
        source: Where its rows come from.
        timeline: Its column of event times.
        pace: How its watermark moves.
        aside: What the side output calls its late and bad rows.
    """

    name: str | None
    source: StreamSource
    timeline: Timeline
    pace: Pace
    aside: AsideNames


@dataclass(frozen=True)
class Times:
    """What a caller says of the times of all streams, or of each by its name."""

    column: str | Mapping[str, str]
    lateness: DurationLike | Mapping[str, DurationLike]
    idle: DurationLike | Mapping[str, DurationLike] | None
    advance_when_idle: DurationLike | Mapping[str, DurationLike] | None


def streams_of(given: Any, name: str | None) -> dict[str | None, Any]:
    """The streams by name, in an order that does not depend on how they are given.

    A checkpoint then has its sources in the same order at every start.
    """
    if not isinstance(given, Mapping):
        return {name: given}
    if name is not None:
        raise DataError(
            f"name is {name!r}, and the streams have names already",
            hint="leave out name=, which is for a single stream",
        )
    if not given:
        raise DataError("there are no streams", hint='give at least one: {"orders": frame}')
    for each in given:
        if not (isinstance(each, str) and each.isascii() and each.isidentifier()):
            raise DataError(
                f"{each!r} cannot be the name of a stream",
                hint="use letters, digits and _, and begin with a letter",
            )
    names = sorted(given, key=str.lower)
    for one, other in pairwise(names):
        if one.lower() == other.lower():
            raise DataError(
                f"streams {one} and {other} differ only in letter case", hint="rename one of them"
            )
    return {each: given[each] for each in names}


def shared_session(streams: Mapping[str | None, Any]) -> SparkSession:
    """The session that all streams belong to."""
    sessions = {name: session_of(data) for name, data in streams.items()}
    (first, session), *others = sessions.items()
    for name, other in others:
        if not session._jsparkSession.equals(other._jsparkSession):  # noqa: SLF001  no public name
            raise DataError(
                f"streams {first} and {name} belong to different Spark sessions, and one query "
                "carries all streams",
                hint="read both with the same session",
            )
    return session


def read_inputs(
    streams: Mapping[str | None, Any], zone: Zone, times: Times, started: int | None
) -> tuple[StreamInput, ...]:
    """The streams with their sources, and times in ticks of their columns.

    ``started`` is the clock; None for a run that takes in what there is.
    """
    names = list(streams)
    columns = by_stream("time", times.column, names, "ts")
    lateness = by_stream("lateness", times.lateness, names, 0)
    idle = by_stream("idle", times.idle, names, None)
    clocks = by_stream("advance_when_idle", times.advance_when_idle, names, None)
    found = []
    for place, (name, data) in enumerate(streams.items()):
        with about_stream(name if len(streams) > 1 else None):
            source = stream_source(data, zone)
            timeline = Timeline.of(source.schema, columns[place])
        pace = Pace(
            timeline.lateness(lateness[place]),
            timeline.plain,
            timeline.silence("idle", idle[place]),
            timeline.silence("advance_when_idle", clocks[place]),
            started,
        )
        is_alone = name is None or len(streams) == 1
        aside = AsideNames() if is_alone else AsideNames.of_stream(str(name))
        found.append(StreamInput(name, source, timeline, pace, aside))
    if any(each.pace.idle is not None for each in found):
        check_one_clock({str(each.name): each.timeline for each in found})
    return tuple(found)
