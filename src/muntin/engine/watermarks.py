"""The watermarks of several streams: how far each has come, and who holds the others back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muntin.plan.operators import RowPlan, leaves

_logger = logging.getLogger("muntin.streams")


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
    the others back until it is idle.

    >>> clocks = Watermarks({"orders": 5, "payments": 0}, idle=100, now=0)
    >>> clocks.take("orders", 50, now=10)
    >>> clocks.watermarks
    {'orders': 45}
    >>> clocks.settle(now=100)
    >>> clocks.watermarks
    {'orders': 45, 'payments': 45}
    """

    def __init__(self, lateness: Mapping[str, int], idle: int | None, now: int) -> None:
        self.idle = idle
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
        """Lets idle streams keep up with the others."""
        silent = self.silent(now)
        awake = [each.watermark for name, each in self.clocks.items() if name not in silent]
        if not silent or not awake or None in awake:
            return
        least = min(each for each in awake if each is not None)
        for name in silent:
            self.clocks[name] = self.clocks[name].at_least(least)

    def silent(self, now: int) -> frozenset[str]:
        """The streams that are idle."""
        if self.idle is None:
            return frozenset()
        idle = self.idle
        return frozenset(name for name, each in self.clocks.items() if now - each.spoke >= idle)

    def least(self, names: Iterable[str]) -> int | None:
        """The least W of some streams; None if one has none yet."""
        found = [self.clocks[name].watermark for name in names]
        return None if None in found else min(each for each in found if each is not None)

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
    warns when the second is more than the first, and again once they were close meanwhile.
    """

    def __init__(self) -> None:
        self._told: str | None = None
        self._first: int | None = None

    def check(self, watermarks: Mapping[str, int | None], plan: RowPlan) -> None:
        """Look at W of the streams that some query reads together; None where it has none yet."""
        read = {name for final in plan.finals if len(final.streams) > 1 for name in final.streams}
        marks = {name: mark for name, mark in watermarks.items() if name in read}
        known = [mark for mark in marks.values() if mark is not None]
        if not known:
            return
        if self._first is None:
            self._first = min(known)
        # A stream that has not spoken yet holds all that came since the first row.
        least = min(marks, key=lambda name: _or_first(marks[name], self._first))
        gap = max(known) - _or_first(marks[least], self._first)
        ranges = [leaf.range or 0 for final in plan.finals for leaf in leaves(final.root)]
        if gap <= max(ranges):
            self._told = None
        elif self._told != least:
            self._told = least
            what = "has had no row yet" if marks[least] is None else f"is {gap:,} ticks behind"
            _logger.warning(
                "stream %s %s and holds the others back: rows of %s are kept until it has come as "
                "far. If it may fall silent, give idle=, such as idle='30 seconds'",
                least,
                what,
                ", ".join(name for name in marks if name != least),
            )


def _or_first(mark: int | None, first: int | None) -> int:
    return mark if mark is not None else (first or 0) - 1
