"""How many rows come per tick of event time, smoothed over batches."""

from __future__ import annotations

from dataclasses import dataclass

# What a batch counts for when the next one comes: half of all weight is on the last two.
_KEPT = 0.7


@dataclass(frozen=True)
class RecentRate:
    """Rows and ticks of recent batches, older ones counting for less and less.

    >>> RecentRate().after(30, 10).after(60, 10).rate
    4.764705882352941
    """

    rows: float = 0.0
    ticks: float = 0.0

    @property
    def rate(self) -> float | None:
        """Rows per tick; None before time has moved on."""
        return self.rows / self.ticks if self.ticks and self.rows else None

    def after(self, rows: int, ticks: int) -> RecentRate:
        """With another batch: its rows, and by how much it moved the largest event time.

        Rows of a batch that moves nothing count together with those of the next that does.
        """
        if not ticks:
            return RecentRate(self.rows + rows, self.ticks)
        return RecentRate(self.rows * _KEPT + rows, self.ticks * _KEPT + ticks)
