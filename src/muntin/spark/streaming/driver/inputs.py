"""The streams of a run as its caller gives them: one, or several by name, with their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from muntin.errors import DataError, WindowError, did_you_mean
from muntin.expressions.zones import Zone
from muntin.plan import Timeline
from muntin.spark.streaming.driver.source import StreamSource, session_of, stream_source
from muntin.spark.streaming.driver.watermarks import Pace
from muntin.spark.streaming.tasks.rows import AsideNames
from muntin.windows import DurationLike, duration
from muntin.windows.duration import is_plain

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
    columns = _by_stream("time", times.column, names, "ts")
    lateness = _by_stream("lateness", times.lateness, names, 0)
    idle = _by_stream("idle", times.idle, names, None)
    clocks = _by_stream("advance_when_idle", times.advance_when_idle, names, None)
    found = []
    for place, (name, data) in enumerate(streams.items()):
        source = stream_source(data, zone)
        timeline = Timeline.of(source.schema, columns[place])
        pace = Pace(
            timeline.lateness(lateness[place]),
            timeline.plain,
            _positive("idle", idle[place]),
            _by_clock(timeline, clocks[place]),
            started,
        )
        is_alone = name is None or len(streams) == 1
        aside = AsideNames() if is_alone else AsideNames.of_stream(str(name))
        found.append(StreamInput(name, source, timeline, pace, aside))
    _check_alike(found)
    return tuple(found)


def _by_stream(option: str, given: Any, names: Sequence[str | None], default: Any) -> list[Any]:
    """An option of each stream: the same for all, or by name."""
    if not isinstance(given, Mapping):
        return [given] * len(names)
    known = {str(name).lower(): name for name in names if name is not None}
    for each in given:
        if str(each).lower() not in known:
            raise DataError(
                f"{option} is given for a stream {each!r}, and there is none of that name",
                hint=did_you_mean(str(each), [str(name) for name in known.values()]),
            )
    values = {str(each).lower(): value for each, value in given.items()}
    return [values.get(str(name).lower(), default) for name in names]


def _positive(option: str, limit: DurationLike | None) -> int | None:
    if limit is None:
        return None
    if is_plain(limit) or duration(limit) <= 0:
        raise WindowError(
            f"{option} must be a positive duration, not {limit!r}",
            hint="write it as in '1 minute'",
        )
    return duration(limit)


def _by_clock(timeline: Timeline, limit: DurationLike | None) -> int | None:
    if limit is not None and timeline.plain:
        raise WindowError(
            f"the time column {timeline.column!r} is a plain integer, which no clock moves",
            hint="leave out advance_when_idle, or read times from a TIMESTAMP column",
        )
    return _positive("advance_when_idle", limit)


def _check_alike(inputs: Sequence[StreamInput]) -> None:
    """Refuse that an idle stream takes a watermark that is of another kind than its times."""
    plain = {each.timeline.plain: each.name for each in inputs}
    if len(plain) > 1 and any(each.pace.idle is not None for each in inputs):
        raise WindowError(
            f"the times of stream {plain[True]} are numbers and those of stream {plain[False]} "
            "are not, so an idle one cannot take the watermark of the other",
            hint="leave out idle=, or give both streams times of one kind",
        )
