"""The watermarks of several streams: how far each has come, and who holds the others back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from muntin.plan.operators import RowPlan, leaves
from muntin.windows import distance_text

_logger = logging.getLogger("muntin.streams")
_WHEN_NOT_PACED = ". If it may fall silent, give idle=, such as idle='30 seconds'"
_WHEN_PACED = (
    ", or has been silent for as long as idle= or advance_when_idle= says. While its rows come "
    "late, only their source can catch up"
)


@dataclass(frozen=True)
class StreamClock:
    """How far one stream has come.

    Attributes:
        lateness: How far its rows may be out of order, in ticks.
        spoke: When its last rows came, or when it started, in microseconds of the clock.
        seen: Its largest event time; None before its first row.
        watermark: Its W: rows below are late. None before its first row.
    """

    lateness: int
    spoke: int
    seen: int | None = None
    watermark: int | None = None

    def after(self, largest: int, now: int) -> StreamClock:
        """The clock after rows up to an event time."""
        seen = largest if self.seen is None else max(self.seen, largest)
        return StreamClock(self.lateness, now, seen, self.watermark).at_least(seen - self.lateness)

    def at_least(self, watermark: int) -> StreamClock:
        """The clock with a W that has reached a time; it never goes back."""
        reached = watermark if self.watermark is None else max(self.watermark, watermark)
        return StreamClock(self.lateness, self.spoke, self.seen, reached)


class Watermarks:
    """The clocks of streams that run together.

    W of a stream is the largest event time of all earlier batches less its lateness. A stream
    that has had no rows for ``idle`` microseconds takes the least W of those that are not idle, if
    that is larger. While all are idle nothing moves, and a stream that has not spoken yet holds
    the others back until it is idle. One that has been silent for as long as ``by_clock`` says
    moves by the clock. Both are one number for all streams, or one for each that has one.

    >>> clocks = Watermarks({"orders": 5, "payments": 0}, idle=100, now=0)
    >>> clocks.take("orders", 50, now=10)
    >>> clocks.watermarks
    {'orders': 45}
    >>> clocks.settle(now=100)
    >>> clocks.watermarks
    {'orders': 45, 'payments': 45}
    """

    def __init__(
        self,
        lateness: Mapping[str, int],
        idle: int | Mapping[str, int | None] | None,
        now: int,
        by_clock: Mapping[str, int | None] | None = None,
    ) -> None:
        self._idle = idle if isinstance(idle, Mapping) else dict.fromkeys(lateness, idle)
        self._by_clock = by_clock or {}
        self.clocks = {name: StreamClock(ticks, now) for name, ticks in lateness.items()}

    @property
    def watermarks(self) -> dict[str, int]:
        """W of every stream that has one."""
        found = {name: each.watermark for name, each in self.clocks.items()}
        return {name: watermark for name, watermark in found.items() if watermark is not None}

    def take(self, name: str, largest: int | None, now: int) -> None:
        """Moves a stream by the largest event time of a batch; None if it had no rows."""
        if largest is not None:
            self.clocks[name] = self.clocks[name].after(largest, now)

    def advance(self, name: str, watermark: int) -> None:
        """Moves a stream to a time without waiting for a row to say so."""
        self.clocks[name] = self.clocks[name].at_least(watermark)

    def settle(self, now: int) -> None:
        """Lets idle streams keep up with the others, or with the clock."""
        silent = self.silent(now)
        awake = [each.watermark for name, each in self.clocks.items() if name not in silent]
        known = [each for each in awake if each is not None]
        for name, limit in self._by_clock.items():
            own = self.clocks[name]
            if limit is not None and own.seen is not None and now - own.spoke >= limit:
                self.clocks[name] = own.at_least(own.seen + now - own.spoke - own.lateness)
        if known and len(known) == len(awake):
            for name in silent:
                self.clocks[name] = self.clocks[name].at_least(min(known))

    def silent(self, now: int) -> frozenset[str]:
        """The streams that are idle."""
        limits = {name: limit for name, limit in self._idle.items() if limit is not None}
        return frozenset(
            name for name, limit in limits.items() if now - self.clocks[name].spoke >= limit
        )

    def least(self, names: Iterable[str]) -> int | None:
        """The least W of some streams; None if one has none yet."""
        found = [self.clocks[name].watermark for name in names]
        return None if None in found else min(each for each in found if each is not None)

    def largest(self, names: Iterable[str]) -> int | None:
        """The largest event time of some streams; None before their first row."""
        found = [self.clocks[name].seen for name in names]
        return max((each for each in found if each is not None), default=None)

    def holder(self) -> str | None:
        """The stream that holds the others back: the one with the least W, if W differ."""
        if len({each.watermark for each in self.clocks.values()}) < 2:
            return None
        waiting = [name for name, each in self.clocks.items() if each.watermark is None]
        if waiting:
            return waiting[0]
        marks = self.watermarks
        return min(marks, key=lambda name: marks[name])

    def gap(self) -> int:
        """How far the streams are apart in event time: what is kept on top of the windows."""
        marks = self.watermarks.values()
        return max(marks) - min(marks) if marks else 0


class HolderWarning:
    """What warns, once, of a stream that holds others back so far that it decides what is kept.

    Rows are kept for the longest window, plus as long as the streams are apart in event time. It
    warns when the second is more than the first, and again once they were close meanwhile. Streams
    are compared with those that some query reads together with them.
    """

    def __init__(self) -> None:
        self._told: frozenset[str] = frozenset()
        self._first: dict[str, int] = {}
        self._plan: RowPlan | None = None
        self._read: dict[frozenset[str], int] = {}

    def check(
        self, watermarks: Mapping[str, int | None], plan: RowPlan, paced: Collection[str] = ()
    ) -> None:
        """Look at W of all streams; None where one has none yet.

        ``paced`` are those that do not hold others back for ever: they have ``idle`` or
        ``advance_when_idle``, so there is no point in asking for it.
        """
        if plan is not self._plan:
            self._plan, self._read = plan, _read_together(plan)
        for name, mark in watermarks.items():
            if mark is not None:
                self._first.setdefault(name, mark)
        gaps: dict[str, int] = {}
        held: dict[str, dict[str, None]] = {}
        for streams, longest in self._read.items():
            marks = {name: mark for name, mark in watermarks.items() if name in streams}
            found = self._furthest_behind(marks)
            if found is not None and found[1] > longest:
                least, gap = found
                gaps[least] = max(gap, gaps.get(least, 0))
                held.setdefault(least, {}).update(dict.fromkeys(set(marks) - {least}))
        for least, others in held.items():
            if least not in self._told:
                what = "has had no row yet"
                if watermarks[least] is not None:
                    what = f"is {_apart(gaps[least], plan, least)} behind"
                _logger.warning(
                    "stream %s %s and holds the others back: rows of %s are kept until it has come "
                    "as far%s",
                    least,
                    what,
                    ", ".join(sorted(others)),
                    _WHEN_PACED if least in paced else _WHEN_NOT_PACED,
                )
        self._told = frozenset(held)

    def _furthest_behind(self, marks: Mapping[str, int | None]) -> tuple[str, int] | None:
        """The stream with the least W of some, and how far it is behind the furthest."""
        known = {name: mark for name, mark in marks.items() if mark is not None}
        if not known:
            return None
        # A stream that has not spoken yet holds all that came since the first row.
        before = min(self._first[name] for name in known) - 1
        reached = {name: known.get(name, before) for name in marks}
        least = min(reached, key=lambda name: reached[name])
        return least, max(known.values()) - reached[least]


def _read_together(plan: RowPlan) -> dict[frozenset[str], int]:
    """The streams that each query reads, if they are several, and its longest window."""
    found: dict[frozenset[str], int] = {}
    read = [
        (final.streams, max(leaf.range or 0 for leaf in leaves(final.root)))
        for final in plan.finals
    ]
    for streams, longest in (
        *read,
        *((frozenset(each.streams), each.range) for each in plan.joined),
    ):
        if len(streams) > 1:
            found[streams] = max(longest, found.get(streams, 0))
    return found


def _apart(ticks: int, plan: RowPlan, stream: str) -> str:
    """How far streams are apart, as people say it."""
    if plan.streams[stream].timeline.plain:
        return f"{ticks:,} ticks"
    return distance_text(ticks)
