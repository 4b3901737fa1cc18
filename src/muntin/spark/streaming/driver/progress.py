"""How a run goes, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muntin.counts import Counts, RowCounts
from muntin.display import count, html_facts
from muntin.operators.hot_keys import HotKey
from muntin.operators.splits import KeySplit
from muntin.windows import distance_text, duration_text, moment_text

_DAY = 86_400  # seconds
_NEVER = -(2**63)  # before every watermark


@dataclass(frozen=True)
class StreamProgress(RowCounts):
    """What a run has seen of one of its streams.

    Attributes:
        seen: The largest event time, in ticks; None before the first.
        watermark: W of the stream: its windows up to this tick are answered; None before the first.
        is_idle: Whether it has been silent for so long that it holds no other stream back.
    """

    seen: int | None = None
    watermark: int | None = None
    is_idle: bool = False


@dataclass(frozen=True, kw_only=True)
class RunProgress(Counts):
    """What a run has seen and done since its first start, and how its last batch went.

    Final aggregations include those for a state that a worker had to read again.

    Attributes:
        is_active: Whether batches are run.
        queries: How many queries there are.
        batches: How many batches have finished.
        results: Rows of results by query, for those that run.
        seen: The largest event time, in ticks; None before the first.
        watermark: Windows up to this tick are answered; None before the first. Where there are
            several streams, the least of theirs.
        lag: Seconds from the largest event time to the clock; None where times are numbers.
        state_bytes: Bytes of all state.
        batch_rows: Rows of the last batch.
        batch_seconds: How long the last batch took on the driver.
        streams: Each stream by its name; one that has none is called ``stream``.
        since: The first instant that each query over rows answers wholly, in ticks; None for one
            that has seen all rows.
        hot_keys: The keys that most of the recent rows have, by stream and what it is joined by;
            from a sample of rows since the last start.
        split_keys: The keys that ``skew = 'replicate'`` splits, by the streams that it joins.
    """

    is_active: bool
    queries: int
    batches: int
    results: dict[str, int]
    seen: int | None
    watermark: int | None
    lag: float | None
    state_bytes: int
    batch_rows: int
    batch_seconds: float
    streams: Mapping[str, StreamProgress] = field(default_factory=dict)
    since: Mapping[str, int | None] = field(default_factory=dict)
    hot_keys: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)
    split_keys: Mapping[str, tuple[KeySplit, ...]] = field(default_factory=dict)

    @property
    def held_by(self) -> str | None:
        """The stream that holds others back: the least watermark is its; None if none does.

        An idle stream holds nobody, and one without a row so far all that have some.
        """
        marks = {
            name: _NEVER if each.watermark is None else each.watermark
            for name, each in self.streams.items()
        }
        active = [name for name, each in self.streams.items() if not each.is_idle]
        least = min(active, key=lambda name: marks[name], default=None)
        return None if least is None or marks[least] == max(marks.values()) else least

    @property
    def gap(self) -> int | None:
        """How far the streams are apart: from the least watermark to the largest, in ticks.

        None where one has no watermark yet.
        """
        marks = [each.watermark for each in self.streams.values()]
        known = [each for each in marks if each is not None]
        return max(known) - min(known) if known and len(known) == len(marks) else None

    @property
    def rate(self) -> float:
        """Rows per second in the last batch."""
        return self.batch_rows / self.batch_seconds if self.batch_seconds else 0.0

    @property
    def lag_text(self) -> str:
        """The lag as people read it: above a day, the day that rows have come to.

        So far behind, rows are old ones that are read again, and their distance to the clock
        says less than their date.
        """
        if self.lag is None or self.seen is None:
            return "-"
        if abs(self.lag) < 60:
            return f"{self.lag:.1f} s"
        if abs(self.lag) <= _DAY:
            return duration_text(round(self.lag) * 1_000_000)
        return f"at {moment_text(self.seen)[:10]}"

    @property
    def _behind(self) -> str:
        if self.lag is None or self.seen is None:
            return ""
        if abs(self.lag) <= _DAY:
            return f"{duration_text(round(self.lag) * 1_000_000)} behind the clock"
        return f"at event time {moment_text(self.seen)}"

    @property
    def _held(self) -> str:
        if self.held_by is None:
            return ""
        if self.streams[self.held_by].watermark is None:
            return f"{self.held_by} has no row so far and holds the others back"
        if self.gap is None:
            return f"{self.held_by} holds the others back"
        apart = f"{self.gap:,}" if self.lag is None else distance_text(self.gap)
        return f"{self.held_by} is {apart} behind the stream that is furthest"

    def __str__(self) -> str:
        rows = f"{count(self.rows, 'row')} in {count(self.batches, 'batch')}"
        parts = [
            f"{count(self.queries, 'query')} over {rows}",
            count(sum(self.results.values()), "row of results"),
            f"the last batch took {self.batch_seconds:.2f} s ({self.rate:,.0f} rows/s)",
            f"{self.late_rows:,} late and {count(self.bad_rows, 'bad row')}",
            f"{count(self.state_bytes, 'byte')} of state",
            *filter(None, [self._behind, self._held]),
        ]
        return f"{self._state}: " + ", ".join(parts)

    @property
    def _state(self) -> str:
        return f"The stream {'runs' if self.is_active else 'has ended'}"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_facts(
            self._state,
            {
                "queries": f"{self.queries:,}",
                "rows": f"{self.rows:,} in {count(self.batches, 'batch')}",
                "rows of results": f"{sum(self.results.values()):,}",
                "late rows": f"{self.late_rows:,}",
                "bad rows": f"{self.bad_rows:,}",
                "failed values": f"{sum(self.errors.values()):,}",
                "last batch": f"{count(self.batch_rows, 'row')} in {self.batch_seconds:.2f} s",
                "state": count(self.state_bytes, "byte"),
                "lag": self.lag_text,
                "partial aggregations": f"{self.partial_aggregations:,}",
                "final aggregations": f"{self.final_aggregations:,}",
                "cell aggregations": f"{self.cell_aggregations:,}",
                **{
                    f"stream {name}": f"{count(each.rows, 'row')}, {each.late_rows:,} late and "
                    f"{each.bad_rows:,} bad{', idle' if each.is_idle else ''}"
                    for name, each in self.streams.items()
                    if len(self.streams) > 1
                },
                **({} if self.held_by is None else {"held back by": self.held_by}),
            },
        )
