"""The hottest keys of streams that are joined, in one process."""

from __future__ import annotations

import pyarrow as pa

from muntin.operators.hot_keys import HotKey, KeyCounts, KeySample
from muntin.plan.operators import RowPlan
from muntin.planner.rows.shares import meeting_keys


class HotStreams:
    """Counts keys of the rows that meet others."""

    def __init__(self, plan: RowPlan) -> None:
        self._samples: dict[str, tuple[str, KeySample]] = {}
        self._counts: dict[str, KeyCounts] = {}
        self.adopt(plan)

    def adopt(self, plan: RowPlan) -> None:
        """Go on with other queries; what was counted for those that stay is kept."""
        found = meeting_keys(plan)
        self._samples = {name: (stream, KeySample(key)) for name, (stream, key) in found.items()}
        self._counts = {name: self._counts.get(name, KeyCounts()) for name in found}

    def see(self, stream: str, rows: pa.Table) -> None:
        """Look at some rows of a batch."""
        for name, (own, sample) in self._samples.items():
            if own == stream:
                sample.see(rows)
                self._counts[name].add(dict(sample.counts), sample.rows)
                sample.counts.clear()
                sample.rows = 0

    def hottest(self) -> dict[str, tuple[HotKey, ...]]:
        """The hottest keys, by stream and what it is joined by."""
        found = {name: each.hottest() for name, each in self._counts.items()}
        return {name: each for name, each in found.items() if each}
