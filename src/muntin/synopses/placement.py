"""Where the window of a question lies in what a keep holds, and what to say where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from muntin.errors import MuntinError, Problem, QueryError, QuestionError
from muntin.expressions import Evaluator, bind
from muntin.plan.timeline import Timeline
from muntin.queries import Question
from muntin.queries.asking.questions import instant_number
from muntin.queries.asking.words import Word
from muntin.synopses.answer import AsOf, Covers
from muntin.synopses.fit import would_do
from muntin.synopses.keeps.kept import Kept
from muntin.synopses.keeps.replica import Origin, Version
from muntin.synopses.reading import Read, ReadRow, Window
from muntin.windows import Window as WindowSpec
from muntin.windows import duration_text

# Lengths of windows that are remembered as they are counted with.
_REMEMBERED = 4096
# The first of all ticks, which have 64 bits.
_LEAST = -(1 << 63)


class Placed(NamedTuple):
    """A window: the slices of a keep that it takes, and the ticks where they begin and end."""

    window: Window
    whole: tuple[int, int]


class Found:
    """An answer as it was read from a version; what it is worth is told when somebody asks."""

    __slots__ = ("_origin", "_read", "_whole", "batch", "exact", "rows")

    def __init__(self, read: Read | ReadRow, origin: Origin, placed: Placed | None) -> None:
        self._read, self._origin = read, origin
        self._whole = None if placed is None else placed.whole
        self.exact, self.rows, self.batch = read.exact, read.rows, origin.moment.batch

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self._read.table

    @property
    def covers(self) -> Covers | None:
        """The window of whole slices; None while the stream has no row."""
        if self._whole is None:
            return None
        start, end = map(self._origin.kept.shown, self._whole)
        return Covers(start, end)

    @property
    def as_of(self) -> AsOf:
        """How far the stream was."""
        return self._origin.as_of

    @property
    def source(self) -> str:
        """The keep, and what it had."""
        return self._origin.source


def placed_window(version: Version, question: Question, words: Sequence[Word]) -> Placed | None:
    """The window that is asked for; None while the stream has no row.

    Raises:
        QuestionError: If it reaches behind what is kept.
    """
    length = _length(question, words, version.kept)
    end = _end(question, words, version)
    if end is None:
        return None
    placed = placed_between(version, max(end - length, _LEAST), end, question.aligned)
    if placed is None:
        raise _beyond(version, question, words, version.kept.floor(end - length))
    return placed


def placed_between(version: Version, start: int, end: int, aligned: bool) -> Placed | None:
    """The window from a tick to another; None if it reaches behind what is kept."""
    kept, latest, reach = version.kept, version.moment.latest, version.reach
    outer, whole = kept.between(start, end)
    if end - start > kept.span or (reach is not None and whole[0] < reach):
        return None
    if aligned:
        return Placed(Window(outer, outer), whole)
    inner = (kept.slice_of(start - 1) + 1, kept.slice_of(end))
    if latest is None or end > latest:
        # No row lies behind it.
        inner = (inner[0], outer[1])
    return Placed(Window(outer, inner), whole)


def _length(question: Question, words: Sequence[Word], kept: Kept) -> int:
    window = question.query.window
    if question.free.range is not None:
        word = words[question.free.range]
        key = word.text, word.token_type == TokenType.STRING
        known = kept.lengths.get(key)
        if known is None:
            if len(kept.lengths) >= _REMEMBERED:
                kept.lengths.clear()
            known = kept.lengths[key] = _ticks(*key, kept.timeline)
        return known
    kept.timeline.check(type(window)(window.range, window.range, unit=window.unit))
    return window.range


def _ticks(text: str, is_string: bool, timeline: Timeline) -> int:
    """The length of a window as it is written."""
    window = WindowSpec(text if is_string else instant_number(text))
    timeline.check(WindowSpec(window.range, window.range, unit=window.unit))
    return window.range


def _end(question: Question, words: Sequence[Word], version: Version) -> int | None:
    moment = version.moment
    if question.as_of == "latest":
        return None if moment.latest is None else moment.latest + 1
    if question.as_of == "watermark":
        return moment.watermark
    at = question.at
    if question.free.at is not None:
        word = words[question.free.at]
        at = word.text if word.token_type == TokenType.STRING else instant_number(word.text)
    return _tick(at, version.kept)


def _tick(at: Any, kept: Kept) -> int:
    """A time as it is written in a question, as a tick."""
    timeline = kept.timeline
    if timeline.plain and isinstance(at, int) and _LEAST <= at < -_LEAST:
        return at
    if timeline.plain or not isinstance(at, str):
        raise QueryError(
            [Problem(f"AS OF {at!r} is not a time of {timeline.column}", _as_of_hint(timeline))]
        )
    node = exp.cast(exp.Literal.string(at), exp.DataType.Type.TIMESTAMP)
    try:
        (value,) = Evaluator([bind(node, pa.schema([]), zone=kept.plan.zone)])(
            pa.table({"": [None]})
        )
        tick = value.values.view(pa.int64()).to_pylist()[0]
    except MuntinError:
        tick = None
    if tick is None:
        raise QueryError([Problem(f"AS OF {at!r} is not a time", _as_of_hint(timeline))])
    return int(tick)


def _as_of_hint(timeline: Timeline) -> str:
    return "write a number" if timeline.plain else "write it as in '2026-01-31 12:00:00'"


def _beyond(
    version: Version, question: Question, words: Sequence[Word], first: int
) -> QuestionError:
    """Why a window is not all in what is kept."""
    kept = version.kept
    length = _length(question, words, kept)
    if length > kept.span:
        return refusal(question, version, f"its span is {_extent(kept, kept.span)}", words)
    shown = kept.shown
    if version.complete is not None and first < version.complete:
        since, then = version.complete, version.complete + length
        return QuestionError(
            f"keep {kept.name} began while the stream ran, and has all rows from "
            f"{shown(since)} on; the question reaches back to "
            f"{shown(first)}",
            hint=f"ask for a shorter RANGE, or once event time has reached {shown(then)}",
        )
    low = version.low
    assert low is not None
    return QuestionError(
        f"keep {kept.name} has rows from {shown(low)} on; the question reaches back to "
        f"{shown(first)}",
        hint="ask for a later time, or keep more: "
        + would_do(question, kept, kept.span + low - first),
    )


def _extent(kept: Kept, ticks: int) -> str:
    return str(ticks) if kept.timeline.plain else duration_text(ticks)


def refusal(
    question: Question, version: Version, reason: str, words: Sequence[Word]
) -> QuestionError:
    """Why the nearest keep does not answer, which one would, and from when on."""
    kept, moment = version.kept, version.moment
    length, end = _length(question, words, kept), _end(question, words, version)
    span = length
    if end is not None and moment.watermark is not None:
        # A window that ended a while ago reaches further back than it is long.
        span = max(length, moment.watermark - (end - length))
    when = "at once"
    if moment.latest is not None:
        first = kept.ceil(moment.latest + 1)
        when = f"from event time {kept.shown(first + length)} on"
    return QuestionError(
        f"keep {kept.name} cannot answer this: {reason}",
        hint=f"this would, {when}: {would_do(question, kept, span)}",
    )
