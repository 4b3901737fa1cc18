"""How the watermarks of a run's streams move: each by its rows, and where it is silent by others.

W of a stream is the largest event time of its earlier batches minus its lateness, and never goes
back. A stream without a row for ``idle`` takes the least W of those that are not idle, so that it
holds nobody back; where all are idle, nothing moves. ``advance_when_idle`` alone moves a stream by
the clock. Both are decided by the clocks of batches, before a batch runs, and are in its record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.plan.operators import RowFinal
from muntin.plan.routes import RoutedPlan
from muntin.spark.streaming.checkpoint.records import StreamOutcome, StreamRecord

Windows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pace:
    """How the watermark of one stream moves.

    Attributes:
        lateness: How far it stays behind the largest event time, in ticks.
        is_plain: Whether times are numbers, which no clock moves.
        idle: For how long no row must have come, in microseconds, for the stream to be idle; None
            where it never is.
        advance_when_idle: After how long without a row the clock moves it, likewise.
        started: The clock when the run began, before which nobody listened; None for a run that
            takes in what there is: it knows at once that nothing has come.
    """

    lateness: int = 0
    is_plain: bool = False
    idle: int | None = None
    advance_when_idle: int | None = None
    started: int | None = None

    @property
    def moves_when_silent(self) -> bool:
        """Whether the stream moves without rows of its own, once it has been silent for long."""
        return self.idle is not None or self.advance_when_idle is not None

    def is_idle(self, outcome: StreamOutcome, clock: int) -> bool:
        """Whether the stream holds nobody back."""
        return self._is_silent(outcome, clock, self.idle)

    def moment(self, outcome: StreamOutcome, clock: int) -> int | None:
        """The largest event time plus the clock elapsed since; None while rows come.

        >>> pace = Pace(advance_when_idle=60)
        >>> heard = StreamOutcome(seen=1000, heard=5000)
        >>> pace.moment(heard, 5059), pace.moment(heard, 5060)
        (None, 1060)
        """
        if outcome.seen is None or outcome.heard is None:
            return None
        is_silent = self._is_silent(outcome, clock, self.advance_when_idle)
        return outcome.seen + clock - outcome.heard if is_silent else None

    def _is_silent(self, outcome: StreamOutcome, clock: int, limit: int | None) -> bool:
        if limit is None or outcome.heard is None:
            return False
        listening = max(outcome.heard, outcome.heard if self.started is None else self.started)
        return clock - listening >= limit

    def is_due(self, outcome: StreamOutcome, clock: int, windows: Windows) -> bool:
        """Whether the clock has reached the end of a window that may hold a row."""
        moment = self.moment(outcome, clock)
        if moment is None or outcome.seen is None or outcome.watermark is None:
            return False
        following = next_end(windows, outcome.watermark, outcome.seen)
        return following is not None and following <= moment - self.lateness


def moments(
    paces: Sequence[Pace], outcomes: Sequence[StreamOutcome], clock: int
) -> list[int | None]:
    """Where each stream has been brought that fell silent; None for those that move by rows.

    >>> ahead, silent = StreamOutcome(watermark=90, heard=70), StreamOutcome(watermark=20, heard=5)
    >>> paces = [Pace(idle=60), Pace(lateness=3, idle=60)]
    >>> moments(paces, [ahead, silent], 64), moments(paces, [ahead, silent], 65)
    ([None, None], [None, 93])
    >>> moments(paces, [ahead, silent], 130)  # both are idle
    [None, None]
    """
    pairs = list(zip(paces, outcomes, strict=True))
    idle = [pace.is_idle(outcome, clock) for pace, outcome in pairs]
    floor = _least([each for each, is_idle in zip(outcomes, idle, strict=True) if not is_idle])
    found = []
    for (pace, outcome), is_idle in zip(pairs, idle, strict=True):
        brought = [pace.moment(outcome, clock)]
        if is_idle and floor is not None and _is_below(outcome.watermark, floor):
            brought.append(floor + pace.lateness)
        found.append(max((each for each in brought if each is not None), default=None))
    return found


def _is_below(watermark: int | None, floor: int) -> bool:
    return watermark is None or watermark < floor


def _least(outcomes: Sequence[StreamOutcome]) -> int | None:
    """The least watermark; None where one has none yet, or there are no streams."""
    known = [each.watermark for each in outcomes if each.watermark is not None]
    return min(known) if known and len(known) == len(outcomes) else None


def next_end(windows: Windows, watermark: int, seen: int) -> int | None:
    """The first end after the watermark of a window that begins no later than the last row.

    Args:
        windows: The range, slide and phase of each window.
        watermark: Windows up to here are answered.
        seen: The time of the last row.

    >>> next_end(np.array([[20, 10, 0]]), 100, 104), next_end(np.array([[20, 10, 0]]), 120, 104)
    (110, None)
    """
    ranges, slides, phases = windows.T
    ends = ((watermark - phases) // slides + 1) * slides + phases
    held = ends[ends - ranges <= seen]
    return int(held.min()) if held.size else None


def reached(plan: RoutedPlan | None, streams: Sequence[StreamOutcome]) -> dict[str, pa.Scalar]:
    """By query over rows, the least W of the streams it reads, as a time of its results."""
    found = {}
    for final, marks in _of_each(plan, [each.watermark for each in streams]):
        known = [each for each in marks if each is not None]
        if len(known) == len(marks):
            found[final.name] = final.timeline.from_ticks(np.array([min(known)]))[0]
    return found


def ended(plan: RoutedPlan | None, streams: Sequence[StreamRecord]) -> dict[str, pa.Scalar]:
    """The same where no row comes any more: all is known up to the last row."""
    found = {}
    for final, marks in _of_each(plan, [each.seen for each in streams]):
        known = [each for each in marks if each is not None]
        if known:
            found[final.name] = final.timeline.from_ticks(np.array([max(known)]))[0]
    return found


def _of_each(
    plan: RoutedPlan | None, marks: Sequence[int | None]
) -> Iterator[tuple[RowFinal, list[int | None]]]:
    """By query over rows, the marks of the streams it reads."""
    if plan is not None:
        named = dict(zip(plan.asked.streams, marks, strict=True))
        yield from ((final, [named[name] for name in final.streams]) for final in plan.finals)
