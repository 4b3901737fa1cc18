"""Rows that wait for the watermark: what comes in any order goes on in order."""

from __future__ import annotations

import numpy as np

from muntin.operators.rows import Changes, Rows, concat

# As many runs as are worth a look each with every batch.
_RUNS = 16


class Pending:
    """The rows of one edge that begin at or after the watermark, in runs sorted by start.

    Ends need not wait: they come from operators that run below the watermark themselves.
    """

    STATE = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[Rows] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def release(self, changes: Changes, watermark: int) -> Changes:
        """The rows that begin before the watermark, in order of start, then of end."""
        rows = changes.born
        if len(rows):
            order = np.lexsort((rows.end, rows.start))
            in_order = order.size < 2 or bool((np.diff(order) > 0).all())
            self._runs.append(rows if in_order else rows.take(order))
        due, kept = [], []
        for run in self._runs:
            cut = int(np.searchsorted(run.start, watermark))
            if cut:
                due.append(run.slice(0, cut))
            if cut < len(run):
                kept.append(run.slice(cut, len(run)) if cut else run)
        self._runs = kept if len(kept) < _RUNS else _merged(kept)
        if not due:
            return Changes(rows.slice(0, 0), changes.ended, changes.at)
        return Changes(_sorted(due), changes.ended, changes.at)


def _sorted(runs: list[Rows]) -> Rows:
    """The rows of some runs in order of start, then of end."""
    rows = concat(runs)
    return rows if len(runs) == 1 else rows.take(np.lexsort((rows.end, rows.start)))


def _merged(runs: list[Rows]) -> list[Rows]:
    """Fewer runs: the smaller half of them as one, so that a row is moved few times."""
    by_size = sorted(runs, key=len)
    half = len(runs) // 2
    return [*by_size[half:], _sorted(by_size[:half])]
