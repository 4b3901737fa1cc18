"""Synopses of a window that slides by parts: running, interval and basic interval.

All take the partial of each part as it closes and answer windows of the last n parts. A part is
what a slice of fixed length is to the engine; partials are those of any aggregate.

*Sliding Window Query Processing over Data Streams*, 2.3.4 and 8.3.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from muntin.aggregates import Aggregate
from muntin.errors import AggregateError, WindowError


class _Synopsis:
    """What the three have in common: an aggregate, and windows of up to `parts` parts."""

    def __init__(self, aggregate: Aggregate, parts: int) -> None:
        if parts < 1:
            raise WindowError(f"a synopsis covers 1 part or more, not {parts}")
        self.aggregate = aggregate
        self.parts = parts
        self.closed = 0
        self.operations = 0

    def _count(self, window: int) -> int:
        """How many parts of a window have closed."""
        if not 1 <= window <= self.parts:
            raise WindowError(
                f"a window of this synopsis has 1 to {self.parts} parts, not {window}",
                hint="keep more parts: a longer window can be answered once they have closed",
            )
        return min(window, self.closed)

    def _combine(self, a: Any, b: Any) -> Any:
        self.operations += 1
        return self.aggregate.combine(a, b)


class Running(_Synopsis):
    """Totals from the beginning on: any window is one subtraction.

    It keeps one value more than there are parts, and needs an inverse.

    >>> from muntin.aggregates import resolve
    >>> import pyarrow as pa
    >>> total = resolve("sum", (pa.int64(),)).algebra
    >>> running = Running(total, parts=4)
    >>> for value in range(1, 7):
    ...     running.close(total.partial(value))
    >>> running.answer(1), running.answer(4)
    (6, 18)
    """

    def __init__(self, aggregate: Aggregate, parts: int) -> None:
        super().__init__(aggregate, parts)
        if not aggregate.invertible:
            raise AggregateError(
                f"a running synopsis needs an inverse, which {aggregate.name} does not have",
                hint="take an interval or a basic interval synopsis",
            )
        self._totals: deque[Any] = deque([aggregate.identity], maxlen=parts + 1)

    def close(self, partial: Any) -> None:
        """Take in the part that closed."""
        self._totals.append(self._combine(self._totals[-1], partial))
        self.closed += 1

    def answer(self, window: int) -> Any:
        """The answer over the last `window` parts."""
        before = self._totals[-1 - self._count(window)]
        self.operations += 1
        return self.aggregate.lower(self.aggregate.inverse(self._totals[-1], before))


class BasicIntervals(_Synopsis):
    """One value per part: windows are combined from the youngest part on, all in one pass.

    >>> from muntin.aggregates import resolve
    >>> import pyarrow as pa
    >>> top = resolve("max", (pa.int64(),)).algebra
    >>> basic = BasicIntervals(top, parts=4)
    >>> for value in (7, 1, 5, 2):
    ...     basic.close(top.partial(value))
    >>> basic.answers([1, 2, 4]), basic.operations
    ([2, 5, 7], 3)
    """

    def __init__(self, aggregate: Aggregate, parts: int) -> None:
        super().__init__(aggregate, parts)
        self._partials: deque[Any] = deque(maxlen=parts)

    def close(self, partial: Any) -> None:
        """Take in the part that closed."""
        self._partials.append(partial)
        self.closed += 1

    def answer(self, window: int) -> Any:
        """The answer over the last `window` parts."""
        return self.answers([window])[0]

    def answers(self, windows: list[int]) -> list[Any]:
        """The answers of several windows together: no more steps than the longest takes alone."""
        wanted = {self._count(window) for window in windows}
        longest = max(wanted, default=0)
        found: dict[int, Any] = {0: self.aggregate.identity}
        sofar: Any = None
        for count, partial in enumerate(reversed(self._partials), start=1):
            if count > longest:
                break
            # The younger part is on the right: order matters to some aggregates.
            sofar = partial if count == 1 else self._combine(partial, sofar)
            if count in wanted:
                found[count] = sofar
        return [self.aggregate.lower(found[self._count(window)]) for window in windows]


class Intervals(_Synopsis):
    """Values of one, two, four, ... parts at fixed places: a window takes some log n of them.

    It keeps 2b - 1 values for b parts. The worst window takes 2 log b - 2 of them.

    >>> from muntin.aggregates import resolve
    >>> import pyarrow as pa
    >>> top = resolve("max", (pa.int64(),)).algebra
    >>> intervals = Intervals(top, parts=8)
    >>> for value in (7, 1, 5, 2, 0, 3, 4, 1):
    ...     intervals.close(top.partial(value))
    >>> intervals.answer(7), len(intervals.pieces(7))
    (5, 3)
    """

    def __init__(self, aggregate: Aggregate, parts: int) -> None:
        super().__init__(aggregate, parts)
        self._levels: list[deque[Any]] = []
        size = 1
        while size <= parts:
            # One place more than fits: intervals lie at multiples of their own length.
            self._levels.append(deque(maxlen=parts // size + 1))
            size *= 2

    def close(self, partial: Any) -> None:
        """Take in the part that closed, and the intervals that close with it."""
        self.closed += 1
        self._levels[0].append(partial)
        for level in range(1, len(self._levels)):
            if self.closed % (1 << level):
                return
            below = self._levels[level - 1]
            self._levels[level].append(self._combine(below[-2], below[-1]))

    def pieces(self, window: int) -> list[tuple[int, int]]:
        """The intervals that make up a window, oldest first, as (first part, level)."""
        at, end = self.closed - self._count(window), self.closed
        found: list[tuple[int, int]] = []
        while at < end:
            level = len(self._levels) - 1
            while at % (1 << level) or at + (1 << level) > end:
                level -= 1
            found.append((at, level))
            at += 1 << level
        return found

    def answer(self, window: int) -> Any:
        """The answer over the last `window` parts."""
        sofar: Any = None
        for at, level in self.pieces(window):
            kept = self._levels[level]
            newest = (self.closed >> level) - 1
            partial = kept[(at >> level) - newest - 1]
            sofar = partial if sofar is None else self._combine(sofar, partial)
        return self.aggregate.lower(self.aggregate.identity if sofar is None else sofar)
