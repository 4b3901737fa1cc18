"""How a side's time grows with its work, as far as it was measured, and a line beyond that."""

from __future__ import annotations


class Growth:
    """Seconds by amount of work; beyond the last two amounts they lie on a line.

    The line is never steeper than proportion to the last amount, and at least half as steep: the
    times of two sizes that a busy machine blurs must not say that more work costs nothing.

    >>> growth = Growth()
    >>> growth.add(1, 3.0)
    >>> growth.add(16, 6.0)
    >>> growth.at(256), growth.within(30)
    (54.0, 136.0)
    """

    def __init__(self) -> None:
        self._points: dict[float, float] = {}

    @property
    def sizes(self) -> int:
        """How many amounts were measured."""
        return len(self._points)

    @property
    def last(self) -> float:
        """The largest amount that was measured; 0 if none was."""
        return max(self._points, default=0.0)

    def add(self, work: float, seconds: float) -> None:
        """Take in what an amount of work took."""
        self._points[work] = seconds

    def at(self, work: float) -> float:
        """Seconds that an amount would take; 0 if nothing was measured."""
        if not self._points:
            return 0.0
        return self._points[self.last] + self._slope() * (work - self.last)

    def within(self, seconds: float) -> float:
        """The amount of work that takes so long."""
        return self.last + (seconds - self._points[self.last]) / self._slope()

    def _slope(self) -> float:
        *before, last = sorted(self._points)
        proportion = self._points[last] / last
        if not before:
            return proportion
        rise = (self._points[last] - self._points[before[-1]]) / (last - before[-1])
        return min(max(rise, proportion / 2), proportion)
