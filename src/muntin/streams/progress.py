"""What several streams have seen and done at one moment, and who holds the others back."""

from __future__ import annotations

from dataclasses import dataclass, field

from muntin.counts import RowCounts
from muntin.display import count
from muntin.engine import Progress
from muntin.operators.hot_keys import HotKey
from muntin.windows import distance_text, moment_text


@dataclass(frozen=True, kw_only=True)
class StreamProgress(RowCounts):
    """How far one stream has come, and what came of its rows.

    ``watermark`` and ``seen`` are ticks, None before the first row: ``plain`` numbers, or
    microseconds. ``aggregates`` is what the engine of its aggregates has done and keeps.
    """

    watermark: int | None
    seen: int | None
    idle: bool
    aggregates: Progress
    plain: bool = True


@dataclass(frozen=True)
class GroupProgress:
    """Several streams at one moment.

    Attributes:
        streams: Each stream by name.
        holder: The stream that holds the others back: the one with the least W, if W differ.
        gap: How far the streams are apart in event time, in ticks.
        kept: Rows that operators keep, by row query.
        results: Rows shown so far, by row query.
        hot_keys: The keys that most of the recent rows have, by stream and what it is joined by.
        since: The first instant that each row query answers wholly, in ticks; None for one that
            has seen all rows.
    """

    streams: dict[str, StreamProgress]
    holder: str | None
    gap: int
    kept: dict[str, int]
    results: dict[str, int]
    hot_keys: dict[str, tuple[HotKey, ...]] = field(default_factory=dict)
    since: dict[str, int | None] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = []
        for name, each in self.streams.items():
            mark = "nothing yet" if each.watermark is None else f"W {_moment(each)}"
            late = f", {count(each.late_rows, 'late row')}" if each.late_rows else ""
            note = ", idle" if each.idle else ""
            lines.append(f"{name or 'stream'}: {count(each.rows, 'row')}{late}, {mark}{note}")
        if self.holder is not None and self.streams[self.holder].watermark is None:
            lines.append(f"{self.holder} has no row so far and holds the others back")
        elif self.holder is not None:
            plain = self.streams[self.holder].plain
            apart = f"{self.gap:,}" if plain else distance_text(self.gap)
            lines.append(f"{self.holder} holds the others back, by {apart}")
        return "\n".join(lines)


def _moment(stream: StreamProgress) -> str:
    tick = stream.watermark or 0
    return f"{tick:,}" if stream.plain else moment_text(tick)
