"""What several streams have seen and done at one moment, and who holds the others back."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from muntin.counts import RowCounts
from muntin.display import count
from muntin.engine import Progress
from muntin.engine.watermarks import Watermarks
from muntin.plan.operators import RowPlan, leaves

_logger = logging.getLogger("muntin.streams")


class HolderWarning:
    """What warns, once, of a stream that holds others back so far that it decides what is kept.

    Rows are kept for the longest window, plus as long as the streams are apart in event time. It
    warns when the second is more than the first, and again once they were close meanwhile.
    """

    def __init__(self) -> None:
        self._told: str | None = None
        self._first: int | None = None

    def check(self, clocks: Watermarks, plan: RowPlan) -> None:
        """Look at streams that some query reads together."""
        read = {name for final in plan.finals if len(final.streams) > 1 for name in final.streams}
        marks = {name: clocks.clocks[name].watermark for name in clocks.clocks if name in read}
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
                "far. If it may be silent, say idle=, or advance() it",
                least,
                what,
                ", ".join(name for name in marks if name != least),
            )


def _or_first(mark: int | None, first: int | None) -> int:
    return mark if mark is not None else (first or 0) - 1


@dataclass(frozen=True, kw_only=True)
class StreamProgress(RowCounts):
    """How far one stream has come, and what came of its rows.

    ``watermark`` and ``seen`` are ticks, None before the first row; ``aggregates`` is what the
    engine of its aggregates has done and keeps.
    """

    watermark: int | None
    seen: int | None
    idle: bool
    aggregates: Progress


@dataclass(frozen=True)
class GroupProgress:
    """Several streams at one moment.

    Attributes:
        streams: Each stream by name.
        holder: The stream that holds the others back: the one with the least W, if W differ.
        gap: How far the streams are apart in event time, in ticks.
        kept: Rows that operators keep, by row query.
        results: Rows shown so far, by row query.
    """

    streams: dict[str, StreamProgress]
    holder: str | None
    gap: int
    kept: dict[str, int]
    results: dict[str, int]

    def __str__(self) -> str:
        lines = []
        for name, each in self.streams.items():
            mark = "nothing yet" if each.watermark is None else f"W {each.watermark:,}"
            late = f", {count(each.late_rows, 'late row')}" if each.late_rows else ""
            note = ", idle" if each.idle else ""
            lines.append(f"{name or 'stream'}: {count(each.rows, 'row')}{late}, {mark}{note}")
        if self.holder is not None:
            lines.append(f"{self.holder} holds the others back, by {self.gap:,}")
        return "\n".join(lines)
